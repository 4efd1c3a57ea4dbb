"""swap-scale-dot: scaling the rows of a matmul's left operand can wait until after the matmul.

before   S = map K (x in !X, c = c) {       after   P = map N (X = !X, y in !YT) {
           s = row_scale(x, c)                        ... sum over K of dot(x, y)
           yield s                                  }
         }                                          Z = map N (p in !P, c = c) {
         Z = map N (S = !S, y in !YT) {               z = row_scale(p, c)
           ... sum over K of dot(s, y)                yield z
         }                                          }

The matmul no longer waits for c, and both maps run over N. Costs nothing in flops when N <= K.
The law of factor-out for two maps that are not fused yet: a pattern of its own, since the paper's
steps are counted by it.
Source: Blockbuster Part 1, rule 4: diag(c) X Y = diag(c) (X Y).
"""

from __future__ import annotations

from collections.abc import Iterator

from blockbuster.ir.builder import Builder
from blockbuster.ir.graph import Graph, Value
from blockbuster.ir.ops import Collect, Functional, Map
from blockbuster.rules.base import LocalRule, Match, Note, unheard
from blockbuster.rules.legality import map_at, used_elsewhere
from blockbuster.rules.patterns import Matmul, RowMap, matmul, row_map


class SwapScaleDot(LocalRule):
    """Rule 4."""

    name = "swap-scale-dot"
    number = 4
    kind = "companion"
    needs = (Map, Map)
    in_place = True
    looks_beside = False
    operator = "row_scale"

    def matches_at(self, graph: Graph, position: int, note: Note = unheard) -> Iterator[Match]:
        source = row_map(graph, position, self.operator)
        if source is None:
            return
        for consumer in graph.consumers(Value(position)):
            product = matmul(graph, consumer)
            reason = next(
                (found for found in (product, source) if isinstance(found, str)),
                used_elsewhere(graph, Value(position), consumer),
            )
            yield from self.judged(graph, {"row map": position, "matmul": consumer}, reason, note)

    def apply(self, match: Match) -> Graph:
        source, product = found_at(match, "row_scale")
        edit = match.edit()
        unscaled = add_matmul_of(edit, match, product, source.source)
        hints = match.node("matmul").hints
        scaled = add_mapped(
            edit, match, "row_scale", (unscaled, True), (source.vector, False), hints=hints
        )
        edit.redirect(match.value("matmul"), scaled)
        return edit.finish()


def found_at(match: Match, name: str) -> tuple[RowMap, Matmul]:
    """The row map and the matmul of a site."""
    source = row_map(match.graph, match.nodes["row map"], name)
    product = matmul(match.graph, match.nodes["matmul"])
    assert isinstance(source, RowMap)
    assert isinstance(product, Matmul)
    return source, product


def add_matmul_of(edit: Builder, match: Match, product: Matmul, left: Value) -> Value:
    """The same matmul with another left operand."""
    node = match.graph.nodes[product.node]
    operands = tuple(left if v == product.left else v for v in node.operands)
    (result,) = edit.add(node.op, *operands, origin=match.origin())
    return result


def add_mapped(
    edit: Builder,
    match: Match,
    name: str,
    *operands: tuple[Value, bool],
    hints: tuple[str, ...] = (),
) -> Value:
    """A map over the matmul's dim of one functional operator; operands are (value, iterated)."""
    body = Builder()
    items = []
    for value, iterated in operands:
        type = edit.type_of(value)
        items.append(body.input(type.element() if iterated else type))
    (result,) = body.add(Functional(name), *items, origin=match.origin())
    dim = map_at(match.graph, match.nodes["matmul"]).dim
    op = Map(dim, body.finish(result), tuple(i for _, i in operands), (Collect(),))
    (made,) = edit.add(op, *(v for v, _ in operands), hints=hints, origin=match.origin())
    return made
