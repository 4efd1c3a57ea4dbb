"""Runs an array program a piece at a time, along a dim that operators fold.

A norm of a whole array needs all of it, but not all of it at once. Along a dim that operators only
fold (sums, means, extrema, products of matrices, softmax), a program is computed in passes: each
fold is put together from pieces of its operand, which are computed anew for each fold. Then the
outputs are computed for the rows that are asked for.

    t0 = square(x)             pass 1: for each piece of M, t2 += sum(sum(square(x)))
    t1 = sum(t0, axis=1)
    t2 = sum(t1, axis=0)       then, for some rows of M, x / sqrt(t2)
    t3 = x / sqrt(t2)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import add, mul
from typing import Any

from blockbuster.frontend.on_tensors import Known, Way, recip0, run, sub0
from blockbuster.frontend.program import ArrayProgram, Equation
from blockbuster.frontend.rows import Rows, indices
from blockbuster.frontend.separable import looked_into
from blockbuster.ir.graph import Value
from blockbuster.ir.types import Dim

Tensor = Any
Axes = tuple[int, ...]


def foldable(program: ArrayProgram, dim: Dim) -> bool:
    """True if all operators that look into ``dim`` fold it, so that it can be cut into pieces."""
    looking = [e for e in program.equations if dim in looked_into(program, e)]
    once = all(shape.count(dim) < 2 for shape in program.shapes)
    return once and all(equation.op in FOLDS for equation in looking)


def run_in_pieces(
    program: ArrayProgram,
    tensors: Sequence[Tensor],
    sizes: Mapping[Dim, int],
    *,
    dim: Dim,
    step: int,
    way: Way,
    rows: Rows,
) -> list[Tensor]:
    """What ``run`` gives for ``rows``, folded over pieces of ``step`` indices of ``dim``.

    The dim has to be ``foldable``; of others, ``rows`` may only cut those that are separable.
    """
    passes = _Passes(program, tensors, sizes, dim, step, way, rows)
    for position, equation in enumerate(program.equations):
        if dim in looked_into(program, equation):
            passes.fold(position, equation)
    return run(program, tensors, sizes, way=way, rows=rows, known=passes.known)


@dataclass
class _Passes:
    """The folds so far: their values or, of softmax, a function of the rows of its operand."""

    program: ArrayProgram
    tensors: Sequence[Tensor]
    sizes: Mapping[Dim, int]
    dim: Dim
    step: int
    way: Way
    rows: Rows
    values: dict[Value, Tensor] = field(default_factory=dict)
    along: dict[int, Callable[..., Tensor]] = field(default_factory=dict)

    @property
    def known(self) -> Known:
        """The results that need not be computed again."""
        return Known(self.values, self.along)

    def fold(self, position: int, equation: Equation) -> None:
        """Compute an equation that folds the dim from pieces of its operands."""
        fold = FOLDS[equation.op]
        operands = equation.arrays
        shape = self.program.shape_of(operands[0])
        axis = equation.param("axis", -1)
        axes = tuple(range(len(shape))) if axis is None else (axis % len(shape),)
        state, dtype = None, None
        for found in self._pieces(operands):
            dtype = found[0].dtype if found[0].is_floating_point() else None
            part = fold.part(*self._noisy(equation, map(_wide, found)), axes)
            state = part if state is None else fold.merged(state, part)
        if fold.applied is not None:
            self.along[position] = partial(fold.applied, state)
            return
        folded = [shape[axis] for axis in axes]
        count = math.prod(self.sizes[dim] if isinstance(dim, str) else dim for dim in folded)
        value = fold.result(state, count)
        if equation.op != "matmul" and not equation.param("keepdims"):
            value = value.squeeze(axes)
        self.values[Value(position)] = value.to(dtype) if dtype else value

    def _noisy(self, equation: Equation, operands: Iterator[Tensor]) -> Iterator[Tensor]:
        """The operands as they are read: extrema round nothing."""
        noise = None if equation.op in ("max", "min") else self.way.noise
        return (noise(tensor) if noise else tensor for tensor in operands)

    def _pieces(self, operands: Sequence[Value]) -> Iterator[list[Tensor]]:
        """The operands for one piece of the dim after the other."""
        size = self.sizes[self.dim]
        for start in range(0, size, self.step):
            piece = indices(range(start, min(start + self.step, size)), self.tensors[0])
            rows = {**self.rows, self.dim: piece}
            program, known = self.program, self.known
            yield run(
                program, self.tensors, self.sizes, way=self.way, rows=rows, wanted=operands,
                known=known,
            )  # fmt: skip


def _wide(tensor: Tensor) -> Tensor:
    """A tensor in the dtype in which torch sums: float32 for narrower floats."""
    if not tensor.is_floating_point():
        return tensor.double()
    return tensor.float() if tensor.dtype.itemsize < 4 else tensor


# the folds ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Fold:
    """``part`` of operands and axes, two parts ``merged``, the ``result`` of all and their number.

    ``applied``: where the result has the axis itself, it is this function of all and some rows.
    """

    part: Callable[..., Any]
    merged: Callable[[Any, Any], Any]
    result: Callable[[Any, int], Tensor] = lambda state, _: state
    applied: Callable[[Any, Tensor], Tensor] | None = None


def _product(x: Tensor, axes: Axes) -> Tensor:
    for axis in axes:
        x = x.prod(axis, keepdim=True)
    return x


def _sum(x: Tensor, axes: Axes) -> Tensor:
    return x.sum(axes, keepdim=True)


def _finite(top: Tensor) -> Tensor:
    return top.where(top.isfinite(), 0.0)


Shifted = tuple[Tensor, Tensor]
"""The maximum of numbers, and the sum of exp(x - maximum)."""


def _shifted(x: Tensor, axes: Axes) -> Shifted:
    top = x.amax(axes, keepdim=True)
    return top, (x - _finite(top)).exp_().sum(axes, keepdim=True)


def _both(one: Shifted, other: Shifted) -> Shifted:
    top = one[0].maximum(other[0])
    totals = [total * (own - _finite(top)).exp() for own, total in (one, other)]
    return top, totals[0] + totals[1]


def _log(state: Shifted, _: int = 0) -> Tensor:
    return state[1].log() + _finite(state[0])


def _softmax(state: Shifted, x: Tensor) -> Tensor:
    return (sub0(_wide(x), state[0]).exp() * recip0(state[1])).to(x.dtype)


def _log_softmax(state: Shifted, x: Tensor) -> Tensor:
    top, total = state
    return (_wide(x) - _log((top, recip0(recip0(total))))).to(x.dtype)


FOLDS: Mapping[str, Fold] = {
    "sum": Fold(_sum, add),
    "prod": Fold(_product, mul),
    "mean": Fold(_sum, add, lambda total, count: total / count),
    "max": Fold(lambda x, axes: x.amax(axes, keepdim=True), lambda x, y: x.maximum(y)),
    "min": Fold(lambda x, axes: x.amin(axes, keepdim=True), lambda x, y: x.minimum(y)),
    "matmul": Fold(lambda a, b, _: a @ b, add),
    "logsumexp": Fold(_shifted, _both, _log),
    "softmax": Fold(_shifted, _both, applied=_softmax),
    "log_softmax": Fold(_shifted, _both, applied=_log_softmax),
}
"""The operators that can be computed a piece at a time along the axis that they look into."""
