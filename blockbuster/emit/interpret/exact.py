"""A tile program without dtypes, for proofs in exact arithmetic.

Typing puts casts before dots, because the matrix units take operands of a narrow dtype. Casts
round, so programs that compute the same in another order differ by roundings. A proof shows that
programs are equal up to these roundings: the casts are removed from both programs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from blockbuster.emit.tile.dataflow import renamed
from blockbuster.emit.tile.program import (
    Buffer,
    For,
    Let,
    Member,
    Stmt,
    Tile,
    TileProgram,
    View,
    statements,
)
from blockbuster.emit.tile.typed import OPERAND


def exact(program: TileProgram) -> TileProgram:
    """``program`` without dtypes, and without the casts that typing put before its dots."""
    nests = []
    for nest in program.nests:
        lets = (stmt for stmt in statements(nest.body) if isinstance(stmt, Let))
        alias = {let.target: let.args[0] for let in lets if let.origin.rule == OPERAND}
        nests.append(replace(nest, body=_body(nest.body, alias)))
    return replace(
        program,
        inputs=_bare(program.inputs),
        outputs=_bare(program.outputs),
        workspaces=_bare(program.workspaces),
        nests=tuple(nests),
        dtype="",
    )


def _body(body: tuple[Stmt, ...], alias: Mapping[Tile, Tile]) -> tuple[Stmt, ...]:
    out: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, For):
            body = _body(stmt.body, alias)
            out.append(replace(stmt, body=body, span=_bare(stmt.span)))
        elif not (isinstance(stmt, Let) and stmt.target in alias):
            stmt = renamed(stmt, alias)
            parts: dict[str, Any] = {f.name: _bare(getattr(stmt, f.name)) for f in fields(stmt)}
            out.append(replace(stmt, **parts))
    return tuple(out)


def _bare(value: Any) -> Any:
    """``value`` with the dtypes of all tiles and arrays in it taken away."""
    match value:
        case Tile() | Buffer():
            return replace(value, dtype="")
        case View():
            return replace(value, buffer=_bare(value.buffer))
        case Member():
            return replace(value, **{f.name: _bare(getattr(value, f.name)) for f in fields(value)})
        case tuple():
            return tuple(map(_bare, value))
    return value
