"""Running a plan on NumPy arrays: NumPy text, or a GPU's kernels in Triton's interpreter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockbuster.emit.kernel import Kernel
from blockbuster.emit.target.load import load_module
from blockbuster.ir.types import size_class
from blockbuster.runtime.launch import run_interpreted
from blockbuster.selection.pieces import Call
from blockbuster.selection.plan import File, Plan, Sizes, call_on_host, shown

Array = NDArray[Any]


def run_on_host(plan: Plan, arrays: Mapping[str, Array], sizes: Sizes) -> list[Array]:
    """The outputs of a plan for the CPU, from NumPy arrays.

    Files compute in ``plan.arithmetic`` and are given what they read in it: arrays that go from
    file to file are not rounded on the way. Functions of whole arrays, and the user, get every
    array in the dtype that it has by ``value_dtypes.py``.
    """
    kind = np.dtype(plan.arithmetic).type
    known = dict(arrays)
    for step in plan.steps:
        if isinstance(step, Call):
            made = _called(plan, step, known, sizes)
        else:
            given = {name: _as_read(known[name], kind) for name in step.reads}
            module = load_module(step.text)
            whole = {dim: sizes[size_class(dim)] or 1 for dim in step.dims}
            blocks = {dim: step.blocks.get(size_class(dim), n) for dim, n in whole.items()}
            found = module.run(given, sizes, blocks, dtype=kind)
            made = dict(zip(step.writes, found.values(), strict=True))
        known.update({name: rounded(array, plan.kept[name]) for name, array in made.items()})
    return _results(plan, known)


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
    return [
        rounded(shown(known[seen.array], seen), dtype)
        for seen, dtype in zip(plan.results, plan.result_dtypes, strict=True)
    ]
