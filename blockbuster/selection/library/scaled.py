"""Products of float8 with scales that a library computes: ``torch._scaled_mm``.

before   y = cast(mul(mul(matmul(x, transpose(w)), x_scale), w_scale), bfloat16)
after    y = torch._scaled_mm(x, w, x_scale, w_scale)

Both add up in float32 and round once. The scales are one number for each operand, or one for each
of its rows; a row of numbers may be added before the cast. The library reads both operands along
the sum: K is the last axis of both in memory.
"""

from __future__ import annotations

from blockbuster.frontend.library_calls import LibraryScaled
from blockbuster.frontend.program import ArrayProgram
from blockbuster.ir.graph import Value
from blockbuster.machines.library import HALVES
from blockbuster.selection.library.extents import Extents
from blockbuster.selection.library.match import Match, only_reader
from blockbuster.selection.library.sides import Side, is_in_order, side
from blockbuster.selection.parts.operand_views import PRODUCT


def matched_scaled(program: ArrayProgram, extents: Extents, at: int) -> Match | None:
    """The call for the product of equation ``at`` with what alone reads it, up to a cast; None if
    it is another product. What dtypes its operands have is asked elsewhere (program.py).
    """
    one, last = program.equations[at], len(program.equations[at].shape) - 1
    if one.op != PRODUCT:
        return None
    x, w = (side(program, extents, operand, last + 1) for operand in one.operands)
    if x is None or w is None or (x.places[-1:], w.places) != ((last,), (last - 1, last)):
        return None
    rows = x.places[:-1]
    if not rows or not is_in_order(x.axes) or w.axes != (1, 0):
        return None
    first = _beside(program, extents, at, "mul")
    second = _beside(program, extents, first[0], "mul") if first else None
    if first is None or second is None:
        return None
    scales = sorted((first[1], second[1]), key=lambda scale: scale.places == (last,))
    by_rows = any(scale.places for scale in scales)
    if [scale.places for scale in scales] != ([rows, (last,)] if by_rows else [(), ()]):
        return None
    added = _beside(program, extents, second[0], "add")
    end, row = (added[0], (added[1],)) if added else (second[0], ())
    dtype, place = _cast(program, end)
    if place is None or not all(is_in_order(scale.axes) for scale in scales):
        return None
    if any(one.places != (last,) for one in row):
        return None
    shape = tuple(axis for axis in one.shape if axis != 1)
    ports = tuple(one.port for one in (x, w, *scales, *row))
    return Match(place, LibraryScaled(by_rows, dtype), ports, shape, tuple(range(len(shape))))


def _beside(program: ArrayProgram, extents: Extents, at: int, op: str) -> tuple[int, Side] | None:
    """The equation that alone reads equation ``at``, if that is this operator with an input; and
    the input.
    """
    place = only_reader(program, at)
    one = program.equations[place] if place is not None else None
    if place is None or one is None or one.op != op or one.shape != program.equations[at].shape:
        return None
    (other,) = (operand for operand in one.operands if operand != Value(at))
    found = side(program, extents, other, len(one.shape))
    return None if found is None else (place, found)


def _cast(program: ArrayProgram, at: int) -> tuple[str, int | None]:
    """The dtype of 16 bits to which what alone reads equation ``at`` rounds it, and its number."""
    place = only_reader(program, at)
    one = program.equations[place] if place is not None else None
    if one is None or one.op != "cast" or one.param("dtype") not in HALVES:
        return "", None
    return one.param("dtype"), place
