"""Cells: sets of inputs on which all comparisons have fixed outcomes, decided exactly.

A cell states, for each polynomial that was compared with zero, which signs it may have. Whether
there are inputs with such signs is decided by exact linear arithmetic, in which each monomial
counts as an unknown of its own, with known facts about squares and products added. So a cell
without a solution there is empty; one with a solution may still be empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import combinations_with_replacement

from blockbuster.interp.laurent import (
    ONE,
    Key,
    Monomial,
    Polynomial,
    constant,
    joined,
    minus,
    scaled,
    times,
    unknown,
    unknowns,
)
from blockbuster.interp.linear import CONSTANT, Row, solution
from blockbuster.interp.unknowns import Unknowns
from blockbuster.interp.work import Work

Signs = frozenset[int]
ANY: Signs = frozenset((-1, 0, 1))
MOST_PRODUCTS = 6  # of constraints that are multiplied with each other


class Cell:
    """The signs that polynomials may have, by their keys; never changed."""

    __slots__ = ("equations", "signs")

    def __init__(self, signs: Mapping[Key, Signs]) -> None:
        self.signs = signs
        self.equations: list[Polynomial] = [dict(k) for k, s in signs.items() if s == {0}]

    def with_signs(self, atom: Key, signs: Signs) -> Cell:
        """The part in which ``atom`` has one of these signs."""
        return Cell({**self.signs, atom: signs})

    @property
    def open(self) -> tuple[Key, Signs] | None:
        """A polynomial that may still be zero or not."""
        return next(((k, s) for k, s in self.signs.items() if len(s) > 1), None)

    def show(self, names: Unknowns) -> str:
        """The cell as text."""
        words = {(-1,): "<", (0,): "=", (1,): ">", (-1, 0): "<=", (0, 1): ">=", (-1, 1): "!="}
        parts = []
        for atom, signs in self.signs.items():
            p = dict(atom)
            number = -p.pop(ONE, Fraction(0))
            parts.append(f"{names.show(p)} {words[tuple(sorted(signs))]} {float(number):g}")
        return " and ".join(parts)


class Solver:
    """Whether cells may have elements, each question answered once."""

    def __init__(self, names: Unknowns, work: Work) -> None:
        self.names, self.work = names, work
        self._known: dict[object, dict[Monomial, Fraction] | None] = {}

    def possible(self, cell: Cell, atom: Key) -> bool:
        """False if it shows at once that nothing has the signs of a cell.

        Only what has to do with ``atom`` is looked at, and monomials are just unknowns.
        """
        held = _near(cell.signs, atom)
        known = self._sign(atom[0][0], cell.signs) if len(atom) == 1 else ANY
        if len(held) == 1 and known & cell.signs[atom]:
            return True
        return self._found(held, facts=False) is not None

    def point(self, cell: Cell) -> dict[Monomial, Fraction] | None:
        """Values of monomials in a cell; None if it is empty."""
        return self._found(list(cell.signs.items()), facts=True)

    def _found(
        self, held: list[tuple[Key, Signs]], *, facts: bool
    ) -> dict[Monomial, Fraction] | None:
        asked = (facts, frozenset(held))
        if asked not in self._known:
            self._known[asked] = self._solved(held, facts=facts)
        return self._known[asked]

    def _solved(
        self, held: list[tuple[Key, Signs]], *, facts: bool
    ) -> dict[Monomial, Fraction] | None:
        strict: list[Polynomial] = []
        weak: list[Polynomial] = []
        equal: list[Polynomial] = []
        for atom, signs in held:
            p = dict(atom)
            if signs == {0}:
                equal.append(p)
            elif len(signs) == 1 or 0 not in signs:
                if len(signs) == 1:
                    strict.append(scaled(p, next(iter(signs))))
            elif signs != ANY:
                weak.append(scaled(p, sum(signs)))
        more_strict, more_weak = self._facts(strict, weak, equal, dict(held)) if facts else ([], [])
        numbers: dict[Monomial, int] = {}
        above, not_below, zero = (
            [_row(p, numbers) for p in group]
            for group in ([*strict, *more_strict], [*weak, *more_weak], equal)
        )
        found = solution(above, not_below, zero, self.work)
        if found is None:
            return None
        return {m: found.get(n, Fraction(0)) for m, n in numbers.items()}

    def _facts(
        self,
        strict: list[Polynomial],
        weak: list[Polynomial],
        equal: list[Polynomial],
        signs: Mapping[Key, Signs],
    ) -> tuple[list[Polynomial], list[Polynomial]]:
        """What holds of the monomials that occur: their signs, squares, products."""
        monomials = {m: None for p in (*strict, *weak, *equal) for m in p if m}
        more_strict, more_weak = [], []
        if any(sum(abs(e) for _, e in m) > 1 for m in monomials):
            more_weak += self._products(strict, weak, monomials)
        for p in more_weak:
            monomials |= dict.fromkeys(m for m in p if m)
        for m in monomials:
            sign = self._sign(m, signs)
            if sign in ({1}, {-1}):
                more_strict.append(scaled({m: Fraction(1)}, next(iter(sign))))
            elif -1 not in sign:
                more_weak.append({m: Fraction(1)})
        for number in unknowns(monomials):  # type: ignore[arg-type]
            if self.names.bounded(number):
                more_strict += [{ONE: Fraction(1), ((number, Fraction(1)),): Fraction(s)}
                                for s in (-1, 1)]  # fmt: skip
        return more_strict, more_weak

    def _products(
        self, strict: list[Polynomial], weak: list[Polynomial], monomials: Mapping[Monomial, None]
    ) -> list[Polynomial]:
        made = []
        short = [p for p in (*strict, *weak) if len(p) <= 3][:MOST_PRODUCTS]
        for p, q in combinations_with_replacement(short, 2):
            made.append(times(p, q))
        numbers = sorted({n for m in monomials for n, e in m})[:MOST_PRODUCTS]
        for a, b in combinations_with_replacement(numbers, 2):
            for side in (unknown(b), scaled(unknown(b), -1)):
                difference = minus(unknown(a), side)
                if difference and joined(((a, Fraction(1)),), ((b, Fraction(1)),)) in monomials:
                    made.append(times(difference, difference))
            shifted = minus(unknown(a), constant(1))
            if a == b and ((a, Fraction(2)),) in monomials:
                made.append(times(shifted, shifted))
        return made

    def _sign(self, monomial: Monomial, signs: Mapping[Key, Signs]) -> Signs:
        made = frozenset((1,))
        for number, power in monomial:
            made = product(made, sign_of(self.names, number, signs), odd=bool(power % 2))
        return made


def sign_of(names: Unknowns, number: int, signs: Mapping[Key, Signs]) -> Signs:
    """The signs that an unknown may have."""
    if names.positive(number):
        return frozenset((1,))
    known = signs.get(((((number, Fraction(1)),), Fraction(1)),), ANY)
    return known - {-1} if names.not_negative(number) else known


def product(a: Signs, b: Signs, *, odd: bool) -> Signs:
    """The signs of a product whose second factor has an odd or an even power."""
    return frozenset(x * (y if odd else y * y) for x in a for y in b)


def _row(p: Polynomial, numbers: dict[Monomial, int]) -> Row:
    return {(numbers.setdefault(m, len(numbers)) if m else CONSTANT): c for m, c in p.items()}


def _near(signs: Mapping[Key, Signs], atom: Key) -> list[tuple[Key, Signs]]:
    """What has unknowns in common with ``atom``, or with what has."""
    waiting = {k: set(unknowns(dict(k))) for k in signs}
    reached = waiting.pop(atom)
    found = [atom]
    while True:
        more = [k for k, numbers in waiting.items() if numbers & reached]
        if not more:
            return [(k, signs[k]) for k in found]
        for k in more:
            reached |= waiting.pop(k)
        found += more
