"""Products of matrices that a library computes: ``torch.matmul``, with a row added to each row."""

from __future__ import annotations

from blockbuster.frontend.library_calls import LibraryProduct
from blockbuster.frontend.program import ArrayProgram
from blockbuster.ir.graph import Value
from blockbuster.selection.library.match import Match, only_reader
from blockbuster.selection.library.origins import origins


def matched_product(program: ArrayProgram, at: int) -> Match | None:
    """The call for the product of equation ``at``: of an input by a matrix, or of matrices one by
    one, as they are or with axes in another order; None if it is another product.
    """
    one = program.equations[at]
    sides = [origins(program, o) for o in one.operands if isinstance(o, Value)]
    if len(sides) != 2 or sides[0] is None or sides[1] is None:
        return None
    x, w = sides[0].plain, sides[1].plain
    if x is None or w is None or min(len(x), len(w)) < 2:
        return None
    ports, axes = (sides[0].port, sides[1].port), tuple(range(len(one.shape)))
    if len(w) > 2:
        shapes = [
            [program.inputs[p].shape[axis] for axis in order[:-2]]
            for p, order in zip(ports, (x, w), strict=True)
        ]
        if shapes[0] != shapes[1] or not (_is_batch(x) and _is_batch(w)):
            return None
    elif len(x) > 2 and x != tuple(range(len(x))):  # a library would copy it to have a matrix
        return None
    row = _row(program, at)
    if row is None:
        return Match(at, LibraryProduct(x, w), ports, one.shape, axes)
    place, port = row
    return Match(place, LibraryProduct(x, w), (*ports, port), one.shape, axes)


def _is_batch(order: tuple[int, ...]) -> bool:
    """True if a library reads an array with its axes in this order as matrices, without a copy.

    The axes in front of the matrices lie one after the other, so they are one axis, and the last
    axis in memory is one of a matrix.
    """
    batch = order[:-2]
    return batch == tuple(range(batch[0], batch[0] + len(batch))) and max(order) in order[-2:]


def _row(program: ArrayProgram, at: int) -> tuple[int, int] | None:
    """The equation that alone reads a product and adds an input, one number a column, to it."""
    product, place = program.equations[at], only_reader(program, at)
    if place is None or len(product.shape) != 2:
        return None
    added = program.equations[place]
    rows = [o for o in added.operands if isinstance(o, Value) and o.node < 0]
    if added.op != "add" or len(rows) != 1 or added.shape != product.shape:
        return None
    return (place, rows[0].port) if program.shape_of(rows[0]) == product.shape[-1:] else None
