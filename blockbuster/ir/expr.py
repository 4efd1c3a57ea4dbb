"""Scalar expressions: a small frozen tree, composed by substitution and never simplified.

An expression is what an elementwise operator does to one element. It is deliberately not a SymPy
expression: SymPy rewrites silently (x/x to 1, sqrt(x)**2 to x), which changes NaN and rounding
inside a step that is meant to be exact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from blockbuster.ir.types import Dim


@dataclass(frozen=True)
class Arg:
    """The element of operand number ``index``."""

    index: int


@dataclass(frozen=True)
class Const:
    """A number, held in double precision."""

    value: float


@dataclass(frozen=True)
class Size:
    """The number of elements along a dim, bound when the program is run."""

    dim: Dim


@dataclass(frozen=True)
class Call:
    """A function of the table ``FUNCTIONS`` applied to expressions."""

    fn: str
    args: tuple[Expr, ...]

    def __post_init__(self) -> None:
        arity = FUNCTIONS.get(self.fn)
        if arity is None:
            raise ValueError(f"unknown scalar function {self.fn!r}; known: {', '.join(FUNCTIONS)}")
        if arity != len(self.args):
            raise ValueError(f"{self.fn} takes {arity} arguments, got {len(self.args)}")


Expr = Arg | Const | Size | Call

# name -> number of arguments. `sub0(x, z)` is x - z, and -inf where x is -inf (even if z is, too);
# `recip0(x)` is 1/x, and 0 where x is 0: the two functions that keep a fully masked row at zero.
# (An explicit safe softmax is max, sub0, exp, sum, recip0, row_scale.)
FUNCTIONS: dict[str, int] = {
    "add": 2, "sub": 2, "mul": 2, "div": 2, "pow": 2, "neg": 1,
    "exp": 1, "log": 1, "sqrt": 1, "rsqrt": 1, "tanh": 1, "sigmoid": 1, "silu": 1, "gelu": 1,
    "relu": 1, "erf": 1, "abs": 1, "square": 1, "reciprocal": 1,
    "maximum": 2, "minimum": 2, "sub0": 2, "recip0": 1,
    "lt": 2, "le": 2, "gt": 2, "ge": 2, "eq": 2, "ne": 2,
    "and": 2, "or": 2, "not": 1, "where": 3,
}  # fmt: skip

PREDICATES = frozenset({"lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not"})

# infix spelling and precedence; everything else prints as a call
INFIX: dict[str, tuple[str, int]] = {
    "or": ("or", 1), "and": ("and", 2),
    "lt": ("<", 4), "le": ("<=", 4), "gt": (">", 4), "ge": (">=", 4),
    "eq": ("==", 4), "ne": ("!=", 4),
    "add": ("+", 5), "sub": ("-", 5), "mul": ("*", 6), "div": ("/", 6), "pow": ("**", 8),
}  # fmt: skip
_PREFIX = {"neg": ("-", 7), "not": ("not ", 3)}
_READS_AS_NUMBER = (*"-.0123456789", "inf", "nan")


def call(fn: str, *args: Expr | float) -> Call:
    """``Call`` with plain numbers accepted as arguments."""
    return Call(fn, tuple(Const(float(a)) if isinstance(a, int | float) else a for a in args))


def rewrite(expr: Expr, leaf: Callable[[Expr], Expr]) -> Expr:
    """``expr`` with every leaf replaced by ``leaf(leaf)``."""
    if isinstance(expr, Call):
        return Call(expr.fn, tuple(rewrite(a, leaf) for a in expr.args))
    return leaf(expr)


def substitute(expr: Expr, args: Sequence[Expr]) -> Expr:
    """``expr`` with ``Arg(i)`` replaced by ``args[i]``."""
    return rewrite(expr, lambda e: args[e.index] if isinstance(e, Arg) else e)


def rename_sizes(expr: Expr, dims: Mapping[Dim, Dim]) -> Expr:
    """``expr`` with the dims of its sizes renamed."""
    return rewrite(expr, lambda e: Size(dims.get(e.dim, e.dim)) if isinstance(e, Size) else e)


def arguments(expr: Expr) -> tuple[int, ...]:
    """The operand numbers ``expr`` reads, in order of first appearance."""
    seen: dict[int, None] = {}

    def visit(e: Expr) -> Expr:
        if isinstance(e, Arg):
            seen.setdefault(e.index)
        return e

    rewrite(expr, visit)
    return tuple(seen)


def calls(expr: Expr) -> int:
    """How many function applications one evaluation takes."""
    return 1 + sum(calls(a) for a in expr.args) if isinstance(expr, Call) else 0


def is_predicate(expr: Expr) -> bool:
    """True if the value of ``expr`` is a truth value."""
    return isinstance(expr, Call) and expr.fn in PREDICATES


def show_expr(expr: Expr, names: Sequence[str], *, floor: int = 0) -> str:
    """``expr`` as text, operands under ``names``; a size prints as ``|D|``.

    >>> show_expr(call("exp", call("mul", Arg(0), call("pow", Size("D"), -0.5))), ["s"])
    'exp(s * |D| ** -0.5)'
    """
    match expr:
        case Arg(index):
            return names[index]
        case Size(dim):
            return f"|{dim}|"
        case Const(value):
            return show_number(value)
        case Call(fn, (left, right)) if fn in INFIX:
            sign, level = INFIX[fn]
            right_first = fn == "pow"  # the one operator that groups from the right
            apart = level == 4  # comparisons do not chain
            a = show_expr(left, names, floor=level + (right_first or apart))
            b = show_expr(right, names, floor=level + (not right_first))
            return f"({a} {sign} {b})" if level < floor else f"{a} {sign} {b}"
        case Call(fn, (arg,)) if fn in _PREFIX:
            sign, level = _PREFIX[fn]
            inner = show_expr(arg, names, floor=level + 1)
            if fn == "neg" and inner.startswith(_READS_AS_NUMBER):
                return f"neg({inner})"  # -2 would read back as a constant
            return f"({sign}{inner})" if level < floor else f"{sign}{inner}"
        case Call(fn, args):
            return f"{fn}({', '.join(show_expr(a, names) for a in args)})"
    raise AssertionError(expr)


def show_number(value: float) -> str:
    """The shortest text that reads back as ``value``; whole numbers print without a point."""
    whole = value.is_integer() and abs(value) < 1e15 and str(value) != "-0.0"
    return str(int(value)) if whole else repr(value)
