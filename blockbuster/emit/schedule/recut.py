"""recut: a nest cuts one of its dims into other blocks than before.

before   forall m in range(M):    (16 lanes)     after   forall m in range(M):    (1 lane)
          for c in range(K_chunk):                        for c in range(K_chunk):
           t2 = load(I1[m,c])     [M]                      t2 = load(I1[m,c])     [M]
           t1 += t2                                        t1 += t2
          store(t1,Y[m])                                  store(t1,Y[m])

The nest that combines the chunks of a loop inherits the blocks of that loop, which suit dots. It
reads little, so many small programs finish it sooner. Costs only the launch of more programs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

from blockbuster.emit.schedule.base import Args, NestMove, not_a_power_of_two
from blockbuster.emit.schedule.block import LEAST, least_lanes, not_agreeing, spanning
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site, nest_at, with_nest
from blockbuster.emit.schedule.words import Form
from blockbuster.emit.tile.dataflow import views
from blockbuster.emit.tile.program import Block, For, Nest, TileProgram, statements
from blockbuster.emit.tile.tiling import is_ragged
from blockbuster.emit.tile.trips import joined_in, pieces_in
from blockbuster.ir.types import Dim, size_class


class Recut(NestMove):
    """Give a dim of a nest other blocks."""

    name: ClassVar[str] = "recut"
    form: ClassVar[Form] = Form("DIM LANES")
    number: ClassVar[str] = "lanes"
    looks_after: ClassVar[bool] = True

    def arguments(self, scheduled: Scheduled, site: Site) -> Iterator[Args]:
        """Other powers of two as lanes of each dim, as far as they can be."""
        nest = nest_at(scheduled.draft, site)
        for block in nest.blocks if nest else ():
            most = max(scheduled.sizes[size_class(block.dim)] - 1, block.lanes).bit_length()
            for lanes in (1 << power for power in range(most + 1)):
                if not self.why_not(scheduled, site, dim=block.dim, lanes=lanes):
                    yield {"dim": block.dim, "lanes": lanes}

    def first(self, scheduled: Scheduled, site: Site) -> Iterator[Args]:
        """Half, twice and the fewest lanes of each dim."""
        nest = nest_at(scheduled.draft, site)
        lanes = {block.dim: block.lanes for block in nest.blocks} if nest else {}
        for args in self.arguments(scheduled, site):
            now = lanes[args["dim"]]
            if args["lanes"] in (now // 2, 2 * now, 1, LEAST):
                yield args

    def not_here(self, scheduled: Scheduled, site: Site, nest: Nest, /, **args: Any) -> str:
        """The nest walks the dim, and nothing depends on which elements are in one block."""
        draft, dim, lanes = scheduled.draft, args["dim"], args["lanes"]
        least = least_lanes(nest, draft.units).get(dim, 1)
        return (
            not_walked(nest, dim, lanes)
            or not_a_power_of_two(lanes, f"the block of {dim}", least)
            or not_free(draft, nest, dim)
        )

    def not_after(self, made: TileProgram, **args: Any) -> str:
        """The nests agree."""
        return not_agreeing(made)

    def rewritten(self, scheduled: Scheduled, site: Site, **args: Any) -> TileProgram:
        """The nest with another block of the dim."""
        draft, dim, lanes = scheduled.draft, args["dim"], args["lanes"]
        nest = draft.nests[site.nest - 1]
        ragged = is_ragged(scheduled.sizes[size_class(dim)], lanes, whole=False)
        made = Block(dim, lanes, ragged=ragged or dim in joined_in(nest))
        blocks = tuple(made if block.dim == dim else block for block in nest.blocks)
        return with_nest(draft, site, replace(nest, blocks=blocks))


def not_walked(nest: Nest, dim: Dim, lanes: int) -> str:
    """Why ``nest`` has no blocks of ``dim`` that could have ``lanes`` instead, or ""."""
    block = next((block for block in nest.blocks if block.dim == dim), None)
    if block is None:
        known = ", ".join(block.dim for block in nest.blocks)
        return f"{dim} is not cut here; cut are: {known or 'none'}"
    if block.whole:
        return f"{dim} is one block: no loop runs over it"
    if any(dim in found[:2] for found in pieces_in(nest)):
        return f"the blocks of {dim} hold whole pieces: cut it so at once"
    if block.lanes == lanes:
        return f"the blocks of {dim} have {lanes} lanes already"
    return ""


def not_free(program: TileProgram, nest: Nest, dim: Dim) -> str:
    """Why it counts which elements of ``dim`` are in one block of ``nest``, or ""."""
    if dim in spanning(nest):
        return f"spans of loops are of the blocks of {dim} as they are"
    for stmt in statements(nest.body):
        if isinstance(stmt, For) and stmt.dim == dim and stmt.chunk is not None:
            return f"the loop over {dim} runs in chunks of whole blocks"
    for view in views(replace(program, nests=(nest,))):
        for used, axis in zip(view.dims, view.buffer.axes, strict=True):
            if axis.per_block and dim in (used, axis.dim):
                return f"{view.buffer.name} has an entry per block of {dim}"
    return ""
