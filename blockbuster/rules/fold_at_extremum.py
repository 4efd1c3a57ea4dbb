"""fold-at-extremum: a fold over the places where x is maximal runs in the same loop as the maximum.

before   m = map N (x in !X) {                  after   m, i = map N (x in !X, k in !K) {
           m = row_max(x)                                 m = row_max(x)
           yield max m                                    h = where(x == m, k, inf)
         }                                                i = row_min(h)
         i = map N (x in !X, m = m, k in !K) {            yield max t = m
           h = where(x == m, k, inf)                      yield min i by t: where(r == r2, x, inf)
           i = row_min(h)                               }
           yield min i
         }

If k counts 0, 1, 2, ... this is argmax; for other k it is the value of k at the maximum. Each block
is folded where x is the maximum of that block. Before two partial results are combined, the one
whose own maximum r is less than the larger one, r2, becomes neutral: none of its values was at r2.
The same holds for minima, for every fold whose neutral element is the other branch of ``where``,
and for ``x == m or x != x``: there NaN is the maximum, as it is in NumPy.
Saves a pass over x, and storing x if it is computed. Costs a comparison per row and block.
Termination: each application makes one fold fewer wait for an extremum, and no rule makes a fold
wait.
Source: ours; an instance of the folds of significands under a running lead (``Rescale``).
"""

from __future__ import annotations

from collections.abc import Iterator

from blockbuster.ir.graph import Graph, Value
from blockbuster.ir.ops import Map
from blockbuster.rules.base import LocalRule, Match, Note, Refusal, label, name_of, unheard
from blockbuster.rules.beside import Waiting, run_beside
from blockbuster.rules.extrema import waiting


class FoldAtExtremum(LocalRule):
    """A map that folds an extremum, and a map that waits for it."""

    name = "fold-at-extremum"
    kind = "fusion"
    needs = (Map, Map)
    in_place = True
    looks_beside = False

    def matches_at(self, graph: Graph, position: int, note: Note = unheard) -> Iterator[Match]:
        if not isinstance(graph.nodes[position].op, Map):
            return
        for first in graph.nodes[position].makers:
            if not isinstance(graph.nodes[first].op, Map):
                continue
            for found in waiting(graph, first, position):
                if isinstance(found, Waiting):
                    name = name_of(graph, Value(position, found.port))
                    yield Match(self, graph, {"extremum": first, "fold": position}, name)
                    break
                note(Refusal(self, (first, position), found))

    def apply(self, match: Match) -> Graph:
        edit, instead = run_beside(match, "extremum", "fold", _first(match))
        edit.redirect_all([*instead], [*instead.values()])
        return edit.finish()

    def describe(self, match: Match) -> str:
        return f"{match.detail} beside the maximum in {label(match.node('extremum'))}"


def _first(match: Match) -> Waiting:
    """The first fold that can run beside its extremum."""
    found = waiting(match.graph, match.nodes["extremum"], match.nodes["fold"])
    return next(each for each in found if isinstance(each, Waiting))
