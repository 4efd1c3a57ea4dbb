"""repair-by-law: a fold runs in the loop of what it waits for, repaired by the table of laws.

before   m = map N (x in !X) {               after   m, t = map N (x in !X) {
           a = abs(x)                                  a = abs(x)
           m = row_max(a)                              m = row_max(a)
           yield max m                                 q = reciprocal(maximum(m, 1e-30))
         }                                             y = row_scale(x, q)
         c = reciprocal(m)                             h = square(y)
         s = map N (x in !X, c = c) {                  t = row_sum(h)
           y = row_scale(x, c)                         yield max m
           h = square(y)                               yield +t by m: x * square(r / r2)
           s = row_sum(h)                            }
           yield +s                                  s = t * square(maximum(m, 1e-30) / m)
         }

and      m = map N (x in !X) {               after   m, i = map N (x in !X, k in !K) {
           m = row_max(x)                              m = row_max(x)
           yield max m                                 h = where(x == m, k, inf)
         }                                             i = row_min(h)
         i = map N (x in !X, m = m, k in !K) {         yield max t = m
           h = where(x == m, k, inf)                   yield min i by t: where(r == r2, x, inf)
           i = row_min(h)                            }
           yield min i
         }

This is rolling-update by two rows of the table of laws alone (``laws.py``).

*Scale*: a sum of values that are scaled by their magnitude. So the length of a row that cannot
overflow, max |x| sqrt(sum (x / max |x|)^2), takes one pass over the row. Each block is scaled by
one over its own magnitude r, the largest absolute value or the sum of all absolute values. In the
factor above, r and r2 stand for maximum(r, 1e-30) and maximum(r2, 1e-30); behind the loop the sum
is taken to m itself. Conditions, for a sum of f(x, m):

- f is x times a whole power of a function of m. ``where`` does not select between such products:
  1 / m may be infinite, and 0 * inf is NaN, where where(b, f, 0) is 0.
- What is divided is what the magnitude is of, so x / r is at most 1; there may be more factors.
- A sum may be a dot of f(x, m) and something that does not wait for m: a dot is linear in each of
  its operands. So attention that is normalized by squares of scores, or by cubes, takes one pass.
- Only sums: a partial maximum is right if the factor keeps the order, but that of an empty block,
  -inf, times 0 is NaN.

Blocks of zeros, or of values of which 1 / r is infinite, are divided by 1e-30, and their sums are
taken from that number to r2: no 0 / 0 comes of a block in a row with other values. In a row of
zeros 1 / m is infinite, and 0 * inf is what the program as written gives, too.

*Choice*: a fold over the places where x is maximal. If k counts 0, 1, 2, ... this is argmax; for
other k it is the value of k at the maximum. Each block is folded where x is the maximum of that
block. Before two partial results are combined, the one whose own maximum r is less than the larger
one, r2, becomes neutral: none of its values was at r2. The same holds for minima, for every fold
whose neutral element is the other branch of ``where``, and for ``x == m or x != x``: there NaN is
the maximum, as it is in NumPy.

Saves a pass over x, and storing x if it is computed. Costs a power, or a comparison, per row and
block.
Termination: each application makes one fold fewer wait for another loop, and no rule makes one
wait.
Source: ours; the scaled sum of squares of BLAS (nrm2), by blocks, as a group with a running lead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from blockbuster.ir.expr import Arg, Call, Const, Expr, arguments, call, functions_of
from blockbuster.ir.graph import Graph
from blockbuster.ir.ops import Accumulate
from blockbuster.rules.base import UpstreamRule
from blockbuster.rules.dependent_folds import Dependent
from blockbuster.rules.laws import AT_EXTREMA, SCALES, Law, Question
from blockbuster.rules.legality import map_at
from blockbuster.rules.rolling_update import RollingUpdate
from blockbuster.rules.separate import NotSeparableError, Separation

SMALL, LARGE = 1e-37, 1e8
"""Between these, numbers over 1e-30, and 1 over numbers, are finite in float32."""


class RepairByLaw(RollingUpdate, UpstreamRule):
    """A map that folds magnitudes or extrema, and a fold of what is scaled or chosen by them."""

    name = "repair-by-law"
    in_place = True
    never_zero: ClassVar[Expr] = call("maximum", Arg(0), 1e-30)
    """What to divide by: the inverse of the least such number, times numbers as usual, is finite.

    What is divided by it instead of by a smaller magnitude, down to the least subnormal float32,
    keeps its digits through a square.
    """
    from_the_start = True

    def laws_for(self, graph: Graph, found: Dependent) -> Sequence[Law] | str | None:
        reason = _why_not_scaled(graph, found)
        if reason == "":
            return SCALES[:1]
        chosen = found.question.extrema and "eq" in functions_of(found.question.g)
        return AT_EXTREMA if chosen else reason


def _why_not_scaled(graph: Graph, found: Dependent) -> str | None:
    """Why a fold is no sum of what is scaled by its magnitude; None if it waits for none."""
    folds = [map_at(graph, found.first).results[lead.port] for lead in found.leads]
    (size, *more) = found.folded
    plain = folds in ([Accumulate("max")], [Accumulate("+")]) and not more
    if not plain or found.question.monoid != "+" or not isinstance(size, Call):
        return None
    return _not_scaled(found.question, size) if size.fn == "abs" else None


def _not_scaled(question: Question, size: Expr) -> str:
    """Why a summand is not made of values of this size, each divided by the magnitude."""
    (lead,) = question.producers
    if unsafe := _unsafe(question.g, lead):
        return unsafe
    separation = Separation(frozenset({lead}), frozenset(question.elements), question.signs)
    try:
        factor = separation.factor(question.g)
    except NotSeparableError as reason:
        return f"cannot be rescaled: it {reason}"
    if factor.exponent:
        return "takes an exponential of its magnitude"
    if any(power % 1 for power in factor.powers.values()):
        return "takes a root of its magnitude, which proofs do not take apart"
    power, own = sum(factor.powers.values()), _sizes(question.g)
    if power >= 0:
        return "does not shrink as its magnitude grows"
    if any(own.get(base, 0) < -power * times for base, times in _sizes(size).items()):
        return "scales something else than what the magnitude is of"
    return ""


def _unsafe(expr: Expr, lead: int) -> str:
    """Why floats could make an infinity, or NaN, of a block whose magnitude is 0, or ""."""
    match expr:
        case Const(value) if value and not SMALL < abs(value) < LARGE:
            return f"has the number {value:g}, which makes an infinity of small magnitudes"
        case Call("where", _) if lead in arguments(expr):
            return "hides its scale in where, and it may be infinite"
        case Call(_, args):
            return next(filter(None, (_unsafe(arg, lead) for arg in args)), "")
    return ""


def _sizes(expr: Expr) -> dict[Expr, float]:
    """The powers of the absolute values of the bases of a product."""
    factor = Separation(frozenset(arguments(expr)), frozenset(), {}).factor(expr)
    found = dict[Expr, float]()
    for base, power in factor.powers.items():
        size = base.args[0] if isinstance(base, Call) and base.fn == "abs" else base
        found[size] = found.get(size, 0) + power
    return found
