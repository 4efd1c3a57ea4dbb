"""The arrays of a program in other forms: with other dtypes, or with padded rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

from blockbuster.emit.tile.changed import changed
from blockbuster.emit.tile.dataflow import with_buffers, with_parts
from blockbuster.emit.tile.each_nest import KEPT, Body, Same
from blockbuster.emit.tile.program import ACCESSES, Buffer, TileProgram, statements


def with_dtypes(program: TileProgram, dtypes: Mapping[str, str]) -> TileProgram:
    """``program`` whose arrays have ``dtypes``, by name; tiles are left alone."""
    if not dtypes:
        return program

    def of(buffer: Buffer) -> Buffer:
        dtype = dtypes.get(buffer.name, buffer.dtype)
        return buffer if buffer.dtype == dtype else changed(buffer, dtype=dtype)

    return with_arrays(program, of)


def with_arrays(program: TileProgram, of: Callable[[Buffer], Buffer]) -> TileProgram:
    """``program`` with ``of(buffer)`` for each of its arrays."""
    nests = []
    for nest in program.nests:
        other = ((b, of(b)) for b in accessed_in(Same(nest.body)))
        pairs = tuple((buffer, made) for buffer, made in other if made is not buffer)
        nests.append(with_parts(nest, body=_of(Same(nest.body), pairs)) if pairs else nest)
    return with_parts(
        program,
        inputs=tuple(map(of, program.inputs)),
        outputs=tuple(map(of, program.outputs)),
        workspaces=tuple(map(of, program.workspaces)),
        nests=tuple(nests),
    )


@lru_cache(maxsize=KEPT)
def accessed_in(body: Same[Body]) -> tuple[Buffer, ...]:
    """The arrays that ``body`` loads or stores, each once, in order."""
    stmts = statements(body.one)
    return tuple(dict.fromkeys(s.view.buffer for s in stmts if isinstance(s, ACCESSES)))


@lru_cache(maxsize=KEPT)
def _of(body: Same[Body], pairs: tuple[tuple[Buffer, Buffer], ...]) -> Body:
    """``body`` with the second array of each pair where it accesses the first."""
    return with_buffers(body.one, dict(pairs))
