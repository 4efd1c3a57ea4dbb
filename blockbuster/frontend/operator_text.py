"""The operators of an array program as NumPy expressions that mean what the oracle's mean."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from blockbuster.frontend.numerics import NUMPY
from blockbuster.frontend.program import ArrayProgram, Equation, Operand
from blockbuster.ir.expr import FUNCTIONS, INFIX, Call, Const, Expr, Size
from blockbuster.ir.extents import Lengths
from blockbuster.ir.graph import Value
from blockbuster.ir.lengths import Length
from blockbuster.ir.types import Dim

WRITTEN: Mapping[str, str] = {
    "neg": "-{0}", "rsqrt": "1 / np.sqrt({0})", "reciprocal": "1 / {0}",
    "relu": "np.maximum({0}, 0)", "silu": "{0} * sigmoid({0})", "whole": "{0}",
    "arange": "np.arange({size})", "reshape": "{0}.reshape({shape})",
    "matmul": "matmul({0}, {1})", "transpose": "np.transpose({0}, {axes})",
}  # fmt: skip
"""The operators that are neither infix nor called by their name."""

PYTHON = ("add", "sub", "mul", "div", "pow", "lt", "le", "gt", "ge", "eq", "ne")
"""The operators that Python spells infix."""

OVER_ZERO: Mapping[str, str] = {"floordiv": "quotient", "mod": "remainder"}
"""Operators on integers that have no result where the second one is 0."""

UNSEEN = ("safe", "name", "fn")
"""Parameters that say how an operator is lowered, not what it means."""

EXACT = 1e15
"""Numbers up to here print without a point where they are whole."""


def unused(word: str, taken: dict[str, None]) -> str:
    """``word`` as a Python name that is not among those ``taken``; it is taken from now on."""
    plain = re.sub(r"\W|^(?=\d|$)", "_", word, flags=re.ASCII)
    while plain in taken:
        plain += "_"
    taken[plain] = None
    return plain


class OperatorText:
    """Writes equations. ``helpers``: the functions of the oracle that they call."""

    def __init__(
        self, program: ArrayProgram, names: Mapping[Value, str], sizes: Mapping[Dim, str]
    ) -> None:
        self._program, self._names, self._sizes = program, names, sizes
        self.helpers: dict[str, None] = {}

    @property
    def divides(self) -> bool:
        """True if the text takes an argument ``over_zero``: the quotient of integers over 0."""
        return any(name in self.helpers for name in OVER_ZERO.values())

    def of(self, equation: Equation) -> str:
        """The result of an equation, in the dtype and with the axes that the oracle gives it."""
        text, wanted = self._operator(equation), self._conversion(equation)
        text = f"np.asarray({text}, {wanted})" if wanted else text
        if equation.op not in FUNCTIONS:
            return text
        ranks = (len(self._program.shape_of(a)) for a in equation.arrays)
        more = len(equation.shape) - max(ranks, default=0)  # axes of a constant array
        if not more:
            return text
        return f"{text if wanted else f'({text})'}[{', '.join(['None'] * more)}]"

    def _conversion(self, equation: Equation) -> str:
        """The dtype to which a result is converted; empty if it has the right one as it is."""
        kind, op = equation.kind, equation.op
        numbers = [o for o in equation.operands[op == "where" :] if isinstance(o, Value)]
        kinds = [*dict.fromkeys(_dtype(self._program.kind_of(number)) for number in numbers)]
        if kind == "mask" or (op == "matmul" and kinds == ["mask"]):
            return ""  # the oracle keeps truth values
        if kind == "float":
            return "" if kinds == ["float"] else "dtype"
        same = kinds == [_dtype(kind)] and op not in ("sum", "whole", "cast")
        return "" if same or op == "arange" else f"np.{_dtype(kind)}"

    def _operator(self, equation: Equation) -> str:
        op, operands = equation.op, [self._operand(o, equation) for o in equation.operands]
        params = {k: self.param(v) for k, v in equation.params if k not in UNSEEN}
        if op in PYTHON:
            return f" {INFIX[op][0]} ".join(map(_apart, operands))
        if op == "expand":
            return operands[0] + _index(self._rank(equation), equation.param("axes"))
        if op == "transpose" and equation.param("axes") == (1, 0):
            return f"{operands[0]}.T"
        if op == "cast":
            if equation.kind != "float":
                return operands[0]
            return f"{self._helper('rounded')}({operands[0]}, {params['dtype']}, dtype)"
        if op in OVER_ZERO and equation.kind != "float":
            return f"{self._helper(OVER_ZERO[op])}({', '.join(operands)}, over_zero)"
        if op in WRITTEN:
            if op in ("silu", "matmul"):
                self._helper({"silu": "sigmoid"}.get(op, op))
            return WRITTEN[op].format(*operands, **params)
        given = [*operands, *(f"{k}={v}" for k, v in params.items() if v != "False")]
        return f"{self._function(op)}({', '.join(given)})"

    def _function(self, op: str) -> str:
        function = NUMPY[op]
        name = function.__name__
        return f"np.{name}" if getattr(np, name, None) is function else self._helper(name)

    def _helper(self, name: str) -> str:
        self.helpers.setdefault(name)
        return name

    def _rank(self, equation: Equation) -> int:
        return len(self._program.shape_of(equation.arrays[0]))

    # operands ------------------------------------------------------------------------

    def _operand(self, operand: Operand, equation: Equation) -> str:
        if isinstance(operand, Value):
            return self._names[operand]
        value = operand.value if isinstance(operand, Const) else 0
        whole = self._program.is_integer(equation, value)
        kinds = [self._program.kind_of(a) for a in equation.arrays]
        floats = bool(kinds) and all(kind == "float" for kind in kinds)
        return "None" if operand is None else self._scalar(operand, whole=whole, plain=floats)

    def _scalar(self, expr: Expr, *, whole: bool, plain: bool) -> str:
        """A number of Python's own, which takes the dtype of the array beside it.

        ``whole``: an int. ``plain``: beside floats, where 2 means 2.0.
        """
        match expr:
            case Const(value):
                return str(int(value)) if whole else _number(value, whole=plain)
            case Size(dim) if whole or plain:
                return self._sizes[dim]
        return f"{'int' if whole else 'float'}({self._nested(expr)})"

    def _nested(self, expr: Expr) -> str:
        match expr:
            case Const(value):
                return _number(value, whole=True)
            case Size(dim):
                return self._sizes[dim]
            case Call(fn, (left, right)) if fn in PYTHON:
                parts = (_apart(self._nested(part)) for part in (left, right))
                return f"({f' {INFIX[fn][0]} '.join(parts)})"
            case Call(fn, args):
                texts = [self._nested(arg) for arg in args]
                return WRITTEN[fn].format(*texts) if fn in WRITTEN else self._called(fn, texts)
        raise AssertionError("a scalar has no arguments")

    def _called(self, fn: str, texts: Sequence[str]) -> str:
        return f"{self._function(fn)}({', '.join(texts)})"

    def param(self, value: Any) -> str:
        """A parameter of an equation."""
        match value:
            case Length():
                return value.python(self._sizes.__getitem__)
            case Lengths(extents=extents):
                parts = [extent.python(self._sizes.__getitem__) for extent in extents]
                return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
            case Const() | Size() | Call():
                return self._scalar(value, whole=True, plain=False)
        return repr(value)


def _apart(text: str) -> str:
    """An operand of an infix operator."""
    return f"({text})" if text.startswith("-") else text


def _dtype(kind: str) -> str:
    """The dtype of integers of a kind; other kinds stay."""
    return "int64" if kind == "index" else kind


def _number(value: float, *, whole: bool) -> str:
    if value != value:
        return "np.nan"
    if abs(value) == np.inf:
        return "np.inf" if value > 0 else "-np.inf"
    negative_zero = value == 0 and str(value).startswith("-")
    if whole and abs(value) <= EXACT and value == int(value) and not negative_zero:
        return str(int(value))
    return repr(float(value))


def _index(rank: int, axes: Sequence[int | None]) -> str:
    """The index that shows axes in order, None for a new one; others have extent 1 and go."""
    parts, at = list[str](), 0
    for axis in axes:
        if axis is None:
            parts.append("None")
        else:
            parts += [*["0"] * (axis - at), ":"]
            at = axis + 1
    parts += ["0"] * (rank - at)
    return f"[{', '.join(parts)}]" if parts else ""
