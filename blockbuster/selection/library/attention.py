"""Attention that a library computes: softmax of scaled products of rows, times a matrix."""

from __future__ import annotations

import math

from blockbuster.frontend.library_calls import LibraryAttention
from blockbuster.frontend.program import ArrayProgram, Equation, Operand
from blockbuster.ir.expr import Const, Size, call
from blockbuster.ir.graph import Value
from blockbuster.selection.library.extents import Extents
from blockbuster.selection.library.match import Match
from blockbuster.selection.library.sides import Side, side
from blockbuster.selection.parts.operand_views import PRODUCT

MOST_AXES = 4
"""Two of batches, rows and columns: what torch's kernels take."""

NEVER = Const(-math.inf)
SEEN = ("key le row", "row ge key", "key lt row + 1", "row + 1 gt key")
"""Comparisons of positions that hold for keys up to a row's own."""
HIDDEN = ("key gt row", "row lt key", "key ge row + 1", "row + 1 le key")
"""Those that hold for the other keys."""


def matched_attention(program: ArrayProgram, extents: Extents, at: int) -> Match | None:
    """The call for attention whose last product is equation ``at``; None if it is none, or if
    queries, keys or values are computed, or have one row or column.
    """
    last = program.equations[at]
    shares = _maker(program, last.operands[0]) if last.op == PRODUCT else None
    if shares is None or shares.op != "softmax":
        return None
    if shares.param("axis") not in (-1, len(shares.shape) - 1):
        return None
    scores, is_causal = _unmasked(program, shares.operands[0])
    product, scale = _unscaled(program, scores)
    if product is None or product.op != PRODUCT or product.shape != shares.shape:
        return None
    q, k, v = (_rows(program, extents, o, last) for o in (*product.operands, last.operands[1]))
    if q is None or k is None or v is None or not q.places == k.places == v.places:
        return None
    times = _times(program, product, scale)
    return None if times is None else _match(at, last, (q, k, v), times, is_causal=is_causal)


def _match(
    at: int, last: Equation, sides: tuple[Side, ...], scale: float, *, is_causal: bool
) -> Match:
    q, k, v = sides
    turned = (*k.axes[:-2], k.axes[-1], k.axes[-2])  # the product reads it with columns as rows
    fn = LibraryAttention(q.axes, turned, v.axes, scale, is_causal)
    made = [last.shape[place] for place in q.places]
    lies = tuple(made[q.axes.index(axis)] for axis in range(len(made)))
    return Match(at, fn, tuple(side.port for side in sides), lies, q.axes)


def _maker(program: ArrayProgram, operand: Operand) -> Equation | None:
    """The equation that makes an operand, if it is computed."""
    if not isinstance(operand, Value) or operand.node < 0:
        return None
    return program.equations[operand.node]


def _unmasked(program: ArrayProgram, scores: Operand) -> tuple[Operand, bool]:
    """What a causal mask is laid over, and True; the scores themselves if there is none."""
    one = _maker(program, scores)
    if one is None or one.op != "where":
        return scores, False
    mask, if_true, if_false = one.operands
    compared = _maker(program, mask)
    if compared is None or len(compared.operands) != 2 or len(compared.shape) != 2:
        return scores, False
    left, right = (_position(program, o) for o in compared.operands)
    holds = f"{left} {compared.op} {right}"
    if holds in SEEN and if_false == NEVER:
        return if_true, True
    return (if_false, True) if holds in HIDDEN and if_true == NEVER else (scores, False)


def _position(program: ArrayProgram, operand: Operand) -> str:
    """Whether an operand holds the positions of rows, down a matrix, or of keys, along it."""
    one, axes, behind = _maker(program, operand), (None, 0), ""
    if one is not None and one.op == "add" and one.operands[1] == Const(1.0):
        one, behind = _maker(program, one.operands[0]), " + 1"
    if one is not None and one.op == "expand" and len(one.shape) == 2:
        axes, one = one.param("axes"), _maker(program, one.operands[0])
    if one is None or one.op != "arange":
        return ""
    return {(0, None): "row", (None, 0): "key"}.get(axes, "") + behind


def _unscaled(program: ArrayProgram, scores: Operand) -> tuple[Equation | None, Operand]:
    """The product of which scores are a multiple, and by what they are."""
    one = _maker(program, scores)
    if one is None or one.op not in ("mul", "div"):
        return one, Const(1.0)
    value, by = one.operands
    if one.op == "div" and isinstance(by, Const) and by.value:
        by = Const(1.0 / by.value)
    elif one.op == "div":
        return None, None
    return _maker(program, value), by


def _times(program: ArrayProgram, product: Equation, scale: Operand) -> float | None:
    """A scale as the call has it; None if that is neither the usual one nor a positive number: with
    another one torch's kernels may take the maximum of a row at the wrong end.
    """
    rows = product.operands[0]
    assert isinstance(rows, Value), "a product is one of arrays"
    if scale == call("pow", Size(str(program.shape_of(rows)[-1])), -0.5):
        return 0.0
    return scale.value if isinstance(scale, Const) and 0.0 < scale.value < math.inf else None


def _rows(program: ArrayProgram, extents: Extents, operand: Operand, one: Equation) -> Side | None:
    """The input that an operand of product ``one`` shows whole; None if it does not, or if its rows
    or columns are one element, or if it has more axes than a library takes.
    """
    rank = len(one.shape)
    found = side(program, extents, operand, rank)
    if found is None or not {rank - 2, rank - 1} <= {*found.places}:
        return None
    return found if len(found.places) <= MOST_AXES else None
