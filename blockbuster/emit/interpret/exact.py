"""A tile program without dtypes, for proofs in exact arithmetic.

Typing puts casts before dots, because the matrix units take operands of a narrow dtype. Casts
round, so programs that compute the same in another order differ by roundings. A proof shows that
programs are equal up to these roundings: the casts are removed from both programs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from blockbuster.emit.tile.dataflow import defined, expanded, renamed
from blockbuster.emit.tile.program import (
    Buffer,
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

        def change(stmt: Stmt, alias: Mapping[Tile, Tile] = alias) -> tuple[Stmt, ...]:
            return () if defined(stmt) in alias else (_parts_bare(renamed(stmt, alias)),)

        nests.append(replace(nest, body=expanded(nest.body, change)))
    return replace(
        program,
        inputs=_bare(program.inputs),
        outputs=_bare(program.outputs),
        workspaces=_bare(program.workspaces),
        nests=tuple(nests),
        dtype="",
    )


def _parts_bare(value: Any) -> Any:
    return replace(value, **{f.name: _bare(getattr(value, f.name)) for f in fields(value)})


def _bare(value: Any) -> Any:
    """``value`` with the dtypes of all tiles and arrays in it taken away."""
    match value:
        case Tile() | Buffer():
            return replace(value, dtype="")
        case View():
            return replace(value, buffer=_bare(value.buffer))
        case Member():
            return _parts_bare(value)
        case tuple():
            return tuple(map(_bare, value))
    return value
