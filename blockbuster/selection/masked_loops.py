"""What masks leave of the loops of a kernel, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from blockbuster.emit.schedule.conditions import Formulas, conditions
from blockbuster.emit.schedule.narrow import not_narrowable
from blockbuster.emit.schedule.site import loops_of
from blockbuster.emit.tile.extents import Extents, Loops
from blockbuster.emit.tile.known_bounds import KnownBounds
from blockbuster.emit.tile.program import For, Iota, Nest, Stmt, TileProgram
from blockbuster.emit.tile.trips import blocks_in, bound_blocks
from blockbuster.ir.lengths import completed
from blockbuster.ir.types import Dim


def narrowed_loops(
    program: TileProgram, sizes: Mapping[Dim, int], blocks: Mapping[Dim, int]
) -> Iterator[str]:
    """A sentence for each loop that a mask narrows, at these sizes and blocks, by size class."""
    sizes = completed(dict(sizes), program.rules)
    bound = bound_blocks(program, sizes, blocks)
    for nest in program.nests:
        extents = Extents(nest, sizes, blocks_in(nest, bound))
        for loop, around in _loops(nest.body, extents.grid, extents):
            if loop.span is not None:
                yield _narrowed(loop, around, extents)


def whole_loops(program: TileProgram) -> Iterator[str]:
    """A sentence, with the reason, for each loop that runs over all its blocks under a mask."""
    for site, loop in loops_of(program):
        if loop.span is None and _has_mask(loop, program.nests[site.nest - 1]):
            reason = not_narrowable(program, site)
            yield f"a loop over {loop.dim} runs over all blocks in spite of its mask: {reason}"


def _loops(body: tuple[Stmt, ...], around: Loops, extents: Extents) -> Iterator[tuple[For, Loops]]:
    for stmt in body:
        if isinstance(stmt, For):
            yield stmt, around
            yield from _loops(stmt.body, extents.inside(stmt, around), extents)


def _narrowed(loop: For, around: Loops, extents: Extents) -> str:
    """How many blocks of a narrowed loop are left, on average over its rows."""
    known = KnownBounds(extents.nest, extents.sizes, extents.blocks).known
    times = extents.tiles(around)
    left = extents.tiles(extents.inside(loop, around)) / times if times else 0.0
    of = f"{left:.3g} of {extents.trips(loop.dim)} blocks"
    if all(tile in known for tile in loop.bounds):
        return f"a loop over {loop.dim} runs over {of}: its mask empties the others"
    return f"a loop over {loop.dim} runs over at most {of}: data say which its mask leaves"


def _has_mask(loop: For, nest: Nest) -> bool:
    """True for a serial loop that compares with its own positions."""
    formulas = Formulas(nest)
    leaves = (
        formulas.made.get(leaf)
        for one in conditions(loop, formulas)
        for leaf in formulas.leaves_of(one.formula)
    )
    own = (stmt for stmt in leaves if isinstance(stmt, Iota) and stmt.dim == loop.dim)
    return not loop.parallel and any(True for _ in own)
