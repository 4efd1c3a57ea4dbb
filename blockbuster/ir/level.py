"""A graph level that rules rewrite in place: read like a graph, edited like a builder.

A node keeps its key as long as it is unchanged, so an edit costs what it touches: nothing is
renumbered. ``finish`` brings the level back into canonical form, in which ``rank`` is the position
of a node in ``graph()``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, KeysView, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, filterfalse, pairwise, takewhile
from operator import eq
from typing import NamedTuple, TypeVar, cast

from blockbuster.ir.builder import Builder, rebuild
from blockbuster.ir.canonical import Canonical
from blockbuster.ir.graph import Graph, Input, Node, Output, Value
from blockbuster.ir.ops import Op
from blockbuster.ir.order import Edit, Replaced, moved_among, order_if_replaced
from blockbuster.ir.uses import LOOK_AHEAD, Uses, results_of

OpT = TypeVar("OpT", bound=Op)


@dataclass(frozen=True)
class Change:
    """The nodes of an edit: new nodes, nodes next to them, removed nodes.

    ``inputs`` are those that were or are read there, ``reordered`` the nodes that may have changed
    places; ``cut`` tells that a path may have gone.
    """

    new: tuple[int, ...] = ()
    near: tuple[int, ...] = ()
    gone: tuple[int, ...] = ()
    inputs: tuple[int, ...] = ()
    reordered: tuple[int, ...] = ()
    cut: bool = False


class _Before(NamedTuple):
    """What an edit found: the order, where values left, and the nodes that it changed."""

    order: Sequence[int]
    leaves_at: Mapping[Value, int]
    nodes: dict[int, Node]


class Level(Builder):
    """A builder that is canonical between edits, with the part of ``Graph`` that our rules read.

    All that both can be asked a level answers as its graph does, in keys instead of positions.
    """

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.order: list[int] = list(self._nodes)
        self.rank: dict[int, int] = {key: key for key in self.order}
        self.change = Change()
        self.found_path = False
        """Set by ``reaches`` when it answers yes: what a rule concludes from that is not local."""
        self._linked: dict[int, Node] = {}
        """The nodes as ``_readers`` has them."""
        self._readers: dict[Value, dict[int, None]] = {}
        self._of_several_results: dict[int, None] = {}
        """The nodes of several results."""
        self._unsure: dict[int, None] = {}
        """The nodes of several results whose order may depend on more than paths among readers."""
        self._graph: Graph | None = graph
        self._leaves_at = _first_places(self._outputs)
        self._results = len(self._leaves_at)
        self._unused = (sys.maxsize, 0)
        self._link(self.order)
        self._unsure |= self._of_several_results

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
    def output_values(self) -> KeysView[Value]:
        """The values that leave the graph."""
        return self._leaves_at.keys()

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
        rank, found = self.rank, self.siblings(position) if self.rank[position] else {}
        return tuple(sorted((k for k in found if rank[k] < rank[position]), key=rank.__getitem__))

    def readers(self, key: int) -> dict[int, None]:
        """The nodes that read a result of ``key``."""
        reading = map(self._readers.get, results_of(self._nodes, key))
        return dict.fromkeys(chain.from_iterable(filter(None, reading)))

    def siblings(self, key: int) -> dict[int, None]:
        """The nodes that read what ``key`` reads."""
        if len(self.order) == 1:
            return {key: None}  # as outer maps often are, with hundreds of operands
        reading = map(self._readers.__getitem__, self._nodes[key].operands)
        return dict.fromkeys(chain.from_iterable(reading))

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
        at = self._leaves_at.get(value)
        return self._unused if at is None else (len(self.order), at)

    def reaches(self, producer: int, consumer: int) -> bool:
        """True if ``consumer`` depends on ``producer``, directly or through others."""
        found = self._uses().path(producer, consumer)
        self.found_path |= found
        return found

    def graph(self) -> Graph:
        """The level as a graph."""
        if self._graph is None:
            self._graph = self._numbered(self._nodes, self.order, self._outputs)
        return self._graph

    def take_bodies(self, graph: Graph, positions: Iterable[int]) -> None:
        """Go on as ``graph``, where maps have other bodies of the same ports."""
        keys = [self.order[position] for position in positions]
        for key, position in zip(keys, positions, strict=True):
            self._nodes[key] = self._nodes[key].computing(graph.nodes[position].op)
        near = dict.fromkeys(chain.from_iterable(self._nodes[key].makers for key in keys))
        self.change = Change(tuple(keys), tuple(near))
        self._graph = graph

    # edited like a builder

    def finish(self, *outputs: Value | Output) -> Graph:
        """Ends an edit: the level itself, canonical again; ``change`` says what happened."""
        ends = self._ends(outputs)
        self._changed.update(range(self._kept, self._next))
        self._apply_redirects(
            dict.fromkeys(k for old in self._redirects for k in self._readers.get(old, ()))
        )
        known = self._replaced(ends)
        before = _Before(self.order, self._leaves_at, {})
        work = Canonical(self._nodes, ends, self._changed, rebuild, known.order if known else None)
        work.merge()
        work.tidy()
        self._relink(work, before)
        touched = self._touched(before)
        while self._drop_unread(work, touched):
            self._relink(work, before)
            touched = self._touched(before)
        if not self._sure_of_results(before, touched):
            work.sort()
            self._relink(work, before)
        self._graph = None
        if known and work.order is not known.order:
            known = None  # what it told was not the end of it
        self.change = self._change_since(before, known)
        for key in self._changed.union(before.nodes).difference(self.rank):
            del self._nodes[key]
        self._kept, self._redirects, self._changed = self._next, {}, set()
        return cast(Graph, self)

    def _replaced(self, ends: Sequence[Output]) -> Replaced | None:
        """The order after an edit that puts a new node in the place of old ones."""
        instead = {old[0]: new[0] for old, new in self._instead().items()}
        nodes = [end.value.node for end in ends]
        if [o.value.node for o in self._outputs] != nodes and [
            instead.get(o.value.node, o.value.node) for o in self._outputs
        ] != nodes:
            return None
        uses, changed = self._uses(), sorted(self._changed)
        return order_if_replaced(Edit(uses, self.order, self._linked, changed, instead, nodes))

    def _relink(self, work: Canonical, before: _Before) -> None:
        """Bring order, outputs and readers up to date; notes in ``before`` what was read."""
        rank = dict(zip(work.order, range(len(work.order)), strict=True))
        gone = [*filterfalse(rank.__contains__, self.order)]
        self.order, self.rank = work.order, rank
        self._outputs = tuple(work.ends)
        self._leaves_at = _first_places(self._outputs)
        edited = sorted(self._changed)
        for key in (*gone, *edited):
            self._of_several_results.pop(key, None)
            if key not in self._linked:
                continue
            node = self._linked.pop(key)
            if key < self._kept:
                before.nodes.setdefault(key, node)
            for value in dict.fromkeys(node.operands):
                del self._readers[value][key]
        self._link(key for key in edited if key in rank)

    def _change_since(self, before: _Before, known: Replaced | None) -> Change:
        gone = tuple(filterfalse(self.rank.__contains__, before.order))
        new = tuple(sorted(key for key in self._changed if key in self.rank))
        were = [before.nodes[key] for key in (*gone, *new) if key in before.nodes]
        read = [*were, *map(self._nodes.__getitem__, new)]
        near = dict.fromkeys(chain.from_iterable(node.makers for node in read))
        moved = known.moved if known else moved_among(*_in_both(before.order, self.order))
        uses = self._moved_uses(before, known) if known else _operands(read)
        inputs = dict.fromkeys(v.port for v in uses if v.node < 0)
        beside = tuple(key for key in near if key in self.rank)
        return Change(new, beside, gone, tuple(inputs), moved, self._cuts(before))

    def _moved_uses(self, before: _Before, known: Replaced) -> tuple[Value, ...]:
        """What was read late, and where the reads of the window begin to differ, and behind."""
        nodes = self._nodes
        old = _operands(before.nodes.get(k) or nodes[k] for k in known.window)
        new = _operands(nodes[k] for k in known.inside)
        late = _operands(before.nodes[k] for k in known.late)
        same = sum(1 for _ in takewhile(bool, map(eq, old, new)))
        return (*old[same:], *new[same:], *late)

    def _link(self, keys: Iterable[int]) -> None:
        for key in keys:
            node = self._linked[key] = self._nodes[key]
            if len(node.types) > 1:
                self._of_several_results[key] = None
            for value in node.operands:
                self._readers.setdefault(value, {})[key] = None

    def _cuts(self, before: _Before) -> bool:
        """Whether a path may have gone: not if one new node stands for all that went."""
        new = sorted(key for key in self._changed if key in self.rank)
        made = [key for key in new if key >= self._kept]
        if len(made) != 1:
            return True
        instead = {key: made[0] for key in before.nodes if key not in self.rank}
        for key, was in before.nodes.items():
            reader = instead.get(key, key)
            reads = {*self._nodes[reader].makers, reader}
            if any(instead.get(node, node) not in reads for node in was.makers):
                return True
        return False

    # the order of results

    def _uses(self) -> Uses:
        return Uses(self._nodes, self.rank, self._readers, self._leaves_at)

    def _touched(self, before: _Before) -> dict[int, None]:
        """The nodes of several results of which some result is or was read by what changed."""
        keys = [*sorted(self._changed)]
        now = [self._nodes[key] for key in keys if key in self.rank]
        keys += chain.from_iterable(node.makers for node in (*before.nodes.values(), *now))
        left = self._leaves_at.items() ^ before.leaves_at.items()
        keys += sorted(value.node for value, _ in left)
        return dict.fromkeys(filter(self._of_several_results.__contains__, keys))

    def _drop_unread(self, work: Canonical, touched: Iterable[int]) -> bool:
        """Drop results that nobody reads of nodes that an edit touched; True if there were some."""
        ports = {
            key: [v.port for v in values if self._readers.get(v) or v in self._leaves_at]
            for key in touched
            for values in [results_of(self._nodes, key)]
        }
        ports = {
            key: read for key, read in ports.items() if len(read) < len(self._nodes[key].types)
        }
        return work.keep(ports, dict.fromkeys(r for key in ports for r in self.readers(key)))

    def _sure_of_results(self, before: _Before, touched: Mapping[int, None]) -> bool:
        """True if results stand in order of first use whatever else the level looks like.

        Once sure of a node by its readers and the paths among them, we stay so until one of these
        changes; what rests on nodes further ahead is looked at after every edit.
        """
        if self._cuts(before):
            self._unsure = {**self._of_several_results}
        self._unsure |= touched
        uses = self._uses()
        for key in tuple(self._unsure):
            pairs = [*pairwise(results_of(self._nodes, key))] if key in self.rank else []
            if all(uses.surely_before(first, second) for first, second in pairs):
                del self._unsure[key]
            elif not all(uses.surely_before(*pair, ahead=LOOK_AHEAD) for pair in pairs):
                return False
        return True


def _operands(nodes: Iterable[Node]) -> list[Value]:
    return [*chain.from_iterable(node.operands for node in nodes)]


def _in_both(old: Sequence[int], new: Sequence[int]) -> tuple[list[int], list[int]]:
    """The nodes that are in both orders, as they stand in the one and in the other."""
    was, now = {*old}, {*new}
    return [*filter(now.__contains__, old)], [*filter(was.__contains__, new)]


def _first_places(outputs: Sequence[Output]) -> dict[Value, int]:
    """The values that leave the graph, and where each does so first."""
    values = [output.value for output in outputs]
    return dict(zip(reversed(values), reversed(range(len(values))), strict=True))
