"""Runs a plan on NumPy arrays: as NumPy text, or a GPU's kernels in Triton's interpreter."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockbuster.emit.kernel import Kernel
from blockbuster.emit.target.load import load_module
from blockbuster.ir.formula import function_of
from blockbuster.ir.types import Dim, size_class
from blockbuster.runtime.launch import run_interpreted
from blockbuster.selection.plans.pieces import Call, Seen
from blockbuster.selection.plans.plan import File, Plan, Sizes, call_on_host, shown

Array = NDArray[Any]


Known = dict[str, Array]
Step = Callable[[Known], Collection[Array]]  # the arrays that it writes, in order
Turn = Callable[[Array], Array]
Writes = list[tuple[str, Any, Turn]]
Run = Callable[[Sequence[Array]], list[Array]]


@dataclass(frozen=True)
class OnHost:
    """A plan for the CPU and sizes: a function of the NumPy arrays of its inputs, in order.

    Files compute in ``plan.arithmetic`` and are given what they read in it: arrays that go from
    file to file are not rounded on the way. Functions of whole arrays, and the user, get every
    array in the dtype that it has by ``value_dtypes.py``. What is the same in every call is found
    once.
    """

    plan: Plan
    sizes: Sizes

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        """The outputs of the plan."""
        known = dict(zip(self.plan.inputs, arrays, strict=True))
        for step, writes in self._steps:
            for (name, dtype, keep), array in zip(writes, step(known), strict=True):
                known[name] = array if array.dtype is dtype else keep(array)
        return [known[name] if turn is None else turn(known[name]) for name, turn in self._results]

    def at_once(self, arrays: Sequence[Array]) -> Run | None:
        """What gives the same for arrays of the shapes, dtypes and classes of these, where a file
        reads them as they are and makes the outputs as they are: a call of that file, no more.
        """
        plan = self.plan
        file, *others = plan.steps or (None,)
        if others or not isinstance(file, File):
            return None
        kept = {plan.kept[name] for name in file.writes}
        if self._results != [(name, None) for name in file.writes] or kept != {plan.arithmetic}:
            return None
        dtype = np.dtype(plan.arithmetic)
        read = [a for name, a in zip(plan.inputs, arrays, strict=True) if name in file.reads]
        if any(type(array) is not np.ndarray or array.dtype is not dtype for array in read):
            return None
        run, *given = self._text(file)
        call = _call_of(len(plan.inputs))
        return call(*_quiet(run), *given, dtype.type, *plan.inputs)

    @cached_property
    def _steps(self) -> list[tuple[Step, Writes]]:
        """What runs, and the dtype in which each array that it makes is kept."""
        plan = self.plan
        return [
            (
                self._call(step) if isinstance(step, Call) else self._file(step),
                [(name, *keeper(plan.kept[name])) for name in step.writes],
            )
            for step in plan.steps
        ]

    @cached_property
    def _results(self) -> list[tuple[str, Turn | None]]:
        """Where each output is found, and what makes it of that; None: it is that very array."""
        plan = self.plan
        axes = {n: len(a) for s in plan.steps for n, a in zip(s.writes, s.axes, strict=True)}
        found: list[tuple[str, Turn | None]] = []
        for seen, dtype in zip(plan.results, plan.result_dtypes, strict=True):
            as_it_lies = seen.order == tuple(range(axes.get(seen.array, -1)))
            there = as_it_lies and plan.kept.get(seen.array) == dtype
            found.append((seen.array, None if there else partial(_result, seen, dtype)))
        return found

    def _call(self, call: Call) -> Step:
        return lambda known: _called(self.plan, call, known, self.sizes).values()

    def _file(self, file: File) -> Step:
        dtype, (run, sizes, blocks) = np.dtype(self.plan.arithmetic), self._text(file)

        def step(known: Known) -> Collection[Array]:
            given = known
            for name in file.reads:
                array = known[name]
                if array.dtype is not dtype or type(array) is not np.ndarray:
                    given = {**given, name: _as_read(array, dtype)}
            made: dict[str, Array] = run(given, sizes, blocks, dtype=dtype.type)
            return made.values()

        return step

    def _text(self, file: File) -> tuple[Callable[..., Any], Sizes, dict[Dim, int]]:
        """The function of a file, all sizes, and those of blocks."""
        whole = {dim: self.sizes[size_class(dim)] or 1 for dim in file.dims}
        blocks = {dim: file.blocks.get(size_class(dim), n) for dim, n in whole.items()}
        return load_module(file.text).run, self.sizes, blocks


def settled(run: Run, arrays: Sequence[Array]) -> Run:
    """What runs for arrays laid out like these, which ``run`` took: the same, or what is faster."""
    faster = run.at_once(arrays) if isinstance(run, OnHost) else None
    return run if faster is None else faster


def _ignoring() -> contextvars.Context | None:
    """A context in which NumPy warns of nothing; None where it keeps that by thread (NumPy 1)."""
    context, before = contextvars.Context(), np.geterr()
    context.run(np.seterr, all="ignore")
    if np.geterr() == before:
        return context
    np.seterr(**before)
    return None


_IGNORING = _ignoring()


def _quiet(run: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[[], Any]]:
    """``run``, the function of a NumPy text, and what makes a context to call it in.

    A text enters ``np.errstate``; in a context that ignores errors it need not, which takes a third
    of the time. Each call has a context of its own, since several threads may call at once.
    """
    bare = getattr(run, "__wrapped__", None)
    if bare is None or _IGNORING is None:
        return run, contextvars.Context
    return bare, _IGNORING.copy


@lru_cache(maxsize=64)
def _call_of(inputs: int) -> Callable[..., Run]:
    """What makes a function of arrays of what a text is run with; ``inputs`` is their number."""
    names = "".join(f", name{n}" for n in range(inputs))
    given = ", ".join(f"name{n}: arrays[{n}]" for n in range(inputs))
    made = f"context().run(run, {{{given}}}, sizes, blocks, dtype=dtype)"
    takes = f"run, context, sizes, blocks, dtype{names}"
    return function_of(f"lambda {takes}: lambda arrays: [*{made}.values()]", "call of a text")


def keeper(dtype: str) -> tuple[Any, Turn]:
    """A function that rounds to a dtype, and NumPy's dtype of arrays that need no rounding."""
    plain = None if dtype == "bfloat16" else np.dtype(dtype)
    return plain, partial(rounded, dtype=dtype)


