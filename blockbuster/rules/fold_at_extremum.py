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

from blockbuster.ir.builder import rebuild
from blockbuster.ir.expr import Arg, Call, Const, Expr, call
from blockbuster.ir.graph import Graph, Node, Value
from blockbuster.ir.ops import IDENTITY, Accumulate, Map
from blockbuster.ir.ports import select_results
from blockbuster.rules.base import name_of
from blockbuster.rules.beside import RunBeside, Wait, Waiting, waits_for_more
from blockbuster.rules.element_formulas import applies, in_both, monoid_of
from blockbuster.rules.legality import different_dims, first_iteration_gone, map_at


class FoldAtExtremum(RunBeside):
    """A map that folds an extremum, and a map that waits for it."""

    name = "fold-at-extremum"
    in_place = True
    looks_beside = False
    roles = ("extremum", "fold")
    words = "the maximum"

    def waiting(self, graph: Graph, position: int) -> Iterator[Wait]:
        for first in graph.nodes[position].makers:
            if isinstance(graph.nodes[first].op, Map):
                for found in _waiting(graph, first, position):
                    yield (first, position), found


def _waiting(graph: Graph, first: int, second: int) -> Iterator[Waiting | str]:
    """The folds of the map ``second`` that wait for extrema of the map ``first``.

    For each that compares with such an extremum and cannot run beside it: the reason, in words.
    """
    node, op = graph.nodes[second], map_at(graph, second)
    for extremum in _compared(graph, first, second):
        reason = different_dims(graph, first, second) or first_iteration_gone(graph, first, second)
        if reason:
            yield reason
            continue
        for port, result in enumerate(op.results):
            alone = select_results(node, (port,), rebuild)[0]
            if isinstance(result, Accumulate) and extremum in alone.operands:
                yield _judged(graph, extremum, Value(second, port), alone)


def _compared(graph: Graph, first: int, second: int) -> Iterator[Value]:
    """The maxima and minima of one map that operators in the body of another compare with."""
    node, op = graph.nodes[second], map_at(graph, second)
    folds = map_at(graph, first).results
    for at, value in enumerate(op.entering(node.operands)):
        if value.node == first and folds[value.port] in (Accumulate("max"), Accumulate("min")):
            readers = (op.body.nodes[reader] for reader, _ in op.body.uses_of(Value(-1, at)))
            if any(applies(reader, "eq") for reader in readers):
                yield value


def _judged(graph: Graph, extremum: Value, result: Value, alone: Node) -> Waiting | str:
    more = waits_for_more(graph, extremum.node, extremum, alone)
    factor = more or _factor(graph, extremum, alone)
    if isinstance(factor, str):
        return f"{name_of(graph, result)} {factor}"
    return Waiting(extremum.node, result.port, alone, (extremum.port,), factor)


def _factor(graph: Graph, extremum: Value, alone: Node) -> Expr | str:
    """The factor of a partial result of the fold, or why it cannot run beside the extremum."""
    searched = graph.nodes[extremum.node]
    x, leaf, taken, _ = in_both(graph, extremum, extremum, alone)
    if not set(searched.types[extremum.port].axes) <= set(alone.types[0].axes):
        return f"lacks an axis of {name_of(graph, extremum)}"
    monoid = monoid_of(alone, 0)
    neutral = Const(IDENTITY[monoid])
    if not isinstance(taken, Call) or taken.fn != "where" or taken.args[2] != neutral:
        return f"does not take {neutral.value:g} where {name_of(graph, extremum)} is not"
    found = (call("eq", x, leaf), call("eq", leaf, x))
    missing = call("ne", x, x)
    alike, or_missing = _at_lead(monoid)
    if taken.args[0] in found:
        return alike
    if taken.args[0] in [call("or", *p) for f in found for p in ((f, missing), (missing, f))]:
        return or_missing
    return f"compares with {name_of(graph, extremum)} what is not folded to it"


def _at_lead(monoid: str) -> tuple[Call, Call]:
    """The factors that make x neutral unless its lead r is the folded lead r2, or is missing."""
    alike, missing = call("eq", Arg(1), Arg(2)), call("ne", Arg(1), Arg(1))
    neutral = Const(IDENTITY[monoid])
    return (
        call("where", alike, Arg(0), neutral),
        call("where", call("or", alike, missing), Arg(0), neutral),
    )
