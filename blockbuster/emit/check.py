"""The correctness suite for any Triton kernel, ours or a user's: ``check_kernel``.

Arrays are NumPy arrays or torch tensors; the kernel is a callable that takes them by name. Errors
are measured against the reference in float64, and beside an eager function where one is given: the
ratio of the largest errors, and of the root mean squares.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockbuster.emit.dtypes import DTYPES
from blockbuster.emit.kernel import Kernel
from blockbuster.emit.lint import Finding, lint

Array = Any  # a NumPy array or a torch tensor
Arrays = Mapping[str, Array]
Run = Callable[..., Any]

RATIO = 1.5
VARIANTS = ("random", "peaked", "extreme", "strided")
EXTREME = {"float16": 8.0}  # what inputs are multiplied by; others: 100
ROUNDING = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-23}


@dataclass(frozen=True)
class CheckedRun:
    """One configuration on one set of inputs. ``problems`` is empty where all is well."""

    configuration: int
    inputs: int
    variant: str
    error: float
    ratio_max: float | None
    ratio_rms: float | None
    problems: tuple[str, ...]


@dataclass(frozen=True)
class KernelReport:
    """What ``check_kernel`` found. ``notes`` say what could not be checked, and why."""

    runs: tuple[CheckedRun, ...]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """True if every run is right and the lint found nothing."""
        return not self.findings and not any(run.problems for run in self.runs)

    def to_json(self) -> str:
        """The whole report as JSON."""
        return json.dumps({"passed": self.passed, **asdict(self)}, indent=1)

    def __str__(self) -> str:
        bad = [run for run in self.runs if run.problems]
        worst = max((run.error for run in self.runs), default=0.0)
        ratios = [r for run in self.runs for r in (run.ratio_max, run.ratio_rms) if r is not None]
        beside = f", at most {max(ratios):.2f} times eager's" if ratios else ""
        lines = [
            f"{'passed' if self.passed else 'FAILED'}: {len(self.runs)} runs, {len(bad)} wrong;"
            f" largest error {worst:.2g} of the largest result{beside}"
        ]
        for run in bad:
            where = f"configuration {run.configuration}, inputs {run.inputs}, {run.variant}"
            lines += [f"  {where}: {problem}" for problem in run.problems]
        lines += [f"  {finding}" for finding in self.findings]
        return "\n".join([*lines, *(f"  not checked: {note}" for note in self.notes)])


def check_kernel(
    kernel: Run | Sequence[Run],
    reference: Run,
    inputs: Arrays | Sequence[Arrays],
    *,
    eager: Run | None = None,
    outputs: Sequence[str] = (),
    source: str = "",
    runs: int = 3,
    tolerance: float | None = None,
) -> KernelReport:
    """Check a kernel, or each of its configurations, on each set of inputs and variants of it.

    ``reference`` takes the same arrays in float64, ``eager`` in their own dtype: with it the error
    may be 1.5 times eager's (or one rounding of the result), without it ``tolerance`` times the
    largest result (default: by dtype). Give several sets of inputs to cover ragged and tiny
    shapes; each is also tried with peaked and extreme values and in strided memory. ``outputs``
    names the keyword arguments that take arrays to write into: they are poisoned with NaN.
    ``source`` is the text of the kernel's file, for the lint. Results must be bitwise equal in all
    of ``runs`` runs. Our own kernels know their outputs and source.

    >>> def double(x, out=None):
    ...     return np.multiply(x, 2, out=out)
    >>> print(check_kernel(double, double, {"x": np.ones(5, np.float32)}, outputs=["out"]))
    passed: 4 runs, 0 wrong; largest error 0 of the largest result
      not checked: the pipeliner's race: no source was given
    """
    kernels = tuple(kernel) if isinstance(kernel, Sequence) else (kernel,)
    sets = (inputs,) if isinstance(inputs, Mapping) else tuple(inputs)
    suite = _Suite(reference, eager, tuple(outputs), runs, tolerance)
    checked = [
        suite.check(run, number, at, variant, arrays)
        for number, run in enumerate(kernels)
        for at, arrays in enumerate(sets)
        for variant in VARIANTS
    ]
    texts = dict.fromkeys([k.source for k in kernels if isinstance(k, Kernel)])
    texts |= {source: None} if source else {}
    findings = [finding for text in texts for finding in lint(text)]
    return KernelReport(tuple(checked), tuple(findings), tuple(_notes(kernels, outputs, texts)))


def _notes(kernels: Sequence[Run], outputs: Sequence[str], texts: Any) -> Iterator[str]:
    ours = all(isinstance(kernel, Kernel) for kernel in kernels)
    if not ours and not outputs:
        yield "whether outputs are fully overwritten: no names of output arguments were given"
    if not texts:
        yield "the pipeliner's race: no source was given"


@dataclass(frozen=True)
class _Suite:
    reference: Run
    eager: Run | None
    outputs: tuple[str, ...]
    runs: int
    tolerance: float | None

    def check(self, run: Run, number: int, at: int, variant: str, arrays: Arrays) -> CheckedRun:
        given = varied(arrays, variant)
        exact = _results(self.reference(**{n: _double(a) for n, a in given.items()}))
        theirs: list[NDArray[Any] | None] = [None] * len(exact)
        if self.eager:
            theirs = [*_results(self.eager(**given))]
        names = run.outputs if isinstance(run, Kernel) else self.outputs
        first = self._run(run, given, names, ())
        found = [_host(a) for a in first]
        problems: list[str] = []
        for _ in range(self.runs - 1):
            again = [_host(a) for a in self._run(run, given, names, first)]
            if not all(map(_same_bits, found, again)):
                problems.append("results differ from run to run")
                break
        found = [_host(a) for a in self._run(run, given, names, first)] if names else found
        judged = [
            self._judge(ours, right, other, _dtype(array))
            for ours, right, other, array in zip(found, exact, theirs, first, strict=True)
        ]
        problems += [problem for _, _, _, said in judged for problem in said]
        peaks, means = [j[1] for j in judged], [j[2] for j in judged]
        return CheckedRun(
            number,
            at,
            variant,
            max(j[0] for j in judged),
            max(p for p in peaks if p is not None) if self.eager else None,
            max(m for m in means if m is not None) if self.eager else None,
            tuple(dict.fromkeys(problems)),
        )

    def _run(
        self, run: Run, given: Arrays, names: Sequence[str], like: Sequence[Array]
    ) -> tuple[Array, ...]:
        """The results of a run; into arrays full of NaN where it is known what they look like."""
        poison = {n: _poisoned(a) for n, a in zip(names, like, strict=False)}
        returned = run(**given, **poison)
        if poison:
            return tuple(poison.values())
        return returned if isinstance(returned, tuple) else (returned,)

    def _judge(
        self, ours: NDArray[Any], right: NDArray[Any], other: NDArray[Any] | None, dtype: str
    ) -> tuple[float, float | None, float | None, list[str]]:
        """Relative error, ratios to eager's errors, and what is wrong with one output."""
        if ours.shape != right.shape:
            text = f"a result has shape {ours.shape}, expected {right.shape}"
            return math.inf, math.inf, math.inf, [text]
        most = float(np.finfo(np.float16).max if dtype == "float16" else np.finfo(np.float32).max)
        judged = np.isfinite(right) & (np.abs(right) <= most / 2)
        judged &= np.isfinite(other) if other is not None else True
        lost = int((judged & ~np.isfinite(ours)).sum())
        if lost:
            text = f"{lost} elements are not finite: not written, or overflown"
            return math.inf, math.inf, math.inf, [text]
        if not judged.any():
            return 0.0, 0.0, 0.0, []
        mine, scale = np.abs(ours - right)[judged], np.abs(right[judged])
        error = float(mine.max() / max(scale.max(), 1e-30))
        if other is None:
            allowed = self.tolerance or DTYPES.get(dtype, DTYPES["float32"]).tolerance
            text = f"error {error:.3g} of the largest result, allowed {allowed:g}"
            return error, None, None, [text] if error > allowed else []
        theirs, unit = np.abs(other - right)[judged], ROUNDING.get(dtype, 2.0**-53)
        pairs = [(mine.max(), theirs.max(), scale.max()), tuple(map(_rms, (mine, theirs, scale)))]
        ratios = [float(x / y) if y else (math.inf if x else 0.0) for x, y, _ in pairs]
        bad = any(x > RATIO * y and x > unit * size for x, y, size in pairs)
        text = f"error {ratios[0]:.2f} (largest) and {ratios[1]:.2f} (rms) times eager's"
        return error, ratios[0], ratios[1], [text] if bad else []


