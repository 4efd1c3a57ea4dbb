"""Loops that go past the blocks that a constant mask empties.

The nest that looks for these blocks runs once. A captured mask counts as constant if it empties
many blocks; another one, which may be full, is not looked through in each call. A loop that keeps a
device busy only in chunks stays in chunks: its blocks run side by side.
"""

from __future__ import annotations

from collections.abc import Mapping

from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site, loop_at
from blockbuster.emit.schedule.skip import Skip
from blockbuster.emit.tile.constants import kept_nests
from blockbuster.emit.tile.program import For, statements
from blockbuster.frontend import ArrayProgram
from blockbuster.frontend.emptied import emptied
from blockbuster.ir.dtypes import TRUTH
from blockbuster.ir.types import Dim
from blockbuster.selection.decisions.chunk_sizes import in_chunks
from blockbuster.selection.decisions.wherever import wherever
from blockbuster.selection.priors import PRIORS

SKIP = Skip()


def constant_masks(program: ArrayProgram) -> tuple[str, ...]:
    """The masks that a function holds which count as constant: they empty many blocks."""
    return emptied(program, PRIORS.emptied_blocks)


def past_empty_blocks(scheduled: Scheduled, chunks: Mapping[Dim, int] | None) -> Scheduled:
    """``scheduled`` with loops along chains of the blocks that constant masks do not empty.

    ``chunks``: what is asked for instead of the default.
    """
    draft = scheduled.draft
    if not any(b.dtype == TRUTH and b.name in draft.constants for b in draft.inputs):
        return scheduled
    return wherever(SKIP, scheduled, lambda now, site: _is_worth(now, site, chunks))


def _is_worth(scheduled: Scheduled, site: Site, chunks: Mapping[Dim, int] | None) -> bool:
    """True for a loop in no chunks if the nest that looks for its blocks is kept."""
    loop = loop_at(scheduled.draft, site)
    assert loop is not None
    if site.nest - 1 not in kept_nests(SKIP.rewritten(scheduled, site)):
        return False
    chunked = in_chunks(scheduled, asked=chunks).draft
    loops = (s for n in chunked.nests for s in statements(n.body) if isinstance(s, For))
    return not any(s.dim == loop.dim and s.chunk is not None for s in loops)
