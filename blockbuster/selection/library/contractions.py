"""Sums of products of two inputs, with variables in place of axes: what a library may compute.

y[n, h, k] = sum over c and r of x[n, c, h + r] * w[k, c, r] has five variables: y runs along three
of them, and two are summed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from blockbuster.frontend.kinds import FLOAT
from blockbuster.frontend.program import ArrayProgram, Equation, Shape
from blockbuster.ir.graph import Value
from blockbuster.ir.lengths import Length
from blockbuster.selection.library.extents import Extents, constant
from blockbuster.selection.library.match import only_reader
from blockbuster.selection.library.origins import Index, Origins, origins
from blockbuster.selection.parts.operand_views import PRODUCT

Axes = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Contraction:
    """The result of equation ``at``: ``axes`` are the variables along which each axis of it runs,
    the last one fastest, and ``sides`` are read by variables of these ``lengths``.

    ``is_cut``: only the first elements of an axis are left.
    """

    at: int
    sides: tuple[Origins, Origins]
    lengths: tuple[Length, ...]
    axes: Axes
    is_cut: bool = False


def contractions(program: ArrayProgram, extents: Extents, at: int) -> Iterator[Contraction]:
    """The products of equation ``at``, then what sums and views that alone read it make of it."""
    found = _products(program, extents, at)
    while found is not None:
        yield found
        reader = only_reader(program, found.at)
        if reader is None:
            return
        axes = _read(extents, program.equations[reader], found, program.shape_of(Value(found.at)))
        is_cut = found.is_cut or program.equations[reader].op == "slice"
        found = replace(found, at=reader, axes=axes, is_cut=is_cut) if axes is not None else None


def _products(program: ArrayProgram, extents: Extents, at: int) -> Contraction | None:
    """A product of two views of inputs, of which one axis is summed, or none."""
    one = program.equations[at]
    if one.op not in (PRODUCT, "mul") or one.kind != FLOAT:
        return None
    found = [origins(program, extents, o) for o in one.operands if isinstance(o, Value)]
    rank, sides = len(one.shape), [side for side in found if side is not None]
    if len(sides) != 2 or len(found) != 2:
        return None
    lengths = [*map(extents.of, one.shape)]
    ends: tuple[list[int], list[int]] = ([], [])
    if one.op == PRODUCT:
        if min(len(side.shape) for side in sides) < 2:
            return None
        lengths.append(extents.of(sides[0].shape[-1]))
        ends = ([rank - 2, rank], [rank, rank - 1])
    pairs = zip(sides, ends, strict=True)
    left, right = (_by_variables(side, rank - len(end), end) for side, end in pairs)
    axes = tuple((n,) if one.shape[n] != 1 else () for n in range(rank))
    return Contraction(at, (left, right), tuple(lengths), axes)


def _by_variables(side: Origins, batch: int, end: Sequence[int]) -> Origins:
    """Where an operand is read by the variables of a product: its last axes are those of ``end``,
    the others in front of them the last of ``batch``. An axis of one element is repeated.
    """
    front = len(side.shape) - len(end)
    variables = [*range(batch - front, batch), *end]
    steps = [
        Index(((variable, 1),) if extent != 1 else ())
        for variable, extent in zip(variables, side.shape, strict=True)
    ]
    return replace(side, axes=tuple(index.through(steps) for index in side.axes))


def _read(extents: Extents, one: Equation, found: Contraction, shape: Shape) -> Axes | None:
    """The variables of each axis of what ``one`` makes of a contraction of this ``shape``; None if
    it is neither a sum nor a view that turns, merges or cuts axes.
    """
    axes = found.axes
    if one.op == "sum" and one.kind == FLOAT and not one.param("keepdims"):
        return axes[: one.param("axis")] + axes[one.param("axis") + 1 :]
    if one.op in ("transpose", "expand"):
        return tuple(() if at is None else axes[at] for at in one.param("axes"))
    if one.op == "slice" and constant(one.param("start")) == 0:
        return axes
    parts = extents.parts(one.shape, shape) if one.op == "reshape" and not found.is_cut else None
    if parts is None:
        return None
    return tuple(tuple(v for axis in part for v in axes[axis]) for part in parts)
