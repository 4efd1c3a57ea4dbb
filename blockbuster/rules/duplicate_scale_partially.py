"""duplicate-scale-partially: the matmuls among the readers of a mapped scale get a copy.

before   S = map K { row_scale(x, c) }      after   S1 = map K { row_scale(x, c) }
         A = matmul of S and W                      A  = matmul of S1 and W
         V = map K (s in !S) { ... }                S2 = map K { row_scale(x, c) }
                                                    V  = map K (s in !S2) { ... }

The copy can move behind the matmuls. The other uses no longer prevent that: a value that the
program returns, a residual, or the right operand of another matmul (V' in self-attention).
Likewise for a shift. Costs the operator, until the copy moves.
Termination: after an application all readers of the copy are matmuls, and none of the original's
is.
Source: ours; Blockbuster Part 1, rule 8 requires all readers to be matmuls.
"""

from __future__ import annotations

from collections.abc import Iterator

from blockbuster.ir.graph import Graph, Value
from blockbuster.ir.ops import Map
from blockbuster.rules.base import LocalRule, Match, Note, Refusal, label, name_of, unheard
from blockbuster.rules.duplicate_scale import with_a_copy
from blockbuster.rules.patterns import matmul, row_map

ROW_OPERATORS = ("row_scale", "row_shift")


class DuplicateScalePartially(LocalRule):
    """Rule 8 for some of the readers."""

    name = "duplicate-scale-partially"
    kind = "companion"
    needs = (Map, Map)
    in_place = True
    looks_beside = False

    def matches_at(self, graph: Graph, position: int, note: Note = unheard) -> Iterator[Match]:
        found = (row_map(graph, position, name) for name in ROW_OPERATORS)
        source = next((s for s in found if s is not None), None)
        consumers = graph.consumers(Value(position))
        if source is None or not consumers:
            return
        reason = source if isinstance(source, str) else _not_mixed(graph, position)
        if reason:
            note(Refusal(self, (position, *consumers), reason))
        else:
            first = _matmuls(graph, position)[0]
            yield Match(self, graph, {"scale": position, "matmul": first})

    def apply(self, match: Match) -> Graph:
        return with_a_copy(match, _matmuls(match.graph, match.nodes["scale"]))

    def describe(self, match: Match) -> str:
        return f"duplicate {label(match.node('scale'))} for its matmuls"


def _matmuls(graph: Graph, position: int) -> tuple[int, ...]:
    readers = graph.consumers(Value(position))
    return tuple(n for n in readers if not isinstance(matmul(graph, n), str))


def _not_mixed(graph: Graph, position: int) -> str:
    """Some readers must be matmuls, and some other node must need the list, too."""
    made, readers = Value(position), graph.consumers(Value(position))
    matmuls = _matmuls(graph, position)
    if not matmuls:
        return f"no reader of {name_of(graph, made)} is a matmul with it on the left"
    if made not in graph.output_values and len(matmuls) == len(readers):
        return f"only matmuls read {name_of(graph, made)}: each may have a copy of its own"
    return ""
