"""A value with an exponent: a significand, its exponents, and the product that it is.

S = exp(x - z) under the exponent z is exp(x). Once that is brought under a known exponent m, exp(x
- m) is rounded once where S * exp(z - m) is rounded twice, and neither S nor z is needed. It
overflows no earlier, because x <= z. A value that is no such product keeps S and z.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from blockbuster.ir.expr import Expr
from blockbuster.ir.graph import Value

Terms = tuple[tuple[float, Value], ...]
Factors = tuple[tuple[str, Value | Expr], ...]  # expressions of constants and sizes


@dataclass(frozen=True)
class Product:
    """``factors``, each with "mul" or "div", times exp(sum of coefficient * value over ``terms``).

    The terms of a pair's product are at most the pair's, element by element.
    """

    factors: Factors
    terms: Terms

    @property
    def values(self) -> tuple[Value, ...]:
        """The values that it is made of."""
        factors = (factor for _, factor in self.factors if isinstance(factor, Value))
        return (*factors, *(value for _, value in self.terms))


@dataclass(frozen=True)
class Pair:
    """``significand`` * exp(sum of coefficient * value over ``terms``).

    ``product`` is the same value before its elements came under these exponents, where it is known.
    ``balanced``: two exponents have met in it, not both of reciprocals.
    """

    significand: Value
    terms: Terms
    product: Product | None = None
    balanced: bool = False

    @property
    def is_quotient(self) -> bool:
        """True if exponents were put together: moderate though their parts need not be.

        A reciprocal alone is not: 0 * exp(-t) is NaN where t is -inf, in a row that is masked.
        """
        signs = [coefficient < 0 for coefficient, _ in self.terms]
        return bool(signs) and (self.balanced or (any(signs) and not all(signs)))

    def each(self, change: Callable[[Value], Value]) -> Pair:
        """The pair with every value changed: as seen from another level."""

        def changed(terms: Terms) -> Terms:
            return tuple((coefficient, change(value)) for coefficient, value in terms)

        pair = Pair(change(self.significand), changed(self.terms), balanced=self.balanced)
        if self.product is None:
            return pair
        factors = tuple(
            (fn, change(factor) if isinstance(factor, Value) else factor)
            for fn, factor in self.product.factors
        )
        return replace(pair, product=Product(factors, changed(self.product.terms)))


def joined(first: Terms, second: Terms, sign: float = 1.0) -> Terms:
    """The sum (or difference) of two exponents; what cancels is gone."""
    total: dict[Value, float] = {value: coefficient for coefficient, value in first}
    for coefficient, value in second:
        total[value] = total.get(value, 0.0) + sign * coefficient
    return tuple((coefficient, value) for value, coefficient in total.items() if coefficient)


def balanced(first: Terms, second: Terms, sign: float) -> bool:
    """True if a product (or quotient) has two exponents that are not both of reciprocals."""
    signed = [c for c, _ in first], [sign * c for c, _ in second]
    return all(signed) and any(c > 0 for side in signed for c in side)


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
    other = {"mul": "div", "div": "mul"} if sign < 0 else {"mul": "mul", "div": "div"}
    more = tuple((other[fn], factor) for fn, factor in b.factors)
    return Product(a.factors + more, joined(a.terms, b.terms, sign))
