"""copy-producer: a value larger than its inputs is computed again for each end that needs it.

before   S = map M { map N { s = dot(q, k) } }      after   S1 = map M { map N { s = dot(q, k) } }
         l = map M { sums over N of !S }                    l  = map M { sums over N of !S1 }
         O = map M { products of !S and V }                 S2 = map M { map N { s = dot(q, k) } }
                                                            O  = map M { products of !S2 and V }

An end is an operator that reads such values and returns a smaller one (ends.py). The readers of a
value that serve one end share a copy. Copies are made from the ends backwards, so that finally no
copy serves two ends. Each copy then fuses into its reader, in the reader's loops and order, and
none is stored. Costs the work of the value once per copy, which may be a matmul or an exponential.
So no rule set of ``fuse`` holds this rule, and the cost decides between its programs and those that
store.
Termination: each application leaves one value with one end less, and copies have one end.
Source: ours; FlashAttention's backward pass does this with the scores.
"""

from __future__ import annotations

from collections.abc import Iterator

from blockbuster.ir.graph import Graph
from blockbuster.ir.ops import Map, Misc
from blockbuster.ir.uses import results_of
from blockbuster.rules.base import Match, Note, Refusal, Rule, label, unheard
from blockbuster.rules.ends import ends_of, larger
from blockbuster.rules.extension import readers_of
from blockbuster.rules.statistics import nodes_of


class CopyProducer(Rule):
    """A site is a value's node and, in the roles, the readers that get a copy of their own."""

    name = "copy-producer"
    kind = "companion"
    needs = (Map,)

    def matches(self, graph: Graph, note: Note = unheard) -> Iterator[Match]:
        large = larger(graph)
        ends = ends_of(graph, large)
        for at in range(len(graph.nodes)):
            readers = sorted({*readers_of(graph, at)})
            if len(readers) < 2:
                continue
            reason = (
                _as_small_as_an_array(graph, at, large)
                or _for_one_end(graph, at, ends)
                or _opaque(graph, at)
                or _a_reader_serves_several(graph, readers, ends)
            )
            if reason:
                note(Refusal(self, (at, *readers), reason))
                continue
            first = ends[at][0]
            served = [reader for reader in readers if ends.get(reader, (reader,)) == (first,)]
            roles = {f"reader {number}": reader for number, reader in enumerate(served, start=1)}
            yield Match(self, graph, {"producer": at, **roles}, label(graph.nodes[first]))

    def apply(self, match: Match) -> Graph:
        node, edit = match.node("producer"), match.edit()
        copies = edit.add(node.op, *node.operands, hints=node.hints, origin=match.origin())
        copied = dict(zip(match.values("producer"), copies, strict=True))
        for reader in match.nodes.values():
            for index, operand in enumerate(match.graph.nodes[reader].operands):
                if operand in copied:
                    edit.set_operand(reader, index, copied[operand])
        return edit.finish()

    def describe(self, match: Match) -> str:
        return f"copy {label(match.node('producer'))} for {label(match.node('reader 1'))}"


# Side conditions: each returns "" where it is met, else the reason in words ----------------------


def _as_small_as_an_array(graph: Graph, at: int, large: dict[int, None]) -> str:
    """Reading a value no larger than its inputs costs no more than computing it."""
    if at in large:
        return ""
    name = label(graph.nodes[at])
    if any(value in graph.output_values for value in results_of(graph.nodes, at)):
        return f"{name} makes a result of the program, which is stored anyway"
    if any(value.node in large for value in graph.nodes[at].operands):
        return f"{name} is itself an end, smaller than what it reads"
    return f"{name} is no larger than an array that it is made from"


def _for_one_end(graph: Graph, at: int, ends: dict[int, tuple[int, ...]]) -> str:
    """Readers that serve the same end share its loops."""
    (*ahead, last) = ends[at]
    if ahead:
        return ""
    return f"all readers of {label(graph.nodes[at])} serve {label(graph.nodes[last])}"


def _opaque(graph: Graph, at: int) -> str:
    """The cost of a misc operator is unknown, and so is whether it may run more than once."""
    node = graph.nodes[at]
    opaque = [node.op.name] if isinstance(node.op, Misc) else []
    if isinstance(node.op, Map):
        opaque = [n.op.name for n in nodes_of(node.op.body) if isinstance(n.op, Misc)]
    return f"{opaque[0]} is a function of whole arrays, which may not run twice" if opaque else ""


def _a_reader_serves_several(
    graph: Graph, readers: list[int], ends: dict[int, tuple[int, ...]]
) -> str:
    """A reader of several ends is copied first: otherwise it would keep their copies together."""
    for reader in readers:
        if len(ends.get(reader, ())) > 1:
            return f"{label(graph.nodes[reader])} itself is made for several ends: copy it first"
    return ""
