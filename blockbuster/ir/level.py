"""A graph level that rules rewrite in place: read like a graph, edited like a builder.

A node keeps its key for as long as it stays as it is, so an edit costs what it touches: nothing is
renumbered. ``finish`` brings the level back into canonical form, in which ``rank`` tells the
position that a node has in ``graph()``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

from blockbuster.ir.builder import Builder, rebuild
from blockbuster.ir.canonical import canonical
from blockbuster.ir.graph import Graph, Input, Node, Output, Value
from blockbuster.ir.ops import Op

OpT = TypeVar("OpT", bound=Op)


@dataclass(frozen=True)
class Change:
    """What an edit did: nodes that are new, nodes next to them, nodes that went.

    ``inputs`` are those that were or are read there, ``reordered`` the nodes that may have changed
    places; ``cut`` tells that a path may have gone.
    """

    new: tuple[int, ...] = ()
    near: tuple[int, ...] = ()
    gone: tuple[int, ...] = ()
    inputs: tuple[int, ...] = ()
    reordered: tuple[int, ...] = ()
    cut: bool = False


class Level(Builder):
    """A builder that is canonical between edits, with the part of ``Graph`` that rules read."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.order: list[int] = list(self._nodes)
        self.rank: dict[int, int] = {key: key for key in self.order}
        self.change = Change()
        self.found_path = False
        """Set by ``reaches`` when it answers yes: what a rule concludes from that is not local."""
        self._read: dict[int, tuple[Value, ...]] = {}
        self._readers: dict[Value, dict[int, None]] = {}
        self._graph: Graph | None = graph
        self._results = len(self.output_values)
        self._unused = (sys.maxsize, 0)
        self._link(self.order)

    # read like a graph

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The inputs of the graph."""
        return tuple(self._inputs)

    @property
    def nodes(self) -> dict[int, Node]:
        """The nodes by their keys."""
        return self._nodes

    @property
    def outputs(self) -> tuple[Output, ...]:
        """The outputs of the graph."""
        return self._outputs

    @property
    def output_values(self) -> frozenset[Value]:
        """The values that leave the graph."""
        return frozenset(output.value for output in self._outputs)

    def places(self) -> Iterable[int]:
        """The keys of the nodes in canonical order."""
        return self.order

    def of_type(self, kind: type[OpT]) -> Iterator[tuple[int, OpT]]:
        """Keys and operators of the nodes whose operator is a ``kind``, in order."""
        for key in self.order:
            op = self._nodes[key].op
            if isinstance(op, kind):
                yield key, op

    def consumers(self, value: Value) -> tuple[int, ...]:
        """Keys of the nodes that read ``value``, in order, each once."""
        return tuple(sorted(self._readers.get(value, ()), key=self.rank.__getitem__))

    def uses_of(self, value: Value) -> tuple[tuple[int, int], ...]:
        """The uses of ``value`` as (node, operand position), in order."""
        return tuple(
            (key, index)
            for key in self.consumers(value)
            for index, operand in enumerate(self._nodes[key].operands)
            if operand == value
        )

    def readers_before(self, position: int) -> tuple[int, ...]:
        """Keys of the nodes before ``position`` that share an operand with it, in order."""
        rank, operands = self.rank, dict.fromkeys(self._nodes[position].operands)
        found = {key for value in operands for key in self._readers[value]}
        return tuple(sorted((k for k in found if rank[k] < rank[position]), key=rank.__getitem__))

    def readers(self, key: int) -> dict[int, None]:
        """The nodes that read a result of ``key``."""
        found: dict[int, None] = {}
        for port in range(len(self._nodes[key].types)):
            found |= self._readers.get(Value(key, port), {})
        return found

    def neighbours(self, key: int) -> dict[int, None]:
        """The nodes that read a result of ``key``, or that read what it reads."""
        found = self.readers(key)
        for value in self._nodes[key].operands:
            found |= self._readers[value]
        return found

    def ports_moved(self) -> bool:
        """True if a map with this body must drop or reorder ports after the last change."""
        ports = range(len(self._inputs)) if self.change.reordered else self.change.inputs
        places: dict[int, dict[Value, int]] = {}
        for port in ports:
            beside = range(max(port - 1, 0), min(port + 2, len(self._inputs)))
            uses = [self._first_use(Value(-1, p), places) for p in beside]
            if uses != sorted(uses) or self._unused in uses:
                return True
        return len(self.output_values) != self._results

    def _first_use(self, value: Value, places: dict[int, dict[Value, int]]) -> tuple[int, int]:
        readers = self._readers.get(value)
        if readers:
            key = min(readers, key=self.rank.__getitem__)
            if key not in places:
                operands = self._nodes[key].operands
                places[key] = dict(zip(reversed(operands), range(-len(operands), 0), strict=True))
            return self.rank[key], -places[key][value]
        at = [i for i, output in enumerate(self._outputs) if output.value == value]
        return (len(self.order), at[0]) if at else self._unused

    def reaches(self, producer: int, consumer: int) -> bool:
        """True if ``consumer`` depends on ``producer``, directly or through others."""
        first = self.rank[producer]
        seen, stack = {consumer}, [consumer]
        while stack:
            for value in self._nodes[stack.pop()].operands:
                node = value[0]
                if node == producer:
                    self.found_path = True
                    return True
                if node >= 0 and node not in seen and self.rank[node] > first:
                    seen.add(node)
                    stack.append(node)
        return False

    def graph(self) -> Graph:
        """The level as a graph."""
        if self._graph is None:
            self._graph = self._numbered(self._nodes, self.order, self._outputs)
        return self._graph

    # edited like a builder

    def finish(self, *outputs: Value | Output) -> Graph:
        """Ends an edit: the level itself, canonical again; ``change`` says what happened."""
        ends = self._ends(outputs)
        self._apply_redirects(
            dict.fromkeys(k for old in self._redirects for k in self._readers.get(old, ()))
        )
        known = self._order_if_contracted(ends)
        order, ends = canonical(self._nodes, ends, self._changed, rebuild, known)
        old_order, self.order = self.order, order
        self.rank = dict(zip(order, range(len(order)), strict=True))
        self._outputs = tuple(ends)
        self._graph = None
        self.change = self._relinked(old_order, order is known)
        self._kept, self._redirects, self._changed = self._next, {}, set()
        return cast(Graph, self)

    def _order_if_contracted(self, ends: Sequence[Output]) -> list[int] | None:
        """The order where one new node simply takes the place of two.

        It does if the second's operands start with the first, the new node's with the first's, and
        all others come before: nothing else is reached sooner or later than it was.
        """
        made = [key for key in self._changed if key >= self._kept]
        gone = self._unread(made[0], ends) if len(made) == 1 else []
        if len(gone) != 2:
            return None
        first, second = sorted(gone, key=self.rank.__getitem__)
        reads = [v.node for v in self._nodes[made[0]].operands]
        before = [v.node for v in self._read[first]]
        at, until = self.rank[first], self.rank[second]
        if (
            self._read[second][0].node != first
            or reads[: len(before)] != before
            or any(node >= 0 and self.rank[node] > at for node in reads)
        ):
            return None
        instead = {first: made[0], second: made[0]}
        old = [output.value.node for output in self._outputs]
        if [end.value.node for end in ends] != [instead.get(node, node) for node in old]:
            return None
        for key in self._changed:
            now = [v.node for v in self._nodes[key].operands]
            if key < self._kept and now != [instead.get(v.node, v.node) for v in self._read[key]]:
                return None
        order = self.order
        return [*order[:at], made[0], *order[at + 1 : until], *order[until + 1 :]]

    def _unread(self, made: int, ends: Sequence[Output]) -> list[int]:
        """The nodes that went out of use as ``made`` was added."""
        found = dict.fromkeys(old.node for old in self._redirects)
        for key in tuple(found):
            found |= dict.fromkeys(v.node for v in self._read[key])
        for value in self._nodes[made].operands:
            found.pop(value.node, None)
        for end in ends:
            found.pop(end.value.node, None)
        found.pop(-1, None)
        while read := [key for key in found if not self._readers_of(key) <= found.keys()]:
            for key in read:
                del found[key]
        return list(found)

    def _readers_of(self, key: int) -> set[int]:
        """The nodes that still read a result of ``key`` in the midst of an edit."""
        found = self.readers(key)
        return {r for r in found if any(v.node == key for v in self._nodes[r].operands)}

    def _relinked(self, old_order: list[int], contracted: bool) -> Change:
        """Bring the readers up to date."""
        gone = tuple(key for key in old_order if key not in self.rank)
        new = tuple(sorted(key for key in self._changed if key in self.rank))
        cut = self._cuts(gone, new)
        later = self._read[gone[-1]] if gone else ()  # a contraction moves no other uses
        read = [value for key in (*gone, *new) for value in self._read.get(key, ())]
        for key in (*gone, *new):
            for value in dict.fromkeys(self._read.pop(key, ())):
                del self._readers[value][key]
        for key in self._changed.union(gone).difference(self.rank):
            del self._nodes[key]
        self._link(new)
        read += [value for key in new for value in self._nodes[key].operands]
        near = dict.fromkeys(value.node for value in read)
        inputs = dict.fromkeys(v.port for v in (later if contracted else read) if v.node < 0)
        moved = () if contracted else _moved(old_order, self.order)
        beside = tuple(key for key in near if key in self.rank)
        return Change(new, beside, gone, tuple(inputs), moved, cut)

    def _link(self, keys: Iterable[int]) -> None:
        for key in keys:
            operands = self._nodes[key].operands
            self._read[key] = operands
            for value in operands:
                self._readers.setdefault(value, {})[key] = None

    def _cuts(self, gone: tuple[int, ...], new: tuple[int, ...]) -> bool:
        """Whether a path may have gone: not if one new node stands for all that went."""
        made = [key for key in new if key >= self._kept]
        if len(made) != 1:
            return True
        instead = dict.fromkeys(gone, made[0])
        for key in (*gone, *new):
            reader = instead.get(key, key)
            reads = {value.node for value in self._nodes[reader].operands} | {reader}
            if any(instead.get(v.node, v.node) not in reads for v in self._read.get(key, ())):
                return True
        return False


def _moved(old: list[int], new: list[int]) -> tuple[int, ...]:
    """The nodes of both between the first and the last that stand elsewhere among them."""
    was, now = {*old}, {*new}
    before = [key for key in old if key in now]
    after = [key for key in new if key in was]
    places = [i for i, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
    return tuple(after[places[0] : places[-1] + 1]) if places else ()
