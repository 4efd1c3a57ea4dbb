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
from blockbuster.ir.ops import Map
from blockbuster.rules.base import Match, Note, Refusal, UpstreamRule, label, unheard
from blockbuster.rules.duplicate_scale import shared_by_matmuls_at, with_a_copy
from blockbuster.rules.mean_shifts import digits_would_cancel
from blockbuster.rules.patterns import RowMap, row_map


class DuplicateShift(UpstreamRule):
    """Rule 8 for shifts."""

    name = "duplicate-shift"
    kind = "companion"
    needs = (Map, Map, Map)
    in_place = True

    def matches_at(self, graph: Graph, position: int, note: Note = unheard) -> Iterator[Match]:
        for match in shared_by_matmuls_at(self, "row_shift", graph, position, note):
            row = row_map(graph, position, "row_shift")
            assert isinstance(row, RowMap)
            reason = digits_would_cancel(graph, row.source, row.vector, row.dim)
            if reason:
                note(Refusal(self, (position,), reason))
            else:
                yield match

    def apply(self, match: Match) -> Graph:
        return with_a_copy(match, (match.nodes["matmul"],))

    def describe(self, match: Match) -> str:
        return f"duplicate {label(match.node('scale'))} for {label(match.node('matmul'))}"
