"""swap-shift-dot: shifting the rows of a matmul's left operand becomes an outer product after it.

before   S = map K (x in !X, c = c) {       after   P = map N { sum over K of dot(x, y) }
           s = row_shift(x, c)                      R = map N { sum over K of row_sum(y) }
           yield s                                  U = map N (c = c, r in !R) { outer(c, r) }
         }                                          Z = map N (u in !U, p in !P) { add(u, p) }
         Z = map N (S = !S, y in !YT) {
           ... sum over K of dot(s, y)
         }

The matmul no longer waits for c. Costs the row sums of the right operand, which is read twice until
its readers are fused.
Source: Blockbuster Part 1, rule 5: (X + c 1') Y = X Y + c (1' Y). The four maps are the paper's
listing after LayerNorm step 9; its step counts rest on them.
"""

from __future__ import annotations

from blockbuster.ir.builder import Builder
from blockbuster.ir.graph import Graph, Value
from blockbuster.ir.ops import Collect, Functional, Map, Reduce
from blockbuster.rules.base import Match
from blockbuster.rules.legality import map_at
from blockbuster.rules.patterns import Matmul
from blockbuster.rules.swap_scale_dot import SwapScaleDot, add_mapped, add_matmul_of, found_at


class SwapShiftDot(SwapScaleDot):
    """Rule 5."""

    name = "swap-shift-dot"
    number = 5
    in_place = True
    operator = "row_shift"

    def apply(self, match: Match) -> Graph:
        source, product = found_at(match, "row_shift")
        edit = match.edit()
        unshifted = add_matmul_of(edit, match, product, source.source)
        sums = _add_row_sums(edit, match, product)
        shifts = add_mapped(edit, match, "outer", (source.vector, False), (sums, True))
        hints = match.node("matmul").hints
        total = add_mapped(edit, match, "add", (shifts, True), (unshifted, True), hints=hints)
        edit.redirect(match.value("matmul"), total)
        return edit.finish()


def _add_row_sums(edit: Builder, match: Match, product: Matmul) -> Value:
    """map N { sum over K of row_sum(right[n][k]) }."""
    listed = edit.type_of(product.right).element()
    rows = Builder()
    origin = match.origin()
    (part,) = rows.add(Functional("row_sum"), rows.input(listed.element()), origin=origin)
    loop = Map(product.contraction, rows.finish(part), (True,), (Collect(),))
    body = Builder()
    (parts,) = body.add(loop, body.input(listed), origin=origin)
    (total,) = body.add(Reduce(product.contraction, "+"), parts, origin=origin)
    op = Map(map_at(match.graph, product.node).dim, body.finish(total), (True,), (Collect(),))
    (made,) = edit.add(op, product.right, origin=origin)
    return made
