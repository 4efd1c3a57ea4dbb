"""merged-loops: consecutive loops over the same list-only dims become one loop.

before   for b in range(B):               after   for b in range(B):
          I1[b] = x[b] @ w                         I1[b] = x[b] @ w
         for b in range(B):                        y[b] = np.exp(I1[b])
          y[b] = np.exp(I1[b])

Used only for references, which show a batched program as it is for one item of the batch. Legal if
each iteration reads, of arrays that the other loops write, only what the same iteration wrote.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from typing import TypeAlias

from blockbuster.emit.tile.program import (
    Buffer,
    For,
    Load,
    Nest,
    Stmt,
    Store,
    TileProgram,
    statements,
)
from blockbuster.ir.types import Dim

Places: TypeAlias = tuple[tuple[int, Dim], ...]
"""The axes of an array along which loops run, and over which dims."""


def merged_loops(program: TileProgram) -> TileProgram:
    """``program`` with neighbouring nests in the same loops merged."""
    nests: list[Nest] = []
    for nest in program.nests:
        both = _merged(nests[-1], nest) if nests else None
        if both is None:
            nests.append(nest)
        else:
            nests[-1] = both
    return replace(program, nests=tuple(nests))


def accesses(body: tuple[Stmt, ...]) -> Iterator[Load | Store]:
    """Every load and store in ``body``."""
    return (stmt for stmt in statements(body) if isinstance(stmt, Load | Store))


def looped_axes(stmt: Load | Store, loops: tuple[Dim, ...]) -> Places:
    """The positions in an access that depend on the iterations of ``loops``."""
    return tuple((at, dim) for at, dim in enumerate(stmt.view.dims) if dim in loops)


def _merged(first: Nest, second: Nest) -> Nest | None:
    """Both nests in one set of loops; None if they have no loops in common, or may not."""
    loops, inner = _taken_apart(first.body)
    others, following = _taken_apart(second.body)
    if not loops or loops != others or first.grid or second.grid:
        return None
    body = (*inner, *following)
    places: dict[Buffer, Places] = {}
    made = {stmt.view.buffer for stmt in accesses(body) if isinstance(stmt, Store)}
    for stmt in accesses(body):
        buffer, found = stmt.view.buffer, looped_axes(stmt, loops)
        if buffer not in made:
            continue
        if places.setdefault(buffer, found) != found or {dim for _, dim in found} != {*loops}:
            return None
    whole = reduce(lambda made, dim: (For(dim, True, made),), reversed(loops), body)
    return replace(first, body=whole)


def _taken_apart(body: tuple[Stmt, ...]) -> tuple[tuple[Dim, ...], tuple[Stmt, ...]]:
    """The parallel loops around all of ``body``, outermost first, and what is in them."""
    loops: list[Dim] = []
    while len(body) == 1 and isinstance(loop := body[0], For) and loop.parallel:
        if loop.chunk is not None or loop.span is not None or loop.within:
            break
        loops.append(loop.dim)
        body = loop.body
    return tuple(loops), body
