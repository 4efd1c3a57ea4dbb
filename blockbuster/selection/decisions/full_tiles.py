"""Which loops run whole blocks without masks and guards: long loops of dots.

Guards of lanes past the end pay for this only if arithmetic needs them. On sm_90 they are 14
percent of the instructions of attention whose keys do not fill the last block, with exponentials in
base 2. A matmul needs no guards, only masks of its loads, and waits for its matrix units anyway.
"""

from __future__ import annotations

from blockbuster.emit.closing.guard import guard_nests
from blockbuster.emit.schedule.conditions import conditions, formulas_of
from blockbuster.emit.schedule.part import Part
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site, loop_at
from blockbuster.emit.tile.known_bounds import KnownBounds
from blockbuster.emit.tile.program import Guard
from blockbuster.emit.tile.spanned import parts_of
from blockbuster.emit.tile.tiling import tiling_of
from blockbuster.emit.tile.trips import blocks_in, bound_blocks
from blockbuster.emit.tile.uses import is_matrix_dot
from blockbuster.selection.decisions.wherever import wherever
from blockbuster.selection.priors import PRIORS

PART = Part()


def parted(scheduled: Scheduled) -> Scheduled:
    """``scheduled`` with loops in parts, where enough blocks are rid of the mask."""
    return wherever(PART, scheduled, lambda now, site: not does_not_pay(now, site))


def does_not_pay(scheduled: Scheduled, site: Site) -> str:
    """Why parting the loop at ``site`` would not save time, or ""."""
    loop = loop_at(scheduled.draft, site)
    if loop is None:
        return ""
    if loop.parallel:
        return f"iterations over {loop.dim} run side by side on the grid"
    tiling = tiling_of(scheduled.draft, scheduled.draft.nests[site.nest - 1])
    if not any(is_matrix_dot(stmt, tiling) for stmt in loop.body):
        return f"the loop over {loop.dim} has no dots: it waits for memory, not for its mask"
    masked = conditions(loop, formulas_of(scheduled.draft.nests[site.nest - 1]))
    if not masked and (reason := not_guarded(scheduled, site)):
        return reason
    draft = PART.apply(scheduled, site).draft
    nest, first = draft.nests[site.nest - 1], loop_at(draft, site)
    assert first is not None
    formulas = formulas_of(nest)
    whole = [part for part in parts_of(first, nest) if not conditions(part, formulas)]
    if not whole:
        return f"a mask is left in every part of the loop over {loop.dim}"
    blocks = blocks_in(nest, bound_blocks(draft, scheduled.sizes))
    trips = KnownBounds(nest, scheduled.sizes, blocks).trips(whole[0])
    fewest = PRIORS.whole_blocks_of_masks if masked else PRIORS.whole_blocks_of_guards
    if trips < fewest:
        return f"the mask leaves {trips:.3g} blocks of {loop.dim} whole, fewer than {fewest}"
    return ""


def not_guarded(scheduled: Scheduled, site: Site) -> str:
    """Why lanes past the end cost the loop at ``site`` little, or ""."""
    loop = loop_at(guard_nests(scheduled.draft), site)
    if loop is None or loop.chunk is not None:
        return "a loop in chunks waits for memory"
    if not any(isinstance(stmt, Guard) and stmt.dim == loop.dim for stmt in loop.body):
        return f"only loads look at lanes past the end of {loop.dim}: masks of loads are cheap"
    return ""
