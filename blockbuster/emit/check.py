"""The correctness suite for any Triton kernel, ours or a user's: ``check_kernel``.

Arrays are NumPy arrays or torch tensors; the kernel is a callable that takes them by name. Errors
are measured against the reference in float64, and beside an eager function where one is given:
``judge.py`` says how, on several draws around the arrays that are given.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockbuster.emit.checked_arguments import (
    call_reference,
    check_alike,
    check_named,
    check_numbers,
    findings_of,
    input_sets,
    results_of,
)
from blockbuster.emit.dtypes import DTYPES
from blockbuster.emit.judge import GROUPS, Sample, Verdict, sampled, verdict, worst
from blockbuster.emit.kernel import Kernel
from blockbuster.emit.lint import Finding

Array = Any  # a NumPy array or a torch tensor
Arrays = Mapping[str, Array]
Run = Callable[..., Any]

VARIANTS = ("random", "peaked", "extreme", "strided")
NO_NUMBER = "eager or the reference gives no number there, or one that hardly fits its dtype"
EXTREME = {"float16": 8.0}  # what inputs are multiplied by; others: 100


@dataclass(frozen=True)
class CheckedRun:
    """One configuration on one set of inputs. ``problems`` is empty where all is well.

    ``error`` is the largest of all draws, over the largest result; the ratios to eager's errors are
    medians over groups of draws. ``judged`` and ``spared`` count elements of each output over all
    draws: those that say whether the kernel is right, and those that do not, because eager or the
    reference loses them.
    """

    configuration: int
    inputs: int
    variant: str
    error: float
    ratio_max: float | None
    ratio_rms: float | None
    problems: tuple[str, ...]
    judged: tuple[int, ...] = ()
    spared: tuple[int, ...] = ()

    @property
    def where(self) -> str:
        """The configuration, the inputs and their variant."""
        return f"configuration {self.configuration}, inputs {self.inputs}, {self.variant}"

    @property
    def left(self) -> tuple[str, ...]:
        """For each output of which elements are spared, how many."""
        return tuple(
            f"{spared} of {spared + judged} elements of output {at} ({self.where}): {NO_NUMBER}"
            for at, (judged, spared) in enumerate(zip(self.judged, self.spared, strict=True))
            if spared
        )


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
        lines += [f"  {run.where}: {problem}" for run in bad for problem in run.problems]
        lines += [f"  {finding}" for finding in self.findings]
        spared = [left for run in self.runs for left in run.left]
        return "\n".join([*lines, *(f"  not checked: {note}" for note in [*spared, *self.notes])])


def check_kernel(
    kernel: Run | Sequence[Run],
    reference: Run,
    inputs: Arrays | Sequence[Arrays],
    *,
    eager: Run | None = None,
    outputs: Sequence[str] = (),
    source: str = "",
    runs: int = 3,
    draws: int = GROUPS,
    tolerance: float | None = None,
) -> KernelReport:
    """Check a kernel, or each of its configurations, on each set of inputs and variants of it.

    ``reference`` takes the same arrays in float64, ``eager`` in their own dtype: with it the error
    may be 1.5 times eager's, in the median over groups of ``draws`` around the inputs (each number
    times one between 3/4 and 5/4), and never 4 times; small results tell more with more draws.
    Without it the error may be ``tolerance`` times the largest result (default: by dtype). Give
    several sets of inputs to cover ragged and tiny shapes; each is also tried with peaked and
    extreme values and in strided memory. ``outputs`` names the keyword arguments that take arrays
    to write into: they are poisoned with NaN.
    ``source`` is the text of the kernel's file, for the lint. Results must be bitwise equal in all
    of ``runs`` runs. Our own kernels know their outputs and source. Where the inputs are tensors,
    ``reference`` gets float64 tensors. Raises ValueError where there is nothing to run, and where
    numbers of results differ; TypeError for what is neither an array nor a tensor.

    >>> def double(x, out=None):
    ...     return np.multiply(x, 2, out=out)
    >>> print(check_kernel(double, double, {"x": np.ones(5, np.float32)}, outputs=["out"]))
    passed: 4 runs, 0 wrong; largest error 0 of the largest result
      not checked: the pipeliner's race: no source was given
    """
    check_numbers(runs, draws, tolerance)
    kernels = tuple(kernel) if isinstance(kernel, Sequence) else (kernel,)
    if not kernels:
        raise ValueError("no kernel is given: nothing would be checked")
    sets = input_sets(inputs)
    texts = tuple(dict.fromkeys(k.source for k in kernels if isinstance(k, Kernel)))
    findings = findings_of(texts, source)
    suite = _Suite(reference, eager, tuple(outputs), runs, draws if eager else 1, tolerance)
    checked = [
        suite.check(run, number, at, variant, arrays)
        for number, run in enumerate(kernels)
        for at, arrays in enumerate(sets)
        for variant in VARIANTS
    ]
    notes = _notes(kernels, outputs, linted=bool(texts or source))
    return KernelReport(tuple(checked), tuple(findings), tuple(notes))


def _notes(kernels: Sequence[Run], outputs: Sequence[str], *, linted: bool) -> Iterator[str]:
    ours = all(isinstance(kernel, Kernel) for kernel in kernels)
    if not ours and not outputs:
        yield "whether outputs are fully overwritten: no names of output arguments were given"
    if not linted:
        yield "the pipeliner's race: no source was given"


@dataclass(frozen=True)
class _Suite:
    reference: Run
    eager: Run | None
    outputs: tuple[str, ...]
    runs: int
    draws: int
    tolerance: float | None

    def check(self, run: Run, number: int, at: int, variant: str, arrays: Arrays) -> CheckedRun:
        names = run.outputs if isinstance(run, Kernel) else self.outputs
        given = varied(arrays, variant)
        first = self._run(run, given, names, ())
        found = [_host(a) for a in first]
        problems: list[str] = []
        for _ in range(self.runs - 1):
            again = [_host(a) for a in self._run(run, given, names, first)]
            if not all(map(_same_bits, found, again)):
                problems.append("results differ from run to run")
                break
        exact = self._exact(given)
        check_named(names, first)
        check_alike("kernel", first, exact)
        problems += [
            f"a result has shape {ours.shape}, expected {right.shape}"
            for ours, right in zip(found, exact, strict=True)
            if ours.shape != right.shape
        ]
        if any(ours.shape != right.shape for ours, right in zip(found, exact, strict=True)):
            return CheckedRun(number, at, variant, math.inf, None, None, tuple(problems))
        dtypes = [_dtype(a) for a in first]
        groups = self._groups(run, names, first, arrays, variant)
        verdicts = [verdict(g, d) for g, d in zip(groups, dtypes, strict=True)]
        problems += [p for v, d in zip(verdicts, dtypes, strict=True) for p in self._problems(v, d)]
        last = worst(verdicts)
        peak, mean = (last.ratio_max, last.ratio_rms) if self.eager else (None, None)
        said = tuple(dict.fromkeys(problems))
        judged, spared = tuple(v.results for v in verdicts), tuple(v.spared for v in verdicts)
        return CheckedRun(number, at, variant, last.relative, peak, mean, said, judged, spared)

    def _groups(
        self, run: Run, names: Sequence[str], like: Sequence[Array], arrays: Arrays, variant: str
    ) -> list[list[Sample]]:
        """For each output, the errors of each group of draws."""
        groups = [[Sample()] * min(GROUPS, self.draws) for _ in like]
        for seed in range(self.draws):
            given = varied(redrawn(arrays, seed) if seed else arrays, variant)
            exact = self._exact(given)
            theirs = _results("eager function", self.eager(**given)) if self.eager else exact
            check_alike("eager function", theirs, exact)
            ours = [_host(a) for a in self._run(run, given, names, like)]
            for at, row in enumerate(zip(ours, theirs, exact, strict=True)):
                groups[at][seed % GROUPS] += sampled(
                    *row, _dtype(like[at]), tolerance=self.tolerance
                )
        return groups

    def _exact(self, given: Arrays) -> list[NDArray[Any]]:
        """The results of the reference in float64."""
        doubles = {n: _double(a) for n, a in given.items()}
        return _results("reference", call_reference(self.reference, doubles))

    def _problems(self, found: Verdict, dtype: str) -> list[str]:
        """What is wrong with one output."""
        what = "are wrong" if dtype == "bool" else "are not finite: not written, or overflown"
        odd = "are finite, but neither near the reference nor what eager gives"
        wrong = [f"{n} elements {text}" for n, text in ((found.lost, what), (found.odd, odd)) if n]
        if wrong:
            return wrong
        if found.says_nothing:
            return [f"none of the {found.spared} elements of an output is judged: {NO_NUMBER}"]
        if self.eager is None:
            default = DTYPES.get(dtype, DTYPES["float32"]).tolerance
            allowed = default if self.tolerance is None else self.tolerance
            text = f"error {found.relative:.3g} of the largest result, allowed {allowed:g}"
            return [text] if found.relative > allowed else []
        text = (
            f"error {found.ratio_max:.2f} (largest) and {found.ratio_rms:.2f} (rms) times eager's"
        )
        return [] if found.passed else [f"{text}, {found.ratio_all:.2f} (largest) over all draws"]

    def _run(
        self, run: Run, given: Arrays, names: Sequence[str], like: Sequence[Array]
    ) -> tuple[Array, ...]:
        """The results of a run; into arrays full of NaN where it is known what they look like."""
        poison = {n: _poisoned(a) for n, a in zip(names, like, strict=False)}
        returned = run(**given, **poison)
        if poison:
            return tuple(poison.values())
        return results_of("kernel", returned)


# arrays of either kind -----------------------------------------------------------


def varied(arrays: Arrays, variant: str) -> dict[str, Array]:
    """Inputs with some elements large, with all large, or with gaps between the elements."""
    return {n: _varied(a, variant) if _is_float(a) else a for n, a in arrays.items()}


def redrawn(arrays: Arrays, seed: int) -> dict[str, Array]:
    """Other inputs of the same kind: zeros, signs and what is infinite stay, rounding is new."""
    random = np.random.default_rng(seed)
    return {n: _scaled(a, random) if _is_float(a) else a for n, a in arrays.items()}


def _scaled(array: Array, random: np.random.Generator) -> Array:
    by = random.uniform(0.75, 1.25, tuple(array.shape))
    if isinstance(array, np.ndarray):
        return (array * by).astype(array.dtype)
    return array * array.new_tensor(by)


def _varied(array: Array, variant: str) -> Array:
    if variant == "peaked":
        finite = abs(array[abs(array) < math.inf])
        peaked = _full(array, array.shape)
        peaked[...] = array
        if math.prod(finite.shape):
            peaked[abs(array) > 2.4 * finite.mean()] *= 20
        return peaked
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
    if isinstance(array, np.ndarray):
        return np.array(array, np.float64)
    return np.array(array.detach().double().cpu().numpy(), np.float64)


def _results(who: str, returned: Any) -> list[NDArray[Any]]:
    return [_host(a) for a in results_of(who, returned)]


def _same_bits(left: NDArray[Any], right: NDArray[Any]) -> bool:
    """Equality of every bit: conversion to float64 loses none."""
    return left.shape == right.shape and left.tobytes() == right.tobytes()
