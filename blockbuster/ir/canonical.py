"""The canonical form, in passes of one idea each over the nodes of one graph.

Nodes are ordered depth-first from the outputs. ``merge`` unites duplicate ports, ``tidy`` drops
operands that no result needs, ``drop`` drops results that nobody reads, and ``sort`` puts results
in order of first use, consumers before producers. ``merge`` and ``tidy`` look at nodes that were
added or edited; ``drop`` and ``sort`` look at all nodes, and only if some node has several results:
``level.py`` knows which of them to ``keep``, and when they need no sorting. ``ports.py`` holds the
passes over a single node.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence

from blockbuster.ir.graph import Node, Output, Value
from blockbuster.ir.ops import Elementwise, Map, Pointwise
from blockbuster.ir.order import dependency_order
from blockbuster.ir.ports import Rebuild, merge_ports, merge_repeated_arguments, select_results

Nodes = dict[int, Node]


def canonical(
    nodes: Nodes,
    ends: Sequence[Output],
    changed: set[int],
    rebuild: Rebuild,
    order: list[int] | None,
    several_results: bool,
) -> tuple[list[int], list[Output]]:
    """Tidy ``nodes`` in place; returns their order and the outputs.

    ``changed`` holds the nodes that were added or edited, and afterwards all that are new.
    ``order`` is that of the nodes as they are given, where the caller knows it. Without
    ``several_results`` each node has one.
    """
    work = Canonical(nodes, list(ends), changed, rebuild, order)
    work.merge()
    if several_results:
        work.drop()
        work.sort()
    else:
        work.tidy()
    return work.order, work.ends


class Canonical:
    """Nodes on their way to canonical form. ``order`` is that of the nodes as they are.

    The passes come in the order merge, then tidy or drop, then sort: each counts on the ones
    before it. Each leaves ``changed`` with all nodes that are not what they were.
    """

    def __init__(
        self,
        nodes: Nodes,
        ends: list[Output],
        changed: set[int],
        rebuild: Rebuild,
        order: list[int] | None,
    ) -> None:
        self.nodes = nodes
        self.ends = ends
        self.changed = changed
        self._rebuild = rebuild
        self.order: list[int] = order or []
        if order is None:
            self._reorder()

    def _reorder(self) -> None:
        self.order = dependency_order(self.nodes, [o.value for o in self.ends])

    def merge(self) -> None:
        """Merge equal operands and equal results of a node, producers before consumers."""
        for key in filter(self.changed.__contains__, self.order):  # which grows on the way
            node = self.nodes[key]
            if isinstance(node.op, Map):
                self.nodes[key], twins = merge_ports(node, self._rebuild)
                if twins:
                    twin_of = {Value(key, a): Value(key, b) for a, b in twins.items()}
                    self._rename(self.order, twin_of)
            elif isinstance(node.op, Elementwise | Pointwise):
                self.nodes[key] = merge_repeated_arguments(node)

    def tidy(self) -> None:
        """Drop operands that no result of their node needs, where every result is read."""
        changed = [*filter(self.changed.__contains__, reversed(self.order))]
        maps = [key for key in changed if isinstance(self.nodes[key].op, Map)]  # only they change
        if maps:
            self.keep({key: range(len(self.nodes[key].types)) for key in maps}, self.order)

    def keep(self, ports: Mapping[int, Sequence[int]], readers: Iterable[int]) -> bool:
        """Drop all results but ``ports`` of the nodes there, and operands that those do not need.

        ``readers`` are the nodes that read them. Returns whether a node changed.
        """
        old = [self.nodes[key] for key in ports]
        moved: dict[Value, Value] = {}
        lost = [self._select(key, ports[key], moved) for key in ports]
        self._rename(readers, moved)
        if any(lost):
            self._reorder()
        return any(self.nodes[key] is not node for key, node in zip(ports, old, strict=True))

    def drop(self) -> None:
        """Drop results that nobody reads and operands that nobody needs, consumers first."""
        used: dict[int, dict[int, None]] = {}
        for output in self.ends:
            used.setdefault(output.value.node, {})[output.value.port] = None
        moved: dict[Value, Value] = {}
        lost = False
        for key in reversed(self.order):
            if key not in used:
                lost = True
                continue
            ports = used[key]
            if key in self.changed or len(ports) < len(self.nodes[key].types):
                lost |= self._select(key, sorted(ports), moved)
            for node, port in self.nodes[key].operands:
                used.setdefault(node, {})[port] = None
        self._rename(self.order, moved)
        if lost:
            self._reorder()

    def sort(self) -> None:
        """Put results in order of first use, and operands by first use in the body."""
        left = {key for key in self.order if len(self.nodes[key].types) > 1}
        if not left:
            return
        first_use: dict[int, dict[int, tuple[int, int]]] = {key: {} for key in self.order}
        for rank, output in enumerate(self.ends):
            if output.value.node >= 0:
                first_use[output.value.node].setdefault(output.value.port, (-1, rank))
        moved: dict[Value, Value] = {}
        lost = False
        for rank, key in enumerate(_consumers_first(self.nodes, self.order, first_use)):
            if key in left:
                used = first_use[key]
                lost |= self._select(key, sorted(used, key=used.__getitem__), moved)
                left.remove(key)
                if not left:
                    break
            for index, (node, port) in enumerate(self.nodes[key].operands):
                if node >= 0:
                    first_use[node].setdefault(port, (rank, index))
        self._rename(self.order, moved)
        if lost:
            self._reorder()

    def _select(self, key: int, ports: Sequence[int], moved: dict[Value, Value]) -> bool:
        """Keep the results ``ports`` of a node, in that order; True if its operands change."""
        old = self.nodes[key]
        new, order = select_results(old, ports, self._rebuild)
        if new is old:
            return False
        self.nodes[key] = new
        self.changed.add(key)
        if order != (*range(len(old.types)),):
            moved |= {Value(key, a): Value(key, b) for b, a in enumerate(order) if a != b}
        return new.operands != old.operands

    def _rename(self, keys: Iterable[int], new: Mapping[Value, Value]) -> None:
        """Let the nodes ``keys``, and the outputs if there are none, read values by new names."""
        if not new:
            return
        for key in keys:
            node = self.nodes[key]
            if not new.keys().isdisjoint(node.operands):
                operands = tuple(new.get(v, v) for v in node.operands)
                self.nodes[key] = node.reading(operands)
                self.changed.add(key)
        self.ends = [o.of(new.get(o.value, o.value)) for o in self.ends]


def _consumers_first(
    nodes: Nodes, order: Sequence[int], first_use: Mapping[int, Mapping[int, tuple[int, int]]]
) -> Iterator[int]:
    """Nodes after all their readers; of two that may come, the one that was read first.

    ``first_use`` grows as the caller notes what each node reads.
    """
    pending = dict.fromkeys(order, 0)
    pending[-1] = 0
    for key in order:
        for value in nodes[key].operands:
            pending[value[0]] += 1
    ready = [(min(first_use[key].values()), key) for key in order if not pending[key]]
    heapq.heapify(ready)
    while ready:
        _, key = heapq.heappop(ready)
        before = nodes[key].operands
        yield key
        for value in before:
            node = value[0]
            pending[node] -= 1
            if node >= 0 and not pending[node]:
                heapq.heappush(ready, (min(first_use[node].values()), node))
