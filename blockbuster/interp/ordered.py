"""Ordered exact arithmetic: fractions, exp(n) := 2**n, square roots of perfect squares.

It decides facts that need order, such as max(c x) = c max(x) for c >= 0. If a value has no exact
meaning (the root of 2, erf), the trial is refused. A randomized check, without a proven bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from blockbuster.interp.bits import exact_bits
from blockbuster.interp.domains import wrapped
from blockbuster.interp.layout import Array
from blockbuster.interp.objects import Objects
from blockbuster.interp.residues import ZeroDenominator
from blockbuster.interp.semantics import Refused
from blockbuster.ir.dtypes import OWN
from blockbuster.ir.expr import Expr, functions_of
from blockbuster.ir.graph import Graph
from blockbuster.ir.ops import IDENTITY, Elementwise, Map, Misc, Pointwise, Rescale

LARGEST_POWER = 20_000
NOT_LITERAL = ("exp", "log", "tanh", "sigmoid", "silu")


def exp(x: Any) -> Any:
    """2**x for a whole number."""
    if isinstance(x, float):
        return Fraction(0) if x == -math.inf else x
    if x.denominator != 1 or abs(x) > LARGEST_POWER:
        raise Refused("exp of a fraction, or of a large number")
    return Fraction(2) ** int(x)


def log(x: Any) -> Any:
    """n for 2**n."""
    if isinstance(x, float):
        return x if x > 0 else math.nan
    if x <= 0:
        return -math.inf if x == 0 else math.nan
    top, bottom = (n.bit_length() - 1 for n in (x.numerator, x.denominator))
    if x != Fraction(2) ** (top - bottom):
        raise Refused("log of a number that is no power of two")
    return Fraction(top - bottom)


def sqrt(x: Any) -> Any:
    """The root of a perfect square."""
    if isinstance(x, float) or x < 0:
        return x if x == math.inf else math.nan
    roots = [math.isqrt(n) for n in (x.numerator, x.denominator)]
    if Fraction(roots[0] ** 2, roots[1] ** 2) != x:
        raise Refused("the root of a number that is no perfect square")
    return Fraction(*roots)


def inverse(x: Any) -> Any:
    """1 / x."""
    if isinstance(x, float):
        return Fraction(0) if math.isinf(x) else x
    if x == 0:
        raise ZeroDenominator
    return 1 / x


def power(x: Any, y: Any) -> Any:
    """x to a whole power, or half of one."""
    if isinstance(x, float) or isinstance(y, float) or (2 * y).denominator != 1 or abs(y) > 64:
        raise Refused("a power")
    root = x if y.denominator == 1 else sqrt(x)
    if isinstance(root, float):
        return root
    exponent = int(y if y.denominator == 1 else 2 * y)
    return root**exponent if exponent >= 0 else inverse(root) ** -exponent


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x))."""
    return inverse(1 + exp(-x))


def tanh(x: Any) -> Any:
    """2 sigmoid(2 x) - 1."""
    return 2 * sigmoid(2 * x) - 1


def larger(x: Any, y: Any) -> Any:
    """The maximum, undefined if one is."""
    return x + y if x != x or y != y else max(x, y)


def smaller(x: Any, y: Any) -> Any:
    """The minimum, undefined if one is."""
    return x + y if x != x or y != y else min(x, y)


