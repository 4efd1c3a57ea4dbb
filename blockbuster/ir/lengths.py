"""Lengths: numbers of elements in terms of the sizes of dims, such as ``|D| / 2`` or ``|H| * |E|``.

A length is a polynomial with rational coefficients, so two lengths are equal exactly if they are
equal for all sizes. A division has to come out even: other sizes are refused. The elements that a
slice takes are counted by a ``Clamp``, which stands in a polynomial as a size does: it is never
negative, and a division in it rounds up. An ``Inverse`` stands in it for a size that divides, as in
``|H| / |G|``: it cancels against that size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, reduce
from math import ceil, gcd, lcm, prod
from operator import mul

from blockbuster.ir.expr import Call, Const, Expr, Size, call, show_expr
from blockbuster.ir.length_symbols import Clamp, Inverse, Product, Symbol
from blockbuster.ir.polynomial import Polynomial
from blockbuster.ir.types import Dim, size_class


@dataclass(frozen=True)
class Length(Polynomial[Symbol, Fraction]):
    """The sum of ``share`` times the sizes of ``dims`` multiplied, over (dims, share) in terms."""

    def __mul__(self, other: Length) -> Length:
        made = super().__mul__(other)
        if not any(isinstance(s, Inverse) for symbols, _ in made.terms for s in symbols):
            return made
        return Length.of((_cancelled(symbols), share) for symbols, share in made.terms)

    @cached_property
    def constant(self) -> int | None:
        """The number this length always is; None if it depends on a size."""
        if not self.terms:
            return 0
        ((dims, share),) = self.terms if len(self.terms) == 1 else ((("",), Fraction(0)),)
        return int(share) if not dims and share.denominator == 1 else None

    @cached_property
    def dims(self) -> tuple[Dim, ...]:
        """The dims whose sizes are read."""
        read = [(s,) if isinstance(s, str) else s.of.dims for s in self.symbols]
        return tuple(dict.fromkeys(dim for dims in read for dim in dims))

    @property
    def clamps(self) -> tuple[Clamp, ...]:
        """The clamped lengths that occur, outside of others."""
        return tuple(symbol for symbol in self.symbols if isinstance(symbol, Clamp))

    @property
    def never_negative(self) -> bool:
        """True if signs show that it is at least 0 for all sizes: |A| - max(|A| - 2, 0) is, and so
        is |A| - |A| / |G|, because sizes that divide are at least 1.
        """
        top, under = self.fraction
        if under.dims and under.dims == under.symbols:
            least = top.replaced(lambda dim: size(dim) + ONE if dim in under.dims else size(dim))
            return least.never_negative
        least = self
        for symbols, share in self.terms:
            if share < 0 and len(symbols) == 1 and isinstance(symbols[0], Clamp):
                least = least + Length(((symbols, -share),)) + symbols[0].most * number(share)
        if least != self:
            return least.never_negative
        return all(share > 0 for _, share in self.terms)

    def total(self, sizes: Mapping[Dim, int]) -> tuple[int, int]:
        """The number for these sizes as a whole number over another one, which is at least 1.

        Raises ValueError if a size that divides is 0.
        """
        top, under = self.fraction
        divisor = under.constant or under.total(sizes)[0]
        if divisor < 1:
            raise ValueError(f"{self} is divided by {divisor} for {self._given(sizes)}")

        def value(symbol: Symbol) -> int:
            assert not isinstance(symbol, Inverse), "the divisors stand in `under`"
            return symbol.value(sizes) if isinstance(symbol, Clamp) else sizes[symbol]

        return sum(int(n) * prod(map(value, symbols)) for symbols, n in top.terms), divisor

    def _given(self, sizes: Mapping[Dim, int]) -> str:
        return ", ".join(f"{dim} = {sizes[dim]}" for dim in self.dims)

    def value(self, sizes: Mapping[Dim, int]) -> int:
        """The number for these sizes (by size class). Raises ValueError if it is not whole."""
        if self.constant is not None:  # as most often, of steps and starts
            return self.constant
        total, divisor = self.total(sizes)
        if total % divisor:
            number = f"{self} is {Fraction(total, divisor)} for {self._given(sizes)}"
            raise ValueError(f"{number}: no whole number")
        return total // divisor

    @property
    def rounding(self) -> Length:
        """How much rounding up adds to it at most."""
        return ONE - inverse(self.fraction[1])

    @property
    def rounded_up(self) -> tuple[Length, Length]:
        """Two lengths of which the first over the second, rounded down, is this one rounded up."""
        top, under = self.fraction
        return top + under - ONE, under

    @property
    def added(self) -> Length:
        """It without the terms that are subtracted."""
        return Length(tuple(term for term in self.terms if term[1] > 0))

    @property
    def is_integral(self) -> bool:
        """True if it has no fractions, so that it is whole for all sizes."""
        return self.fraction[1] == ONE

    def over(self, other: Length) -> Length | None:
        """This length divided by another; None if sizes would divide that do not divide this one.

        >>> str((size("B") * size("D") - size("D")).over(size("D")))
        '|B| - 1'
        """
        (top, under), (by, by_under) = self.fraction, other.fraction
        if under.dims or by_under.dims:
            quotient = (top * by_under).over(by)
            return None if quotient is None else quotient * inverse(under)
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
                if isinstance(symbol, Inverse):
                    term = term * inverse(symbol.of.replaced(length_of, clamp))
                elif isinstance(symbol, Clamp):
                    of = symbol.of.replaced(length_of, clamp)
                    found = clamp(Clamp(of, symbol.rounds)) if clamp else None
                    term = term * (found or clamped(of, rounds=symbol.rounds))
                else:
                    term = term * length_of(symbol)
            total = total + term
        return total

    @cached_property
    def fraction(self) -> tuple[Length, Length]:
        """Two lengths of which the first over the second is this one. Their coefficients are whole,
        and inverses stand in their clamps alone.

        >>> [str(each) for each in (size("H") * inverse(size("G")) - share_of(2)).fraction]
        ['2 * |H| - |G|', '2 * |G|']
        """
        under = whole(lcm(*(share.denominator for _, share in self.terms)))
        most: dict[Inverse, int] = {}
        for symbols, _ in self.terms:
            for symbol in symbols:
                if isinstance(symbol, Inverse):
                    most[symbol] = max(most.get(symbol, 0), symbols.count(symbol))
        if not most:
            return (self if under == ONE else self * under), under
        top = ZERO
        for symbols, share in self.terms:
            plain = tuple(symbol for symbol in symbols if not isinstance(symbol, Inverse))
            more = [s.of for s, times in most.items() for _ in range(times - symbols.count(s))]
            top = top + Length(((plain, share),)) * under * product_of(more)
        return top, under * product_of(s.of for s, times in most.items() for _ in range(times))

    def python(self, name: Callable[[Dim], str]) -> str:
        """A Python expression, in parentheses where it is more than a word.

        >>> (size("D") * size("H")).python(str.lower), (size("D") - whole(1)).python(str)
        ('(d * h)', '(D - 1)')
        """
        top, under = self.fraction
        text = top.undivided(name)
        if under != ONE:
            text = f"{f'({text})' if len(top.terms) > 1 else text} // {under.python(name)}"
        return f"({text})" if " " in text else text

    def undivided(self, name: Callable[[Dim], str]) -> str:
        """The same of a length without divisors, never in parentheses."""

        def word(symbol: Symbol) -> str:
            assert not isinstance(symbol, Inverse), "a divisor"
            return symbol.python(name) if isinstance(symbol, Clamp) else name(symbol)

        return self.written(word, " * ")

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


def _product(symbols: Product, share: Fraction) -> Expr:
    plain = [symbol for symbol in symbols if not isinstance(symbol, Inverse)]
    factors: list[Expr] = [s.expr if isinstance(s, Clamp) else Size(s) for s in plain]
    if share.numerator != 1 or not plain:
        factors.insert(0, Const(float(share.numerator)))
    term = factors[0]
    for factor in factors[1:]:
        term = Call("mul", (term, factor))
    term = term if share.denominator == 1 else call("div", term, share.denominator)
    for under in (symbol.of for symbol in symbols if isinstance(symbol, Inverse)):
        term = Call("div", (term, under.expr))
    return term


def _alone(symbol: Symbol) -> Length:
    return Length((((symbol,), Fraction(1)),))


def _cancelled(symbols: Product) -> Product:
    """The product without the symbols that stand in it above and below."""
    left = list(symbols)
    for symbol in symbols:
        under = symbol.of.terms[0][0][0] if isinstance(symbol, Inverse) else None
        if under in left and isinstance(symbol, Inverse) and symbol.of == _alone(under):
            left.remove(under)
            left.remove(symbol)
    return tuple(left)


def _divided(term: tuple[Product, Fraction], by: tuple[Product, Fraction]) -> Length | None:
    left = list(term[0])
    for dim in by[0]:
        if dim not in left:
            return None
        left.remove(dim)
    return Length(((tuple(left), term[1] / by[1]),))


def number(share: Fraction) -> Length:
    """A plain number."""
    return Length((((), share),) if share else ())


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
    return _alone(size_class(dim))


def inverse(length: Length) -> Length:
    """1 over a length. Raises ValueError if the length is 0.

    >>> print(size("H") * inverse(size("G")), inverse(whole(2) * size("G")) * size("G"), sep="; ")
    |H| / |G|; 1 / 2
    """
    top, under = length.fraction
    if not top.terms:
        raise ValueError("a length is divided by 0")
    (symbols, first), *others = top.terms
    if not others:
        unders = sorted(Inverse(_alone(symbol)) for symbol in symbols)
        return under * Length(((tuple(unders), 1 / first),))
    common = gcd(*(share.numerator for _, share in top.terms)) * (1 if first > 0 else -1)
    one = Inverse(top * number(Fraction(1, common)))
    return under * Length((((one,), Fraction(1, common)),))


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
    return _merged(rounds, *length.terms) or _alone(Clamp(length, rounds))


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
            try:
                value = rule.length.value(found)
            except ValueError as error:
                raise ValueError(f"{error}{_asked_for(rule.because)}") from None
            known = found.setdefault(rule.dim, value)
            if (known != value or value < 0) if rule.exact else known < value:
                which = "" if rule.length.constant is not None else f", which is {value}"
                line = _asked_for(rule.because if value < 0 or not rule.exact else "")
                raise ValueError(f"dim {rule.dim} has size {known}, but {rule}{which}{line}")
    return found


def _asked_for(because: str) -> str:
    return f"\n  asked for by {because}" if because else ""


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
