"""Pointwise functions: each element of the result depends on one element of each operand."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from blockbuster.frontend.array import TracedArray, apply, as_floats, cast_dtype
from blockbuster.frontend.dtype_names import UNDECIDED, dtype_name
from blockbuster.frontend.functions.row import Array, Example, Row, Text, alike, example, named
from blockbuster.frontend.kinds import FLOAT, MASK, WHOLES
from blockbuster.frontend.memory import own, perhaps, shown
from blockbuster.frontend.numerics import NUMPY


def of_one(name: str, meaning: str) -> Callable[[Array], Array]:
    """The operator ``name`` as a function of one array."""

    def function(x: Array) -> Array:
        return apply(name, x)

    return named(function, name, meaning)


def of_two(name: str, meaning: str) -> Callable[[Array, Array], Array]:
    """The operator ``name`` as a function of two arrays."""

    def function(x: Array, y: Array) -> Array:
        return apply(name, x, y)

    return named(function, name, meaning)


exp = of_one("exp", "e to the power of ``x``.")
log = of_one("log", "The natural logarithm.")
sqrt = of_one("sqrt", "The square root.")
rsqrt = of_one("rsqrt", "One over the square root.")
tanh = of_one("tanh", "The hyperbolic tangent.")
sigmoid = of_one("sigmoid", "1 / (1 + exp(-x)), without overflow.")
silu = of_one("silu", "``x * sigmoid(x)``, also called swish.")
gelu = of_one(
    "gelu", "``x`` times the normal distribution function at ``x``: the exact form, with erf."
)
relu = of_one("relu", "The larger of ``x`` and 0.")
erf = of_one("erf", "The error function.")
abs = of_one("abs", "The absolute value.")
square = of_one("square", "``x * x``.")
reciprocal = of_one("reciprocal", "``1 / x``.")
sin = of_one("sin", "The sine of an angle in radians.")
cos = of_one("cos", "The cosine of an angle in radians.")
log1p = of_one("log1p", "log(1 + x), to full accuracy near 0.")
expm1 = of_one("expm1", "exp(x) - 1, to full accuracy near 0.")
atan = of_one("atan", "The angle, between -pi / 2 and pi / 2, with a tangent.")
maximum = of_two("maximum", "The larger element of two arrays.")
minimum = of_two("minimum", "The smaller element of two arrays.")


def whole_reciprocal(x: Array) -> Array:
    """``1 / x``, which NumPy truncates to an integer for integers."""
    if not isinstance(x, TracedArray):
        return np.reciprocal(x)
    if x.kind == FLOAT:
        return reciprocal(x)
    number = x.trace.integers(x, "int8") if x.kind == MASK else x
    return where(abs(number) == 1, number, 0)


def clip(x: Array, min: Array | None = None, max: Array | None = None) -> Array:
    """``x`` where it is between two bounds, and the nearer bound elsewhere."""
    if min is None and max is None:
        raise ValueError("clip needs a bound: min, max, or both")
    x = np.asarray(x) if type(x) in (int, float) else x  # NumPy's array of a number has a dtype
    x = x if min is None else maximum(x, min)
    return x if max is None else minimum(x, max)


def _is_whole(x: Array) -> bool:
    """True for a traced array of integers or masks, which roundings leave as they are."""
    return isinstance(x, TracedArray) and x.kind in (MASK, *WHOLES)


def floor(x: Array) -> Array:
    """The largest whole number that is not above ``x``."""
    return own(x) if _is_whole(x) else apply("floor", x)


def ceil(x: Array) -> Array:
    """The smallest whole number that is not below ``x``."""
    return own(x) if _is_whole(x) else -floor(-x)


def trunc(x: Array) -> Array:
    """``x`` without its fractional part."""
    return own(x) if _is_whole(x) else where(x < 0, ceil(x), floor(x))


def round(x: Array, decimals: int = 0) -> Array:
    """The nearest number with ``decimals`` digits after the point; ties go to even digits."""
    if decimals == 0:
        return own(x) if _is_whole(x) and x.kind != MASK else apply("round", x)
    scale = 10.0**decimals
    return apply("round", x * scale) / scale


def fabs(x: Array) -> Array:
    """The absolute value, a float."""
    return abs(as_floats(x, alone=True))


def rint(x: Array) -> Array:
    """The nearest whole number, a float; ties go to even numbers."""
    return apply("round", as_floats(x, alone=True))


def tan(x: Array) -> Array:
    """The tangent of an angle in radians."""
    return sin(x) / cos(x)


def logaddexp(x: Array, y: Array) -> Array:
    """log(exp(x) + exp(y)), without overflow."""
    for one, number in ((x, y), (y, x)):
        if isinstance(number, int | float) and math.isfinite(number):  # no two equal infinities
            one = as_floats(one, alone=not _is_wider(number, one))
            return maximum(one, number) + log1p(exp(-abs(one - number if number else one)))
    x, y = floats_together(x, y)
    apart = maximum(x, y) + log1p(exp(-abs(x - y)))
    return where(x == y, x + math.log(2), apart)


def logaddexp2(x: Array, y: Array) -> Array:
    """log2(2 ** x + 2 ** y), without overflow."""
    x, y = floats_together(x, y)
    return logaddexp(x * math.log(2), y * math.log(2)) * (1 / math.log(2))


def sign(x: Array) -> Array:
    """1 for numbers above 0, -1 for numbers below 0, and 0 for 0."""
    if isinstance(x, TracedArray) and x.kind == MASK:
        return own(x)
    below = 0 if getattr(x, "kind", "") == "uint8" else -1
    return where(x > 0, 1, where(x < 0, below, x))


def exp2(x: Array) -> Array:
    """2 to the power of ``x``."""
    return apply("pow", 2.0, as_floats(x, alone=True))


def log2(x: Array) -> Array:
    """The logarithm to base 2."""
    return log(x) * (1 / math.log(2))


def log10(x: Array) -> Array:
    """The logarithm to base 10."""
    return log(x) * (1 / math.log(10))


def degrees(x: Array) -> Array:
    """An angle of radians in degrees."""
    return as_floats(x, alone=True) * (180 / math.pi)


def radians(x: Array) -> Array:
    """An angle of degrees in radians."""
    return as_floats(x, alone=True) * (math.pi / 180)


def sinc(x: Array) -> Array:
    """sin(pi x) / (pi x), and 1 where x is 0."""
    angle = x * math.pi
    return where(x == 0, 1.0, sin(angle) / where(x == 0, 1.0, angle))


def heaviside(x: Array, y: Array) -> Array:
    """0 for numbers below 0, 1 for numbers above 0, and ``y`` where ``x`` is 0; NaN stays NaN."""
    x, y = floats_together(x, y)
    if isinstance(x, int | float):
        step: Any = float(x > 0) if x == x else x
    else:
        step = where(x > 0, 1.0, where(x < 0, 0.0, x))
    return where(x == 0, y, step)


def hypot(x: Array, y: Array) -> Array:
    """The root of the sum of two squares, of numbers whose squares overflow, too."""
    x, y = map(operator.abs, floats_together(x, y))
    first, second = (z * z if isinstance(z, int | float) else square(z) for z in (x, y))
    plain = sqrt(first + second)
    longer, shorter = maximum(x, y), minimum(x, y)
    scaled = longer * sqrt(1.0 + square(shorter / where(longer == 0, 1.0, longer)))
    found = where((plain > _TINY) & (plain < math.inf), plain, scaled)
    return where((x == math.inf) | (y == math.inf), math.inf, found)


def floats_together(x: Array, y: Array) -> tuple[Array, Array]:
    """Both as floats: if one is, integers and masks take its dtype, and else that of their own.

    Beside a number of Python's of a wider kind they take the default dtype.
    """
    if FLOAT in (getattr(x, "kind", ""), getattr(y, "kind", "")):
        return _beside_floats(x), _beside_floats(y)
    alone = not (_is_wider(x, y) or _is_wider(y, x))
    return as_floats(x, alone=alone), as_floats(y, alone=alone)


def _is_wider(number: Array, x: Array) -> bool:
    """A float of Python's beside an array of integers or masks, or an int beside one of masks."""
    if isinstance(number, float):
        return True
    is_int = isinstance(number, int) and not isinstance(number, bool)
    return is_int and getattr(x, "kind", "") == MASK


