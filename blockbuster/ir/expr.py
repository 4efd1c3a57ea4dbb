"""Scalar expressions: a small frozen tree, composed by substitution and never simplified.

An expression is the function that an elementwise operator applies to one element. It is
deliberately not a SymPy expression: SymPy rewrites silently (x/x to 1, sqrt(x)**2 to x), which
changes NaN and rounding inside a step that must be exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from blockbuster.ir.types import Dim


@dataclass(frozen=True)
class Arg:
    """The element of operand number ``index``."""

    index: int


@dataclass(frozen=True, eq=False)
class Const:
    """A number, held in double precision. -0.0 is another number than 0.0, and nan is nan."""

    value: float

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Const) and self._told_apart() == other._told_apart()

    def __hash__(self) -> int:
        return hash(self._told_apart())

    def _told_apart(self) -> float | str:
        return self.value if self.value and self.value == self.value else repr(self.value)


@dataclass(frozen=True)
class Size:
    """The number of elements along a dim, bound when the program is run."""

    dim: Dim


@dataclass(frozen=True, eq=False)
class Call:
    """A function of the table ``FUNCTIONS`` applied to expressions.

    What is asked of whole trees is known from the start or found without recursion, save printing:
    so expressions that come from outside nest at most ``DEEPEST`` calls, and those that fusion puts
    together have fewer.
    """

    fn: str
    args: tuple[Expr, ...]
    arguments: tuple[int, ...] = field(init=False, repr=False)
    """The operand numbers it reads, in order of first appearance."""
    calls: int = field(init=False, repr=False)
    """How many function applications one evaluation takes."""
    depth: int = field(init=False, repr=False)
    """How many of them are nested."""
    _hash: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        arity = FUNCTIONS.get(self.fn)
        if arity is None:
            raise ValueError(f"unknown scalar function {self.fn!r}; known: {', '.join(FUNCTIONS)}")
        if arity != len(self.args):
            raise ValueError(f"{self.fn} takes {arity} arguments, got {len(self.args)}")
        read = dict.fromkeys(i for arg in self.args for i in arguments(arg))
        object.__setattr__(self, "arguments", tuple(read))
        object.__setattr__(self, "calls", 1 + sum(map(calls, self.args)))
        inner = max([a.depth for a in self.args if isinstance(a, Call)], default=0)
        object.__setattr__(self, "depth", 1 + inner)
        object.__setattr__(self, "_hash", hash((self.fn, self.args)))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[Call], tuple[str, tuple[Expr, ...]]]:
        """Pickled without its hash, which is another in another process."""
        return Call, (self.fn, self.args)

    def __eq__(self, other: object) -> bool:
        pairs: list[tuple[object, object]] = [(self, other)]
        while pairs:
            a, b = pairs.pop()
            if a is b:
                continue
            if not (isinstance(a, Call) and isinstance(b, Call)):
                if isinstance(a, Call) or isinstance(b, Call) or a != b:
                    return False
            elif a._hash != b._hash or a.fn != b.fn or len(a.args) != len(b.args):
                return False
            else:
                pairs.extend(zip(a.args, b.args, strict=True))
        return True


Expr = Arg | Const | Size | Call

# name -> number of arguments. `sub0(x, z)` is x - z, and x where x is infinite (even if z is, too);
# `recip0(x)` is 1/x, and 0 where x is 0: the two functions that keep a fully masked row at zero.
# It is NaN where x is infinite: of a sum of exponentials, one is, and no quotient by it is known.
# (An explicit safe softmax is max, sub0, exp, sum, recip0, row_scale.)
# `floordiv` and `mod` are those of integers; `whole(x)` is x, a whole number, held as an integer.
FUNCTIONS: dict[str, int] = {
    "add": 2, "sub": 2, "mul": 2, "div": 2, "pow": 2, "neg": 1,
    "exp": 1, "log": 1, "sqrt": 1, "rsqrt": 1, "tanh": 1, "sigmoid": 1, "silu": 1, "gelu": 1,
    "relu": 1, "erf": 1, "abs": 1, "square": 1, "reciprocal": 1,
    "maximum": 2, "minimum": 2, "sub0": 2, "recip0": 1,
    "lt": 2, "le": 2, "gt": 2, "ge": 2, "eq": 2, "ne": 2,
    "and": 2, "or": 2, "not": 1, "where": 3,
    "floordiv": 2, "mod": 2, "whole": 1, "bitand": 2, "shl": 2, "shr": 2,
    "floor": 1, "round": 1, "sin": 1, "cos": 1, "log1p": 1, "expm1": 1, "atan": 1,
}  # fmt: skip

UNINTERPRETED = ("tanh", "erf", "floor", "round", "sin", "cos", "log1p", "expm1", "atan")
"""Functions of one number that proofs know no law of: equal numbers give equal results."""

BITWISE = ("bitand", "shl", "shr")
"""Functions of two integers that proofs know no law of: the bits that both have, and shifts, which
leave 0, or -1 of negative numbers moved right, where they are as wide as the dtype or negative."""

COMMUTATIVE = ("add", "mul", "maximum", "minimum", "and", "or", "eq", "ne")
"""Functions of two numbers that take them in either order."""

PREDICATES = frozenset({"lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not"})

DEEPEST = 100
"""How many calls an expression nests that is read as text or written with sizes."""

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


def never_zero(x: Expr) -> Call:
    """A divisor d, made of ``x``, with which ``y / d`` equals ``y * recip0(x)`` for every y."""
    infinite = call("eq", call("abs", x), math.inf)
    return call("where", call("eq", x, 0.0), math.inf, call("where", infinite, math.nan, x))


def without_zeros(expr: Expr) -> Expr | None:
    """The x of which ``expr`` is ``never_zero``; None if it is another expression."""
    match expr:
        case Call("where", (Call("eq", (x, _)), _, _)) if expr == never_zero(x):
            return x
    return None


def rewrite(expr: Expr, leaf: Callable[[Expr], Expr]) -> Expr:
    """``expr`` with every leaf replaced by ``leaf(leaf)``; parts that do not change are shared."""
    done: dict[int, Expr] = {}
    stack = [expr]
    while stack:
        top = stack[-1]
        if id(top) not in done:
            waiting = [a for a in _parts(top) if id(a) not in done]
            if waiting:
                stack.extend(reversed(waiting))
                continue
            done[id(top)] = _rebuilt(top, done) if isinstance(top, Call) else leaf(top)
        stack.pop()
    return done[id(expr)]


def replaced(expr: Expr, made: Mapping[Expr, Expr]) -> Expr:
    """``expr``, which is not deep, with ``made[e]`` for each part e of it that is there."""
    if expr in made:
        return made[expr]
    if not isinstance(expr, Call):
        return expr
    return Call(expr.fn, tuple(replaced(arg, made) for arg in expr.args))


def functions_of(expr: Expr) -> Iterator[str]:
    """The functions that ``expr`` applies, those of a shared part once."""
    seen: set[int] = set()
    stack = [expr]
    while stack:
        top = stack.pop()
        if isinstance(top, Call) and id(top) not in seen:
            seen.add(id(top))
            yield top.fn
            stack.extend(top.args)


def calls_in(expr: Expr) -> Iterator[Call]:
    """The calls of ``expr``, itself first, each as often as it stands there."""
    stack = [expr]
    while stack:
        top = stack.pop()
        if isinstance(top, Call):
            yield top
            stack.extend(reversed(top.args))


@lru_cache(maxsize=4096)  # moves ask for it of the same expressions again and again
def sizes_in(expr: Expr) -> tuple[Dim, ...]:
    """The dims whose sizes ``expr`` reads, as often as it does."""
    found: list[Dim] = []

    def note(leaf: Expr) -> Expr:
        if isinstance(leaf, Size):
            found.append(leaf.dim)
        return leaf

    rewrite(expr, note)
    return tuple(found)


@lru_cache(maxsize=4096)  # programs are run on many inputs, tile by tile
def in_order(expr: Expr) -> tuple[tuple[Expr, tuple[int, ...]], ...]:
    """The parts of ``expr``, itself last, each with the numbers of its arguments in this order.

    A shared part is there once. Without recursion: fusion nests calls a thousand deep.
    """
    numbers: dict[int, int] = {}
    ordered: list[tuple[Expr, tuple[int, ...]]] = []
    stack = [expr]
    while stack:
        top = stack[-1]
        waiting = [a for a in _parts(top) if id(a) not in numbers]
        if waiting:
            stack.extend(waiting)
            continue
        if id(top) not in numbers:
            numbers[id(top)] = len(ordered)
            ordered.append((top, tuple(numbers[id(a)] for a in _parts(top))))
        stack.pop()
    return tuple(ordered)


def _parts(expr: Expr) -> tuple[Expr, ...]:
    return expr.args if isinstance(expr, Call) else ()


def _rebuilt(expr: Call, done: Mapping[int, Expr]) -> Call:
    args = tuple(done[id(a)] for a in expr.args)
    same = all(new is old for new, old in zip(args, expr.args, strict=True))
    return expr if same else Call(expr.fn, args)


def substitute(expr: Expr, args: Sequence[Expr]) -> Expr:
    """``expr`` with ``Arg(i)`` replaced by ``args[i]``."""
    return rewrite(expr, lambda e: args[e.index] if isinstance(e, Arg) else e)


def arguments(expr: Expr) -> tuple[int, ...]:
    """The operand numbers ``expr`` reads, in order of first appearance."""
    if isinstance(expr, Call):
        return expr.arguments
    return (expr.index,) if isinstance(expr, Arg) else ()


def calls(expr: Expr) -> int:
    """How many function applications one evaluation takes."""
    return expr.calls if isinstance(expr, Call) else 0


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
