"""duplicate-shift: a mapped shift that feeds several matmuls gets one copy for each.

before   S = map K { row_shift(x, c) }      after   S1 = map K { row_shift(x, c) }
         A = matmul of S and W                      A  = matmul of S1 and W
         B = matmul of S and V                      S2 = map K { row_shift(x, c) }
                                                    B  = matmul of S2 and V

Enables swap-mean-dot, which needs a shift with one use, and has the same condition: other shifts
stay. Costs a shift, until that rule moves it.
Termination: each application takes one reader from a list with several.
Source: ours; Blockbuster Part 1 suggests the shift twin of its rule 8.
"""

from __future__ import annotations

from collections.abc import Iterator

from blockbuster.ir.graph import Graph
from blockbuster.rules.base import Match, Note, UpstreamRule, unheard
from blockbuster.rules.duplicate_scale import DuplicateScale
from blockbuster.rules.mean_shifts import digits_would_cancel
from blockbuster.rules.patterns import RowMap, row_map


class DuplicateShift(DuplicateScale, UpstreamRule):
    """Rule 8 for shifts."""

    name = "duplicate-shift"
    number = None
    in_place = True
    operator = "row_shift"

    def matches_at(self, graph: Graph, position: int, note: Note = unheard) -> Iterator[Match]:
        for match in super().matches_at(graph, position, note):
            row = row_map(graph, position, self.operator)
            assert isinstance(row, RowMap)
            reason = digits_would_cancel(graph, row.source, row.vector, row.dim)
            yield from self.judged(graph, match.nodes, reason, note)