def _beside_floats(x: Array) -> Array:
    """Integers and masks as floats in the dtype of the floats that they meet."""
    if not isinstance(x, TracedArray) or x.kind == FLOAT:
        return x
    return x.trace.beside_floats(x)


_TINY = 1e-15
"""The squares of smaller numbers lose digits in float32."""


def holds(x: Array) -> Array:
    """The mask of the elements that are true, or not 0."""
    return x if getattr(x, "kind", "") == MASK else x != 0


def isnan(x: Array) -> Array:
    """The mask of the elements that are not a number."""
    return x != x


def isinf(x: Array) -> Array:
    """The mask of the elements that are infinite."""
    return abs(x) == math.inf


def isfinite(x: Array) -> Array:
    """The mask of the elements that are neither infinite nor NaN."""
    return abs(x) < math.inf


def where(condition: Array, x: Array, y: Array) -> Array:
    """``x`` where the mask is true, and ``y`` elsewhere."""
    return apply("where", condition, x, y)


def astype(x: Array, dtype: Any, *, copy: bool = True) -> Array:
    """Every element rounded to a floating dtype, truncated to an integer, or tested for 0.

    With ``copy=False`` an array of that dtype stays the same array. The dtype of an array that
    dims alone describe is that of the program's floats.
    """
    if dtype is UNDECIDED:
        return _as_the_programs_floats(x, copy)
    name = cast_dtype(dtype)
    made = apply("cast", x, dtype=name)
    if copy or not isinstance(x, TracedArray):
        return made
    here = dtype_name(x)
    if not here:
        return perhaps(made, x, _SAME)
    same = here == name
    return shown(made, x, lambda base: apply("cast", base, dtype=name), _as_it_is) if same else made


