"""Integers in NumPy text: exact among themselves, and cast to floats where they meet floats.

NumPy would compute an int64 beside a float32 in float64, so the text contains an explicit cast.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from blockbuster.emit.print.integers import integer_literal
from blockbuster.emit.print.numpy.spelling import Spelling
from blockbuster.emit.tile.dataflow import defined
from blockbuster.emit.tile.program import Let, Stmt, TileProgram, statements
from blockbuster.emit.tile.result_dtypes import (
    INDEX,
    are_whole,
    call_dtype,
    expr_dtype,
    holds_integers,
)
from blockbuster.ir.dtypes import INTEGERS, TRUTH
from blockbuster.ir.expr import PREDICATES, Arg, Call, Expr
from blockbuster.ir.ops import IDENTITY, MONOID_OF, Pointwise

COUNTED = (INDEX, *INTEGERS)
FUNCTIONAL_TEXT = {
    "row_sum": "{0}.sum(axis=-1, dtype=np.int64)",
    "row_prod": "{0}.prod(axis=-1, dtype=np.int64)",
    "row_max": "{0}.max(axis=-1, initial={1})",
    "row_min": "{0}.min(axis=-1, initial={1})",
}


def has_integers(program: TileProgram) -> bool:
    """True if some array, tile or part of an expression holds integers.

    Then indices are integers in the text, too, and what meets floats is converted. A program
    without dtypes computes in float64, which is what NumPy makes of integers beside floats.
    """
    if not program.dtype:
        return False
    body = [stmt for nest in program.nests for stmt in statements(nest.body)]
    held = (*program.inputs, *program.outputs, *map(defined, body))
    return any(one and one.dtype in INTEGERS for one in held) or any(map(_makes_whole, body))


def _makes_whole(stmt: Stmt) -> bool:
    """True if fusion left a conversion to integers inside of an expression of floats."""
    match stmt:
        case Let(_, Pointwise(expr), args):
            return holds_integers(expr, [arg.dtype for arg in args])
    return False


def integer_functional(name: str, text: str, dtype: str) -> str:
    """A reduction of integers of a dtype."""
    return FUNCTIONAL_TEXT[name].format(text, integer_literal(IDENTITY[MONOID_OF[name]], dtype))


def converted(
    expr: Expr, names: Sequence[str], dtypes: Sequence[str], spelling: Spelling
) -> tuple[Expr, list[str]]:
    """``expr`` and the names of its operands, with conversions as operands of their own."""
    mixed = _Mixed(list(names), list(dtypes), spelling)
    return mixed.converted(expr), mixed.names


@dataclass
class _Mixed:
    names: list[str]
    dtypes: list[str]
    spelling: Spelling

    def converted(self, expr: Expr) -> Expr:
        """``expr`` with operands that have the dtype in which each function computes."""
        if not isinstance(expr, Call):
            return expr
        args = [self.converted(arg) for arg in expr.args]
        kinds = [expr_dtype(arg, self.dtypes) for arg in args]
        dtype = call_dtype(expr.fn, kinds)
        whole = dtype in COUNTED or (expr.fn in PREDICATES and are_whole(kinds))
        if expr.fn not in ("and", "or", "not", "whole"):
            first = int(expr.fn == "where")
            for at in range(first, len(args)):
                alone = len(args) == 1 and kinds[at] != dtype  # two would meet in NumPy, too
                kept = whole and kinds[at] in COUNTED and not alone
                args[at] = args[at] if kept else self._taken(args[at], kinds[at], dtype * whole)
        return Call(expr.fn, tuple(args))

    def _taken(self, arg: Expr, kind: str, dtype: str) -> Expr:
        """An operand of a function of integers of ``dtype``, or of floats where that is empty."""
        if dtype and (dtype == TRUTH or kind not in (INDEX, TRUTH, *INTEGERS)):
            return arg
        if not dtype and kind not in COUNTED:
            return arg
        text = self.spelling.number(arg, self.names)
        held = f"np.{dtype}" if dtype else self.spelling.dtype
        return self._named(f"({text}).astype({held})", dtype)

    def _named(self, text: str, dtype: str) -> Arg:
        self.names.append(text)
        self.dtypes.append(dtype or "float32")
        return Arg(len(self.names) - 1)
