"""Scalar expressions with 1 or 0 in place of parts, and arithmetic on numbers of any kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from blockbuster.ir.expr import Call, Const, Expr, call

ONE, ZERO = Const(1.0), Const(0.0)

ARITHMETIC: Mapping[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b, "neg": lambda a: -a, "square": lambda a: a * a,
    "reciprocal": lambda a: 1 / a,
}  # fmt: skip
"""Functions that are made by arithmetic alone, of numbers of any kind."""

EXACT = ("add", "sub", "mul", "neg")


def number(expr: Call) -> Expr:
    """``expr``, or its value where it is one of constants, or a factor of 1."""
    if expr.fn == "mul" and expr.args[0] == ONE:
        return expr.args[1]
    values = [arg.value for arg in expr.args if isinstance(arg, Const)]
    if expr.fn not in EXACT or len(values) < len(expr.args):
        return expr
    return Const(ARITHMETIC[expr.fn](*values))


def without(expr: Expr, leaf: Callable[[Expr], Expr | None], neutral: Const) -> Expr | None:
    """``expr`` of what ``leaf`` gives for its leaves: None is the ``neutral`` element, 1 or 0."""
    if not isinstance(expr, Call):
        return leaf(expr)
    return joined(expr.fn, tuple(without(arg, leaf, neutral) for arg in expr.args), neutral)


def joined(fn: str, parts: tuple[Expr | None, ...], neutral: Const) -> Expr | None:
    """A function of parts, of which None are the ``neutral`` element: 1, or 0; None if it is."""
    match (fn, parts):
        case ("abs", (None,)):
            return None
        case ("mul", (None, part)) | ("mul" | "div", (part, None)) if neutral == ONE:
            return part
        case ("add", (None, part)) | ("add" | "sub", (part, None)) if neutral == ZERO:
            return part
        case ("sub", (None, part)) if neutral == ZERO and part is not None:
            return number(call("neg", part))
        case ("neg" | "square", (None,)) | ("mul" | "div", (None, _)) if neutral == ZERO:
            return None
        case ("mul", (_, None)) if neutral == ZERO:
            return None
        case ("where", (_, None | Const(0.0), None | Const(0.0))) if neutral == ZERO:
            return None
    return number(Call(fn, tuple(neutral if part is None else part for part in parts)))
