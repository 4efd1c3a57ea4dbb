"""The operators of a nest, indexed by their tile and by its readers; removal of unread ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from blockbuster.emit.tile.dataflow import operands
from blockbuster.emit.tile.program import For, Let, Stmt, Tile, statements
from blockbuster.ir.expr import Call, Expr


def lets_of(body: tuple[Stmt, ...]) -> dict[Tile, Let]:
    """The operators of ``body``, by the tiles that they make."""
    return {stmt.target: stmt for stmt in statements(body) if isinstance(stmt, Let)}


def readers_of(body: tuple[Stmt, ...]) -> dict[Tile, list[Stmt]]:
    """The statements that read each tile, once per operand position."""
    found: dict[Tile, list[Stmt]] = {}
    for stmt in statements(body):
        for tile in operands(stmt):
            found.setdefault(tile, []).append(stmt)
    return found


def replaced(expr: Expr, made: Mapping[Expr, Expr]) -> Expr:
    """``expr``, which is not deep, with ``made[e]`` for each part e of it that is there."""
    if expr in made:
        return made[expr]
    if not isinstance(expr, Call):
        return expr
    return Call(expr.fn, tuple(replaced(arg, made) for arg in expr.args))


def parts_of(expr: Expr) -> Iterator[Expr]:
    """``expr`` and all its parts."""
    stack = [expr]
    while stack:
        top = stack.pop()
        yield top
        if isinstance(top, Call):
            stack.extend(reversed(top.args))


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
    return _kept(body, gone)


def _kept(body: tuple[Stmt, ...], gone: set[Tile]) -> tuple[Stmt, ...]:
    out = list[Stmt]()
    for stmt in body:
        if isinstance(stmt, For):
            out.append(replace(stmt, body=_kept(stmt.body, gone)))
        elif not (isinstance(stmt, Let) and stmt.target in gone):
            out.append(stmt)
    return tuple(out)
