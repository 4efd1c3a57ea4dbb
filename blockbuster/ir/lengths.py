"""Lengths: numbers of elements in terms of the sizes of dims, such as ``|D| / 2`` or ``|H| * |E|``.

A length is a polynomial with rational coefficients, so two lengths are equal exactly if they are
equal for all sizes. A division has to come out even: other sizes are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import islice, product
from math import lcm, prod

from blockbuster.ir.expr import Call, Const, Expr, Size, call, show_expr
from blockbuster.ir.polynomial import Polynomial
from blockbuster.ir.types import Dim, size_class

Product = tuple[Dim, ...]
"""A product of sizes of dims; the empty one is 1."""


@dataclass(frozen=True)
class Length(Polynomial[Dim, Fraction]):
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
        return self.symbols

    def value(self, sizes: Mapping[Dim, int]) -> int:
        """The number for these sizes (by size class). Raises ValueError if it is not whole."""
        terms, divisor = self.parts()  # whole numbers: sizes may be torch's symbols for such
        total = sum(times * prod(sizes[d] for d in dims) for times, dims in terms)
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

    def replaced(self, length_of: Callable[[Dim], Length]) -> Length:
        """This length with ``length_of(D)`` for every ``|D|``."""
        total = Length()
        for dims, share in self.terms:
            term = Length((((), share),))
            for dim in dims:
                term = term * length_of(dim)
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
        text = Polynomial(tuple((dims, times) for times, dims in terms)).written(name, " * ")
        if divisor != 1:
            text = f"{f'({text})' if len(terms) > 1 else text} // {divisor}"
        return f"({text})" if " " in text else text

    def __str__(self) -> str:
        text = ""  # as ``expr`` prints, which nests as deep as there are terms
        for dims, share in sorted(self.terms, key=lambda term: term[1] < 0):
            sign = "" if not text else " - " if share < 0 else " + "
            text += sign + show_expr(_product(dims, abs(share) if text else share), [])
        return text or "0"

    @property
    def expr(self) -> Expr:
        """The scalar expression of this number."""
        total: Expr | None = None
        for dims, share in sorted(self.terms, key=lambda term: term[1] < 0):
            down = total is not None and share < 0
            term = _product(dims, abs(share) if down else share)
            total = term if total is None else Call("sub" if down else "add", (total, term))
        return total or Const(0.0)


def _product(dims: Product, share: Fraction) -> Expr:
    factors: list[Expr] = [Size(d) for d in dims]
    if share.numerator != 1 or not dims:
        factors.insert(0, Const(float(share.numerator)))
    term = factors[0]
    for factor in factors[1:]:
        term = Call("mul", (term, factor))
    return term if share.denominator == 1 else call("div", term, share.denominator)


@dataclass(frozen=True)
class Lengths:
    """The extents of an array's axes, in order.

    >>> print(Lengths((size("B"), whole(4))))
    (|B|, 4)
    """

    extents: tuple[Length, ...]

    @property
    def dims(self) -> tuple[Dim, ...]:
        """The dims whose sizes are read."""
        return tuple(dict.fromkeys(dim for extent in self.extents for dim in extent.dims))

    def value(self, sizes: Mapping[Dim, int]) -> tuple[int, ...]:
        """The numbers for these sizes. Raises ValueError if one is not whole."""
        return tuple(extent.value(sizes) for extent in self.extents)

    def replaced(self, length_of: Callable[[Dim], Length]) -> Lengths:
        """The same with ``length_of(D)`` for every ``|D|``."""
        return Lengths(tuple(extent.replaced(length_of) for extent in self.extents))

    def __str__(self) -> str:
        words = [*map(str, self.extents)]
        return f"({words[0]},)" if len(words) == 1 else f"({', '.join(words)})"


def _divided(term: tuple[Product, Fraction], by: tuple[Product, Fraction]) -> Length | None:
    left = list(term[0])
    for dim in by[0]:
        if dim not in left:
            return None
        left.remove(dim)
    return Length(((tuple(left), term[1] / by[1]),))


def whole(number: int) -> Length:
    """A plain number."""
    return Length.of([((), Fraction(number))])


def product_of(extents: Iterable[Length]) -> Length:
    """The number of elements of an array with these extents."""
    total = ONE
    for extent in extents:
        total = total * extent
    return total


def share_of(divisor: int) -> Length:
    """One part of ``divisor`` equal ones."""
    return Length((((), Fraction(1, divisor)),))


def size(dim: Dim) -> Length:
    """The size of a dim."""
    return Length((((size_class(dim),), Fraction(1)),))


ZERO = Length()
ONE = whole(1)


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
        case Call("div", (left, Const(value))) if value.is_integer() and value:
            top = length_of(left)
            return top * share_of(int(value)) if top is not None else None
        case Call("add" | "sub" | "mul" as fn, (left, right)):
            a, b = length_of(left), length_of(right)
            if a is not None and b is not None:
                return a + b if fn == "add" else a - b if fn == "sub" else a * b
    return None


@dataclass(frozen=True)
class Rule:
    """The size of ``dim`` is ``length``; or, where not ``exact``, at least that."""

    dim: Dim
    length: Length
    exact: bool = True

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
        for rule in ready:
            value = rule.length.value(found)
            known = found.setdefault(rule.dim, value)
            if (known != value or value < 0) if rule.exact else known < value:
                which = "" if rule.length.constant is not None else f", which is {value}"
                raise ValueError(f"dim {rule.dim} has size {known}, but {rule}{which}")
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


MOST_TRIED = 4096
"""Sets of sizes that are tried for one that keeps all rules."""


def fitted(sizes: Mapping[Dim, int], rules: Sequence[Rule]) -> dict[Dim, int]:
    """Sizes near ``sizes`` that keep all rules: what to draw for a program with such views.

    What follows from them is empty only where one of ``sizes`` is 0. Raises ValueError if no size
    near makes what follows whole.
    """
    follow = {rule.dim for rule in rules if rule.exact}
    steps = {
        dim: lcm(*(share.denominator for r in rules for ds, share in r.length.terms if dim in ds))
        for dim in sizes
    }
    even = {d: -(-n // steps[d]) * steps[d] for d, n in sizes.items() if d not in follow}
    # x[1:] in two heads wants an odd number: multiples of denominators first, then what is between
    between = product(*(range(steps[dim]) for dim in even))
    first: ValueError | None = None
    for more in islice(between, MOST_TRIED):
        found = {dim: n + m for (dim, n), m in zip(even.items(), more, strict=True)}
        try:
            while short := _too_small(found, rules):
                for dim in short:
                    found[dim] += steps[dim]
            return {**sizes, **completed(found, rules)}
        except ValueError as error:
            first = first or error
    assert first is not None
    raise first


def _too_small(found: Mapping[Dim, int], rules: Sequence[Rule]) -> set[Dim]:
    """The dims of ``found`` that have to be larger, because what follows is empty or too short."""
    least = min(1, *found.values()) if found else 1
    full, short = dict(found), set[Dim]()
    for rule in in_order(rules, found):
        value = rule.length.value(full)
        enough = least if rule.exact else value
        if full.setdefault(rule.dim, value) < enough:
            short |= _behind(rule.dim, found, rules)
    return short


def _behind(dim: Dim, found: Mapping[Dim, int], rules: Sequence[Rule]) -> set[Dim]:
    """The dims of ``found`` with which ``dim`` grows."""
    if dim in found:
        return {dim}
    terms = [term for r in rules if r.exact and r.dim == dim for term in r.length.terms]
    more = {d for dims, share in terms if share > 0 for d in dims}
    return {first for d in more for first in _behind(d, found, rules)}
