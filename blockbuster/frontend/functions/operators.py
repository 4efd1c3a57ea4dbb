"""NumPy's and torch's function names for Python operators."""

from __future__ import annotations

from collections.abc import Callable

from blockbuster.frontend.array import apply
from blockbuster.frontend.functions.row import Array, Row, example

_GROUP = "Operators"


def _binary(name: str, sign: str) -> Callable[[Array, Array], Array]:
    def function(x: Array, y: Array) -> Array:
        return apply(name, x, y)

    return _named(function, name, f"``x {sign} y``.")


def _unary(name: str, sign: str) -> Callable[[Array], Array]:
    def function(x: Array) -> Array:
        return apply(name, x)

    return _named(function, name, f"``{sign}x``.")


def _named(function: Callable[..., Array], name: str, meaning: str) -> Callable[..., Array]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = meaning
    return function


def _pair(
    name: str, sign: str, numpy: tuple[str, ...], torch: tuple[str, ...], kind: str = ""
) -> Row:
    tried = (example(f"{kind}M N", f"{kind}N"),)
    return Row(_binary(name, sign), _GROUP, numpy, (), torch, tried, public=False)


ROWS = (
    _pair("add", "+", ("add",), ("add",)),
    _pair("sub", "-", ("subtract",), ("sub", "subtract")),
    _pair("mul", "*", ("multiply",), ("mul", "multiply")),
    _pair("div", "/", ("true_divide", "divide"), ("div", "divide", "true_divide"), "positive: "),
    _pair("pow", "**", ("power", "pow", "float_power"), ("pow", "float_power"), "positive: "),
    Row(_binary("floordiv", "//"), _GROUP, ("floor_divide",), (), ("floor_divide",),
        (example("int: M N", 3), example("int: M N", -2)), public=False, note="of integers"),
    Row(_binary("mod", "%"), _GROUP, ("remainder", "mod"), (), ("remainder",),
        (example("int: M N", 3), example("int: M N", -2)), public=False, note="of integers"),
    _pair("lt", "<", ("less",), ("lt", "less")),
    _pair("le", "<=", ("less_equal",), ("le", "less_equal")),
    _pair("gt", ">", ("greater",), ("gt", "greater")),
    _pair("ge", ">=", ("greater_equal",), ("ge", "greater_equal")),
    _pair("eq", "==", ("equal",), ("eq",)),
    _pair("ne", "!=", ("not_equal",), ("ne", "not_equal")),
    _pair("and", "&", ("logical_and", "bitwise_and"), ("logical_and", "bitwise_and"), "bool: "),
    _pair("or", "|", ("logical_or", "bitwise_or"), ("logical_or", "bitwise_or"), "bool: "),
    Row(_unary("neg", "-"), _GROUP, ("negative",), (), ("neg", "negative"), (example("M N"),),
        public=False),
    Row(_unary("not", "~"), _GROUP, ("logical_not", "invert"), (), ("logical_not", "bitwise_not"),
        (example("bool: M N"),), public=False),
)  # fmt: skip
