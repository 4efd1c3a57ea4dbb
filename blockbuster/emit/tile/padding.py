"""The content of padded lanes of tiles: the analysis behind ``guard``.

A target whose tiles have fixed sizes fills the last block of a ragged dim past its end. Loads put
zero into these lanes; this analysis follows what operators make of it, per tile and axis. A *lane*
is a known number, DATA (the operand has no such axis: the lane is a real value of the program) or
UNKNOWN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from blockbuster.emit.tile.program import (
    Await,
    BlockOf,
    Fold,
    For,
    Guard,
    Init,
    Iota,
    Let,
    Load,
    Stmt,
    Tile,
)
from blockbuster.ir.expr import Arg, Const, Expr, Size
from blockbuster.ir.ops import IDENTITY, ROW_FOLDS, Cast, Functional, Pointwise, Relabel, Scan
from blockbuster.ir.regroup import Regroup
from blockbuster.ir.types import Dim

Lane: TypeAlias = float | str
DATA, UNKNOWN = "data", "unknown"
Lanes: TypeAlias = dict[Dim, Lane]


class LaneState:
    """The lanes of the tiles made so far."""

    def __init__(self, ragged: Sequence[Dim]) -> None:
        self.ragged = tuple(ragged)
        self.of: dict[Tile, Lanes] = {}

    @contextmanager
    def inside(self, loop: For) -> Iterator[None]:
        """The state inside a loop: if it runs over full blocks, their dim has no lanes past its
        end.
        """
        around = self.ragged
        if loop.full:
            self.ragged = tuple(dim for dim in around if dim != loop.dim)
        yield
        self.ragged = around

    def lane(self, tile: Tile, dim: Dim) -> Lane:
        """The content of the lanes of ``tile`` past the end of ``dim``."""
        return self.of.get(tile, {}).get(dim, UNKNOWN) if dim in tile.axes else DATA

    def step(self, stmt: Stmt) -> None:
        """Note what ``stmt`` does."""
        match stmt:
            case Load() | Await():
                self._set(stmt.target, lambda _: 0.0)
            case Iota() | BlockOf():
                self._set(stmt.target, lambda _: UNKNOWN)
            case Init():  # what reads it before a fold reads what iterations before this one left
                self._set(stmt.target, lambda _: UNKNOWN)
            case Guard():
                self._set(stmt.target, lambda d: self.lane(stmt.value, d))
                self.of[stmt.target][stmt.dim] = stmt.fill
            case Fold():
                start = IDENTITY[stmt.monoid]
                sides = (stmt.value,) if stmt.onto is None else (stmt.value, stmt.onto)
                kept = {d for d in stmt.target.axes if all(self.lane(x, d) == start for x in sides)}
                self._set(stmt.target, lambda d: start if d in kept else UNKNOWN)
                full = (d for d in stmt.target.per_lane if d not in self.ragged)
                self.of[stmt.target].update(dict.fromkeys(full, start))
                for member in stmt.members:
                    self._set(member.target, lambda _: UNKNOWN)
            case Let():
                self._set(stmt.target, lambda d: self._let(stmt, d))

    def _set(self, tile: Tile, lane: Callable[[Dim], Lane]) -> None:
        found = {dim: lane(dim) for dim in tile.axes if dim in self.ragged}
        self.of[tile] = {d: UNKNOWN if x == DATA else x for d, x in found.items()}

    def _let(self, stmt: Let, dim: Dim) -> Lane:
        op = stmt.op
        if isinstance(op, Relabel):
            return self.lane(stmt.args[0], op.old if dim == op.new else dim)
        if isinstance(op, Regroup) and dim not in stmt.args[0].axes:  # the lanes of whole pieces
            dim = op.old[0]
        args = [self.lane(arg, dim) for arg in stmt.args]
        if isinstance(op, Pointwise):
            return lane_of(op.expr, args)
        if isinstance(op, Functional):
            return FUNCTIONAL_LANES[op.name](args)
        if isinstance(op, Scan):
            last = dim == stmt.target.axes[-1]
            return UNKNOWN if last else FUNCTIONAL_LANES[ROW_FOLDS[op.monoid]](args)
        if isinstance(op, Cast):
            return args[0] if is_exact(args[0]) else UNKNOWN
        return args[0]


def is_exact(lane: Lane) -> bool:
    """True for a number that no cast changes: of few bits, near 1, or 0, or infinite."""
    if not isinstance(lane, float) or lane == 0 or math.isinf(lane):
        return isinstance(lane, float)
    significand, exponent = math.frexp(lane)
    return abs(exponent) <= 8 and (significand * 256).is_integer()


def is_finite(lane: Lane) -> bool:
    """True for a known number that is finite."""
    return isinstance(lane, float) and math.isfinite(lane)


def lane_of(expr: Expr, args: Sequence[Lane]) -> Lane:
    """The value of ``expr`` on padded lanes."""
    match expr:
        case Arg(index):
            return args[index]
        case Const(value):
            return value
        case Size():
            return DATA
    return applied(expr.fn, [lane_of(arg, args) for arg in expr.args])


def applied(fn: str, args: Sequence[Lane]) -> Lane:
    """A scalar function of lanes: exact on numbers, with the few laws that hold beside data."""
    if fn == "where":
        condition, a, b = args
        if isinstance(condition, float):
            return a if condition else b
        return a if a == b and isinstance(a, float) else UNKNOWN
    numbers = [arg for arg in args if isinstance(arg, float)]
    if len(numbers) == len(args):
        return _exact(fn, numbers)
    if UNKNOWN in args:
        return UNKNOWN
    if not numbers:
        return DATA
    if fn == "mul" and 0.0 in numbers:
        return 0.0
    if fn in ("add", "sub", "sub0") and isinstance(args[0], float) and math.isinf(args[0]):
        return args[0]
    if fn == "add" and math.isinf(numbers[0]):
        return numbers[0]
    if fn == "maximum" and math.inf in numbers:
        return math.inf
    if fn == "minimum" and -math.inf in numbers:
        return -math.inf
    return UNKNOWN if 0.0 in numbers or math.inf in map(abs, numbers) else DATA


def _exact(fn: str, numbers: Sequence[float]) -> Lane:
    function = EXACT.get(fn)
    if function is None:
        return UNKNOWN
    try:
        value = float(function(*numbers))
    except (ValueError, ZeroDivisionError, OverflowError):
        return UNKNOWN
    return UNKNOWN if math.isnan(value) else value


def _zero_kept(args: Sequence[Lane]) -> Lane:
    """A sum of products: zero where an operand is zero and the others are data."""
    return 0.0 if 0.0 in args and UNKNOWN not in args else UNKNOWN


def _one_kept(args: Sequence[Lane]) -> Lane:
    return args[0] if args[0] in (0.0, 1.0) else UNKNOWN


def _constant_kept(args: Sequence[Lane]) -> Lane:
    return args[0] if isinstance(args[0], float) else UNKNOWN


# reductions: the lanes along the axes that remain
FUNCTIONAL_LANES: Mapping[str, Callable[[Sequence[Lane]], Lane]] = {
    "row_sum": _zero_kept, "row_prod": _one_kept, "row_max": _constant_kept,
    "row_min": _constant_kept, "dot": _zero_kept,
}  # fmt: skip

EXACT: Mapping[str, Callable[..., float]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b, "pow": math.pow, "neg": lambda x: -x, "exp": math.exp,
    "sqrt": math.sqrt, "tanh": math.tanh, "erf": math.erf, "abs": abs, "square": lambda x: x * x,
    "relu": lambda x: max(x, 0.0), "silu": lambda x: 0.0 if x == 0 else math.nan,
    "gelu": lambda x: 0.0 if x == 0 else math.nan, "reciprocal": lambda x: 1 / x,
    "maximum": max, "minimum": min, "sub0": lambda x, z: x if math.isinf(x) else x - z,
    "recip0": lambda x: 0.0 if x == 0 else math.nan if math.isinf(x) else 1 / x,
    "lt": lambda a, b: a < b, "le": lambda a, b: a <= b, "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b, "eq": lambda a, b: a == b, "ne": lambda a, b: a != b,
    "floor": math.floor, "round": round, "sin": math.sin, "cos": math.cos, "log1p": math.log1p,
    "expm1": math.expm1, "atan": math.atan,
    "and": lambda a, b: bool(a and b), "or": lambda a, b: bool(a or b), "not": lambda a: not a,
    "floordiv": lambda a, b: a // b, "mod": lambda a, b: a % b, "whole": lambda x: x,
}  # fmt: skip
