"""How often a nest's statements run and how large its tiles are, as expressions in its sizes.

The counterpart of ``Extents`` and ``KnownBounds`` with SymPy: a size is a symbol with the name of
its size class, a number of blocks is ``CeilDiv(size, lanes)``. A loop over a span whose bounds
follow from indices and sizes is a sum over the blocks around it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any, TypeAlias

import sympy

from blockbuster.emit.tile.dataflow import bounding
from blockbuster.emit.tile.known_bounds import going_on
from blockbuster.emit.tile.program import (
    END,
    LAST,
    BlockOf,
    For,
    Iota,
    Let,
    Nest,
    Span,
    Stmt,
    Tile,
)
from blockbuster.errors import message
from blockbuster.ir.expr import Arg, Call, Const, Expr, Size, show_expr
from blockbuster.ir.ops import Pointwise
from blockbuster.ir.types import Dim, size_class

Symbolic: TypeAlias = Any
"""A SymPy expression; SymPy has no types."""


class CeilDiv(sympy.Function):  # type: ignore[misc]
    """``CeilDiv(a, b)``: the quotient of two integers, rounded up; no floats divide."""

    nargs, is_integer, is_nonnegative = 2, True, True

    @classmethod
    def eval(cls, size: Symbolic, lanes: Symbolic) -> Symbolic | None:
        if lanes == 1:
            return size
        both = size.is_Integer and lanes.is_Integer
        return sympy.Integer(-(-int(size) // int(lanes))) if both else None

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        size, lanes = map(printer.doprint, self.args)
        shown = rf"\left\lceil \frac{{{size}}}{{{lanes}}} \right\rceil"
        return f"{shown}^{{{exp}}}" if exp else shown

    def _sympystr(self, printer: Any) -> str:
        return _quotient("ceil", self.args, printer)


class FloorDiv(sympy.Function):  # type: ignore[misc]
    """``FloorDiv(a, b)``: the quotient of two integers, rounded down."""

    nargs, is_integer = 2, True

    @classmethod
    def eval(cls, value: Symbolic, lanes: Symbolic) -> Symbolic | None:
        if lanes == 1:
            return value
        both = value.is_Integer and lanes.is_Integer
        return sympy.Integer(int(value) // int(lanes)) if both else None

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        value, lanes = map(printer.doprint, self.args)
        shown = rf"\left\lfloor \frac{{{value}}}{{{lanes}}} \right\rfloor"
        return f"{shown}^{{{exp}}}" if exp else shown

    def _sympystr(self, printer: Any) -> str:
        return _quotient("floor", self.args, printer)


def _quotient(rounded: str, args: Sequence[Symbolic], printer: Any) -> str:
    shown = [printer.doprint(arg) for arg in args]
    over, under = (s if arg.is_Atom else f"({s})" for s, arg in zip(shown, args, strict=True))
    return f"{rounded}({over}/{under})"


def symbol(dim: Dim) -> Symbolic:
    """The symbol of the size of ``dim``, which all dims of its size class share."""
    return sympy.Symbol(size_class(dim), integer=True, positive=True)


def index(dim: Dim) -> Symbolic:
    """The symbol of the number of a block of ``dim``."""
    return sympy.Symbol(f"{dim}_block", integer=True, nonnegative=True)


WHOLE = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "neg": lambda a: -a,
    "maximum": sympy.Max,
    "minimum": sympy.Min,
    "whole": lambda a: a,
    "floordiv": FloorDiv,
    "mod": lambda a, b: a - b * FloorDiv(a, b),
}
"""The scalar functions that give whole numbers for whole numbers, with their meaning."""


class NoExpression(ValueError):
    """What a kernel does has no expression in its sizes, and why."""


def whole_number(expr: Expr, args: tuple[Symbolic, ...]) -> Symbolic:
    """The value of a bound's expression.

    Raises NoExpression for a number that is not whole, and a function that gives others.
    """
    match expr:
        case Arg(at):
            return args[at]
        case Size(dim):
            return symbol(dim)
        case Const(value) if value.is_integer():
            return sympy.Integer(int(value))
        case Call(fn, given) if fn in WHOLE:
            return WHOLE[fn](*(whole_number(arg, args) for arg in given))
    shown = show_expr(expr, [f"x{at}" for at in range(len(args))])
    what = f"a bound of a loop is computed with {shown}, which need not be a whole number"
    raise NoExpression(message(what, hint="ask for its cost at the sizes that matter"))


Loop: TypeAlias = tuple[Dim, tuple[Symbolic, Symbolic] | None]
"""A loop around a statement, and for a span the first block and the one behind the last."""


@dataclass(frozen=True)
class SymbolicExtents:
    """``blocks``: the lanes of a block of each dim that is cut; the sizes are symbols."""

    nest: Nest
    blocks: Mapping[Dim, int]

    @cached_property
    def _bounds(self) -> _Bounds:
        return _Bounds(self)

    @property
    def grid(self) -> tuple[Loop, ...]:
        """The loops around all statements of the nest."""
        return tuple((dim, None) for dim in self.nest.grid)

    def inside(self, loop: For, loops: tuple[Loop, ...]) -> tuple[Loop, ...]:
        """The loops around the body of ``loop``, which stands in ``loops``."""
        span = self._bounds.of(loop) if loop.span is not None else None
        return (*(other for other in loops if other[0] != loop.chunk), (loop.dim, span))

    def lanes(self, dim: Dim) -> Symbolic:
        """The lanes of a block of ``dim``: all of it where no loop cuts it."""
        return self.blocks.get(dim) or symbol(dim)

    def trips(self, dim: Dim) -> Symbolic:
        """How many blocks ``dim`` has."""
        lanes = self.blocks.get(dim)
        return CeilDiv(symbol(dim), sympy.Integer(lanes)) if lanes else sympy.Integer(1)

    def tiles(self, loops: tuple[Loop, ...]) -> Symbolic:
        """How often a statement inside ``loops`` runs."""
        return self.elements((), loops)

    def elements(self, dims: Collection[Dim], loops: tuple[Loop, ...]) -> Symbolic:
        """The elements of all tiles over ``dims`` inside ``loops``."""
        around = {dim for dim, _ in loops}
        inner = sympy.Integer(1) * prod(symbol(d) for d in dict.fromkeys(dims) if d not in around)
        for dim, span in reversed(loops):
            inner = self._summed(dim, span, inner, dim in dims)
        return inner

    def _summed(
        self, dim: Dim, span: tuple[Symbolic, Symbolic] | None, inner: Symbolic, weighted: bool
    ) -> Symbolic:
        """The sum of ``inner`` over blocks of ``dim``, times their elements if ``weighted``."""
        at, lanes, size = index(dim), self.lanes(dim), symbol(dim)
        first, stop = span if span else (sympy.Integer(0), self.trips(dim))
        first = sympy.Min(first, stop) if span else first
        if inner.has(at):
            real = sympy.Min(lanes, size - lanes * at) if weighted else 1
            shared, each = (inner * real).as_independent(at, as_Add=False)
            return shared * sympy.Sum(each, (at, first, stop - 1))
        if not span:
            return inner * (size if weighted else stop)
        if weighted:
            return inner * (sympy.Min(stop * lanes, size) - sympy.Min(first * lanes, size))
        return inner * (stop - first)


@dataclass
class _Bounds:
    """The bounds of the loops of a nest, where they follow from indices and sizes."""

    extents: SymbolicExtents
    known: dict[Tile, Symbolic] = field(default_factory=dict)

    def __post_init__(self) -> None:
        nest = self.extents.nest
        self._going_on: dict[tuple[Dim, Span | None], None] = dict.fromkeys(going_on(nest))
        if wanted := bounding(nest.body):
            self._walk(nest.body, nest.grid, wanted)

    def of(self, loop: For) -> tuple[Symbolic, Symbolic]:
        """The number of the first block that ``loop`` runs over, and that behind the last."""
        count, (begin, end) = self.extents.trips(loop.dim), loop.span or (None, None)
        unknown = count if (loop.dim, loop.span) in self._going_on else sympy.Integer(0)
        return self._clipped(begin, unknown, count), self._clipped(end, count, count)

    def _clipped(self, tile: Tile | None, usual: Symbolic, count: Symbolic) -> Symbolic:
        if tile is None or tile not in self.known:
            return usual
        return sympy.Min(sympy.Max(self.known[tile], 0), count)

    def _walk(self, body: tuple[Stmt, ...], loops: tuple[Dim, ...], wanted: Any) -> None:
        for stmt in body:
            match stmt:
                case For(dim):
                    self._walk(stmt.body, (*loops, dim), wanted)
                case Iota(target) if target in wanted and stmt.at:
                    self.known[target] = self._edge(stmt, loops)
                case BlockOf(target, dim, value) if value in self.known:
                    lanes = sympy.sympify(self.extents.lanes(dim))
                    self.known[target] = FloorDiv(self.known[value], lanes)
                case Let(target, Pointwise(expr), args) if target in wanted:
                    if all(arg in self.known for arg in args):
                        values = tuple(self.known[arg] for arg in args)
                        self.known[target] = whole_number(expr, values)

    def _edge(self, stmt: Iota, loops: tuple[Dim, ...]) -> Symbolic:
        """The first or last index of each block of a dim; of the whole dim without a loop."""
        size, at = symbol(stmt.dim), index(stmt.dim)
        if stmt.at == END:
            return size
        if stmt.dim not in loops:
            return size - 1 if stmt.at == LAST else sympy.Integer(0)
        lanes = self.extents.lanes(stmt.dim)
        return sympy.Min(lanes * (at + 1), size) - 1 if stmt.at == LAST else lanes * at


def compiled(expressions: Sequence[Symbolic], dims: Sequence[Dim]) -> Callable[..., list[int]]:
    """A function of the sizes of ``dims``, in this order, that gives the whole numbers."""
    exact = {
        "CeilDiv": lambda size, lanes: -(-size // lanes),
        "FloorDiv": lambda value, lanes: value // lanes,
    }
    sizes = [symbol(dim) for dim in dims]
    blocks = {at for each in expressions for at in each.atoms(sympy.Symbol)} - {*sizes}
    names = {at: sympy.Symbol(f"at{n}") for n, at in enumerate(sorted(blocks, key=str))}
    renamed = [each.xreplace(names) for each in expressions]
    made: Callable[..., list[int]] = sympy.lambdify(sizes, renamed, [exact, "math"])
    return made
