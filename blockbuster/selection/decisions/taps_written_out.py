"""Which loops over the taps of windows are written out: those without a dot, if they are few.

A tap of a depthwise convolution is a product for each element, and a loop spends more than that on
addresses and masks. Taps around a dot stay a loop, whose loads run ahead.
"""

from __future__ import annotations

from collections.abc import Iterator

from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site, loops_of
from blockbuster.emit.schedule.unroll import Unroll, known_size
from blockbuster.emit.tile.program import For, Let, Load
from blockbuster.emit.tile.tiling import Tiling
from blockbuster.emit.tile.uses import is_matrix_dot
from blockbuster.ir.views import dims_along
from blockbuster.selection.priors import PRIORS

UNROLL = Unroll()


def taps_written_out(scheduled: Scheduled) -> Scheduled:
    """``scheduled`` with the iterations of such loops one after another, inner loops first."""
    while (site := next(_sites(scheduled), None)) is not None:
        scheduled = UNROLL.apply(scheduled, site)
    return scheduled


def _sites(scheduled: Scheduled) -> Iterator[Site]:
    """The loops that are worth it; what is inside of them is written out already."""
    units = Tiling({}, scheduled.draft.units)
    for site, loop in loops_of(scheduled.draft):
        if UNROLL.why_not(scheduled, site) or not _over_taps(loop):
            continue
        loads = sum(isinstance(stmt, Load) for stmt in loop.body)
        dots = any(isinstance(stmt, Let) and is_matrix_dot(stmt, units) for stmt in loop.body)
        if not dots and loads * known_size(scheduled.draft, loop.dim) <= PRIORS.loads_written_out:
            yield site


def _over_taps(loop: For) -> bool:
    """True if another dim runs along an axis with that of the loop."""
    along = (dims_along(d) for s in loop.body if isinstance(s, Load) for d in s.view.dims)
    return any(loop.dim in dims and len(dims) > 1 for dims in along)
