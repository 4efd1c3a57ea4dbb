"""Operators in mathematical notation: the labels of nodes in pictures.

``x``, ``y``, ``z`` are the operands in order; ``ρ`` is a vector with an entry per row of a block,
``κ`` one with an entry per column. ``·`` is the dot operator, ``×`` the product of elements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from blockbuster.ir.expr import COMMUTATIVE, Arg, Call, Const, Expr, Size, calls, show_number
from blockbuster.ir.graph import Graph, Node
from blockbuster.ir.ops import (
    Cast,
    Elementwise,
    Functional,
    Head,
    Map,
    Misc,
    Op,
    Pointwise,
    Reduce,
    Relabel,
    Scan,
    Transpose,
)
from blockbuster.ir.types import Type

MOST_CALLS = 8  # a longer expression is not written out
NAMES = ("x", "y", "z", "u", "v", "w")

# scalar function -> sign and precedence
INFIX: dict[str, tuple[str, int]] = {
    "or": (" or ", 1), "and": (" and ", 2),
    "lt": (" < ", 4), "le": (" ≤ ", 4), "gt": (" > ", 4), "ge": (" ≥ ", 4),
    "eq": (" = ", 4), "ne": (" ≠ ", 4),
    "add": (" + ", 5), "sub": (" − ", 5), "sub0": (" − ", 5), "mul": (" × ", 6), "div": (" / ", 6),
    "pow": ("^", 8),
}  # fmt: skip
PREFIX: dict[str, tuple[str, int]] = {"neg": ("−", 7), "not": ("not ", 3)}
SHORT = {"maximum": "max", "minimum": "min", "recip0": "1/x", "reciprocal": "1/x", "neg": "−x",
         "rsqrt": "1/√x", "square": "x²", "sqrt": "√x", "whole": "as integer"}  # fmt: skip
FUNCTIONALS = {
    "add": "+", "sub": "x − y", "mul": "×", "div": "x / y",
    "row_shift": "x + ρ", "row_scale": "x × ρ", "col_shift": "x + κ", "col_scale": "x × κ",
    "dot": "·", "outer": "ρ κ",
}  # fmt: skip
ROW_REDUCTIONS = {"row_sum": "∑", "row_prod": "∏", "row_max": "max", "row_min": "min"}
SIGNS = {"+": "+", "prod": "×", "max": "max", "min": "min"}


def formula(expr: Expr, names: Sequence[str], *, floor: int = 0) -> str:
    """``expr`` as a mathematician writes it: x * (1 / n) is x / n, and n ** -0.5 is 1/√n.

    Parentheses stand around what binds more loosely than ``floor``.

    >>> from blockbuster.ir.expr import call
    >>> formula(call("exp", call("mul", Arg(0), call("pow", Size("D"), -0.5))), ["s"])
    'exp(s / √|D|)'
    """
    match expr:
        case Arg(index):
            return names[index]
        case Size(dim):
            return f"|{dim}|"
        case Const(value):
            return show_number(value).replace("-", "−")
        case Call("square", (base,)) | Call("pow", (base, Const(2))):
            return _enclosed(f"{formula(base, names, floor=9)}²", 8, floor)
        case Call("sqrt", (base,)) | Call("pow", (base, Const(0.5))):
            return _enclosed(f"√{formula(base, names, floor=8)}", 7, floor)
        case Call("mul", (left, right)) if (below := _denominator(right)) is not None:
            text = f"{formula(left, names, floor=6)} / {formula(below, names, floor=7)}"
            return _enclosed(text, 6, floor)
        case Call() if (below := _denominator(expr)) is not None:
            return _enclosed(f"1/{formula(below, names, floor=7)}", 6, floor)
        case Call(fn, (left, right)) if fn in INFIX:
            sign, level = INFIX[fn]
            a = formula(left, names, floor=level + (level in (4, 8)))
            text = f"{a}{sign}{formula(right, names, floor=level + (fn != 'pow'))}"
            return _enclosed(text, level, floor)
        case Call(fn, (arg,)) if fn in PREFIX:
            sign, level = PREFIX[fn]
            return _enclosed(f"{sign}{formula(arg, names, floor=level + 1)}", level, floor)
        case Call("whole", (arg,)):  # says that a whole number is held as an integer
            return formula(arg, names, floor=floor)
        case Call(fn, args):
            return f"{SHORT.get(fn, fn)}({', '.join(formula(a, names) for a in args)})"
    raise AssertionError(expr)


def _denominator(expr: Expr) -> Expr | None:
    """What ``expr`` is one over, if it is written that way."""
    match expr:
        case Call("div", (Const(1), below)) | Call("recip0" | "reciprocal", (below,)):
            return below
        case Call("pow", (below, Const(-1))):
            return below
        case Call("rsqrt", (below,)) | Call("pow", (below, Const(-0.5))):
            return Call("sqrt", (below,))
    return None


def _enclosed(text: str, level: int, floor: int) -> str:
    return f"({text})" if level < floor else text


def scalar(expr: Expr, arity: int) -> str:
    """The label of a scalar expression over ``arity`` operands.

    A function of the operands themselves is its name: ``exp``, ``max``, ``+``.
    """
    match expr:
        case Call(fn, (Arg(_),)):
            return SHORT.get(fn, fn)
        case Call(fn, (Arg(_), Arg(_))) if fn in COMMUTATIVE:
            return INFIX[fn][0].strip() if fn in INFIX else SHORT[fn]
    if calls(expr) > MOST_CALLS or arity > len(NAMES):
        return f"f of {calls(expr)} operations"
    return formula(expr, NAMES)


def is_ordered(node: Node) -> bool:
    """True if a reader has to be told which operand is which: neither types nor algebra say."""
    match node.op:
        case Functional(name):
            return name in ("sub", "div")
        case Elementwise(expr) | Pointwise(expr, _) if len(node.operands) > 1:
            plain = isinstance(expr, Call) and all(isinstance(a, Arg) for a in expr.args)
            return not (plain and isinstance(expr, Call) and expr.fn in COMMUTATIVE)
        case Misc():
            return len(node.operands) > 1
    return False


def label(node: Node, operands: Sequence[Type]) -> str:
    """The label of ``node``, whose operands have these types."""
    return LABELS[type(node.op)](node.op, operands)


def summary(body: Graph, *, most: int = 6) -> str:
    """The first operators of a body, inner maps included, in the order of the program."""
    texts: list[str] = []
    _collect(body, texts, most + 1)
    return "  ".join(texts[:most]) + ("  …" if len(texts) > most else "")


def _collect(body: Graph, texts: list[str], most: int) -> None:
    for node in body.nodes:
        if len(texts) >= most:
            return
        if isinstance(node.op, Map):
            _collect(node.op.body, texts, most)
        else:
            text = label(node, [body.type_of(value) for value in node.operands])
            texts.append("dot" if text == "·" else text)  # alone, the sign is too small to see


def dims(op: Map) -> str:
    """The dim of a map and those of the maps in it, each once, outermost first."""
    inner = (node.op for _, graph in op.body.walk() for node in graph.nodes)
    found = dict.fromkeys((op.dim, *(o.dim for o in inner if isinstance(o, Map))))
    return " ".join(found) + (f" from {op.start}" if op.start else "")


def operations(body: Graph) -> int:
    """How many operators other than maps there are in ``body``, at all levels."""
    return sum(not isinstance(n.op, Map) for _, graph in body.walk() for n in graph.nodes)


def _functional(op: Functional, operands: Sequence[Type]) -> str:
    if op.name in ROW_REDUCTIONS:
        return f"{ROW_REDUCTIONS[op.name]} {operands[0].axes[-1]}"
    return FUNCTIONALS[op.name]


def _scan(op: Scan, operands: Sequence[Type]) -> str:
    return f"{SIGNS[op.monoid]} {'from' if op.back else 'to'} each {operands[0].axes[-1]}"


def _transpose(op: Transpose, operands: Sequence[Type]) -> str:
    return f"{operands[0]} as {Type(op.lists, op.axes)}"


# operator class -> its label, given the types of its operands
LABELS: dict[type[Op], Callable[[Any, Sequence[Type]], str]] = {
    Functional: _functional,
    Elementwise: lambda op, operands: scalar(op.expr, len(operands)),
    Pointwise: lambda op, operands: scalar(op.expr, len(operands)),
    Cast: lambda op, operands: op.dtype,
    Scan: _scan,
    Transpose: _transpose,
    Relabel: lambda op, operands: f"{op.old} → {op.new}",
    Reduce: lambda op, operands: SIGNS[op.monoid],
    Head: lambda op, operands: f"first of {op.dim}",
    Misc: lambda op, operands: op.name,
}


def names(count: int) -> Sequence[str]:
    """The names of ``count`` operands on a label."""
    return NAMES[:count] if count <= len(NAMES) else [f"x{k}" for k in range(count)]
