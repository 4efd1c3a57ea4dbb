"""A term in a cell: the polynomial that it equals there, or the comparison to decide next."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, cast

from blockbuster.interp.cells import ANY, Cell, Signs, product, sign_of
from blockbuster.interp.laurent import (
    ONE,
    Key,
    Polynomial,
    constant,
    divided,
    key,
    minus,
    scaled,
    times,
    total,
    unknown,
)
from blockbuster.interp.terms import Term, TooLarge
from blockbuster.interp.unknowns import Unknowns
from blockbuster.interp.work import Work

Element = Polynomial | float
"""A polynomial, or an infinity."""
NONZERO: Signs = frozenset((-1, 1))
STEPS = 4  # of arithmetic with a monomial


class Undecided(Exception):
    """A comparison may go several ways in a cell: the signs of a polynomial, apart."""

    def __init__(self, atom: Key, ways: tuple[Signs, ...]) -> None:
        super().__init__()
        self.atom, self.ways = atom, ways


class ZeroDivisor(ArithmeticError):
    """A denominator is zero everywhere in the cell."""


class Unfolding:
    """Terms in one cell; ``free`` are terms that are unknowns of their own."""

    def __init__(
        self, names: Unknowns, cell: Cell, free: Mapping[int, Term], work: Work | None = None
    ) -> None:
        self.names, self.cell, self.free = names, cell, free
        self.work = work or Work(math.inf)
        self.made: dict[int, Element] = {}
        self.truths: dict[int, bool] = {}

    def __call__(self, term: Term) -> Element:
        """The polynomial of a term. Raises Undecided, ZeroDivisor, TooLarge."""
        stack = [term]
        while stack:
            top = stack[-1]
            if top.number not in self.made:
                waiting = [part for part in self._parts(top) if part.number not in self.made]
                if waiting:
                    stack.extend(reversed(waiting))
                    continue
                made = self._reduced(self._element(top))
                self.made[top.number] = made
                size = 1 if isinstance(made, float) else 1 + len(made)
                self.work.spend(STEPS * size * (1 + len(self.cell.equations)))
            stack.pop()
        return self.made[term.number]

    def _parts(self, term: Term) -> tuple[Term, ...]:
        """The terms that are needed next."""
        if term.number in self.free:
            return ()
        if term.fn != "where":
            return term.parts
        condition = term.args[0]
        if condition.number not in self.made:
            return (condition,)
        return (term.args[1 if self.truth(condition) else 2],)

    def _element(self, term: Term) -> Element:
        if term.number in self.free:
            return unknown(self.names.number("term", term.number))
        if term.fn == "input":
            return unknown(self.names.number("input", term.args[0]))
        if term.fn == "number":
            (value,) = term.args
            if value != value:
                raise TooLarge("the programs mention NaN")
            return constant(value) if isinstance(value, Fraction) else cast(float, value)
        if term.fn in LOGIC:
            return constant(int(LOGIC[term.fn](self, *term.args)))
        if term.fn == "where":
            return self.made[self._parts(term)[0].number]
        args = [self.made[part.number] for part in term.args]
        return ELEMENTS[term.fn](self, *args) if term.fn in ELEMENTS else self._free(term.fn, args)

    def _reduced(self, x: Element) -> Element:
        """By the equations of the cell, and by roots' squares."""
        if isinstance(x, float):
            return x
        for equation in self.cell.equations:
            x = divided(x, equation)
        if self.names.laws:
            x = self._without_squares(x)
        return x

    def _without_squares(self, p: Polynomial) -> Polynomial:
        roots = [n for m in p for n, e in m if abs(e) >= 2 and self.names.kinds[n][0] == "sqrt"]
        if not roots:
            return p
        made = []
        for monomial, factor in p.items():
            part = {tuple((n, e) for n, e in monomial if n not in roots): factor}
            for number, power in monomial:
                if number in roots:
                    inner: Polynomial = dict(self.names.kinds[number][1])
                    for _ in range(abs(int(power)) // 2):
                        part = times(part, inner if power > 0 else self.inverse(inner))
                    left = power - (2 if power > 0 else -2) * (abs(int(power)) // 2)
                    part = times(part, unknown(number, left)) if left else part
            made.append(part)
        return total(made)

    # functions ---------------------------------------------------------------------------

    def add(self, *args: Element) -> Element:
        """A sum; an infinity absorbs numbers."""
        endless = {x for x in args if isinstance(x, float)}
        if len(endless) > 1:
            raise TooLarge("a value is undefined: inf - inf")
        return endless.pop() if endless else total(cast(list[Polynomial], args))

    def mul(self, *args: Element) -> Element:
        """A product; an infinity has to be told the sign of the rest."""
        numbers = [x for x in args if not isinstance(x, float)]
        made = constant(1)
        for x in numbers:
            made = times(made, x)
        endless = [x for x in args if isinstance(x, float)]
        if not endless:
            return made
        if not self.holds(made, NONZERO):
            raise TooLarge("a value is undefined: an infinity times zero")
        return math.prod(endless) * (1 if self.holds(made, frozenset((1,))) else -1)

    def inverse(self, x: Element) -> Polynomial:
        """1 / x."""
        if isinstance(x, float):
            return {}
        x = cast(Polynomial, self._reduced(x))
        if not x:
            raise ZeroDivisor
        if len(x) == 1:
            ((monomial, factor),) = x.items()
            return {tuple((n, -e) for n, e in monomial): 1 / factor}
        lead, x = self.names.primitive(x)
        return scaled(unknown(self.names.number("inverse", key(x))), 1 / lead)

    def largest(self, *args: Element) -> Element:
        """A maximum."""
        best = args[0]
        for x in args[1:]:
            best = best if self.below(x, best, equal=True) else x
        return best

    def smallest(self, *args: Element) -> Element:
        """A minimum."""
        best = args[0]
        for x in args[1:]:
            best = best if self.below(best, x, equal=True) else x
        return best

    def sub0(self, x: Element, z: Element) -> Element:
        """x - z, and x where it is infinite."""
        return x if isinstance(x, float) else self.add(x, self.mul(constant(-1), z))

    def exp(self, x: Element) -> Element:
        """A product of exponentials of monomials, if it is known to be one."""
        if isinstance(x, float):
            return {} if x < 0 else x
        if not self.names.laws:
            return self._free("exp", [x])
        made = {ONE: Fraction(1)}
        for monomial, factor in x.items():
            inner = key({monomial: Fraction(1)})
            made = times(made, unknown(self.names.number("exp", inner), factor))
        return made

    def log(self, x: Element) -> Element:
        """Of a product of exponentials, the sum that it is of."""
        if self.names.laws and not isinstance(x, float) and len(x) == 1:
            ((monomial, factor),) = x.items()
            if factor == 1 and all(self.names.kinds[n][0] == "exp" for n, _ in monomial):
                return total(scaled(dict(self.names.kinds[n][1]), e) for n, e in monomial)
        return self._free("log", [x])

    def sqrt(self, x: Element) -> Element:
        """Of a square, the absolute value."""
        if not self.names.laws or isinstance(x, float) or len(x) > 1:
            return self._free("sqrt", [x])
        if not x:
            return {}
        ((monomial, factor),) = x.items()
        roots = [math.isqrt(abs(n)) for n in (factor.numerator, factor.denominator)]
        exact = Fraction(*roots) ** 2 == factor
        if not exact or any(e % 2 and not self.names.positive(n) for n, e in monomial):
            return self._free("sqrt", [x])
        made = {tuple((n, e / 2) for n, e in monomial): Fraction(*roots)}
        return made if self.holds(made, frozenset((0, 1))) else scaled(made, -1)

    def _free(self, fn: str, args: list[Element]) -> Polynomial:
        keys = [x if isinstance(x, float) else key(x) for x in args]
        return unknown(self.names.number(fn, *keys))

    # decisions ---------------------------------------------------------------------------

    def truth(self, condition: Term) -> bool:
        """Whether a term is not zero."""
        known = self.truths.get(condition.number)
        if known is None:
            value = self.made[condition.number]
            known = isinstance(value, float) or self.holds(value, NONZERO)
            self.truths[condition.number] = known
        return known

    def below(self, x: Element, y: Element, *, equal: bool = False) -> bool:
        """Whether x < y, or x <= y."""
        if isinstance(x, float) or isinstance(y, float):
            a, b = (z if isinstance(z, float) else 0.0 for z in (x, y))
            return a <= b if equal else a < b
        return self.holds(minus(y, x), frozenset((0, 1)) if equal else frozenset((1,)))

    def same(self, x: Element, y: Element) -> bool:
        """Whether x == y."""
        if isinstance(x, float) or isinstance(y, float):
            return x == y
        return self.holds(minus(x, y), frozenset((0,)))

    def holds(self, p: Polynomial, wanted: Signs) -> bool:
        """Whether p has one of these signs. Raises Undecided."""
        p = cast(Polynomial, self._reduced(p))
        sign, factors = self.names.factored(p) if p else (0, [])
        signs, open_ones = frozenset((sign,)), []
        for atom, odd in factors:
            own = self._signs(atom)
            signs = product(signs, own, odd=odd)
            if len(own) > 1:
                open_ones.append((atom, own, odd))
        if signs <= wanted:
            return True
        if not signs & wanted:
            return False
        atom, own, odd = open_ones[0]
        parts = {tuple(sorted(own - {0})), (0,)} if not odd else set()
        if len(open_ones) == 1 and odd:
            rest = frozenset((sign,))
            for other, power in factors:
                if other != atom:
                    rest = product(rest, self._signs(other), odd=power)
            parts = {tuple(sorted(s for s in own if (s * next(iter(rest)) in wanted) is side))
                     for side in (True, False)}  # fmt: skip
        elif odd:
            parts = {(s,) for s in own}
        apart = {(s,) for part in parts if part == (-1, 1) for s in part}
        ways = sorted(part for part in parts | apart if part and part != (-1, 1))
        raise Undecided(atom, tuple(frozenset(way) for way in ways))

    def zero(self, p: Polynomial) -> bool:
        """Whether p is zero everywhere in the cell, as far as its equations tell."""
        p = cast(Polynomial, self._reduced(p))
        return not p or not self._reduced(self.names.cleared(p)[0])

    def _signs(self, atom: Key) -> Signs:
        """The signs that a primitive polynomial may have in the cell."""
        known, held = self.cell.signs.get(atom, ANY), self.cell.signs
        signs: set[int] = set()
        for monomial, factor in atom:
            own = frozenset((1 if factor > 0 else -1,))
            for number, power in monomial:
                own = product(own, sign_of(self.names, number, held), odd=bool(power % 2))
            signs |= own
        if 1 in signs and -1 in signs:
            return known
        if 0 in signs and signs & {1, -1}:  # some part is never zero
            for monomial, _ in atom:
                if all(0 not in sign_of(self.names, n, held) for n, _ in monomial):
                    signs -= {0}
        return known & signs or known


LOGIC: dict[str, Callable[..., bool]] = {
    "lt": lambda u, x, y: u.below(u.made[x.number], u.made[y.number]),
    "eq": lambda u, x, y: u.same(u.made[x.number], u.made[y.number]),
    "not": lambda u, x: not u.truth(x),
    "and": lambda u, x, y: u.truth(x) and u.truth(y),
    "or": lambda u, x, y: u.truth(x) or u.truth(y),
}
ELEMENTS: dict[str, Callable[..., Any]] = {
    "add": Unfolding.add, "mul": Unfolding.mul, "inverse": Unfolding.inverse,
    "max": Unfolding.largest, "min": Unfolding.smallest, "sub0": Unfolding.sub0,
    "exp": Unfolding.exp, "log": Unfolding.log, "sqrt": Unfolding.sqrt,
    "fold": Unfolding.add,
}  # fmt: skip
