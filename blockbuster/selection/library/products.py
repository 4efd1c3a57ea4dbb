"""Products of matrices that a library computes: ``torch.matmul``, with a row added to each row."""

from __future__ import annotations

from blockbuster.frontend.library_calls import LibraryProduct
from blockbuster.frontend.program import ArrayProgram
from blockbuster.ir.graph import Value
from blockbuster.selection.library.extents import Extents
from blockbuster.selection.library.match import Match, only_reader
from blockbuster.selection.library.origins import origins
from blockbuster.selection.parts.operand_views import PRODUCT


def matched_product(program: ArrayProgram, extents: Extents, at: int) -> Match | None:
    """The call for the product of equation ``at``: of an input by a matrix, both as they are or
    with axes in another order; None if it is another product.
    """
    one = program.equations[at]
    sides = [origins(program, extents, o) for o in one.operands if isinstance(o, Value)]
    if one.op != PRODUCT or len(sides) != 2 or sides[0] is None or sides[1] is None:
        return None
    x, w = sides[0].plain(extents), sides[1].plain(extents)
    if x is None or w is None or len(w) != 2 or len(x) < 2:
        return None
    if len(x) > 2 and x != tuple(range(len(x))):  # a library would copy it to have a matrix
        return None
    ports, axes = (sides[0].port, sides[1].port), tuple(range(len(one.shape)))
    row = _row(program, at)
    if row is None:
        return Match(at, LibraryProduct(x, w), ports, one.shape, axes)
    place, port = row
    return Match(place, LibraryProduct(x, w), (*ports, port), one.shape, axes)


def _row(program: ArrayProgram, at: int) -> tuple[int, int] | None:
    """The equation that alone reads a product and adds an input, one number a column, to it."""
    product, place = program.equations[at], only_reader(program, at)
    if place is None:
        return None
    added = program.equations[place]
    rows = [o for o in added.operands if isinstance(o, Value) and o.node < 0]
    if added.op != "add" or len(rows) != 1 or added.shape != product.shape:
        return None
    return (place, rows[0].port) if program.shape_of(rows[0]) == product.shape[-1:] else None
