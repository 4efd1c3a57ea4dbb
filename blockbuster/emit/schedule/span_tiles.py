"""The statements that compute the span of a loop from the bounds of positions.

An index vector of another dim is replaced by its first or last index in the current block; data are
replaced by the extreme of their rows, without NaN. The block that holds the resulting position is
the bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from blockbuster.emit.schedule.bounds import Bound, Edge, Outer, Range, Scan
from blockbuster.emit.schedule.conditions import Formulas
from blockbuster.emit.schedule.scan_nest import ScanWriter
from blockbuster.emit.schedule.whole_numbers import (
    Leaf,
    extreme,
    extreme_in_block,
    is_whole,
    of_indices,
    plus,
)
from blockbuster.emit.tile.program import (
    END,
    FIRST,
    LAST,
    BlockOf,
    Iota,
    Let,
    Load,
    Span,
    Stmt,
    Tile,
)
from blockbuster.ir.expr import Arg, Const, Expr, Size, call
from blockbuster.ir.ops import Pointwise
from blockbuster.ir.origin import Origin
from blockbuster.ir.types import Dim


@dataclass(frozen=True)
class Around:
    """The tiles that exist before a loop and do not change in it.

    ``loops``: the dims that loops around it walk, ``inside``: those that loops in it walk.
    """

    tiles: frozenset[Tile]
    loops: tuple[Dim, ...]
    inside: tuple[Dim, ...]


@dataclass
class SpanWriter:
    """Writes the statements of one span; ``made`` has them in order."""

    formulas: Formulas
    dim: Dim
    around: Around
    names: Iterator[str]
    scans: ScanWriter | None = None
    origin: Origin = field(default=Origin())
    made: list[Stmt] = field(default_factory=list)

    def span(self, found: Range) -> Span:
        """The tiles of the first block and of the one behind the last, where there are bounds."""
        low, high = (None if b is None else self._number(b) for b in (found.low, found.high))
        return low, high

    def short(self) -> Tile:
        """The number of the first block that is not full: as many blocks are."""
        behind = self._add(Iota(self._tile(), self.dim, self.origin, END))
        return self._block_of(behind)

    def known(self, bound: Bound | None) -> Bound | None:
        """``bound`` without what is not known before the loop; None if nothing is left."""
        match bound:
            case None:
                return None
            case Edge():
                return bound if self._is_known(bound.formula) else None
            case Scan():
                return bound if self.scans is not None and self.scans.can(bound) else None
        parts = [part for part in map(self.known, bound.parts) if part is not None]
        if not parts or (bound.most and len(parts) < len(bound.parts)):
            return None
        return parts[0] if len(parts) == 1 else Outer(tuple(parts), bound.most)

    def _is_known(self, formula: Expr) -> bool:
        """A formula of indices always is; of data if they are made before, row by row."""
        if of_indices(formula, self.formulas):
            return True
        leaves = self.formulas.leaves_of(formula)
        return all(t in self.around.tiles and t.dtype != "bool" for t in leaves) and _in_order(
            leaves
        )

    def within(self, number: Tile, span: Span) -> Tile:
        """``number`` of a block, or the end of ``span`` beyond which it lies."""
        expr: Expr = Arg(0)
        args = [number]
        for fn, end in zip(("maximum", "minimum"), span, strict=True):
            if end is not None:
                expr = call(fn, expr, Arg(len(args)))
                args.append(end)
        return self._let(expr, tuple(args)) if len(args) > 1 else number

    # bounds --------------------------------------------------------------------------

    def _number(self, bound: Bound) -> Tile:
        """The number of the first block that a bound lets through, or of the one behind the last.

        Behind what lies below a number x, which need not be whole, that is -floor(-x / lanes).
        """
        if self._is_position(bound):
            args: list[Tile] = []
            block = self._block_of(self._made(self._position(bound, args), args))
            return block if _least(bound) else self._let(call("add", Arg(0), 1), (block,))
        if not isinstance(bound, Outer):
            assert isinstance(bound, Edge)
            negative = self._let(call("neg", Arg(0)), (self._rows(bound),))
            return self._let(call("sub", 0, Arg(0)), (self._block_of(negative),))
        numbers = tuple(map(self._number, bound.parts))
        return self._let(call(_joins(bound), Arg(0), Arg(1)), numbers)

    def _is_position(self, bound: Bound) -> bool:
        """False for what lies below a number that need not be whole."""
        if isinstance(bound, Outer):
            return all(map(self._is_position, bound.parts))
        if isinstance(bound, Scan):
            return True
        return not bound.strict or bound.least or of_indices(bound.formula, self.formulas)

    def _position(self, bound: Bound, args: list[Tile]) -> Expr:
        """The farthest position that a bound lets through, of the tiles that join ``args``."""
        if isinstance(bound, Outer):
            return call(_joins(bound), *(self._position(part, args) for part in bound.parts))
        if isinstance(bound, Scan) or not of_indices(bound.formula, self.formulas):
            args.append(self._found(bound) if isinstance(bound, Scan) else self._rows(bound))
            return Arg(len(args) - 1)
        end = self._end(args)
        formula = extreme(bound.formula, self.formulas, end, most=not bound.least)
        if bound.strict and is_whole(bound.formula, self.formulas):
            return plus(formula, 1 if bound.least else -1)
        return formula

    def _made(self, formula: Expr, args: list[Tile]) -> Tile:
        return args[0] if formula == Arg(0) else self._let(formula, tuple(args))

    # statements ----------------------------------------------------------------------

    def _end(self, args: list[Tile]) -> Leaf:
        """Notes the first or last index of a vector of them among ``args``."""

        def leaf(tile: Tile, most: bool) -> Expr:
            index = self.formulas.made[tile]
            assert isinstance(index, Iota)
            if index.dim in self.around.inside:
                return plus(Size(index.dim), -1) if most else Const(0.0)
            made = self._add(Iota(self._tile(), index.dim, self.origin, LAST if most else FIRST))
            args.append(made)
            return Arg(len(args) - 1)

        return leaf

    def _found(self, scan: Scan) -> Tile:
        """What a nest before has found."""
        assert self.scans is not None
        return self._add(Load(self._tile(), self.scans.view(scan), self.origin))

    def _rows(self, bound: Edge) -> Tile:
        """The extreme over the rows of what a position is compared with."""
        unknown = math.inf if bound.least != bound.open else -math.inf  # lets none through, or all
        reduction = "row_min" if bound.least else "row_max"
        lets = extreme_in_block(
            self.formulas, bound.formula, reduction, unknown, self.names, self.origin
        )
        self.made += lets
        return lets[-1].target

    def _block_of(self, position: Tile) -> Tile:
        return self._add(BlockOf(self._tile(), self.dim, position, self.origin))

    def _let(self, expr: Expr, args: tuple[Tile, ...], axes: tuple[Dim, ...] = ()) -> Tile:
        return self._add(Let(self._tile(axes), Pointwise(expr, axes), args, self.origin))

    def _tile(self, axes: tuple[Dim, ...] = ()) -> Tile:
        return Tile(next(self.names), axes)

    def _add(self, stmt: Load | Iota | BlockOf | Let) -> Tile:
        self.made.append(stmt)
        return stmt.target


def _in_order(leaves: Sequence[Tile]) -> bool:
    """True if the axes of all stand in the order of those of one."""
    longest = max((leaf.axes for leaf in leaves), key=len, default=())
    return all(leaf.axes == tuple(d for d in longest if d in leaf.axes) for leaf in leaves)


def _least(bound: Bound) -> bool:
    """True for a bound from below."""
    while isinstance(bound, Outer):
        bound = bound.parts[0]
    return bound.least


def _joins(bound: Outer) -> str:
    """How two bounds of one side become one."""
    return "minimum" if bound.most == _least(bound) else "maximum"
