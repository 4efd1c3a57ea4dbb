"""Expressions that combine partial results: the monoids, and the factors of groups."""

from __future__ import annotations

from blockbuster.ir.expr import Arg, Call, Const, Expr, call
from blockbuster.ir.ops import IDENTITY


def kept_empty(factor: Expr, monoid: str) -> Expr:
    """``factor``, which leaves an accumulator as it is that nothing is folded into yet.

    Its lead is -inf, so that it would be multiplied by 0: right for a sum, which starts at 0, but
    NaN for a maximum, which starts at -inf, or a minimum. A factor that chooses between its value
    and the start keeps the start by itself.
    """
    if monoid == "+":
        return factor
    start = Const(IDENTITY[monoid])
    if isinstance(factor, Call) and factor.fn == "where" and factor.args[1:] == (Arg(0), start):
        return factor
    return call("where", call("eq", Arg(0), start), Arg(0), factor)


LARGER = call("maximum", Arg(0), Arg(1))
COMBINED = {
    "+": call("add", Arg(0), Arg(1)), "prod": call("mul", Arg(0), Arg(1)), "max": LARGER,
    "min": call("minimum", Arg(0), Arg(1)),
}  # fmt: skip
"""What is folded ahead: the target before, and what is folded into it."""

AS_IT_IS: Expr = Arg(0)
"""The factor of a member that has no leads."""