def _as_the_programs_floats(x: Array, copy: bool) -> Array:
    """Integers and masks as floats; floats are taken to have the dtype already."""
    if isinstance(x, TracedArray) and x.kind != FLOAT:
        return x.trace.floats(x)
    if copy or not isinstance(x, TracedArray):
        return own(x) if copy else x
    return perhaps(x, x, _SAME) if dtype_name(x) else x


_SAME = "a cast without a copy gives the array itself in one dtype"


def _as_it_is(_: Array, new: Array) -> Array:
    return new


_ANY, _POSITIVE, _PAIR = (example("M N"),), (example("positive: M N"),), (example("M N", "N"),)
_NUMBERS = (example("M N"), example("int: M N"))
_ROUNDED = "A factor is rounded: a rounding apart from NumPy's."
_GROUP = "Of each element"


def _of(function: Callable[..., Array], *examples: Example, **more: Any) -> Row:
    return alike(function, _GROUP, *examples, **more)


ROWS = (
    Row(exp, _GROUP, ("exp",), ("exp",), ("exp", "Tensor.exp"), _ANY),
    Row(log, _GROUP, ("log",), ("log",), ("log", "Tensor.log"), _POSITIVE),
    Row(sqrt, _GROUP, ("sqrt",), ("sqrt",), ("sqrt", "Tensor.sqrt"), _POSITIVE),
    Row(rsqrt, _GROUP, torch=("rsqrt", "Tensor.rsqrt"), examples=_POSITIVE,
        reference=NUMPY["rsqrt"]),
    Row(tanh, _GROUP, ("tanh",), torch=("tanh", "nn.functional.tanh", "Tensor.tanh"),
        examples=_ANY),
    Row(sigmoid, _GROUP, torch=(
        "sigmoid", "nn.functional.sigmoid", "Tensor.sigmoid", "special.expit"),
        examples=_ANY, reference=NUMPY["sigmoid"]),
    Row(silu, _GROUP, torch=("nn.functional.silu",), examples=_ANY, reference=NUMPY["silu"]),
    Row(gelu, _GROUP, torch=("nn.functional.gelu",), examples=_ANY, reference=NUMPY["gelu"]),
    Row(relu, _GROUP, torch=("relu", "nn.functional.relu", "Tensor.relu"), examples=_ANY,
        reference=NUMPY["relu"]),
    Row(erf, _GROUP, torch=("erf", "special.erf", "Tensor.erf"), examples=_ANY,
        reference=NUMPY["erf"]),
    Row(fabs, _GROUP, ("fabs",), examples=_ANY, public=False),
    Row(abs, _GROUP, ("absolute", "abs"), torch=("abs", "absolute", "Tensor.abs"),
        examples=_ANY),
    _of(square, *_ANY),
    Row(reciprocal, _GROUP, torch=("reciprocal", "Tensor.reciprocal"), examples=_POSITIVE,
        reference=NUMPY["reciprocal"]),
    Row(whole_reciprocal, _GROUP, ("reciprocal",), public=False,
        examples=(example("positive: M N"), example("positive int: M N"))),
    Row(maximum, _GROUP, ("maximum",), torch=("maximum",), examples=_PAIR),
    Row(minimum, _GROUP, ("minimum",), torch=("minimum",), examples=_PAIR),
    Row(clip, _GROUP, ("clip",), ("clip",), ("clamp", "clip", "Tensor.clamp"),
        (example("M N", -0.5, 1.0), example("M N", min=0.25), example("M N", None, "N"))),
    _of(floor, *_NUMBERS), _of(ceil, *_NUMBERS),
    Row(trunc, _GROUP, ("trunc", "fix"), torch=("trunc", "fix", "Tensor.trunc"), examples=_ANY),
    Row(rint, _GROUP, ("rint",), examples=_ANY, public=False),
    Row(round, _GROUP, ("round", "around"), ("round",), ("round", "Tensor.round"),
        (example("M N"), example("M N", 1))),
    _of(sin, *_ANY), _of(cos, *_ANY), _of(tan, *_ANY), _of(log1p, *_POSITIVE), _of(expm1, *_ANY),
    Row(atan, _GROUP, ("arctan", "atan"), torch=("atan", "arctan", "Tensor.atan", "Tensor.arctan"),
        examples=_ANY),
    _of(logaddexp, *_PAIR, example("M N", 0.0)),
    _of(logaddexp2, *_PAIR, note=_ROUNDED, public=False),
    Row(sign, _GROUP, ("sign",), examples=_NUMBERS),
    _of(exp2, *_ANY), _of(log2, *_POSITIVE, note=_ROUNDED), _of(log10, *_POSITIVE, note=_ROUNDED),
    Row(degrees, _GROUP, ("degrees", "rad2deg"), torch=("rad2deg", "Tensor.rad2deg"),
        examples=_ANY, public=False),
    Row(radians, _GROUP, ("radians", "deg2rad"), torch=("deg2rad", "Tensor.deg2rad"),
        examples=_ANY, public=False),
    _of(sinc, *_ANY, torch=("special.sinc",), public=False),
    Row(heaviside, _GROUP, ("heaviside",), examples=_PAIR, public=False),
    _of(hypot, *_PAIR), _of(isnan, *_ANY), _of(isinf, *_ANY), _of(isfinite, *_ANY),
    Row(where, _GROUP, ("where",), torch=("where",), examples=(example("bool: M N", "M N", "N"),)),
    Row(astype, _GROUP, ("astype",), ("astype",), examples=(example("M N", Text("float32")),)),
)  # fmt: skip
