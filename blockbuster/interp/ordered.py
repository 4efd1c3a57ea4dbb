"""Ordered exact arithmetic: fractions, exp(n) := 2**n, square roots of perfect squares.

It decides facts that need order, such as max(c x) = c max(x) for c >= 0. If a value has no exact
meaning (the root of 2, erf), the trial is refused. A randomized check, without a proven bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from blockbuster.interp.constants import expressions_of
from blockbuster.interp.domains import wrapped
from blockbuster.interp.layout import Array
from blockbuster.interp.objects import Objects, in_common
from blockbuster.interp.residues import ZeroDenominator
from blockbuster.interp.semantics import Refused
from blockbuster.ir.dtypes import OWN
from blockbuster.ir.expr import functions_of
from blockbuster.ir.graph import Graph
from blockbuster.ir.ops import Map, Misc, Rescale

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


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    **in_common(Fraction), "div": lambda x, y: x * inverse(y), "pow": power, "reciprocal": inverse,
    "exp": exp, "log": log, "sqrt": sqrt, "rsqrt": lambda x: inverse(sqrt(x)), "tanh": tanh,
    "sigmoid": sigmoid, "silu": lambda x: x * sigmoid(x),
    "sub0": lambda x, z: x if abs(x) == math.inf else x - z,
    "recip0": lambda x: x if x == 0 else math.nan if abs(x) == math.inf else inverse(x),
    "lt": lambda x, y: Fraction(x < y), "le": lambda x, y: Fraction(x <= y),
    "gt": lambda x, y: Fraction(x > y), "ge": lambda x, y: Fraction(x >= y),
    "eq": lambda x, y: Fraction(x == y), "ne": lambda x, y: Fraction(x != y),
    "floordiv": quotient, "mod": lambda x, y: x - y * quotient(x, y),
    "floor": whole(math.floor), "round": whole(round),
    **{name: refused(name) for name in ("gelu", "erf", "sin", "cos", "log1p", "expm1", "atan")},
}  # fmt: skip


def is_literal(graph: Graph) -> bool:
    """True if fractions are what the program computes: no exp, nor what is made of it."""
    results = (result for _, level in graph.walk() for _, op in level.of_type(Map)
               for result in op.results)  # fmt: skip
    factors = (result.factor for result in results if isinstance(result, Rescale))
    every = chain(expressions_of((graph,)), factors)
    return not any(fn in NOT_LITERAL for expr in every for fn in functions_of(expr))


class Ordered(Objects):
    """Fractions, with infinities and NaN as the floats they are."""

    def __init__(self) -> None:
        super().__init__(FUNCTIONS)

    def __repr__(self) -> str:
        return "Ordered()"

    def constant(self, value: float) -> Any:
        return Fraction(value) if math.isfinite(value) else value

    def cast(self, item: Array, dtype: str) -> Array:
        if dtype not in OWN:
            raise Refused(f"rounding to {dtype}")
        return np.asarray(np.frompyfunc(partial(integer, dtype), 1, 1)(item), object)

    def misc(self, op: Misc, arrays: Sequence[Array], shapes: Sequence[Sequence[int]]) -> Any:
        raise Refused(op.name)
