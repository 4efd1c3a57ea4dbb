"""narrow-workspaces: a workspace that only dots read has the dtype in which dots take it.

before   store(t1,I1[m,n])       float32         after   store(t1,I1[m,n])       float16

The numbers are the same: each is rounded when it is stored instead of when it is read. Saves half
the bytes written and read, and lets loads go straight to the matrix units. Runs after the guards: a
guarded operand stays wide. Truth values keep their dtype of one byte.
"""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache

from blockbuster.emit.tile.dataflow import operands
from blockbuster.emit.tile.each_nest import KEPT, Body, Same
from blockbuster.emit.tile.other_arrays import with_dtypes
from blockbuster.emit.tile.program import Buffer, Let, Stmt, TileProgram, statements
from blockbuster.emit.tile.result_dtypes import WIDTHS
from blockbuster.emit.tile.rings import arrivals
from blockbuster.emit.tile.typed import retyped
from blockbuster.ir.ops import Cast


def narrow_workspaces(program: TileProgram) -> TileProgram:
    """``program`` with workspaces in the dtype of the dots that read them, if it has dtypes."""
    if not program.dtype:
        return program
    reasons = not_narrow(program)
    narrow = {b.name: program.dtype for b in program.workspaces if not reasons[b.name]}
    return retyped(with_dtypes(program, narrow)) if narrow else program


def not_narrow(program: TileProgram) -> dict[str, str]:
    """Why each workspace has to stay in its dtype, by name, or ""."""
    readers: dict[str, list[Stmt]] = defaultdict(list)
    for nest in program.nests:
        for buffer, stmt in _readers(Same(nest.body)):
            readers[buffer.name].append(stmt)
    return {b.name: _reason(b, readers[b.name], program.dtype) for b in program.workspaces}


def _reason(buffer: Buffer, readers: list[Stmt], dtype: str) -> str:
    if WIDTHS[buffer.dtype] <= WIDTHS[dtype]:
        return f"{buffer.name} is {buffer.dtype}, not wider than {dtype}"
    if not readers:
        return f"nothing reads {buffer.name}"
    if any(not isinstance(stmt, Let) or stmt.op != Cast(dtype) for stmt in readers):
        return f"{buffer.name} is read as {buffer.dtype}"
    return ""


@lru_cache(maxsize=KEPT)
def _readers(body: Same[Body]) -> tuple[tuple[Buffer, Stmt], ...]:
    """Each statement that reads a loaded tile, with the tile's array."""
    held = {tile: view.buffer for tile, view in arrivals(body.one)}
    every = statements(body.one)
    return tuple((held[tile], s) for s in every for tile in operands(s) if tile in held)
