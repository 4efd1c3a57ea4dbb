"""What masks leave of the loops of a kernel, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from blockbuster.emit.schedule.conditions import Formulas, conditions
from blockbuster.emit.schedule.narrow import not_narrowable
from blockbuster.emit.schedule.site import loops_of
from blockbuster.emit.tile.known_bounds import KnownBounds
from blockbuster.emit.tile.program import For, Iota, Nest, TileProgram, statements
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
        known = KnownBounds(nest, sizes, blocks_in(nest, bound))
        for stmt in statements(nest.body):
            if isinstance(stmt, For) and stmt.span is not None:
                yield _narrowed(stmt, known)


def whole_loops(program: TileProgram) -> Iterator[str]:
    """A sentence, with the reason, for each loop that runs over all its blocks under a mask."""
    for site, loop in loops_of(program):
        if loop.span is None and _has_mask(loop, program.nests[site.nest - 1]):
            reason = not_narrowable(program, site)
            yield f"a loop over {loop.dim} runs over all blocks in spite of its mask: {reason}"


def _narrowed(loop: For, known: KnownBounds) -> str:
    """How many blocks of a narrowed loop are left, on average over its rows."""
    of = f"{known.trips(loop):.3g} of {len(known.firsts(loop.dim))} blocks"
    if all(tile in known.known for tile in loop.bounds):
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
