"""Integers in NumPy text: exact among themselves, and cast to floats where they meet floats.

NumPy would compute an int64 beside a float32 in float64, so the text contains an explicit cast.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from blockbuster.emit.print.integers import integer_literal
from blockbuster.emit.print.numpy.spelling import Spelling
from blockbuster.emit.tile.dataflow import defined
from blockbuster.emit.tile.padding import IDENTITY
from blockbuster.emit.tile.program import TileProgram, statements
from blockbuster.emit.tile.result_dtypes import INDEX, are_whole, call_dtype, expr_dtype
from blockbuster.ir.dtypes import INTEGERS, TRUTH
from blockbuster.ir.expr import PREDICATES, Arg, Call, Expr

COUNTED = (INDEX, *INTEGERS)
FUNCTIONAL_TEXT = {
    "row_sum": "{0}.sum(axis=-1, dtype=np.int64)",
    "row_max": "{0}.max(axis=-1, initial={1})",
    "row_min": "{0}.min(axis=-1, initial={1})",
}


def has_integers(program: TileProgram) -> bool:
    """True if some array or tile holds integers: then indices are integers in the text, too."""
    made = (defined(stmt) for nest in program.nests for stmt in statements(nest.body))
    return any(one and one.dtype in INTEGERS for one in (*program.inputs, *program.outputs, *made))


def integer_functional(name: str, text: str, dtype: str) -> str:
    """A reduction of integers of a dtype."""
    start = {"row_max": "max", "row_min": "min"}.get(name, "+")
    return FUNCTIONAL_TEXT[name].format(text, integer_literal(IDENTITY[start], dtype))


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
    made: dict[int, Expr] = field(default_factory=dict)

    def converted(self, expr: Expr) -> Expr:
        """``expr`` with operands that have the dtype in which each function computes."""
        if not isinstance(expr, Call):
            return expr
        args = [self.converted(arg) for arg in expr.args]
        kinds = [expr_dtype(arg, self.dtypes) for arg in args]
        dtype = call_dtype(expr.fn, kinds)
        whole = dtype in INTEGERS or (expr.fn in PREDICATES and are_whole(kinds))
        if expr.fn not in ("and", "or", "not", "whole"):
            first = int(expr.fn == "where")
            for at in range(first, len(args)):
                alone = len(args) == 1 and kinds[at] != dtype  # two would meet in NumPy, too
                kept = whole and kinds[at] in INTEGERS and not alone
                args[at] = args[at] if kept else self._taken(args[at], kinds[at], dtype * whole)
        return Call(expr.fn, tuple(args))

    def _taken(self, arg: Expr, kind: str, dtype: str) -> Expr:
        """An operand of a function of integers of ``dtype``, or of floats where that is empty."""
        if dtype and (dtype == TRUTH or kind not in (INDEX, TRUTH, *INTEGERS)):
            return arg
        if not dtype and kind not in COUNTED:
            return arg
        text = self.spelling.number(arg, self.names)
        return self._named(f"({text}).astype({f'np.{dtype}' if dtype else 'dtype'})", dtype)

    def _named(self, text: str, dtype: str) -> Arg:
        self.names.append(text)
        self.dtypes.append(dtype or "float32")
        return Arg(len(self.names) - 1)
