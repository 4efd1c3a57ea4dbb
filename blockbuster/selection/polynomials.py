"""Polynomials in the sizes and blocks of dims: what closed forms are made of.

A few lines of our own instead of SymPy, whose import would cost every user of Blockbuster 0.3 s;
``Polynomial.sympy`` is the way over. Coefficients are whole numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

from blockbuster.ir.types import Dim, size_class


class Symbol(NamedTuple):
    """A positive integer that belongs to a dim; ``kind`` is S, B or F.

    ``S``: the size of the dim (that of its size class). ``B``: how many blocks it has. ``F``: the
    elements of its first block, which no other block exceeds; all but the last have as many.
    """

    kind: str
    dim: Dim

    def __str__(self) -> str:
        return f"{self.kind}_{self.dim}"


Monomial = tuple[Symbol, ...]  # sorted; a symbol occurs as often as its power says


@dataclass(frozen=True)
class Polynomial:
    """The sum of whole multiples of products of symbols."""

    terms: tuple[tuple[Monomial, int], ...] = ()

    def __add__(self, other: Polynomial) -> Polynomial:
        return total((self, other))

    def __sub__(self, other: Polynomial) -> Polynomial:
        return self + other * number(-1)

    def __mul__(self, other: Polynomial) -> Polynomial:
        if self == ONE:
            return other
        return _sum((tuple(sorted((*a, *b))), x * y) for a, x in self.terms for b, y in other.terms)

    def __pow__(self, power: int) -> Polynomial:
        return product([self] * power)

    def at(self, values: Mapping[Symbol, int]) -> int:
        """The number for these values of the symbols."""
        return sum(times * prod(map(values.__getitem__, symbols)) for symbols, times in self.terms)

    def at_most(self, other: Polynomial) -> bool:
        """True if no coefficient exceeds the other's: then no value does where none is negative."""
        others = dict(other.terms)
        return all(times <= others.get(symbols, 0) for symbols, times in self.terms)

    def sympy(self) -> Any:
        """The same as a SymPy expression in positive integers named S_M, B_M, F_M."""
        import sympy

        def symbol(given: Symbol) -> Any:
            return sympy.Symbol(str(given), integer=True, positive=True)

        return sympy.Add(
            *(sympy.Mul(times, *map(symbol, symbols)) for symbols, times in self.terms)
        )

    def __str__(self) -> str:
        words = ""
        for symbols, times in sorted(self.terms, key=lambda term: term[1] < 0):
            factors = [str(s) for s in symbols]
            if abs(times) != 1 or not factors:
                factors.insert(0, str(abs(times)))
            sign = ("-" if times < 0 else "") if not words else " - " if times < 0 else " + "
            words += sign + "*".join(factors)
        return words or "0"


def _sum(terms: Iterable[tuple[Monomial, int]]) -> Polynomial:
    found: dict[Monomial, int] = {}
    for symbols, times in terms:
        found[symbols] = found.get(symbols, 0) + times
    ordered = sorted(found.items(), key=lambda term: (-len(term[0]), term[0]))
    return Polynomial(tuple((symbols, times) for symbols, times in ordered if times))


def total(polynomials: Iterable[Polynomial]) -> Polynomial:
    """The sum of any number of polynomials."""
    return _sum(term for polynomial in polynomials for term in polynomial.terms)


def product(polynomials: Iterable[Polynomial]) -> Polynomial:
    """The product of any number of polynomials."""
    result = ONE
    for polynomial in polynomials:
        result = result * polynomial
    return result


def number(value: int) -> Polynomial:
    """A plain number."""
    return _sum([((), value)])


def size(dim: Dim) -> Polynomial:
    """The elements along a dim."""
    return Polynomial((((Symbol("S", size_class(dim)),), 1),))


def blocks(dim: Dim) -> Polynomial:
    """How many blocks a dim has."""
    return Polynomial((((Symbol("B", dim),), 1),))


def first_block(dim: Dim) -> Polynomial:
    """The elements of the first block of a dim, which is the block size."""
    return Polynomial((((Symbol("F", dim),), 1),))


ZERO = Polynomial()
ONE = number(1)
