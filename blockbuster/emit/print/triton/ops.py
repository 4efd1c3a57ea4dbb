"""Block operators as Triton text: operands are matched by dim, arithmetic is float32."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from blockbuster.emit.print.triton.scalars import (
    ATOM,
    ScalarPrinter,
    Text,
    as_dtype,
    as_float,
    as_integer,
    is_literal,
)
from blockbuster.emit.tile.float8_dots import PARTIAL
from blockbuster.emit.tile.result_dtypes import FLOAT, folded_dtype
from blockbuster.emit.tile.workarounds import CANCELS, FROM_ZERO, ROUNDED
from blockbuster.ir.dtypes import FLOAT8, INTEGERS
from blockbuster.ir.expr import Arg, Call, Const, Expr
from blockbuster.ir.ops import COMBINE, Cast, Functional, Op, Pointwise, Relabel, Scan, Transpose
from blockbuster.ir.regroup import Regroup
from blockbuster.ir.types import Dim

Lanes = tuple[Dim, ...]
EXACT, SPLIT = "ieee", "tf32x3"
"""How Triton makes a dot of float32: on vector units, or of three products on matrix units."""

_SCANNED = {"+": "_sum", "prod": "_product", "max": "_maximum", "min": "_minimum"}


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
        return Text(f"{self.text.at(ATOM)}{suffix}", self.text.dtype)


def spread(lanes: Lanes, target: Lanes) -> str:
    """The text that lines up lanes, in the order of those of ``target``, with them."""
    if not lanes or len(lanes) >= len(target):
        return ""
    return f"[{', '.join(':' if dim in lanes else 'None' for dim in target)}]"


_PRODUCT = Call("mul", (Arg(0), Arg(1)))


@dataclass(frozen=True)
class OpPrinter:
    """Prints operators of one kernel; ``shape`` prints the shape of a tile with given lanes."""

    scalars: ScalarPrinter
    shape: Callable[[Lanes], str]

    def text(self, op: Op, args: list[Operand], lanes: Lanes, *, apart: str = "") -> Text:
        """``op`` applied to ``args``; the result has ``lanes``.

        ``apart``: why products are rounded by themselves (workarounds.py).
        """
        match op:
            case Functional("dot"):
                return self._dot(args[0], args[1], lanes, apart)
            case Functional(name):
                return self._reduced(name.removeprefix("row_"), args[0], lanes)
            case Scan() as scan:
                return self._scanned(scan, args[0], lanes)
            case Pointwise(expr):
                return self._pointwise(expr, args, lanes, apart)
            case Cast(dtype):
                return as_dtype(args[0].text, dtype)
            case Transpose():
                return args[0].text if args[0].lanes == lanes else _transposed(args[0].text)
            case Relabel():
                return args[0].text
            case Regroup():
                text = args[0].text
                return Text(f"tl.reshape({text.text}, {self.shape(lanes)})", text.dtype)
        raise AssertionError(op)

    def fold(self, monoid: str, left: Text, right: Text) -> Text:
        """Two partial results combined."""
        return self.scalars.text(Call(COMBINE[monoid], (Arg(0), Arg(1))), [left, right])

    def fold_apart(self, why: str) -> Callable[[str, Text, Text], Text]:
        """The fold of partial results that works around a compiler's fault (workarounds.py)."""
        return self._fused if why == FROM_ZERO else self._in_two_steps

    def _fused(self, monoid: str, left: Text, right: Text) -> Text:
        """A sum that Triton does not turn into a dot with an accumulator."""
        assert monoid == "+"
        return Text(f"tl.fma({as_float(right).text}, 1.0, {left.text})")

    def _in_two_steps(self, monoid: str, left: Text, right: Text) -> Text:
        """The same value by two operations, where one Triton's pass would look for one.

        Sums start from 0, so none is -0, and adding 0 changes none. Adding -0 to a product keeps
        its sign.
        """
        if monoid == "prod":
            return Text(f"tl.fma({left.text}, {as_float(right).text}, -0.0)")
        fn, again = COMBINE[monoid], Const(0.0) if monoid == "+" else Arg(0)
        twice = Call(fn, (Call(fn, (Arg(0), Arg(1))), again))
        return self.scalars.text(twice, [left, right])

    def matrix_dot(
        self, a: Operand, b: Operand, columns: bool, total: str = "", *, split: bool = False,
        depth: int = 0,
    ) -> Text:  # fmt: skip
        """A dot of two blocks, added to ``total``; ``columns``: b was loaded as columns.

        ``depth``: the products that each of its sums has.
        """
        left, right = a.text, b.text if columns else _transposed(b.text)
        parts = [left.text, right.text, *([total] if total else [])]
        if left.dtype == FLOAT:
            parts.append(f'input_precision="{SPLIT if split else EXACT}"')
        if left.dtype == FLOAT8:
            parts.append(f"max_num_imprecise_acc={min(depth, PARTIAL)}")
        return Text(f"tl.dot({', '.join(parts)})")

    def _dot(self, a: Operand, b: Operand, lanes: Lanes, apart: str) -> Text:
        """A dot of which an operand lacks lanes: products, summed along what both have."""
        both = tuple(dict.fromkeys((*a.lanes, *b.lanes)))
        rest = tuple(d for d in both if d not in lanes)
        order = (*lanes, *rest)
        spelled = self._spelled(apart)
        product = spelled(_PRODUCT, [a.over(order), b.over(order)])
        return Text(f"tl.sum({product.text}, {len(lanes)})") if rest else product

    def _reduced(self, kind: str, arg: Operand, lanes: Lanes) -> Text:
        """A block or vector folded along the axes that ``lanes`` lacks, its last ones."""
        if arg.text.dtype in INTEGERS:
            return self._reduced_integers(kind, arg, lanes)
        value = self._in_rows(arg, lanes)
        if arg.lanes == lanes:
            return value
        axis = len(lanes)
        if kind == "sum":
            return Text(f"tl.sum({value.text}, {axis})")
        helper = {"max": "_maximum", "min": "_minimum", "prod": "_product"}[kind]
        self.scalars.helpers.setdefault(helper)
        return Text(f"tl.reduce({value.text}, {axis}, {helper})")

    def _in_rows(self, arg: Operand, lanes: Lanes) -> Text:
        """The numbers of a tile, with all axes that are folded as one."""
        value, over = as_float(arg.text), arg.lanes[len(lanes) :]
        if len(over) < 2:
            return value
        kept = self.shape(lanes).strip("()").rstrip(",")
        inner = self.shape(over).strip("()").replace(",", " *")
        return Text(f"tl.reshape({value.text}, ({', '.join(filter(None, (kept, inner)))},))")

    def _scanned(self, scan: Scan, arg: Operand, lanes: Lanes) -> Text:
        """A block or vector scanned along its last axis."""
        value = as_float(arg.text)
        if arg.text.dtype in INTEGERS:
            value = as_integer(arg.text, folded_dtype(scan.monoid, [arg.text.dtype]))
        self.scalars.helpers.setdefault(_SCANNED[scan.monoid])
        back = ", reverse=True" if scan.back else ""
        axis = len(lanes) - 1
        helper = _SCANNED[scan.monoid]
        return Text(f"tl.associative_scan({value.text}, {axis}, {helper}{back})", value.dtype)

    def sums(self, args: list[Operand], lanes: Lanes) -> Text:
        """Two blocks or vectors added up along the axes that ``lanes`` lacks, in one exchange."""
        values = ", ".join(self._in_rows(arg, lanes).text for arg in args)
        if args[0].lanes == lanes:
            return Text(values)
        self.scalars.helpers.setdefault("_sums")
        return Text(f"tl.reduce(({values}), {len(lanes)}, _sums)")

    def _reduced_integers(self, kind: str, arg: Operand, lanes: Lanes) -> Text:
        """The same of integers: their sums are wider."""
        dtype = folded_dtype("+" if kind == "sum" else kind, [arg.text.dtype])
        value = as_integer(arg.text, dtype)
        if arg.lanes == lanes:
            return value
        if kind == "prod":
            self.scalars.helpers.setdefault("_product")
            return Text(f"tl.reduce({value.text}, {len(lanes)}, _product)", dtype)
        return Text(f"tl.{kind}({value.text}, {len(lanes)})", dtype)

    def _spelled(self, apart: str) -> Callable[[Expr, Sequence[Text]], Text]:
        scalars = self.scalars
        return {"": scalars.text, ROUNDED: scalars.summand, CANCELS: scalars.apart}[apart]

    def _pointwise(self, expr: Expr, args: list[Operand], lanes: Lanes, apart: str) -> Text:
        text = self._spelled(apart)(expr, [arg.over(lanes) for arg in args])
        return self.filled(text, lanes, tuple(d for arg in args for d in arg.lanes))

    def filled(self, text: Text, lanes: Lanes, present: Lanes) -> Text:
        """``text`` with all of ``lanes``, of which its operands have those ``present``."""
        if is_literal(text):
            return Text(f"tl.full({self.shape(lanes)}, {text.text}, tl.float32)")
        if set(lanes) <= set(present):
            return text
        return Text(f"tl.broadcast_to({text.text}, {self.shape(lanes)})", text.dtype)


def _transposed(text: Text) -> Text:
    return Text(f"tl.trans({text.text})", text.dtype)
