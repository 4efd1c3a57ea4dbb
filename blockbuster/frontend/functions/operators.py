"""NumPy's and torch's function names for Python operators."""

from __future__ import annotations

import operator
from collections.abc import Callable

from blockbuster.frontend.array import TracedArray, apply
from blockbuster.frontend.functions.pointwise import holds, of_one, of_two, trunc, where
from blockbuster.frontend.functions.row import Array, Row, alike, example, named
from blockbuster.frontend.kinds import FLOAT, WHOLES
from blockbuster.frontend.remainders import divides_exactly, fraction_by
from blockbuster.frontend.source import trace_error

_GROUP = "Operators"


def is_integer(x: Array) -> bool:
    """True for an integer of Python's, and for an array of integers."""
    if isinstance(x, TracedArray):
        return x.kind in WHOLES
    if hasattr(x, "dtype"):
        return "int" in str(x.dtype)
    return isinstance(x, int) and not isinstance(x, bool)


def _pair(
    name: str, sign: str, numpy: tuple[str, ...], torch: tuple[str, ...], kind: str = ""
) -> Row:
    tried = (example(f"{kind}M N", f"{kind}N"),)
    return Row(of_two(name, f"``x {sign} y``."), _GROUP, numpy, (), torch, tried, public=False)


def _of_bits(name: str, meaning: str, plain: Callable[..., Array]) -> Callable[..., Array]:
    """An operator that is logic on masks and combines the bits of integers; ``plain``: Python's."""

    def binary(x: Array, y: Array) -> Array:
        traced = isinstance(x, TracedArray) or isinstance(y, TracedArray)
        return apply(name, x, y) if traced else plain(x, y)

    def unary(x: Array) -> Array:
        return apply(name, x) if isinstance(x, TracedArray) else plain(x)

    return named(unary if name == "not" else binary, name, meaning)


def _bits(
    name: str, sign: str, numpy: tuple[str, ...], torch: tuple[str, ...], kind: str = ""
) -> Row:
    plain = getattr(operator, {"and": "and_", "or": "or_"}.get(name, name))
    function = _of_bits(name, f"``x {sign} y``.", plain)
    masks = (example(f"{kind}M N", f"{kind}N"),) if kind else ()
    tried = (example("int: M N", 3), example("int: M N", "int: N"), *masks)
    note = "of masks, or of integers" if kind else "of integers"
    return Row(function, _GROUP, numpy, (), torch, tried, public=False, note=note)


def logical_and(x: Array, y: Array) -> Array:
    """True where both masks are true, or both numbers are not 0."""
    return apply("and", holds(x), holds(y))


def logical_or(x: Array, y: Array) -> Array:
    """True where one of two masks is true, or one of two numbers is not 0."""
    return apply("or", holds(x), holds(y))


def logical_xor(x: Array, y: Array) -> Array:
    """True where one of two masks is true and the other is not; a number is true if it is not 0."""
    return apply("ne", holds(x), holds(y))


def logical_not(x: Array) -> Array:
    """True where a mask is false, or a number is 0."""
    return apply("not", holds(x))


def float_power(x: Array, y: Array) -> Array:
    """``x ** y`` in float64."""
    return apply("pow", apply("cast", x, dtype="float64"), y)


def divided(x: Array, y: Array) -> tuple[Array, Array]:
    """``x // y`` and ``x % y`` of integers."""
    return apply("floordiv", x, y), apply("mod", x, y)


def fmod(x: Array, y: Array) -> Array:
    """What a division of integers, or by a power of 2, leaves, with the sign of ``x``."""
    if is_integer(x) and is_integer(y):
        rest = apply("mod", x, y)
        return where((rest != 0) & ((x < 0) != (y < 0)), rest - y, rest)
    floats = isinstance(x, TracedArray) and x.kind == FLOAT
    traced = isinstance(x, TracedArray) or isinstance(y, TracedArray)
    if traced and not (floats and divides_exactly(y)):
        hint = "use x - y * bb.trunc(x / y), whose quotient is rounded"
        reason = "fmod is of integers, or of floats by powers of 2 from 2**-15 to 2**15"
        raise trace_error(reason, hint=hint)
    x = fraction_by(x, y) if traced else x
    return x - y * trunc(x / y)


ROWS = (
    _pair("add", "+", ("add",), ("add",)),
    _pair("sub", "-", ("subtract",), ("sub", "subtract")),
    _pair("mul", "*", ("multiply",), ("mul", "multiply")),
    _pair("div", "/", ("true_divide", "divide"), ("div", "divide", "true_divide"), "positive: "),
    _pair("pow", "**", ("power", "pow"), ("pow",), "positive: "),
    Row(of_two("floordiv", "``x // y``."), _GROUP, ("floor_divide",), (), ("floor_divide",),
        (example("int: M N", 3), example("int: M N", -2)), public=False, note="of integers"),
    Row(of_two("mod", "``x % y``."), _GROUP, ("remainder", "mod"), (), ("remainder",),
        (example("int: M N", 3), example("int: M N", -2)), public=False, note="of integers"),
    Row(divided, _GROUP, ("divmod",), examples=(example("int: M N", 3),), public=False),
    alike(fmod, _GROUP, example("M N", 2), example("int: M N", 3), example("int: M", -2),
          public=False),
    _pair("lt", "<", ("less",), ("lt", "less")),
    _pair("le", "<=", ("less_equal",), ("le", "less_equal")),
    _pair("gt", ">", ("greater",), ("gt", "greater")),
    _pair("ge", ">=", ("greater_equal",), ("ge", "greater_equal")),
    _pair("eq", "==", ("equal",), ("eq",)),
    _pair("ne", "!=", ("not_equal",), ("ne", "not_equal")),
    _bits("and", "&", ("bitwise_and",), ("bitwise_and", "Tensor.__and__"), "bool: "),
    _bits("or", "|", ("bitwise_or",), ("bitwise_or", "Tensor.__or__"), "bool: "),
    _bits("xor", "^", ("bitwise_xor",), (
        "bitwise_xor", "Tensor.bitwise_xor", "Tensor.__xor__"), "bool: "),
    _bits("lshift", "<<", ("left_shift", "bitwise_left_shift"), (
        "bitwise_left_shift", "Tensor.bitwise_left_shift", "Tensor.__lshift__")),
    _bits("rshift", ">>", ("right_shift", "bitwise_right_shift"), (
        "bitwise_right_shift", "Tensor.bitwise_right_shift", "Tensor.__rshift__")),
    *(alike(f, _GROUP, example("bool: M N", "bool: N"), example("int: M N", "M N"), public=False)
      for f in (logical_and, logical_or, logical_xor)),
    alike(logical_not, _GROUP, example("bool: M N"), example("int: M N"), public=False),
    alike(float_power, _GROUP, example("positive: M N", "N"), example("positive: M N", 2),
          public=False),
    Row(of_one("neg", "``-x``."), _GROUP, ("negative",), (), ("neg", "negative"), (example("M N"),),
        public=False),
    Row(_of_bits("not", "``~x``.", operator.invert), _GROUP, ("invert",), (), ("bitwise_not",),
        (example("bool: M N"), example("int: M N")), public=False,
        note="of masks, or of integers"),
)  # fmt: skip
