"""begin-loads: what is loaded behind a reduction across lanes is loaded before it.

before   t2 = load(X[m,:])                after   t2 = load(X[m,:])
         t3 = row_sum(t2)                         t4 = load(G[:])
         t4 = load(G[:])                          t3 = row_sum(t2)
         t5 = col_scale(t2,t4)                    t5 = col_scale(t2,t4)

The warps of a program meet where they reduce across lanes, and compilers move no load past such a
place: a load behind it would begin when the first ones have arrived, and take as long again. No
load passes a loop, or a store to its array. What is loaded early takes registers meanwhile: so
nests with matrix dots, iterations of loops, and programs that would hold more than ``MOST`` bytes
stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator

from blockbuster.emit.tile.dataflow import same_or, stored, with_parts
from blockbuster.emit.tile.dtypes import MEMORY
from blockbuster.emit.tile.each_nest import Around, each_body
from blockbuster.emit.tile.program import For, Let, Load, Nest, Stmt
from blockbuster.emit.tile.tiling import Tiling, tiling_in
from blockbuster.emit.tile.uses import matrix_dots
from blockbuster.ir.ops import MONOID_OF, Functional

MOST = 64 << 10
"""Bytes that a program loads outside loops, at most, for its loads to begin early. With 96 kB,
LayerNorm of 256 rows of 16384 took an H200 6.0 microseconds instead of 4.9: its registers left room
for one program on a processor instead of two. The maximum of a scaled row, with 64 kB, took 2.4
instead of 2.5.
"""

REDUCTIONS = tuple(map(Functional, MONOID_OF))


@each_body("blocks")
def begin_loads(nest: Nest, around: Around) -> Nest:
    """A nest with loads ahead of the reductions that they stand behind."""
    tiling = tiling_in(nest, around.units)
    if matrix_dots(nest.body, tiling):
        return nest
    if sum(_bytes(nest.body, tiling)) > MOST:
        return nest
    return with_parts(nest, body=_ahead(nest))


def _bytes(body: tuple[Stmt, ...], tiling: Tiling) -> Iterator[int]:
    """The bytes of each load of a program outside its loops."""
    for stmt in body:
        if isinstance(stmt, Load):
            dtype = MEMORY.get(stmt.view.buffer.dtype)
            yield tiling.elements(stmt.target) * (dtype.bytes if dtype else 0)


def _ahead(nest: Nest) -> tuple[Stmt, ...]:
    """The statements of a nest, in another order."""
    out, written = list[Stmt](), stored(nest.body)
    first: int | None = None  # the place of the first reduction since the last loop
    for stmt in nest.body:
        if isinstance(stmt, Load) and first is not None and stmt.view.buffer not in written:
            out.insert(first, stmt)
            first += 1
            continue
        if isinstance(stmt, For):
            first = None
        elif first is None and isinstance(stmt, Let) and stmt.op in REDUCTIONS:
            first = len(out)
        out.append(stmt)
    return same_or(nest.body, tuple(out))
