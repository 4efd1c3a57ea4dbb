"""Where pieces of an axis lie, and which operands of a primitive have it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeGuard

from blockbuster.frontend.primitives import (
    Contract,
    Count,
    Fold,
    Join,
    Merge,
    Opaque,
    Primitive,
    Recorder,
    Ref,
    Scan,
    Source,
)
from blockbuster.frontend.strips import Cut, Piece, Split, Windows
from blockbuster.ir.expr import Arg, Const, Expr, call


def is_plain(piece: Piece) -> TypeGuard[Split]:
    """True for a split whose parts hold each element once, in order."""
    return isinstance(piece, Split) and not isinstance(piece, Windows)


def place_in(piece: Split, outer: Expr, inner: Expr) -> Expr:
    """The place along an axis of an element of a piece."""
    start, far, near = (length.expr for length in piece.runs)
    first: Expr = outer if far == Const(1.0) else call("mul", outer, far)
    place = call("add", first, inner if near == Const(1.0) else call("mul", inner, near))
    return call("add", place, start) if piece.runs[0].terms else place


def operand_positions(primitive: Primitive, axis: int) -> Iterator[tuple[int, int]]:
    """(operand, position in what it shows) for the operands that have a result's axis."""
    op, rank = primitive.op, len(primitive.shape)
    if isinstance(op, Source | Count | Opaque):
        return
    if isinstance(op, Join | Merge | Scan) and op.axis == axis:
        return
    for index, ref in enumerate(primitive.operands):
        if isinstance(op, Contract) and axis == rank - 1 - index:
            continue  # the left operand has no columns, the right one no rows
        position = axis - (rank - len(ref.axes))
        if isinstance(op, Fold):
            position = axis + (axis >= op.axis)
        elif isinstance(op, Merge):
            position = axis + 1
        if position >= 0 and ref.axes[position] is not None:
            yield index, position


def positions_in(recorder: Recorder, piece: Piece, hint: str) -> Ref:
    """Positions along a piece of a dim."""
    if isinstance(piece, Cut):
        new = recorder.count(piece.dim)
        place = Arg(0) if piece.step == 1 else call("mul", Arg(0), piece.step)
        if not piece.start.terms:
            return new if piece.step == 1 else recorder.apply(place, new, hint=hint)
        return recorder.apply(call("add", place, piece.start.expr), new, hint=hint)
    outer, inner = recorder.count(piece.outer), recorder.count(piece.inner)
    both = place_in(piece, Arg(0), Arg(1))
    return recorder.apply(both, outer.view((0, None)), inner, hint=hint)
