"""Products of matrices that a library computes: ``torch.matmul``, with a row added to each row."""

from __future__ import annotations

from blockbuster.frontend.library_calls import LibraryProduct
from blockbuster.frontend.program import ArrayProgram
from blockbuster.ir.graph import Value
from blockbuster.selection.library.extents import Extents
from blockbuster.selection.library.match import Match, only_reader
from blockbuster.selection.library.sides import Side, is_one_axis, side
from blockbuster.selection.parts.operand_views import PRODUCT


def matched_product(program: ArrayProgram, extents: Extents, at: int) -> Match | None:
    """The call for the product of equation ``at``: of an input by a matrix, or by as many matrices
    as it has; as they are, or with axes in another order. None if it is another product.
    """
    one = program.equations[at]
    rank = len(one.shape)
    if one.op != PRODUCT:
        return None
    x, w = (side(program, extents, operand, rank) for operand in one.operands)
    if x is None or w is None or not _is_product(x, w, rank):
        return None
    shape = tuple(axis for axis in one.shape if axis != 1)
    call, ports = LibraryProduct(x.axes, w.axes), (x.port, w.port)
    row = _row(program, at) if len(w.places) == 2 else None
    place, more = (at, ()) if row is None else (row[0], (row[1],))
    return Match(place, call, (*ports, *more), shape, tuple(range(len(shape))))


def _is_product(x: Side, w: Side, rank: int) -> bool:
    """True if a library reads both where they lie: without a copy, the rows of all of ``x`` are one
    axis before a matrix; before several, their number is, and the last axis in memory is one of a
    matrix.
    """
    rows, (*batch, k, n) = x.places[:-1], w.places if len(w.places) > 1 else (0, 0)
    if not rows or (x.places[-1], k, n) != (rank - 1, rank - 2, rank - 1):
        return False
    if not batch:
        return is_one_axis(x.axes[:-1])
    same = rows == (*batch, rank - 2)
    return same and all(
        is_one_axis(one.axes[:-2]) and max(one.axes) in one.axes[-2:] for one in (x, w)
    )


def _row(program: ArrayProgram, at: int) -> tuple[int, int] | None:
    """The equation that alone reads a product, maybe with more axes of one element, and adds an
    input, one number a column, to it.
    """
    place, shape = only_reader(program, at), program.equations[at].shape
    if place is not None and program.equations[place].op == "expand":
        place = only_reader(program, place)
    if place is None:
        return None
    added = program.equations[place]
    rows = [o for o in added.operands if isinstance(o, Value) and o.node < 0]
    if added.op != "add" or len(rows) != 1 or added.shape[-1] != shape[-1]:
        return None
    if [axis for axis in added.shape if axis != 1] != [axis for axis in shape if axis != 1]:
        return None
    return (place, rows[0].port) if program.shape_of(rows[0]) == shape[-1:] else None
