"""Why is this edge still buffered? The nearest rule and the precondition it failed, in words.

With the reason comes what would unlock the edge, found by trial: with one block along a dim, how
many buffered edges do the rules leave?
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from blockbuster.ir.graph import Graph, Value
from blockbuster.ir.list_only import list_only
from blockbuster.ir.ops import Map, Misc, Relabel, Transpose
from blockbuster.ir.sizes import whole
from blockbuster.ir.types import Dim, Type, size_class
from blockbuster.ir.verify import check_graph
from blockbuster.rules.base import Match, Refusal, Rule, label, name_of
from blockbuster.rules.derivation import Path, path_in_words
from blockbuster.rules.driver import fuse
from blockbuster.rules.faults import OnFault, all_sites
from blockbuster.rules.one_block import called, with_one_block

APPLIES = "nothing forbids it: bb.fuse(graph) does it"

BARRIERS = {
    Misc: "is a function of whole arrays: rules do not look inside it",
    Transpose: "reads it in another order than the loop before makes it",
    Relabel: "reads it under another dim: each iteration needs all that the loop before makes",
}


@dataclass(frozen=True)
class Explanation:
    """An interior buffered edge and its reason.

    ``unlock`` says which dims would have to be one block each, and how many buffered edges the
    rules then leave; it is empty if no single dim helps. ``elements`` are those of the value,
    counted once even if loops around it compute it again; None if no sizes were given. ``reader``
    is the consumer in words.
    """

    path: Path
    producer: str
    consumer: str
    type: str
    rule: Rule | None
    reason: str
    level: str = field(default="/")
    unlock: str = ""
    elements: int | None = None
    reader: str = ""

    def bytes_at_stake(self, itemsize: int = 2) -> int | None:
        """The least traffic of the edge in bytes: its value is written once and read once.

        ``itemsize`` is that of an element in bytes.
        """
        return None if self.elements is None else 2 * itemsize * self.elements

    @property
    def why(self) -> str:
        """The rule, if one was near, and its reason."""
        return f"{self.rule.name}: {self.reason}" if self.rule else self.reason

    def __str__(self) -> str:
        text = f"{self.level}  {self.producer} ({self.type}) -> {self.consumer}: {self.why}"
        if self.unlock:
            text += f"; {self.unlock}"
        at_stake = self.bytes_at_stake()
        return text + (f"; at stake: {at_stake:,} bytes in float16" if at_stake else "")


def explain_with(
    graph: Graph,
    rules: Sequence[Rule],
    sizes: Mapping[Dim, int] | None = None,
    on_fault: OnFault | None = None,
) -> tuple[Explanation, ...]:
    """One explanation for each interior buffered edge, at every level, in order.

    Raises ValueError if ``sizes`` lacks a dim of such an edge, RuleError if a rule fails and there
    is no ``on_fault`` to hear of it.
    """
    check_graph(graph)
    sizes = None if sizes is None else whole(sizes)
    found = []
    edges = graph.buffered_edges()
    single = list_only(graph)
    left: dict[Dim, int] = {}
    levels: dict[Path, _Level] = {}
    for path, value, consumer in edges:
        if path not in levels:
            levels[path] = _Level(graph.at(path), rules, on_fault)
        level = levels[path].graph
        rule, reason = levels[path].nearest(value, consumer)
        dims = tuple(dict.fromkeys(map(size_class, _dims_in_the_way(level, value, consumer))))
        for dim in dims:
            if dim not in left and dim not in single:
                one = with_one_block(graph, called(graph, dim))
                left[dim] = len(fuse(one, rules, on_fault).final.buffered_edges())
        found.append(
            Explanation(
                path,
                name_of(level, value),
                label(level.nodes[consumer]),
                str(level.type_of(value)),
                rule,
                reason,
                path_in_words(graph, path),
                _unlock(dims, left, len(edges)),
                None if sizes is None else _elements(level.type_of(value), sizes),
                _reader(level, consumer),
            )
        )
    return tuple(found)


def _reader(level: Graph, position: int) -> str:
    """What reads an edge, in words: a loop by what it makes."""
    op = level.nodes[position].op
    if isinstance(op, Map):
        return f"the loop over {op.dim} that makes {name_of(level, Value(position))}"
    return op.name if isinstance(op, Misc) else f"a {label(level.nodes[position])}"


def _dims_in_the_way(level: Graph, value: Value, consumer: int) -> tuple[Dim, ...]:
    """The dims over which an edge is a list, or its ends are loops."""
    ops = (level.nodes[consumer].op, level.nodes[value.node].op)
    dims = (*(op.dim for op in ops if isinstance(op, Map)), *level.type_of(value).lists)
    return tuple(dict.fromkeys(dims))


def dims_in_the_way(graph: Graph) -> tuple[Dim, ...]:
    """The dims over which interior edges are lists, or their ends loops; no list-only ones.

    Those of many edges come first: one block of such a dim may let the rules go on.
    """
    single = list_only(graph)
    count: dict[Dim, int] = {}
    for path, value, consumer in graph.buffered_edges():
        for dim in _dims_in_the_way(graph.at(path), value, consumer):
            count[dim] = count.get(dim, 0) + 1
    blocked = (dim for dim in count if size_class(dim) not in single)
    return tuple(sorted(blocked, key=lambda dim: -count[dim]))


def _unlock(dims: Sequence[Dim], left: Mapping[Dim, int], now: int) -> str:
    """Which of the dims would help, the best first, and how to ask for it."""
    better = sorted((left[d], d) for d in dims if d in left and left[d] < now)
    if not better:
        return ""
    count, dim = better[0]
    said = f"{count} of {now} stored values are left" if count else "nothing has to be stored"
    return f'if one block holds all of {dim}, {said}: bb.fuse(graph, whole=("{dim}",))'


def _elements(type: Type, sizes: Mapping[Dim, int]) -> int:
    dims = dict.fromkeys((*type.lists, *type.axes))
    missing = [d for d in dims if size_class(d) not in sizes]
    if missing:
        raise ValueError(
            f"sizes give {', '.join(sizes)} and lack {missing[0]}, a dim of a buffered edge"
        )
    return prod(sizes[size_class(d)] for d in dims)


class _Level:
    """What the rules say of one level, looked up by node: they are asked once for all edges."""

    def __init__(self, graph: Graph, rules: Sequence[Rule], on_fault: OnFault | None) -> None:
        self.graph = graph
        self._sites: dict[int, list[Match]] = {}
        self._refusals: dict[int, list[Refusal]] = {}
        refusals: list[Refusal] = []
        for rule in rules:
            for match in all_sites(rule, graph, refusals.append, on_fault):
                for node in dict.fromkeys(match.nodes.values()):
                    self._sites.setdefault(node, []).append(match)
        for refusal in refusals:
            for node in dict.fromkeys(refusal.nodes):
                self._refusals.setdefault(node, []).append(refusal)

    def nearest(self, value: Value, consumer: int) -> tuple[Rule | None, str]:
        """The refusal that speaks of both ends, else of one of them, else of the whole level."""
        for end in (self.graph.nodes[consumer], self.graph.nodes[value.node]):
            if type(end.op) in BARRIERS:
                name = end.op.name if isinstance(end.op, Misc) else label(end)
                return None, f"{name} {BARRIERS[type(end.op)]}"
        for match in self._sites.get(consumer, ()):
            if value.node in match.nodes.values():
                return match.rule, APPLIES
        near = self._refusals.get(consumer, [])
        both = [r for r in near if value.node in r.nodes]
        one = [r for r in near if r.rule.kind == "extension"]
        one.sort(key=lambda refusal: value.node not in refusal.nodes)  # of the pair: says more
        different = _different_dims(self.graph, value, consumer)
        edge = [r for r in both if r.rule.of_edges]
        for refusal in (*edge, *one, *both) if different else (*both, *one):
            return refusal.rule, refusal.reason
        return None, different or "no rule has a pattern with these two operators"


def _different_dims(level: Graph, value: Value, consumer: int) -> str:
    first, second = level.nodes[value.node].op, level.nodes[consumer].op
    if isinstance(first, Map) and isinstance(second, Map) and first.dim != second.dim:
        return f"one loop runs over {first.dim}, the other over {second.dim}"
    return ""
