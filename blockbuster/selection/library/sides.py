"""Operands of a library's call: inputs that are shown whole, without their axes of one element."""

from __future__ import annotations

from typing import NamedTuple

from blockbuster.frontend.program import ArrayProgram, Operand
from blockbuster.ir.graph import Value
from blockbuster.selection.library.extents import Extents
from blockbuster.selection.library.origins import origins


class Side(NamedTuple):
    """An input by its number; its axes of several elements, in the order in which a value shows
    them, numbered without the others; and where they stand in a result of ``rank`` axes, of which
    the value's axes are the last ones.
    """

    port: int
    axes: tuple[int, ...]
    places: tuple[int, ...]


def side(program: ArrayProgram, extents: Extents, operand: Operand, rank: int) -> Side | None:
    """The input that an operand shows whole; None if it does not, or if it is no array."""
    found = origins(program, extents, operand) if isinstance(operand, Value) else None
    if found is None:
        return None
    places = tuple(at for at, extent in enumerate(found.shape) if extent != 1)
    shown = [found.shown(place, extents) for place in places]
    long = [axis for axis in found.long if axis in shown]
    if len(long) < len(found.long) or len(long) < len(places):
        return None
    axes = tuple(long.index(axis) for axis in shown if axis is not None)
    return Side(found.port, axes, tuple(rank - len(found.shape) + place for place in places))


def is_in_order(order: tuple[int, ...]) -> bool:
    """True if axes are read as they lie."""
    return order == tuple(range(len(order)))


def is_one_axis(order: tuple[int, ...]) -> bool:
    """True if axes that are read in this order lie as one axis: each next to the one before."""
    return order == tuple(range(order[0], order[0] + len(order)))
