"""Runs a plan on NumPy arrays: as NumPy text, or a GPU's kernels in Triton's interpreter."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockbuster.emit.kernel import Kernel
from blockbuster.emit.target.load import load_module
from blockbuster.ir.types import size_class
from blockbuster.runtime.launch import run_interpreted
from blockbuster.selection.pieces import Call, Seen
from blockbuster.selection.plan import File, Plan, Sizes, call_on_host, shown

Array = NDArray[Any]


Known = dict[str, Array]
Step = Callable[[Known], Collection[Array]]  # the arrays that it writes, in order
Turn = Callable[[Array], Array]


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

    @cached_property
    def _steps(self) -> list[tuple[Step, list[tuple[str, Any, Turn]]]]:
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
        dtype, sizes = np.dtype(self.plan.arithmetic), self.sizes
        run = load_module(file.text).run
        whole = {dim: sizes[size_class(dim)] or 1 for dim in file.dims}
        blocks = {dim: file.blocks.get(size_class(dim), n) for dim, n in whole.items()}

        def step(known: Known) -> Collection[Array]:
            given = known
            for name in file.reads:
                array = known[name]
                if array.dtype is not dtype or type(array) is not np.ndarray:
                    given = {**given, name: _as_read(array, dtype)}
            made: dict[str, Array] = run(given, sizes, blocks, dtype=dtype.type)
            return made.values()

        return step


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