def _as_read(array: Array, kind: Any) -> Array:
    """An array as NumPy text reads it: integers as they are, all else in the arithmetic."""
    array = np.asarray(array)
    return array if array.dtype.kind in "iu" else array.astype(kind, copy=False)


def run_in_interpreter(plan: Plan, arrays: Mapping[str, Array]) -> list[Array]:
    """The outputs of a plan for a GPU, from NumPy arrays, with Triton's interpreter: slow."""
    sizes = plan.bind({name: array.shape for name, array in arrays.items()})
    known = dict(arrays)
    for step in plan.steps:
        if isinstance(step, Call):
            made = _called(plan, step, known, sizes)
        else:
            made = _interpreted(plan, step, known, sizes)
        known.update({name: rounded(array, plan.kept[name]) for name, array in made.items()})
    return _results(plan, known)


@np.errstate(all="ignore")
def rounded(array: Array, dtype: str) -> Array:
    """``array`` in a dtype; NumPy has no bfloat16, so float32 holds its values.

    >>> rounded(np.array([1.001, 3.0]), "bfloat16")
    array([1., 3.], dtype=float32)
    """
    if dtype != "bfloat16":
        return array.astype(dtype, copy=False)
    single = array.astype(np.float32)
    bits = single.view(np.uint32)
    nearest = (bits + 0x7FFF + (bits >> 16 & 1)) & np.uint32(0xFFFF0000)
    return np.where(np.isfinite(single), nearest.view(np.float32), single)


def _called(plan: Plan, call: Call, known: Mapping[str, Array], sizes: Sizes) -> dict[str, Array]:
    """What a function of whole arrays makes of arrays as the user sees them."""
    operands = [
        shown(rounded(np.asarray(known[seen.array]), plan.taken_as(call, seen.array)), seen)
        for seen in call.operands
    ]
    made = call_on_host(call, operands, sizes)
    return {
        name: array if call.only_moves else rounded(array, plan.dtypes[name])
        for name, array in zip(call.writes, made, strict=True)
    }


def _interpreted(
    plan: Plan, file: File, known: Mapping[str, Array], sizes: Sizes
) -> dict[str, Array]:
    kernel = Kernel(
        name="_".join(file.writes), source=file.text, sizes=sizes, tiles={}, dtype=plan.dtype,
        target=plan.target, inputs=file.reads, outputs=file.writes,
    )  # fmt: skip
    given: dict[str, Any] = {}
    for name in file.reads:
        dtype = plan.taken_as(file, name)
        given[name] = rounded(known[name], dtype) if dtype else known[name]
    free = {dim: sizes[dim] for dim in load_module(file.text).FREE}
    return dict(run_interpreted(kernel, {**given, **free}))


def _results(plan: Plan, known: Mapping[str, Array]) -> list[Array]:
    pairs = zip(plan.results, plan.result_dtypes, strict=True)
    return [_result(seen, dtype, known[seen.array]) for seen, dtype in pairs]


def _result(seen: Seen, dtype: str, array: Array) -> Array:
    return rounded(shown(array, seen), dtype)
