"""Decimal numbers of 60 digits with exponents of 18 digits: they do not overflow where doubles do.

``exp(4096) / exp(4096)`` is NaN in double precision, and so is ``exp(-4096) / exp(-4096)``. So a
difference of doubles is computed again here before it counts as a difference of the programs, which
are compared as functions of real numbers. A comparison that 60 digits do not settle is refused.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from decimal import (
    ROUND_FLOOR,
    ROUND_HALF_EVEN,
    Context,
    Decimal,
    DecimalException,
    Overflow,
    localcontext,
)
from functools import partial
from typing import Any

import numpy as np

from blockbuster.interp.constants import COMPARISONS
from blockbuster.interp.domains import wrapped
from blockbuster.interp.layout import Array
from blockbuster.interp.objects import Objects, in_common
from blockbuster.interp.semantics import Refused, rounded_to
from blockbuster.interp.setting import Setting
from blockbuster.ir.dtypes import OWN
from blockbuster.ir.graph import Graph
from blockbuster.ir.ops import Misc

CONTEXT = Context(prec=60, Emax=10**17, Emin=-(10**17), traps=[Overflow])
NEAR = Decimal("1e-40")  # of the larger number: closer ones may be one number, computed in two ways
TINY = Decimal("1e-45")  # smaller numbers may be what rounding left of a zero
DEEPEST = Decimal(-(10**15))  # exp of what is lower is that of this
LARGEST = Decimal(2**100)  # of the numbers that are cast to integers: larger ones have few digits
ZERO, ONE = Decimal(0), Decimal(1)


def in_decimals(
    graphs: Sequence[Graph], setting: Setting, inputs: Mapping[str, Array]
) -> list[dict[str, Array]] | None:
    """The outputs of programs in decimal numbers; None if a value or a comparison is lost."""
    try:
        with localcontext(CONTEXT):
            return [setting.run(graph, inputs, Decimals()) for graph in graphs]
    except (Refused, DecimalException, OverflowError):
        return None


def exp(x: Decimal) -> Decimal:
    """exp(x), never zero for a number."""
    return x.exp() if x.is_nan() or x.is_infinite() else max(x, DEEPEST).exp()


def sigmoid(x: Decimal) -> Decimal:
    """1 / (1 + exp(-x))."""
    small = exp(-abs(x))
    return (ONE if x >= 0 else small) / (1 + small)


def tanh(x: Decimal) -> Decimal:
    """(1 - exp(-2 x)) / (1 + exp(-2 x))."""
    small = exp(-2 * abs(x))
    return ((1 - small) / (1 + small)).copy_sign(x)


def erf(x: Decimal) -> Decimal:
    """erf to double precision."""
    return Decimal(math.erf(float(x)))


def wave(function: Callable[[float], float], x: Decimal) -> Decimal:
    """A sine or a cosine to double precision; undefined for infinities."""
    return Decimal(function(float(x))) if x.is_finite() else Decimal("nan")


def compared(holds: Callable[[Decimal, Decimal], bool]) -> Callable[[Decimal, Decimal], Decimal]:
    """A comparison. Raises Refused if rounding may decide it."""

    def compare(x: Decimal, y: Decimal) -> Decimal:
        if x.is_finite() and y.is_finite() and x != y:
            most = max(abs(x), abs(y))
            if most < TINY or abs(x - y) < NEAR * most:
                raise Refused("a comparison of numbers that are as good as equal")
        return Decimal(int(holds(x, y)))

    return compare


def whole(rounding: str, edge: Decimal) -> Callable[[Decimal], Decimal]:
    """A rounding to whole numbers, which jumps ``edge`` above them.

    Raises Refused if the rounding of decimals may decide it.
    """

    def rounded(x: Decimal) -> Decimal:
        if not x.is_finite():
            return x
        jump = (x - edge).to_integral_value() + edge
        if x != jump and abs(x - jump) < NEAR * max(Decimal(1), abs(x)):
            raise Refused("a number that is as good as where a rounding jumps")
        return x.to_integral_value(rounding)

    return rounded


def quotient(x: Any, y: Any) -> Any:
    """The whole number below x / y, or that number."""
    return whole(ROUND_FLOOR, ZERO)(x / y)


def integer(dtype: str, x: Decimal) -> Decimal:
    """A number cast to integers or masks. Raises Refused if rounding may decide the result."""
    if not x.is_finite():
        return x
    if abs(x) > LARGEST:
        raise Refused("a cast of a large number to integers")
    whole(ROUND_FLOOR, ZERO)(x)  # raises Refused for what may be a whole number, or just below
    return Decimal(wrapped(dtype, x))


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    **in_common(Decimal), "div": operator.truediv, "pow": operator.pow,
    "reciprocal": lambda x: 1 / x, "exp": exp, "log": lambda x: x.ln(), "sqrt": lambda x: x.sqrt(),
    "rsqrt": lambda x: 1 / x.sqrt(), "tanh": tanh, "sigmoid": sigmoid,
    "silu": lambda x: x * sigmoid(x), "erf": erf,
    "gelu": lambda x: x * (1 + erf(x * Decimal(math.sqrt(0.5)))) / 2,
    "sub0": lambda x, z: x if x.is_infinite() else x - z,
    "recip0": lambda x: x if x == 0 else Decimal("NaN") if x.is_infinite() else 1 / x,
    **{name: compared(getattr(operator, name)) for name in COMPARISONS},
    "floordiv": quotient, "mod": lambda x, y: x - y * quotient(x, y),
    "floor": whole(ROUND_FLOOR, ZERO), "round": whole(ROUND_HALF_EVEN, Decimal("0.5")),
    "sin": lambda x: wave(math.sin, x), "cos": lambda x: wave(math.cos, x),
    "log1p": lambda x: (1 + x).ln(), "expm1": lambda x: exp(x) - 1,
    "atan": lambda x: Decimal(math.atan(float(x))),
}  # fmt: skip


class Decimals(Objects):
    """Elements are decimal numbers."""

    def __init__(self) -> None:
        super().__init__(FUNCTIONS)

    def constant(self, value: float) -> Any:
        return Decimal(value)

    def cast(self, item: Array, dtype: str) -> Array:
        if dtype in OWN:
            return np.asarray(np.frompyfunc(partial(integer, dtype), 1, 1)(item), object)
        return self.item(np.asarray(rounded_to(dtype, item.astype(float)), float))

    def misc(self, op: Misc, arrays: Sequence[Array], shapes: Sequence[Sequence[int]]) -> Any:
        made = op.fn(*(array.astype(float) for array in arrays))
        results = made if isinstance(made, tuple) else (made,)
        return [self.item(np.asarray(array, float)) for array in results]
