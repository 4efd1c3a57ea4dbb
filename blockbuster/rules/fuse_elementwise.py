"""fuse-elementwise: two elementwise operators in a row become one.

before   t = x * 2                          after   y = exp(x * 2)
         y = exp(t)

Saves an operator; with one consumer no work is repeated.

An operator applies at most 64 functions: a longer expression would print as one unreadable line,
Python's parser refuses it, and kernels are no faster with it.
Source: Blockbuster Part 1, rule 9. `add` and `mul` are not elementwise operators here: the paper's
step counts rest on that.
"""

from __future__ import annotations

from collections.abc import Iterator

from blockbuster.ir.expr import Arg, Expr, calls, substitute
from blockbuster.ir.graph import Graph, Value
from blockbuster.ir.ops import Elementwise
from blockbuster.rules.base import LocalRule, Match, Note, unheard
from blockbuster.rules.legality import used_elsewhere

MOST = 64
"""How many functions one elementwise operator applies at most."""


class FuseElementwise(LocalRule):
    """Rule 9."""

    name = "fuse-elementwise"
    number = 9
    kind = "companion"
    in_place = True
    needs = (Elementwise, Elementwise)

    def matches_at(self, graph: Graph, position: int, note: Note = unheard) -> Iterator[Match]:
        if not isinstance(graph.nodes[position].op, Elementwise):
            return
        for value in graph.nodes[position].operands:
            if value.node < 0 or not isinstance(graph.nodes[value.node].op, Elementwise):
                continue
            reason = used_elsewhere(graph, value, position) or _too_long(graph, value, position)
            yield from self.judged(graph, {"first": value.node, "second": position}, reason, note)

    def apply(self, match: Match) -> Graph:
        first, second = match.node("first"), match.node("second")
        assert isinstance(first.op, Elementwise)
        assert isinstance(second.op, Elementwise)
        args: list[Expr] = []
        operands: list[Value] = []
        for value in second.operands:
            if value == match.value("first"):
                own = [Arg(len(operands) + at) for at in range(len(first.operands))]
                args.append(substitute(first.op.expr, own))
                operands.extend(first.operands)
            else:
                args.append(Arg(len(operands)))
                operands.append(value)
        edit = match.edit()
        fused = Elementwise(substitute(second.op.expr, args))
        (new,) = edit.add(fused, *operands, hints=second.hints, origin=match.origin())
        edit.redirect(match.value("second"), new)
        return edit.finish()


def _too_long(graph: Graph, value: Value, position: int) -> str:
    """Why the two operators do not fit into one expression; "" if they do."""
    first, second = graph.nodes[value.node], graph.nodes[position]
    assert isinstance(first.op, Elementwise)
    assert isinstance(second.op, Elementwise)
    read = second.operands.count(value)
    functions = calls(second.op.expr) + read * calls(first.op.expr)
    if functions <= MOST:
        return ""
    return f"one operator would apply {functions} functions: at most {MOST} are put together"
