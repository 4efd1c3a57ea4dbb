"""Lengths: numbers of elements in terms of the sizes of dims, such as ``|D| / 2`` or ``|H| * |E|``.

A length is a polynomial with rational coefficients, so two lengths are equal exactly if they are
equal for all sizes. A division has to come out even: other sizes are refused. The elements that a
slice takes are counted by a ``Clamp``, which stands in a polynomial as a size does: it is never
negative, and a division in it rounds up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, reduce
from math import ceil, lcm, prod
from operator import mul

from blockbuster.ir.expr import Call, Const, Expr, Size, call, show_expr
from blockbuster.ir.polynomial import Polynomial
from blockbuster.ir.types import Dim, size_class


@dataclass(frozen=True)
class Clamp:
    """``of``, and 0 where it is negative; rounded up if it ``rounds``, else ``of`` has to be whole.

    ``x[1:-1]`` has max(|A| - 2, 0) elements, ``x[::2]`` has ceil(|A| / 2). ``clamped`` makes one
    only where a polynomial in sizes cannot say the same.
    """

    of: Length
    rounds: bool = False

    def __lt__(self, other: Clamp | Dim) -> bool:
        mine = self.of.terms, self.rounds
        return isinstance(other, Clamp) and mine < (other.of.terms, other.rounds)

    def __gt__(self, other: Clamp | Dim) -> bool:
        return not isinstance(other, Clamp) or other < self

    @property
    def most(self) -> Length:
        """A length that it never exceeds, without what is subtracted in ``of``."""
        added = Length(tuple(term for term in self.of.terms if term[1] > 0))
        return added + number(self._more)

    @property
    def _more(self) -> Fraction:
        """How much rounding up adds at most."""
        return 1 - Fraction(1, self.of.parts()[1]) if self.rounds else Fraction(0)

    def value(self, sizes: Mapping[Dim, int]) -> int:
        """The number for these sizes (by size class). Raises ValueError if it is not whole."""
        if not self.rounds:
            return max(self.of.value(sizes), 0)
        total, divisor = self.of.total(sizes)
        return max(-(-total // divisor), 0)

    def python(self, name: Callable[[Dim], str]) -> str:
        """A Python expression. Its quotients round up correctly: none that counts is negative."""
        terms, divisor = (self.of + number(self._more)).parts()
        text = _written(terms, name)
        return f"max({text if divisor == 1 else f'({text}) // {divisor}'}, 0)"

    @property
    def expr(self) -> Expr:
        """The scalar expression of this number."""
        top, divisor = self.of + number(self._more), self.of.parts()[1]
        if not self.rounds:
            return call("maximum", self.of.expr, 0)
        rounded = call("floor", call("div", (top * whole(divisor)).expr, divisor))
        return rounded if top.never_negative else call("maximum", rounded, 0)


Symbol = Dim | Clamp
"""A size, or a clamped length."""

Product = tuple[Symbol, ...]
"""A product of sizes of dims and of clamped lengths; the empty one is 1."""


@dataclass(frozen=True)
class Length(Polynomial[Symbol, Fraction]):
    """The sum of ``share`` times the sizes of ``dims`` multiplied, over (dims, share) in terms."""

    @property
    def constant(self) -> int | None:
        """The number this length always is; None if it depends on a size."""
        if not self.terms:
            return 0
        ((dims, share),) = self.terms if len(self.terms) == 1 else ((("",), Fraction(0)),)
        return int(share) if not dims and share.denominator == 1 else None

    @property
    def dims(self) -> tuple[Dim, ...]:
        """The dims whose sizes are read."""
        return self._dims

    @cached_property
    def _dims(self) -> tuple[Dim, ...]:
        read = [s.of.dims if isinstance(s, Clamp) else (s,) for s in self.symbols]
        return tuple(dict.fromkeys(dim for dims in read for dim in dims))

    @property
    def clamps(self) -> tuple[Clamp, ...]:
        """The clamped lengths that occur, outside of others."""
        return tuple(symbol for symbol in self.symbols if isinstance(symbol, Clamp))

    @property
    def never_negative(self) -> bool:
        """True if signs show that it is at least 0 for all sizes: |A| - max(|A| - 2, 0) is."""
        least = self
        for symbols, share in self.terms:
            if share < 0 and len(symbols) == 1 and isinstance(symbols[0], Clamp):
                least = least + Length(((symbols, -share),)) + symbols[0].most * number(share)
        if least != self:
            return least.never_negative
        return all(share > 0 for _, share in self.terms)

    def total(self, sizes: Mapping[Dim, int]) -> tuple[int, int]:
        """The number for these sizes as a whole number over another one."""
        terms, divisor = self.parts()  # whole numbers: sizes may be torch's symbols for such

        def value(symbol: Symbol) -> int:
            return symbol.value(sizes) if isinstance(symbol, Clamp) else sizes[symbol]

        return sum(times * prod(map(value, symbols)) for times, symbols in terms), divisor

    def value(self, sizes: Mapping[Dim, int]) -> int:
        """The number for these sizes (by size class). Raises ValueError if it is not whole."""
        total, divisor = self.total(sizes)
        if divisor == 1:
            return total
        if total % divisor:
            given = ", ".join(f"{d} = {sizes[d]}" for d in self.dims)
            raise ValueError(f"{self} is {Fraction(total, divisor)} for {given}: no whole number")
        return total // divisor

    @property
    def is_integral(self) -> bool:
        """True if it has no fractions, so that it is whole for all sizes."""
        return all(share.denominator == 1 for _, share in self.terms)

    def over(self, other: Length) -> Length | None:
        """This length divided by another; None if the quotient is no polynomial.

        >>> str((size("B") * size("D") - size("D")).over(size("D")))
        '|B| - 1'
        """
        rest, found = self, Length()
        while rest.terms:
            part = _divided(rest.terms[0], other.terms[0]) if other.terms else None
            if part is None:
                return None
            found, rest = found + part, rest - part * other
        return found

    def replaced(
        self, length_of: Callable[[Dim], Length], clamp: Callable[[Clamp], Length] | None = None
    ) -> Length:
        """This length with ``length_of(D)`` for every ``|D|``, and ``clamp`` of every clamp that is
        made of what then stands in it; what ``clamped`` makes of it if none is given.
        """
        total = Length()
        for symbols, share in self.terms:
            term = number(share)
            for symbol in symbols:
                if isinstance(symbol, Clamp):
                    of = symbol.of.replaced(length_of, clamp)
                    found = clamp(Clamp(of, symbol.rounds)) if clamp else None
                    term = term * (found or clamped(of, rounds=symbol.rounds))
                else:
                    term = term * length_of(symbol)
            total = total + term
        return total

    def parts(self) -> tuple[list[tuple[int, Product]], int]:
        """Whole multiples of products, and the number by which their sum is divided."""
        return self._parts

    @cached_property
    def _parts(self) -> tuple[list[tuple[int, Product]], int]:
        divisor = lcm(*(share.denominator for _, share in self.terms))
        return [(int(share * divisor), dims) for dims, share in self.terms], divisor

    def python(self, name: Callable[[Dim], str]) -> str:
        """A Python expression, in parentheses where it is more than a word.

        >>> (size("D") * size("H")).python(str.lower), (size("D") - whole(1)).python(str)
        ('(d * h)', '(D - 1)')
        """
        terms, divisor = self.parts()
        text = _written(terms, name)
        if divisor != 1:
            text = f"{f'({text})' if len(terms) > 1 else text} // {divisor}"
        return f"({text})" if " " in text else text

    def __str__(self) -> str:
        text = ""  # as ``expr`` prints, which nests as deep as there are terms
        for symbols, share in sorted(self.terms, key=lambda term: term[1] < 0):
            sign = "" if not text else " - " if share < 0 else " + "
            text += sign + show_expr(_product(symbols, abs(share) if text else share), [])
        return text or "0"

    @property
    def expr(self) -> Expr:
        """The scalar expression of this number."""
        total: Expr | None = None
        for symbols, share in sorted(self.terms, key=lambda term: term[1] < 0):
            down = total is not None and share < 0
            term = _product(symbols, abs(share) if down else share)
            total = term if total is None else Call("sub" if down else "add", (total, term))
        return total or Const(0.0)


def _written(terms: Sequence[tuple[int, Product]], name: Callable[[Dim], str]) -> str:
    """Whole multiples of products, added up, as Python."""

    def word(symbol: Symbol) -> str:
        return symbol.python(name) if isinstance(symbol, Clamp) else name(symbol)

    return Polynomial(tuple((symbols, times) for times, symbols in terms)).written(word, " * ")


def _product(symbols: Product, share: Fraction) -> Expr:
    factors: list[Expr] = [s.expr if isinstance(s, Clamp) else Size(s) for s in symbols]
    if share.numerator != 1 or not symbols:
        factors.insert(0, Const(float(share.numerator)))
    term = factors[0]
    for factor in factors[1:]:
        term = Call("mul", (term, factor))
    return term if share.denominator == 1 else call("div", term, share.denominator)


def _divided(term: tuple[Product, Fraction], by: tuple[Product, Fraction]) -> Length | None:
    left = list(term[0])
    for dim in by[0]:
        if dim not in left:
            return None
        left.remove(dim)
    return Length(((tuple(left), term[1] / by[1]),))


def number(share: Fraction) -> Length:
    """A plain number."""
    return Length.of([((), share)])


def whole(count: int) -> Length:
    """A plain whole number."""
    return number(Fraction(count))


def product_of(extents: Iterable[Length]) -> Length:
    """The number of elements of an array with these extents."""
    return reduce(mul, extents, ONE)


def share_of(divisor: int) -> Length:
    """One part of ``divisor`` equal ones."""
    return number(Fraction(1, divisor))


def size(dim: Dim) -> Length:
    """The size of a dim."""
    return Length((((size_class(dim),), Fraction(1)),))


ZERO = Length()
ONE = whole(1)


def clamped(length: Length, *, rounds: bool = False) -> Length:
    """``length``, and 0 where it is negative; it ``rounds`` up or is whole for all sizes.

    A clamp of a clamp is one clamp, so that slices of slices have the lengths that one slice has.

    >>> a = size("A")
    >>> print(clamped(clamped(a - whole(1)) - whole(1)), clamped(a), clamped(whole(-2)), sep="; ")
    maximum(|A| - 2, 0); |A|; 0
    """
    if not length.dims:
        return whole(max(ceil(sum(share for _, share in length.terms)), 0))
    rounds = rounds and not length.is_integral
    if length.never_negative and not rounds:
        return length
    if all(share < 0 for _, share in length.terms):
        return ZERO
    return _merged(rounds, *length.terms) or Length((((Clamp(length, rounds),), Fraction(1)),))


def _merged(
    rounds: bool,
    first: tuple[Product, Fraction],
    less: tuple[Product, Fraction] = ((), Fraction(0)),
    *more: object,
) -> Length | None:
    """The clamp of a part of another clamp without some of its elements, as one clamp."""
    (inner, share), (others, count) = first, less
    is_part = len(inner) == 1 and isinstance(inner[0], Clamp) and share.numerator == 1
    if not is_part or others or more or count > 0 or (count / share).denominator != 1:
        return None
    assert isinstance(inner[0], Clamp)
    part = inner[0].of * number(share) + Length.of([less])
    return clamped(part, rounds=rounds or inner[0].rounds)


def length_of(expr: Expr) -> Length | None:
    """``expr`` as a length; None if it is none.

    >>> str(length_of(call("sub", Size("D"), call("div", Size("D"), 2))))
    '|D| / 2'
    """
    match expr:
        case Size(dim):
            return size(dim)
        case Const(value):
            return whole(int(value)) if value.is_integer() else None
        case Call("neg", (arg,)):
            return length_of(call("mul", arg, -1))
        case Call("maximum", (Call("floor", (Call("div", (left, Const(value))),)), Const(0.0))):
            return _rounded_up(length_of(left), value)
        case Call("maximum", (arg, Const(0.0))):
            top = length_of(arg)
            return clamped(top) if top is not None else None
        case Call("floor", (Call("div", (left, Const(value))),)):
            top = length_of(left)
            return _rounded_up(top, value) if top is not None and top.never_negative else None
        case Call("div", (left, Const(value))) if value.is_integer() and value:
            top = length_of(left)
            return top * share_of(int(value)) if top is not None else None
        case Call("add" | "sub" | "mul" as fn, (left, right)):
            a, b = length_of(left), length_of(right)
            if a is not None and b is not None:
                return a + b if fn == "add" else a - b if fn == "sub" else a * b
    return None


def _rounded_up(top: Length | None, divisor: float) -> Length | None:
    """The clamp that is written as a quotient of ``top``, which is larger by the divisor less 1."""
    if top is None or divisor < 1 or not (divisor.is_integer() and top.is_integral):
        return None
    part = (top - whole(int(divisor) - 1)) * share_of(int(divisor))
    return clamped(part, rounds=True)


@dataclass(frozen=True)
class Rule:
    """The size of ``dim`` is ``length``; or, where not ``exact``, at least that.

    ``because``: the user's line that asks for it, where one alone does.
    """

    dim: Dim
    length: Length
    exact: bool = True
    because: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"|{self.dim}| is {'' if self.exact else 'at least '}{self.length}"


def completed(sizes: Mapping[Dim, int], rules: Iterable[Rule]) -> dict[Dim, int]:
    """``sizes`` (by size class) and those that follow from them by ``rules``.

    Raises ValueError if they break a rule.
    """
    found, left = dict(sizes), list(rules)
    while left:
        ready: list[Rule] = []
        later: list[Rule] = []
        for rule in left:
            given = all(map(found.__contains__, rule.length.dims))
            (ready if given and (rule.exact or rule.dim in found) else later).append(rule)
        if not ready:
            break
        left = later
        for rule in sorted(ready, key=lambda rule: rule.exact):  # the user's line, if there is one
            value = rule.length.value(found)
            known = found.setdefault(rule.dim, value)
            if (known != value or value < 0) if rule.exact else known < value:
                which = "" if rule.length.constant is not None else f", which is {value}"
                told = rule.because if value < 0 or not rule.exact else ""
                line = f"\n  asked for by {told}" if told else ""
                raise ValueError(f"dim {rule.dim} has size {known}, but {rule}{which}{line}")
    return found


def in_order(rules: Iterable[Rule], known: Iterable[Dim]) -> list[Rule]:
    """The rules that can be applied one after the other where the sizes of ``known`` are known."""
    found, left, ordered = set(known), list(rules), list[Rule]()
    while True:
        ready = [rule for rule in left if found.issuperset(rule.length.dims)]
        ready = [rule for rule in ready if rule.exact or rule.dim in found]
        if not ready:
            return ordered
        ordered += ready
        found.update(rule.dim for rule in ready)
        left = [rule for rule in left if rule not in ready]
