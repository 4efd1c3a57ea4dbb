"""Block operators as Triton text: operands are matched by dim, arithmetic is float32."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from blockbuster.emit.print.triton.scalars import (
    ATOM,
    FLOAT,
    NARROW,
    NUMBER,
    ScalarPrinter,
    Text,
    as_float,
)
from blockbuster.emit.tile.dtypes import DTYPES, Dtype
from blockbuster.errors import EmitError, message
from blockbuster.ir.expr import Arg, Call, Const, Expr
from blockbuster.ir.ops import Cast, Functional, Op, Pointwise, Relabel, Transpose
from blockbuster.ir.types import Dim

Lanes = tuple[Dim, ...]
_FOLDS = {"+": "add", "max": "maximum", "min": "minimum"}


@dataclass(frozen=True)
class Operand:
    """A tile as the text knows it: its name, what it holds, and the dims of its lanes in order."""

    text: Text
    lanes: Lanes

    def over(self, lanes: Lanes) -> Text:
        """The text of the operand, ready to broadcast against tiles with ``lanes``."""
        suffix = spread(self.lanes, lanes)
        if not suffix:
            return self.text
        return Text(f"{self.text.at(ATOM)}{suffix}", self.text.kind)


def spread(lanes: Lanes, target: Lanes) -> str:
    """What makes lanes line up with those of ``target``."""
    if len(target) < 2 or len(lanes) != 1:
        return ""
    return "[:, None]" if lanes[0] == target[0] else "[None, :]"


_PRODUCT = Call("mul", (Arg(0), Arg(1)))
_CAST = {name: dtype.triton for name, dtype in DTYPES.items()}


@dataclass(frozen=True)
class OpPrinter:
    """Prints operators of one kernel; ``shape`` prints the shape of a tile with given lanes."""

    dtype: Dtype
    scalars: ScalarPrinter
    shape: Callable[[Lanes], str]

    def text(self, op: Op, args: list[Operand], lanes: Lanes, *, apart: bool = False) -> Text:
        """``op`` applied to ``args``; the result has ``lanes``. ``apart``: products are rounded."""
        match op:
            case Functional("dot"):
                return self._dot(args[0], args[1], lanes, apart)
            case Functional(name):
                return self._reduced(name.removeprefix("row_"), args[0], lanes)
            case Pointwise(expr):
                return self._pointwise(expr, args, lanes, apart)
            case Cast(dtype):
                return self._cast(args[0], dtype)
            case Transpose():
                return args[0].text if args[0].lanes == lanes else _transposed(args[0].text)
            case Relabel():
                return args[0].text
        raise AssertionError(op)

    def fold(self, monoid: str, left: Text, right: Text) -> Text:
        """Two partial results combined."""
        return self.scalars.text(Call(_FOLDS[monoid], (Arg(0), Arg(1))), [left, right])

    def fold_apart(self, monoid: str, left: Text, right: Text) -> Text:
        """The same value by two operations, where one Triton's pass would look for one.

        Sums start from 0, so none is -0, and adding 0 changes none.
        """
        fn, again = _FOLDS[monoid], Const(0.0) if monoid == "+" else Arg(0)
        twice = Call(fn, (Call(fn, (Arg(0), Arg(1))), again))
        return self.scalars.text(twice, [left, right])

    def matrix_dot(
        self, a: Operand, b: Operand, columns: bool, total: str = "", *, apart: bool = False
    ) -> Text:
        """A dot on the matrix units, added to ``total``; ``columns``: b was loaded as columns.

        ``apart``: it is summed from zero, and added then as an fma.
        """
        left, right = self._factor(a.text), self._factor(b.text)
        if not columns:
            right = _transposed(right)
        parts = [left.text, right.text, *([total] if total and not apart else [])]
        if left.kind == FLOAT:
            parts.append('input_precision="ieee"')
        text = f"tl.dot({', '.join(parts)})"
        return Text(f"tl.fma({text}, 1.0, {total})" if total and apart else text)

    def _factor(self, text: Text) -> Text:
        """An operand of a dot in the kernel's dtype."""
        if text.kind == NARROW or (text.kind == FLOAT and self.dtype.name == "float32"):
            return text
        return Text(f"{text.at(ATOM)}.to({self.dtype.triton})", NARROW)

    def _dot(self, a: Operand, b: Operand, lanes: Lanes, apart: bool) -> Text:
        """A dot of which an operand lacks lanes: products, summed along what both have."""
        both = tuple(dict.fromkeys((*a.lanes, *b.lanes)))
        rest = tuple(d for d in both if d not in lanes)
        order = (*lanes, *rest)
        spelled = self.scalars.summand if apart else self.scalars.text
        product = spelled(_PRODUCT, [a.over(order), b.over(order)])
        return Text(f"tl.sum({product.text}, {len(lanes)})") if rest else product

    def _reduced(self, kind: str, arg: Operand, lanes: Lanes) -> Text:
        """A block or vector folded along its last axis."""
        value = as_float(arg.text)
        if arg.lanes == lanes:
            return value
        axis = len(lanes)
        if kind == "sum":
            return Text(f"tl.sum({value.text}, {axis})")
        helper = {"max": "_maximum", "min": "_minimum"}[kind]
        self.scalars.helpers.setdefault(helper)
        return Text(f"tl.reduce({value.text}, {axis}, {helper})")

    def _pointwise(self, expr: Expr, args: list[Operand], lanes: Lanes, apart: bool) -> Text:
        spelled = self.scalars.summand if apart else self.scalars.text
        text = spelled(expr, [arg.over(lanes) for arg in args])
        return self.filled(text, lanes, tuple(d for arg in args for d in arg.lanes))

    def filled(self, text: Text, lanes: Lanes, present: Lanes) -> Text:
        """``text`` with all of ``lanes``, of which its operands have those ``present``."""
        if text.kind == NUMBER:
            return Text(f"tl.full({self.shape(lanes)}, {text.text}, tl.float32)")
        if set(lanes) <= set(present):
            return text
        return Text(f"tl.broadcast_to({text.text}, {self.shape(lanes)})", text.kind)

    def _cast(self, arg: Operand, dtype: str) -> Text:
        if dtype not in _CAST:
            raise EmitError(
                message(
                    f"a cast to {dtype}: kernels compute in float32",
                    hint=f"the nearest supported form is a cast to one of {', '.join(_CAST)}",
                )
            )
        value = as_float(arg.text)
        if dtype == "float32":
            return value
        return Text(f"{value.at(ATOM)}.to({_CAST[dtype]}).to(tl.float32)")


def _transposed(text: Text) -> Text:
    return Text(f"tl.trans({text.text})", text.kind)
