"""Which folds are deferred: those whose accumulators of all lanes cost less than they save."""

from __future__ import annotations

from collections.abc import Mapping

from blockbuster.emit.schedule.defer_lane_sums import DeferLaneSums, place_of, reduction_of
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site, statement_at
from blockbuster.emit.tile.dataflow import folded
from blockbuster.emit.tile.program import Fold, For, statements
from blockbuster.emit.tile.tiling import Tiling, tiling_of
from blockbuster.emit.tile.uses import matrix_dots
from blockbuster.ir.types import Dim, size_class
from blockbuster.selection.decisions.wherever import wherever
from blockbuster.selection.priors import PRIORS

DEFER = DeferLaneSums()


def deferred(scheduled: Scheduled) -> Scheduled:
    """``scheduled`` with every fold deferred that pays, inner loops first."""
    return wherever(DEFER, scheduled, _pays)


def _pays(scheduled: Scheduled, site: Site) -> bool:
    fold, nest = statement_at(scheduled.draft, site), scheduled.draft.nests[site.nest - 1]
    assert isinstance(fold, Fold)
    place = place_of(fold, nest.body)
    assert place is not None
    return not does_not_pay(fold, place[0], tiling_of(scheduled.draft, nest), scheduled.sizes)


def does_not_pay(fold: Fold, loop: For, tiling: Tiling, sizes: Mapping[Dim, int]) -> str:
    """Why an accumulator of all lanes costs more than it saves, or "".

    ``sizes`` are by size class.
    """
    if sizes[size_class(loop.dim)] <= tiling.block(loop.dim):
        return f"the loop over {loop.dim} has one iteration"
    let = reduction_of(fold, loop)
    assert let is not None
    wide, narrow = tiling.elements(let.args[0]), tiling.elements(fold.target)
    dots = bool(matrix_dots(loop.body, tiling))
    if dots and wide > PRIORS.deferred_lanes_beside_dots:
        return "the loop holds a dot, whose operands and sum need the registers"
    if wide == narrow:
        return f"{let.args[0].name} has one lane along its last axis"
    others = (
        t for s in statements(loop.body) for t in folded(s) if t.per_lane and t != fold.target
    )
    held = wide + sum(map(tiling.elements, others))
    if held > PRIORS.deferred_lanes:
        return f"the loop would fold into {held} lanes, more than {PRIORS.deferred_lanes}"
    return ""
