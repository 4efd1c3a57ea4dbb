"""The operators of a nest, indexed by their tile and by its readers; removal of unread ones."""

from __future__ import annotations

from blockbuster.emit.tile.dataflow import defined, expanded, readers_of
from blockbuster.emit.tile.program import Let, Stmt, Tile, statements
from blockbuster.ir.expr import DEEPEST, Call, Expr
from blockbuster.ir.ops import Pointwise


def lets_of(body: tuple[Stmt, ...]) -> dict[Tile, Let]:
    """The operators of ``body``, by the tiles that they make."""
    return {stmt.target: stmt for stmt in statements(body) if isinstance(stmt, Let)}


def expression_of(stmt: Stmt) -> Expr | None:
    """The expression of ``stmt``, if it is one of elements and not too deep to be looked into."""
    expr = stmt.op.expr if isinstance(stmt, Let) and isinstance(stmt.op, Pointwise) else None
    return None if isinstance(expr, Call) and expr.depth > DEEPEST else expr


def without_unread(body: tuple[Stmt, ...], before: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """``body`` without those operators of ``before`` that nothing in it needs any more."""
    count = {tile: len(readers) for tile, readers in readers_of(body).items()}
    old, lets = lets_of(before), lets_of(body)
    gone, waiting = set[Tile](), [tile for tile in lets if tile in old and not count.get(tile)]
    while waiting:
        tile = waiting.pop()
        gone.add(tile)
        for arg in lets[tile].args:
            count[arg] -= 1
            if not count[arg] and arg in lets and arg in old:
                waiting.append(arg)
    return expanded(body, lambda stmt: () if defined(stmt) in gone else (stmt,))
