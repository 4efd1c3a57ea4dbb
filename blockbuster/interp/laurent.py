"""Polynomials with exact coefficients over numbered unknowns, whose powers may be any fraction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

from blockbuster.interp.terms import TooLarge

Monomial = tuple[tuple[int, Fraction], ...]
"""Unknowns with their powers, in order of their numbers; none has power 0."""
Polynomial = dict[Monomial, Fraction]
Key = tuple[tuple[Monomial, Fraction], ...]
ONE: Monomial = ()
MOST_MONOMIALS = 600


def constant(value: Fraction | int) -> Polynomial:
    """A number."""
    return {ONE: Fraction(value)} if value else {}


def unknown(number: int, power: Fraction | int = 1) -> Polynomial:
    """A power of an unknown."""
    return {((number, Fraction(power)),): Fraction(1)}


def total(parts: Iterable[Polynomial]) -> Polynomial:
    """A sum."""
    made: Polynomial = {}
    for part in parts:
        for monomial, factor in part.items():
            made[monomial] = made.get(monomial, Fraction(0)) + factor
    return _held({m: c for m, c in made.items() if c})


def scaled(p: Polynomial, by: Fraction | int) -> Polynomial:
    """``p`` times a number."""
    return {m: c * by for m, c in p.items()} if by else {}


def minus(p: Polynomial, q: Polynomial) -> Polynomial:
    """A difference."""
    return total((p, scaled(q, -1)))


def times(p: Polynomial, q: Polynomial) -> Polynomial:
    """A product."""
    if len(p) * len(q) > 8 * MOST_MONOMIALS:
        raise TooLarge("products of sums are too long to be gone through case by case")
    made: Polynomial = {}
    for m, c in p.items():
        for n, d in q.items():
            both = joined(m, n)
            made[both] = made.get(both, Fraction(0)) + c * d
    return _held({m: c for m, c in made.items() if c})


def joined(m: Monomial, n: Monomial, power: Fraction | int = 1) -> Monomial:
    """The product of a monomial and a power of another."""
    if not n:
        return m
    powers = dict(m)
    for unknown, exponent in n:
        powers[unknown] = powers.get(unknown, Fraction(0)) + exponent * power
    return tuple(sorted((u, e) for u, e in powers.items() if e))


def key(p: Polynomial) -> Key:
    """``p`` as a value that can be looked up."""
    return tuple(sorted(p.items()))


def content(p: Polynomial) -> Monomial:
    """The largest monomial that divides every term, negative powers included."""
    lowest: dict[int, Fraction] = {}
    for monomial in p:
        for number, power in monomial:
            lowest[number] = min(power, lowest.get(number, power))
    for number in lowest:
        if not all(any(n == number for n, _ in m) for m in p):
            lowest[number] = min(Fraction(0), lowest[number])
    return tuple(sorted((n, e) for n, e in lowest.items() if e))


def order(monomial: Monomial) -> tuple[Fraction, Monomial]:
    """The sort key of a monomial: its degree, then its unknowns."""
    return sum((e for _, e in monomial), Fraction(0)), monomial


def divided(p: Polynomial, by: Polynomial) -> Polynomial:
    """The remainder of ``p`` by a polynomial: equal to p where ``by`` is zero."""
    lead = max(by, key=order)
    if not lead or any(e < 0 for _, e in lead):
        return p
    rest = scaled({m: c for m, c in by.items() if m != lead}, -1 / by[lead])
    for _ in range(64):
        held = [m for m in p if _divides(lead, m)]
        if not held:
            return p
        taken = {joined(m, lead, -1): p[m] for m in held}
        kept = {m: c for m, c in p.items() if m not in held}
        p = total((kept, times(taken, rest)))
    raise TooLarge("an equation does not end")


def _divides(lead: Monomial, m: Monomial) -> bool:
    powers = dict(m)
    return all(powers.get(n, Fraction(0)) >= e for n, e in lead)


def _held(p: Polynomial) -> Polynomial:
    if len(p) > MOST_MONOMIALS:
        raise TooLarge("sums are too long to be gone through case by case")
    return p


def unknowns(p: Mapping[Monomial, Fraction]) -> list[int]:
    """The unknowns of a polynomial, in order."""
    return sorted({number for monomial in p for number, _ in monomial})
