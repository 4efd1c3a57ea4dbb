"""Extrema of pairs: the least of exponentials has the least exponent, if all else is in exponents.

    min(S * exp(t))   is   exp(min(log(S) + t))         where no S is negative
    max(S * exp(t))   is   -exp(min(log(-S) + t))       where no S is positive

All other extrema come under the largest exponent, as sums do; there the least element may be 0.
What may have both signs is among them.
"""

from __future__ import annotations

from blockbuster.ir.expr import call
from blockbuster.ir.graph import Value
from blockbuster.rules.emitter import Emitter
from blockbuster.rules.pairs import MINUS, UNIT, Pair, Product
from blockbuster.rules.separate import NEGATIVE, POSITIVE

LARGEST = {"max": POSITIVE, "min": NEGATIVE}
"""The sign of elements of which the extremum is the largest in magnitude."""


def by_logarithms(to: Emitter, monoid: str, signs: str, pair: Pair) -> Pair | None:
    """``pair`` with its elements' logarithms as exponents, if the extremum is the least of them.

    Its significands are 1 or -1, or 0, infinite or NaN where an element is. None if elements may
    have other ``signs``, or were lost.
    """
    own = None if LARGEST.get(monoid, signs) in signs else to.by_elements(pair)
    if own is None:
        return None
    power = to.leaf(to.exponent(own.terms))
    known = {MINUS, (UNIT, own.significand), ("mul", own.significand)}
    if own.product is None or {*own.product.factors} - known:
        size = to.leaf(own.significand)
        log = call("log", size if monoid == "min" else call("neg", size))
        power = to.leaf(to.emit(call("add", log, power)))
    unit = call("exp", call("sub0", power, power))
    significand = to.emit(unit if monoid == "min" else call("neg", unit))
    return extremum(monoid, significand, to.emit(power))


def extremum(monoid: str, significand: Value, least: Value) -> Pair:
    """The pair of such a significand under the least exponent."""
    terms = ((1.0, least),)
    factor = (UNIT if monoid == "min" else "mul", significand)
    return Pair(significand, terms, Product((factor,), terms))
