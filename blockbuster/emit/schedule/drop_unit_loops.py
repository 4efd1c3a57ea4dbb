"""drop-unit-loops: a loop over a dim that is one block is replaced by its body.

before   for n in range(N):               after   t2 = load(X[m,:])
          t2 = load(X[m,n])                       t1 = row_sum(t2)
          t1 += row_sum(t2)                       t4 = exp(t1)
         t4 = exp(t1)

The fold of a single iteration is its value, for each member of a group, too; inits vanish, and what
scans go on from. Legal if
every such dim has exactly one block. A dim without elements has none: then a fold of values that
lack its axis would count one iteration too many. The same holds for a loop over an empty span.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from blockbuster.emit.tile.changed import changed
from blockbuster.emit.tile.dataflow import (
    folded_here,
    reads,
    rebound,
    renamed,
    same_or,
    views,
    with_parts,
)
from blockbuster.emit.tile.each_nest import KEPT, Body, Same
from blockbuster.emit.tile.program import (
    Fold,
    For,
    Init,
    Let,
    Nest,
    Stmt,
    Tile,
    TileProgram,
    statements,
)
from blockbuster.emit.tile.scans import carries
from blockbuster.errors import EmitError, message
from blockbuster.ir.types import Dim


def drop_unit_loops(program: TileProgram, whole: tuple[Dim, ...]) -> TileProgram:
    """``program`` where the dims ``whole`` are one block each.

    Raises EmitError if that would leave two views of an array that disagree on its blocks, and
    where a loop runs over a span.
    """
    for dim in whole:
        reason = not_alone(program, dim, whole) or in_spans(program, dim)
        if reason:
            raise EmitError(message(reason, hint="make both dims one block, or neither"))
    nests = tuple(dropped_in(nest, whole) for nest in program.nests)
    return changed(program, nests=nests, whole=tuple(dict.fromkeys((*program.whole, *whole))))


def dropped_in(nest: Nest, whole: tuple[Dim, ...]) -> Nest:
    """``nest`` where the dims ``whole`` are one block each."""
    grid = tuple(dim for dim in nest.grid if dim not in whole)
    return with_parts(nest, body=_dropped(Same(nest.body), whole), grid=grid)


def not_alone(program: TileProgram, dim: Dim, whole: tuple[Dim, ...]) -> str:
    """Why ``dim`` cannot be one block unless another dim is, too, or an empty string."""
    single = (*whole, *program.whole)
    for view in views(program):
        for used, axis in zip(view.dims, view.buffer.axes, strict=True):
            pair = (used, axis.dim)
            if axis.per_block and dim in pair and not all(d in single for d in pair):
                return (
                    f"{view.buffer.name} has one entry per block of {axis.dim} and is accessed "
                    f"under {used}: {dim} alone cannot be one block"
                )
    return ""


def in_spans(program: TileProgram, dim: Dim) -> str:
    """Why a loop over ``dim`` may have no iteration although it is one block, or ""."""
    for nest in program.nests:
        for stmt in statements(nest.body):
            if isinstance(stmt, For) and stmt.dim == dim and stmt.span is not None:
                return f"the loop over {dim} runs over a span of blocks, which may be empty"
    return ""


@lru_cache(maxsize=KEPT)
def _dropped(nest: Same[Body], whole: tuple[Dim, ...]) -> Body:
    """The body of a nest without its loops over ``whole`` dims."""
    single = {
        tile
        for stmt in statements(nest.one)
        if isinstance(stmt, For) and stmt.dim in whole
        for tile in folded_here(stmt.body)
    }
    loops = [stmt for stmt in statements(nest.one) if isinstance(stmt, For) and stmt.dim in whole]
    scans = [carry for loop in loops for carry in carries(loop)]
    joined = {carry.joined.target: carry.joined.args[1] for carry in scans}
    gone = _read_by_folds_alone(nest.one, [carry.fold.value for carry in scans])
    alias: dict[Tile, Tile] = {}

    def walk(body: tuple[Stmt, ...]) -> list[Stmt]:
        out: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, For):
                loop, inner = rebound(stmt, alias), walk(stmt.body)
                held = same_or(stmt.body, tuple(inner))
                out += inner if stmt.dim in whole else [with_parts(loop, body=held)]
            elif isinstance(stmt, Fold) and stmt.target in single:
                stmt = renamed(stmt, alias)
                assert isinstance(stmt, Fold)
                alias[stmt.target] = stmt.value
                alias.update({member.target: member.value for member in stmt.members})
            elif isinstance(stmt, Let) and stmt.target in joined:
                alias[stmt.target] = joined[stmt.target]
            elif isinstance(stmt, Let) and stmt.target in gone:
                continue
            elif not (isinstance(stmt, Init) and stmt.target in single):
                out.append(renamed(stmt, alias))
        return out

    return same_or(nest.one, tuple(walk(nest.one)))


def _read_by_folds_alone(body: Body, tiles: Sequence[Tile]) -> set[Tile]:
    """Those of ``tiles`` that one fold reads and nothing else, nor its target behind the loop."""
    found = Counter(reads(body))
    return {tile for tile in tiles if found[tile] == 1}