def _rms(array: NDArray[Any]) -> float:
    return float(np.sqrt(np.mean(np.square(array))))


# arrays of either kind -----------------------------------------------------------


def varied(arrays: Arrays, variant: str) -> dict[str, Array]:
    """Inputs with some elements large, with all large, or with gaps between the elements."""
    return {n: _varied(a, variant) if _is_float(a) else a for n, a in arrays.items()}


def _varied(array: Array, variant: str) -> Array:
    if variant == "peaked":
        return array + array * 19 * (abs(array) > 2.4 * abs(array).mean())
    if variant == "extreme":
        return array * EXTREME.get(_dtype(array), 100.0)
    if variant == "strided":
        wide = _full(array, [2 * n + 1 for n in array.shape])
        view = wide[tuple(slice(1, None, 2) for _ in array.shape)]
        view[...] = array
        return view
    return array


def _is_float(array: Array) -> bool:
    return "float" in _dtype(array)


def _dtype(array: Array) -> str:
    return str(array.dtype).removeprefix("torch.")


def _full(like: Array, shape: Sequence[int]) -> Array:
    """A new array of NaN (of ones where the dtype has none), of the kind and dtype of another."""
    value = math.nan if _is_float(like) else 1
    if isinstance(like, np.ndarray):
        return np.full(shape, value, like.dtype)
    return like.new_full(tuple(shape), value)


def _poisoned(like: Array) -> Array:
    return _full(like, like.shape)


def _double(array: Array) -> Array:
    if not _is_float(array):
        return array
    return array.astype(np.float64) if isinstance(array, np.ndarray) else array.double()


def _host(array: Array) -> NDArray[Any]:
    if isinstance(array, np.ndarray | np.generic):
        return np.array(array, np.float64)
    return np.array(array.detach().double().cpu().numpy(), np.float64)


def _results(returned: Any) -> list[NDArray[Any]]:
    if isinstance(returned, Mapping):
        returned = tuple(returned.values())
    return [_host(a) for a in (returned if isinstance(returned, tuple) else (returned,))]


def _same_bits(left: NDArray[Any], right: NDArray[Any]) -> bool:
    """Equality of every bit: conversion to float64 loses none."""
    return left.shape == right.shape and left.tobytes() == right.tobytes()
