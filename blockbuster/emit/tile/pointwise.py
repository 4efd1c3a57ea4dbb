"""Pointwise, the only elementwise operator of tile programs, and the paper's names for its uses.

A block program has ``row_scale``, ``mul`` and expressions of scalars; in a tile program they are
all ``Pointwise(expr, axes)``, whose operands are matched by dim. The other operators are dots,
reductions of rows, casts, and operators that only move elements. The listing uses the names of the
paper's Table 1.
"""

from __future__ import annotations

from collections.abc import Sequence

from blockbuster.emit.tile.program import Tile
from blockbuster.ir.expr import Arg, Call
from blockbuster.ir.ops import Elementwise, Functional, Op, Pointwise
from blockbuster.ir.types import Dim

SCALAR = {
    "add": "add", "sub": "sub", "mul": "mul", "div": "div", "row_shift": "add",
    "row_scale": "mul", "col_shift": "add", "col_scale": "mul", "outer": "mul",
}  # fmt: skip
"""The operators of Table 1 that apply a scalar function to each pair of elements."""

BY_ROW = {"add": "row_shift", "mul": "row_scale"}
BY_COLUMN = {"add": "col_shift", "mul": "col_scale"}


def in_tiles(op: Op, axes: tuple[Dim, ...]) -> Op:
    """``op`` of a block program as a tile program has it; its result has ``axes``."""
    match op:
        case Functional(name) if name in SCALAR:
            return Pointwise(Call(SCALAR[name], (Arg(0), Arg(1))), axes)
        case Elementwise(expr):
            return Pointwise(expr, axes)
    return op


def paper_name(op: Pointwise, args: Sequence[Tile]) -> str:
    """The name in Table 1 of ``op`` applied to ``args``; empty if it has none.

    >>> product = Pointwise(Call("mul", (Arg(0), Arg(1))), ("M", "N"))
    >>> paper_name(product, [Tile("t1", ("M", "N")), Tile("t2", ("M",))])
    'row_scale'
    """
    match op.expr:
        case Call(fn, (Arg(0), Arg(1))) if len(args) == 2 and fn in SCALAR:
            axes = (args[0].axes, args[1].axes)
        case _:
            return ""
    first, last = op.axes[:1], op.axes[1:]
    by_shape = {(op.axes, op.axes): fn}
    if len(op.axes) == 2:
        by_shape |= {
            (op.axes, first): BY_ROW.get(fn, ""),
            (op.axes, last): BY_COLUMN.get(fn, ""),
            (first, last): "outer" if fn == "mul" else "",
        }
    return by_shape.get(axes, "")
