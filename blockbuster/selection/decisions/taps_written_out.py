"""Which loops over the taps of windows are written out: those without a dot, if they are few.

A tap of a depthwise convolution is a product for each element, and a loop spends more than that on
addresses and masks. Taps around a dot stay a loop, whose loads run ahead.
"""

from __future__ import annotations

from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site, loop_at
from blockbuster.emit.schedule.unroll import Unroll, known_size
from blockbuster.emit.tile.program import For, Let, Load
from blockbuster.emit.tile.tiling import Tiling
from blockbuster.emit.tile.uses import is_matrix_dot
from blockbuster.ir.views import dims_along
from blockbuster.selection.decisions.wherever import wherever
from blockbuster.selection.priors import PRIORS

UNROLL = Unroll()


def taps_written_out(scheduled: Scheduled) -> Scheduled:
    """``scheduled`` with the iterations of such loops one after another, inner loops first."""
    return wherever(UNROLL, scheduled, _pays)


def _pays(scheduled: Scheduled, site: Site) -> bool:
    """Whether a loop is worth it; what is inside of it is written out already."""
    units, loop = Tiling({}, scheduled.draft.units), loop_at(scheduled.draft, site)
    assert loop is not None
    loads = sum(isinstance(stmt, Load) for stmt in loop.body)
    dots = any(isinstance(stmt, Let) and is_matrix_dot(stmt, units) for stmt in loop.body)
    few = loads * known_size(scheduled.draft, loop.dim) <= PRIORS.loads_written_out
    return few and not dots and _over_taps(loop)


def _over_taps(loop: For) -> bool:
    """True if another dim runs along an axis with that of the loop."""
    along = (dims_along(d) for s in loop.body if isinstance(s, Load) for d in s.view.dims)
    return any(loop.dim in dims and len(dims) > 1 for dims in along)
