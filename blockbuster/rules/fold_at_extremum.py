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
Source: ours; rolling-update by one row of the table of laws (``laws.py``), the choice.
"""

from __future__ import annotations

from blockbuster.ir.expr import functions_of
from blockbuster.ir.graph import Graph
from blockbuster.ir.ops import Map
from blockbuster.rules.base import UpstreamRule
from blockbuster.rules.dependent_folds import Dependent
from blockbuster.rules.element_formulas import applies
from blockbuster.rules.laws import AT_EXTREMA
from blockbuster.rules.rolling_update import RollingUpdate


class FoldAtExtremum(RollingUpdate, UpstreamRule):
    """A map that folds an extremum, and a map that waits for it."""

    name = "fold-at-extremum"
    in_place = True
    roles = ("extremum", "fold")
    words = "the maximum"
    laws = AT_EXTREMA

    def asks(self, op: Map) -> bool:
        return any(applies(node, "eq") for node in op.body.nodes)

    def unfit(self, graph: Graph, found: Dependent) -> str | None:
        question = found.question
        return "" if question.extrema and "eq" in functions_of(question.g) else None
