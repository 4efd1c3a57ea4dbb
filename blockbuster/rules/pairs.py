"""A value with an exponent: a significand, its exponents, and the product that it is.

S = exp(x - z) under the exponent z is exp(x). Once that is brought under a known exponent m, exp(x
- m) is rounded once where S * exp(z - m) is rounded twice, and neither S nor z is needed. It
overflows no earlier, because x <= z. A value that is no such product keeps S and z.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from blockbuster.ir.expr import Const, Expr
from blockbuster.ir.graph import Value

Terms = tuple[tuple[float, Value], ...]
Factors = tuple[tuple[str, Value | Expr], ...]  # expressions of constants and sizes
MINUS = ("mul", Const(-1.0))
UNIT = "unit"
"""The factor that is 1, or 0, infinite or NaN where the exponential of a term is."""


@dataclass(frozen=True)
class Product:
    """``factors``, each by its name, times exp(sum of coefficient * value over ``terms``).

    The terms of a pair's product are at most the pair's, element by element.
    """

    factors: Factors
    terms: Terms

    @property
    def negated(self) -> Product:
        """The product with its other sign."""
        if self.factors[-1:] == (MINUS,):
            return replace(self, factors=self.factors[:-1])
        return replace(self, factors=(*self.factors, MINUS))

    @property
    def values(self) -> tuple[Value, ...]:
        """The values that it is made of."""
        factors = (factor for _, factor in self.factors if isinstance(factor, Value))
        return (*factors, *(value for _, value in self.terms))


class Counts(NamedTuple):
    """How many exponentials, and how many of their reciprocals, a product has as factors.

    A sum of exponentials counts as one.
    """

    exponentials: int = 1
    reciprocals: int = 0

    @property
    def inverted(self) -> Counts:
        """The counts of the reciprocal of the product."""
        return Counts(self.reciprocals, self.exponentials)


ONE_EXPONENTIAL = Counts()


@dataclass(frozen=True)
class Pair:
    """``significand`` * exp(sum of coefficient * value over ``terms``).

    ``product`` is the same value before its elements came under these exponents, where it is known.
    ``shared``: the elements of each row are under one exponent, that of the largest; those far
    below it have lost their significands.
    """

    significand: Value
    terms: Terms
    product: Product | None = None
    counts: Counts = ONE_EXPONENTIAL
    shared: bool = False

    @property
    def is_quotient(self) -> bool:
        """True if exponents were put together: moderate though their parts need not be.

        Reciprocals alone are none: 0 * exp(-t) is NaN where t is -inf, in a row that is masked.
        The signs of terms do not tell: exp(-m) is kept as exp of -1 times m.
        """
        return bool(self.terms) and self.counts.exponentials > 0 and sum(self.counts) > 1

    def each(self, change: Callable[[Value], Value]) -> Pair:
        """The pair with every value changed: as seen from another level."""

        def changed(terms: Terms) -> Terms:
            return tuple((coefficient, change(value)) for coefficient, value in terms)

        product = self.product
        if product is not None:
            factors = tuple(
                (fn, change(factor) if isinstance(factor, Value) else factor)
                for fn, factor in product.factors
            )
            product = Product(factors, changed(product.terms))
        terms, significand = changed(self.terms), change(self.significand)
        return replace(self, significand=significand, terms=terms, product=product)


def joined(first: Terms, second: Terms, sign: float = 1.0) -> Terms:
    """The sum (or difference) of two exponents; what cancels is gone."""
    total: dict[Value, float] = {value: coefficient for coefficient, value in first}
    for coefficient, value in second:
        total[value] = total.get(value, 0.0) + sign * coefficient
    return tuple((coefficient, value) for value, coefficient in total.items() if coefficient)


def counted(first: Pair | Value | Expr, second: Pair | Value | Expr, sign: float) -> Counts:
    """What a product has, or a quotient where ``sign`` is -1."""
    given = [part.counts if isinstance(part, Pair) else Counts(0) for part in (first, second)]
    a, b = given[0], given[1] if sign > 0 else given[1].inverted
    return Counts(a.exponentials + b.exponentials, a.reciprocals + b.reciprocals)


def product_of(part: Pair | Value | Expr) -> Product:
    """The known product of a part; a part without exponents is a factor."""
    if isinstance(part, Pair):
        return part.product or Product((("mul", part.significand),), part.terms)
    return Product((("mul", part),), ())


def above_its_exponent(part: Pair | Value | Expr, sign: float) -> str:
    """Why a part's product may exceed its exponents where it is multiplied (or divided by), or "".

    x <= z makes exp(x) at most exp(z), but 1 / exp(x) more than 1 / exp(z) where x is not z.
    """
    lower = isinstance(part, Pair) and part.product and part.product.terms != part.terms
    return "1 / exp(x) is more than 1 / exp(z) where x is less than z" if sign < 0 and lower else ""


def multiplied(
    first: Pair | Value | Expr, second: Pair | Value | Expr, sign: float = 1.0
) -> Product:
    """The product of two parts, or their quotient where ``sign`` is -1."""
    a, b = product_of(first), product_of(second)
    other = {"mul": "div", "div": "mul"} if sign < 0 else {}
    more = tuple((other.get(fn, fn), factor) for fn, factor in b.factors)
    return Product(a.factors + more, joined(a.terms, b.terms, sign))
