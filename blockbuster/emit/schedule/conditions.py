"""Conditions in the body of a loop: masks, as expressions of index vectors, sizes and data.

A mask is computed by several statements (i >= j, then i - j < 256 of a difference, then both), and
some of them may stand before the loop. ``Formulas`` joins them into one expression; its leaves are
tiles that no pointwise operator makes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from blockbuster.emit.tile.dataflow import defined
from blockbuster.emit.tile.each_nest import KEPT, Body, Same
from blockbuster.emit.tile.program import For, Iota, Let, Nest, Stmt, Tile, statements
from blockbuster.ir.dtypes import TRUTH
from blockbuster.ir.expr import (
    Arg,
    Call,
    Const,
    Expr,
    arguments,
    call,
    calls,
    functions_of,
    is_predicate,
    substitute,
)
from blockbuster.ir.ops import Pointwise
from blockbuster.ir.types import Dim

LONGEST = 200
"""Calls in a formula that is looked into; what is made by a longer one is a leaf."""


@dataclass
class Formulas:
    """The tiles of ``nest`` as formulas of leaves: ``Arg(i)`` is ``leaves[i]``.

    Truth values in memory are the condition that they are not 0.
    """

    nest: Nest
    leaves: list[Tile] = field(default_factory=list)
    made: dict[Tile, Stmt] = field(default_factory=dict)
    _known: dict[Tile, Expr] = field(default_factory=dict)
    _numbers: dict[Tile, Expr] = field(default_factory=dict)
    _inside: dict[tuple[int, int], tuple[Expr, Sequence[Tile], Expr]] = field(default_factory=dict)
    """By the ids of an expression and of its arguments: equal ones would be slow to compare. Both
    are kept in the entry, so that no other object gets their ids.
    """

    def note_all(self) -> None:
        """Note the formulas of all statements."""
        for stmt in statements(self.nest.body):
            target = defined(stmt)
            if target is None:
                continue
            self.made[target] = stmt
            if isinstance(stmt, Let) and isinstance(stmt.op, Pointwise):
                formula = self.inside(stmt.op.expr, stmt.args)
                if calls(formula) <= LONGEST:
                    self._known[target] = _as_numbers(formula)

    def of(self, tile: Tile) -> Expr:
        """The formula of a tile."""
        known = self._known.get(tile)
        if known is not None:
            return known
        if tile not in self._numbers:
            leaf = Arg(len(self.leaves))
            self._numbers[tile] = call("ne", leaf, 0.0) if tile.dtype == TRUTH else leaf
            self.leaves.append(tile)
        return self._numbers[tile]

    def inside(self, expr: Expr, args: Sequence[Tile]) -> Expr:
        """``expr`` of the tiles ``args`` in terms of leaves; each is asked for many times."""
        key = id(expr), id(args)
        if key not in self._inside:
            read = arguments(expr)
            leaves = [self.of(a) if i in read else Arg(0) for i, a in enumerate(args)]
            self._inside[key] = expr, args, substitute(expr, leaves)
        return self._inside[key][2]

    def leaves_of(self, expr: Expr) -> tuple[Tile, ...]:
        """The tiles that a formula reads."""
        return tuple(self.leaves[number] for number in arguments(expr))

    def varies(self, expr: Expr, dim: Dim) -> bool:
        """True if a formula has other values in another block of ``dim``."""
        return any(self.leaf_varies(leaf, dim) for leaf in self.leaves_of(expr))

    def leaf_varies(self, leaf: Tile, dim: Dim) -> bool:
        """The same of a leaf, of whose elements the axes tell; an index has its dim, too."""
        stmt = self.made.get(leaf)
        return dim in leaf.axes or (isinstance(stmt, Iota) and stmt.dim == dim)


def formulas_of(nest: Nest) -> Formulas:
    """The formulas of a nest. Moves ask for them at each of its loops."""
    begun = _begun(Same(nest.body))
    made, known, inside = dict(begun.made), dict(begun._known), dict(begun._inside)
    return Formulas(nest, [*begun.leaves], made, known, dict(begun._numbers), inside)


@lru_cache(maxsize=KEPT)
def _begun(body: Same[Body]) -> Formulas:
    """Those of a body. Each caller copies them: leaves are numbered in the order in which that
    caller meets them.
    """
    begun = Formulas(Nest(body.one))
    begun.note_all()
    return begun


def _as_numbers(formula: Expr) -> Expr:
    """A short formula without what says that a whole number is held as an integer."""
    if not isinstance(formula, Call) or "whole" not in functions_of(formula):
        return formula
    args = tuple(map(_as_numbers, formula.args))
    return args[0] if formula.fn == "whole" else Call(formula.fn, args)


@dataclass(frozen=True)
class Condition:
    """A truth value that a loop computes with; ``dead`` is the one that may empty a point."""

    formula: Expr
    dead: float


def conditions(loop: For, formulas: Formulas) -> tuple[Condition, ...]:
    """The masks of ``loop`` that differ from block to block, each once, in program order."""
    found: dict[Condition, None] = {}
    for stmt in statements(loop.body):
        if isinstance(stmt, Let):
            for condition in _read_by(stmt, formulas):
                if formulas.varies(condition.formula, loop.dim):
                    found.setdefault(condition)
    return tuple(found)


def _read_by(stmt: Let, formulas: Formulas) -> Iterator[Condition]:
    """The truth values that ``stmt`` uses as anything but a part of another truth value."""
    if not isinstance(stmt.op, Pointwise):
        for arg in stmt.args:
            if is_predicate(formula := formulas.of(arg)):
                yield Condition(formula, 0.0)
        return
    stack: list[tuple[Expr, float]] = [(stmt.op.expr, 0.0)]
    if is_predicate(stmt.op.expr) or calls(stmt.op.expr) > LONGEST:
        return
    seen: set[tuple[int, float]] = set()
    while stack:
        expr, dead = stack.pop()
        if (id(expr), dead) in seen:
            continue
        seen.add((id(expr), dead))
        formula = formulas.inside(expr, stmt.args) if isinstance(expr, Arg | Call) else expr
        if is_predicate(formula):
            yield Condition(_as_numbers(formula) if calls(formula) <= LONGEST else formula, dead)
        elif isinstance(expr, Call):
            first = _emptying(expr, formulas, stmt)
            deads = [first if at == 0 else 0.0 for at in range(len(expr.args))]
            stack.extend(reversed(list(zip(expr.args, deads, strict=True))))


def _emptying(expr: Call, formulas: Formulas, stmt: Let) -> float:
    """The truth value of the first operand under which ``expr`` is a number."""
    if expr.fn != "where":
        return 0.0
    kept, other = (formulas.inside(branch, stmt.args) for branch in expr.args[1:])
    return 1.0 if isinstance(kept, Const) and not isinstance(other, Const) else 0.0
