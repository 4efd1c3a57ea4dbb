"""How often a nest's statements run and how large its tiles are, as expressions in its sizes.

``Extents`` and ``KnownBounds`` with SymPy in place of numbers: a size is a symbol with the name of
its size class, a number of blocks is ``CeilDiv(size, lanes)``. A loop over a span whose bounds
follow from indices and sizes is a sum over the blocks around it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, ClassVar, TypeAlias

import sympy

from blockbuster.emit.tile.extents import Extents, Loops
from blockbuster.emit.tile.known_bounds import KnownBounds
from blockbuster.emit.tile.program import END, LAST, Iota, Tile
from blockbuster.emit.tile.spanned import Walked
from blockbuster.errors import message
from blockbuster.ir.expr import Arg, Call, Const, Expr, Size, show_expr
from blockbuster.ir.types import Dim, size_class

Symbolic: TypeAlias = Any
"""A SymPy expression; SymPy has no types."""


class _Quotient(sympy.Function):  # type: ignore[misc]
    """The quotient of two integers, rounded; no floats divide."""

    is_integer = True
    rounded: ClassVar[str]
    exact: ClassVar[staticmethod[[int, int], int]]

    @classmethod
    def eval(cls, value: Symbolic, lanes: Symbolic) -> Symbolic | None:
        if lanes == 1:
            return value
        both = value.is_Integer and lanes.is_Integer
        return sympy.Integer(cls.exact(int(value), int(lanes))) if both else None

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        value, lanes = map(printer.doprint, self.args)
        quotient = rf"\frac{{{value}}}{{{lanes}}}"
        shown = rf"\left\l{self.rounded} {quotient} \right\r{self.rounded}"
        return f"{shown}^{{{exp}}}" if exp else shown

    def _sympystr(self, printer: Any) -> str:
        shown = [printer.doprint(arg) for arg in self.args]
        over, under = (
            text if arg.is_Atom else f"({text})" for text, arg in zip(shown, self.args, strict=True)
        )
        return f"{self.rounded}({over}/{under})"


class CeilDiv(_Quotient):
    """``CeilDiv(a, b)``: the quotient of two integers, rounded up."""

    is_nonnegative = True
    rounded, exact = "ceil", staticmethod(lambda value, lanes: -(-value // lanes))


class FloorDiv(_Quotient):
    """``FloorDiv(a, b)``: the quotient of two integers, rounded down."""

    rounded, exact = "floor", staticmethod(lambda value, lanes: value // lanes)


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


def whole_number(expr: Expr, args: Sequence[Symbolic]) -> Symbolic:
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


@dataclass(frozen=True)
class SymbolicExtents(Extents):
    """Extents whose numbers are expressions: sizes are symbols, and ``sizes`` is not read.

    ``blocks``: the lanes of a block of each dim that is cut.
    """

    @cached_property
    def _bounds(self) -> _SymbolicBounds:
        return _SymbolicBounds(self.nest, self.sizes, self.blocks)

    def size(self, dim: Dim) -> Symbolic:
        return symbol(dim)

    def trips(self, dim: Dim) -> Symbolic:
        return self._bounds.count(dim)

    def elements(self, dims: Collection[Dim], loops: Loops) -> Symbolic:
        loops = self.told_apart(dims, loops)
        around = {loop.dim for loop in loops}
        inner = sympy.Integer(1) * prod(symbol(d) for d in dict.fromkeys(dims) if d not in around)
        for loop in reversed(loops):
            inner = self._summed(loop, inner, loop.dim in dims)
        return inner

    def _summed(self, loop: Walked, inner: Symbolic, weighted: bool) -> Symbolic:
        """The sum of ``inner`` over the blocks of a loop, times their elements if ``weighted``."""
        at, lanes, size = index(loop.dim), self._bounds.lanes(loop.dim), symbol(loop.dim)
        first: Symbolic
        stop: Symbolic
        first, stop = loop.span or (sympy.Integer(0), self.trips(loop.dim))
        first = sympy.Min(first, stop) if loop.span else first
        if inner.has(at):
            real = sympy.Min(lanes, size - lanes * at) if weighted else 1
            shared, each = (inner * real).as_independent(at, as_Add=False)
            return shared * sympy.Sum(each, (at, first, stop - 1))
        if not loop.span:
            return inner * (size if weighted else stop)
        if weighted:
            return inner * (sympy.Min(stop * lanes, size) - sympy.Min(first * lanes, size))
        return inner * (stop - first)


class _SymbolicBounds(KnownBounds):
    """Bounds of loops as expressions in sizes and in the numbers of the blocks around them."""

    def size(self, dim: Dim) -> Symbolic:
        return symbol(dim)

    def lanes(self, dim: Dim) -> Symbolic:
        """The lanes of a block of ``dim``: all of it where no loop cuts it."""
        return sympy.Integer(self.blocks[dim]) if dim in self.blocks else symbol(dim)

    def count(self, dim: Dim) -> Symbolic:
        return CeilDiv(symbol(dim), self.lanes(dim)) if dim in self.blocks else sympy.Integer(1)

    def _clipped(self, tile: Tile | None, usual: Symbolic, count: Symbolic) -> Symbolic:
        if tile is None or tile not in self.known:
            return sympy.sympify(usual)
        return sympy.Min(sympy.Max(self.known[tile], 0), count)

    def _block_of(self, number: Symbolic, dim: Dim) -> Symbolic:
        return FloorDiv(number, self.lanes(dim))

    def _value(self, expr: Expr, args: Sequence[Symbolic]) -> Symbolic:
        return whole_number(expr, args)

    def _edge(self, stmt: Iota, loops: tuple[Dim, ...]) -> Symbolic:
        size, at, lanes = symbol(stmt.dim), index(stmt.dim), self.lanes(stmt.dim)
        if stmt.at == END:
            return size
        if stmt.dim not in loops:
            return size - 1 if stmt.at == LAST else sympy.Integer(0)
        return sympy.Min(lanes * (at + 1), size) - 1 if stmt.at == LAST else lanes * at


def compiled(expressions: Sequence[Symbolic], dims: Sequence[Dim]) -> Callable[..., list[int]]:
    """A function of the sizes of ``dims``, in this order, that gives the whole numbers."""
    exact = {each.__name__: each.exact for each in (CeilDiv, FloorDiv)}
    sizes = [symbol(dim) for dim in dims]
    blocks = {at for each in expressions for at in each.atoms(sympy.Symbol)} - {*sizes}
    names = {at: sympy.Symbol(f"at{n}") for n, at in enumerate(sorted(blocks, key=str))}
    renamed = [each.xreplace(names) for each in expressions]
    made: Callable[..., list[int]] = sympy.lambdify(sizes, renamed, [exact, "math"])
    return made