def quotient(x: Any, y: Any) -> Any:
    """The whole number below x / y, or that number. Raises Refused if there is none."""
    if not (isinstance(x, Fraction) and isinstance(y, Fraction) and y):
        raise Refused("a division of integers by zero, or of what is not finite")
    return Fraction(x // y)


def refused(name: str) -> Callable[..., Any]:
    """A function without exact meaning."""

    def refuse(*_: Any) -> Any:
        raise Refused(name)

    return refuse


def whole(rounding: Callable[[Fraction], int]) -> Callable[..., Any]:
    """A fraction rounded to a whole number; infinities stay."""
    return lambda x: x if isinstance(x, float) else Fraction(rounding(x))


def integer(dtype: str, x: Any) -> Any:
    """A number cast to integers or masks; infinities stay."""
    return x if isinstance(x, float) else Fraction(wrapped(dtype, x))


FUNCTIONS: dict[str, tuple[int, Callable[..., Any]]] = {
    "add": (2, lambda x, y: x + y), "sub": (2, lambda x, y: x - y),
    "mul": (2, lambda x, y: x * y), "div": (2, lambda x, y: x * inverse(y)),
    "pow": (2, power), "neg": (1, lambda x: -x), "square": (1, lambda x: x * x),
    "reciprocal": (1, inverse), "exp": (1, exp), "log": (1, log), "sqrt": (1, sqrt),
    "rsqrt": (1, lambda x: inverse(sqrt(x))), "tanh": (1, tanh), "sigmoid": (1, sigmoid),
    "silu": (1, lambda x: x * sigmoid(x)), "gelu": (1, refused("gelu")),
    "relu": (1, lambda x: larger(x, Fraction(0))), "erf": (1, refused("erf")), "abs": (1, abs),
    "maximum": (2, larger), "minimum": (2, smaller),
    "sub0": (2, lambda x, z: x if abs(x) == math.inf else x - z),
    "recip0": (1, lambda x: x if x == 0 else math.nan if abs(x) == math.inf else inverse(x)),
    "lt": (2, lambda x, y: Fraction(x < y)), "le": (2, lambda x, y: Fraction(x <= y)),
    "gt": (2, lambda x, y: Fraction(x > y)), "ge": (2, lambda x, y: Fraction(x >= y)),
    "eq": (2, lambda x, y: Fraction(x == y)), "ne": (2, lambda x, y: Fraction(x != y)),
    "and": (2, lambda x, y: Fraction(x != 0 and y != 0)),
    "or": (2, lambda x, y: Fraction(x != 0 or y != 0)), "not": (1, lambda x: Fraction(x == 0)),
    "where": (3, lambda c, x, y: x if c != 0 else y),
    "floordiv": (2, lambda x, y: quotient(x, y)),
    "mod": (2, lambda x, y: x - y * quotient(x, y)), "whole": (1, lambda x: x),
    "floor": (1, whole(math.floor)), "round": (1, whole(round)),
    **exact_bits(Fraction),
    **{name: (1, refused(name)) for name in ("sin", "cos", "log1p", "expm1")},
}  # fmt: skip


def is_literal(graph: Graph) -> bool:
    """True if fractions are what the program computes: no exp, nor what is made of it."""

    def literal(expr: Expr) -> bool:
        return not any(fn in NOT_LITERAL for fn in functions_of(expr))

    for _, level in graph.walk():
        for node in level.nodes:
            if isinstance(node.op, Elementwise | Pointwise) and not literal(node.op.expr):
                return False
            if isinstance(node.op, Map):
                factors = [r.factor for r in node.op.results if isinstance(r, Rescale)]
                if not all(map(literal, factors)):
                    return False
    return True


class Ordered(Objects):
    """Fractions, with infinities and NaN as the floats they are."""

    def __init__(self) -> None:
        super().__init__(FUNCTIONS)

    def __repr__(self) -> str:
        return "Ordered()"

    def constant(self, value: float) -> Any:
        return Fraction(value) if math.isfinite(value) else value

    def identity(self, monoid: str, shape: Sequence[int]) -> Array:
        return np.full(shape, self.constant(IDENTITY[monoid]), object)

    def cast(self, item: Array, dtype: str) -> Array:
        if dtype not in OWN:
            raise Refused(f"rounding to {dtype}")
        return np.asarray(np.frompyfunc(partial(integer, dtype), 1, 1)(item), object)

    def misc(self, op: Misc, arrays: Sequence[Array], shapes: Sequence[Sequence[int]]) -> Any:
        raise Refused(op.name)
