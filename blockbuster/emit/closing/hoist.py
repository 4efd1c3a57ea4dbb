"""hoist: each load moves out to the innermost loop whose index it uses, and invariants follow it.

before   for n in range(N):               after   t4 = load(Q[m,:])
          t4 = load(Q[m,:])                       for n in range(N):
          t5 = load(KT[n,:])                       t5 = load(KT[n,:])

A load never crosses a store to the array it reads, and nothing leaves the launch grid. Saves one
load per iteration of the loop. Source: MCFuser, section 3.2.
"""

from __future__ import annotations

from dataclasses import replace

from blockbuster.emit.tile.dataflow import defined, makes, operands, same_or, stored, with_parts
from blockbuster.emit.tile.program import (
    BlockOf,
    For,
    Guard,
    Iota,
    Let,
    Load,
    Nest,
    Stmt,
    Tile,
    TileProgram,
)

MOVING = (Load, Iota, BlockOf, Let, Guard)


def hoist(program: TileProgram) -> TileProgram:
    """``program`` with loads, index vectors and invariant operators moved out of loops."""
    return replace(program, nests=tuple(map(hoisted, program.nests)))


def hoisted(nest: Nest) -> Nest:
    """``nest`` alone."""
    return with_parts(nest, body=_below_grid(nest.body))


def not_invariant(stmt: Stmt, loop: For, staying: frozenset[Tile]) -> str:
    """Why ``stmt`` must stay in ``loop``, whose remaining statements make or fold ``staying``."""
    target = defined(stmt)
    if target is None or not isinstance(stmt, MOVING):
        return "it changes something"
    if loop.dim in target.axes:
        return f"{target.name} is a tile of the loop's own dim {loop.dim}"
    if isinstance(stmt, Iota) and stmt.at and stmt.dim == loop.dim:
        return f"{target.name} is an index of the loop's own dim {loop.dim}"
    if any(tile in staying for tile in operands(stmt)):
        return f"{target.name} depends on a tile made, or folded, in the loop"
    if isinstance(stmt, Guard) and stmt.dim == loop.dim:
        return f"{target.name} is guarded along the loop's own dim {loop.dim}"
    if isinstance(stmt, Load):
        if loop.dim in stmt.view.runs:
            return f"{stmt.view.buffer.name} is read at another place in each iteration"
        if stmt.view.buffer in stored(loop.body):
            return f"{stmt.view.buffer.name} is stored in the loop"
    return ""


def _below_grid(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Hoist inside the parallel loops that hold everything: they are the launch grid."""
    if len(body) == 1 and isinstance(body[0], For) and body[0].parallel:
        return same_or(body, (with_parts(body[0], body=_below_grid(body[0].body)),))
    return _hoisted(body)


def _hoisted(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    out: list[Stmt] = []
    for stmt in body:
        if not isinstance(stmt, For):
            out.append(stmt)
            continue
        loop = with_parts(stmt, body=_hoisted(stmt.body))
        moving, staying = _parted(loop)
        out += [*moving, with_parts(loop, body=staying)]
    return same_or(body, tuple(out))


def _parted(loop: For) -> tuple[tuple[Stmt, ...], tuple[Stmt, ...]]:
    """The statements of ``loop`` that may run before it, and the others."""
    moving: list[Stmt] = []
    made = frozenset(tile for stmt in loop.statements for tile in makes(stmt))
    for stmt in loop.body:
        if not not_invariant(stmt, loop, made):
            moving.append(stmt)
            made -= {defined(stmt)}
    if not moving:
        return (), loop.body
    return tuple(moving), tuple(stmt for stmt in loop.body if stmt not in moving)
