"""The final names in a traced program: of dims, and the user's names of variables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

from blockbuster.frontend.program import Axis, Equation
from blockbuster.frontend.source import text_of
from blockbuster.ir.expr import Call, Const, Expr, Size, rewrite
from blockbuster.ir.expr_lengths import length_of
from blockbuster.ir.extents import Lengths
from blockbuster.ir.graph import Value
from blockbuster.ir.lengths import Length
from blockbuster.ir.origin import SourceLine
from blockbuster.ir.types import Dim

_ASSIGNED = re.compile(r"([A-Za-z_]\w*)\s*(?:[-+*/%@&|]|\*\*|//)?=(?!=)")


def hints_of(equations: Sequence[Equation]) -> list[str]:
    """The variable each line assigns, for the last operation of the line."""
    lines: list[SourceLine | None] = [e.where for e in equations]
    hints = []
    for line, following in zip_longest(lines, lines[1:]):
        match = _ASSIGNED.match(text_of(line)) if line != following else None
        hints.append(match.group(1) if match else "")
    return hints


def with_names(equation: Equation, names: Mapping[Dim, Axis]) -> dict[str, Any]:
    """The operands and params of an equation with the raw dims inside them renamed."""

    def leaf(expr: Expr) -> Expr:
        if not isinstance(expr, Size):
            return expr
        name = names[expr.dim]
        return Size(name) if isinstance(name, str) else Const(float(name))

    operands = tuple(
        o if o is None or isinstance(o, Value) else rewrite(o, leaf) for o in equation.operands
    )

    def renamed(value: Any) -> Any:
        if isinstance(value, Length | Lengths):
            return value.replaced(lambda d: length_of(leaf(Size(d))) or Length())
        return rewrite(value, leaf) if isinstance(value, Const | Size | Call) else value

    params = tuple((key, renamed(value)) for key, value in equation.params)
    return {"operands": operands, "params": params}
