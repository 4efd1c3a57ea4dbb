"""Polynomials over symbols of any kind, of which lengths and closed forms of traffic are made.

We use a few lines of our own instead of SymPy, whose import would cost every user of Blockbuster
0.3 s; ``Polynomial.sympy`` converts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, product
from math import prod
from typing import Any, Generic, Protocol, Self, TypeVar


class Sortable(Protocol):
    """A possible symbol: a value with an order, and a hash."""

    def __lt__(self, other: Any, /) -> bool: ...

    def __hash__(self) -> int: ...


S = TypeVar("S", bound=Sortable)
C = TypeVar("C", int, Fraction)


@dataclass(frozen=True)
class Polynomial(Generic[S, C]):
    """The sum of coefficient * product over (product, coefficient) in ``terms``.

    A product is a sorted tuple of symbols, each as often as its power says; the empty one is 1.
    Terms are sorted, those of the highest degree first; no coefficient is 0. So two polynomials are
    equal exactly if they are equal for all values of the symbols.
    """

    terms: tuple[tuple[tuple[S, ...], C], ...] = ()

    @classmethod
    def of(cls, terms: Iterable[tuple[tuple[S, ...], C]]) -> Self:
        """The sum of ``terms``, which may repeat products and come in any order."""
        found: dict[tuple[S, ...], C] = {}
        for symbols, times in terms:
            found[symbols] = found.get(symbols, 0) + times
        ordered = sorted(found.items(), key=lambda term: (-len(term[0]), term[0]))
        return cls(tuple([(symbols, times) for symbols, times in ordered if times]))

    def __add__(self, other: Self) -> Self:
        return self.of(chain(self.terms, other.terms))

    def __sub__(self, other: Self) -> Self:
        return self.of(chain(self.terms, ((symbols, -times) for symbols, times in other.terms)))

    def __mul__(self, other: Self) -> Self:
        if self.terms == ONE:
            return other
        pairs = product(self.terms, other.terms)
        return self.of([(tuple(sorted(a + b)), x * y) for (a, x), (b, y) in pairs])

    @property
    def symbols(self) -> tuple[S, ...]:
        """The symbols that occur, each once."""
        return tuple(dict.fromkeys([s for symbols, _ in self.terms for s in symbols]))

    def at(self, values: Mapping[S, int]) -> C | int:
        """The number for these values of the symbols."""
        return sum(times * prod(map(values.__getitem__, symbols)) for symbols, times in self.terms)

    def at_most(self, other: Self) -> bool:
        """True if no coefficient exceeds the other's: then no value does where none is negative."""
        mine, others = dict(self.terms), dict(other.terms)
        return all(mine.get(symbols, 0) <= others.get(symbols, 0) for symbols in mine | others)

    def written(self, name: Callable[[S], str], times: str) -> str:
        """The sum as text, positive terms first: ``name`` writes symbols, ``times`` is the sign."""
        text = ""
        for symbols, factor in sorted(self.terms, key=lambda term: term[1] < 0):
            factors = [name(symbol) for symbol in symbols]
            if abs(factor) != 1 or not factors:
                factors.insert(0, str(abs(factor)))
            sign = ("-" if factor < 0 else "") if not text else " - " if factor < 0 else " + "
            text += sign + times.join(factors)
        return text or "0"

    def sympy(self) -> Any:
        """The same as a SymPy expression in positive integers named as the symbols are printed."""
        import sympy

        def symbol(given: S) -> Any:
            return sympy.Symbol(str(given), integer=True, positive=True)

        return sympy.Add(
            *(sympy.Mul(times, *map(symbol, symbols)) for symbols, times in self.terms)
        )

    def __str__(self) -> str:
        return self.written(str, "*")


ONE = (((), 1),)
"""The terms of the polynomial that is 1."""
