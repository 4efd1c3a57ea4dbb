"""Which products are accumulated transposed: those whose right operand a kernel computes.

Two examples are keys times values in attention by random features, and the gradients of keys and
values. They are sums over rows of exponentials, which are computed from two other operands, times a
loaded block. The block can be the right operand as well, and is then read in its order in memory.
"""

from __future__ import annotations

from blockbuster.emit.schedule.lets import lets_of
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site, statement_at
from blockbuster.emit.schedule.turn import Turn
from blockbuster.emit.tile.program import Let, Load, statements
from blockbuster.selection.decisions.wherever import wherever

TURN = Turn()


def turned(scheduled: Scheduled) -> Scheduled:
    """``scheduled`` with what is computed as the left operand, where the other one is loaded."""
    return wherever(TURN, scheduled, _pays)


def _pays(scheduled: Scheduled, site: Site) -> bool:
    dot, body = statement_at(scheduled.draft, site), scheduled.draft.nests[site.nest - 1].body
    assert isinstance(dot, Let)
    left, right = dot.args
    loads = {stmt.target for stmt in statements(body) if isinstance(stmt, Load)}
    return left in loads and right in lets_of(body)
