"""swap-mean-dot: rule 5 for shifts by minus the mean, in rows whose variance is taken.

before   S = map K { row_shift(x, c) }      after   Z = add(outer(c, row sums of y), P)
         Z = matmul of S and Y                      P = matmul of X and Y

with c = -(sum of x) / |K|, and a sum of the squares of x. As in swap-shift-dot, the matmul no
longer waits for c. Other shifts stay: x near -c would cancel after the product, and not before.
Costs the row sums of the right operand. ``safe`` takes the shift back into the product, in a second
loop, if the fused program is printed; the paper's rule set has the rule without this condition.
Source: Blockbuster Part 1, rule 5.
"""

from __future__ import annotations

from collections.abc import Iterator

from blockbuster.ir.graph import Graph
from blockbuster.rules.base import Match, Note, UpstreamRule, unheard
from blockbuster.rules.mean_shifts import digits_would_cancel
from blockbuster.rules.swap_scale_dot import found_at
from blockbuster.rules.swap_shift_dot import SwapShiftDot


class SwapMeanDot(SwapShiftDot, UpstreamRule):
    """Rule 5 where no digits cancel."""

    name = "swap-mean-dot"
    in_place = True

    def matches_at(self, graph: Graph, position: int, note: Note = unheard) -> Iterator[Match]:
        for match in super().matches_at(graph, position, note):
            row, _ = found_at(match, "row_shift")
            reason = digits_would_cancel(graph, row.source, row.vector, row.dim)
            yield from self.judged(graph, match.nodes, reason, note)
