"""begin-loads: what is loaded behind a reduction across lanes is loaded before it.

before   t2 = load(X[m,:])                after   t2 = load(X[m,:])
         t3 = row_sum(t2)                         t4 = load(G[:])
         t4 = load(G[:])                          t3 = row_sum(t2)
         t5 = col_scale(t2,t4)                    t5 = col_scale(t2,t4)

The warps of a program meet where they reduce across lanes, and compilers move no load past such a
place: a load behind it would begin when the first ones have arrived, and take as long again. No
load passes a loop, or a store to its array. Nests with matrix dots stay as they are: what they load
behind their loops would take registers meanwhile.
"""

from __future__ import annotations

from dataclasses import replace

from blockbuster.emit.tile.dataflow import same_or, stored, with_parts
from blockbuster.emit.tile.program import (
    Buffer,
    For,
    Let,
    Load,
    Nest,
    Stmt,
    TileProgram,
    statements,
)
from blockbuster.emit.tile.tiling import tiling_of
from blockbuster.emit.tile.uses import is_matrix_dot
from blockbuster.ir.ops import Functional

REDUCTIONS = (Functional("row_sum"), Functional("row_max"), Functional("row_min"))


def begin_loads(program: TileProgram) -> TileProgram:
    """``program`` with loads ahead of the reductions that they stand behind."""
    return replace(program, nests=tuple(_begun(nest, program) for nest in program.nests))


def _begun(nest: Nest, program: TileProgram) -> Nest:
    tiling = tiling_of(program, nest)
    if any(is_matrix_dot(stmt, tiling) for stmt in statements(nest.body)):
        return nest
    return with_parts(nest, body=_ahead(nest.body, stored(nest.body)))


def _ahead(body: tuple[Stmt, ...], written: dict[Buffer, None]) -> tuple[Stmt, ...]:
    """The statements of one level, in another order; those of its loops likewise."""
    out: list[Stmt] = []
    first: int | None = None  # the place of the first reduction since the last loop
    for stmt in body:
        if isinstance(stmt, For):
            out.append(with_parts(stmt, body=_ahead(stmt.body, written)))
            first = None
        elif isinstance(stmt, Load) and first is not None and stmt.view.buffer not in written:
            out.insert(first, stmt)
            first += 1
        else:
            if first is None and isinstance(stmt, Let) and stmt.op in REDUCTIONS:
                first = len(out)
            out.append(stmt)
    return same_or(body, tuple(out))
