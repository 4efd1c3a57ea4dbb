"""A graph level that rules rewrite in place: read like a graph, edited like a builder.

A node keeps its key for as long as it stays as it is, so an edit costs what it touches: nothing is
renumbered. ``finish`` brings the level back into canonical form, in which ``rank`` tells the
position that a node has in ``graph()``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, KeysView, Mapping, Sequence
from dataclasses import dataclass
from itertools import filterfalse, pairwise, takewhile
from operator import eq, itemgetter
from typing import NamedTuple, TypeVar, cast

from blockbuster.ir.builder import Builder, rebuild
from blockbuster.ir.canonical import Canonical
from blockbuster.ir.graph import Graph, Input, Node, Output, Value
from blockbuster.ir.ops import Op
from blockbuster.ir.order import Edit, Replaced, moved_among, order_if_replaced
from blockbuster.ir.uses import LOOK_AHEAD, Uses, results_of

OpT = TypeVar("OpT", bound=Op)
NODE = itemgetter(0)
"""The node of a value, as fast as can be: maps of hundreds of operands are made again and again."""


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


class _Before(NamedTuple):
    """What an edit found: the order, where values left, and what nodes read that it changed."""

    order: Sequence[int]
    leaves_at: Mapping[Value, int]
    reads: dict[int, tuple[Value, ...]]


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
        """The operands of each node, as ``_readers`` has them."""
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
        rank, operands = self.rank, dict.fromkeys(self._nodes[position].operands)
        found = {key for value in operands for key in self._readers[value]}
        return tuple(sorted((k for k in found if rank[k] < rank[position]), key=rank.__getitem__))

    def readers(self, key: int) -> dict[int, None]:
        """The nodes that read a result of ``key``."""
        found: dict[int, None] = {}
        for value in results_of(self._nodes, key):
            found |= self._readers.get(value, {})
        return found

    def siblings(self, key: int) -> dict[int, None]:
        """The nodes that read what ``key`` reads."""
        found: dict[int, None] = {}
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
        for key in self._changed.union(before.reads).difference(self.rank):
            del self._nodes[key]
        self._kept, self._redirects, self._changed = self._next, {}, set()
        return cast(Graph, self)

    def _replaced(self, ends: Sequence[Output]) -> Replaced | None:
        """The order after an edit that puts a new node in the place of old ones."""
        instead = {old.node: self._redirected(old).node for old in self._redirects}
        nodes = [end.value.node for end in ends]
        if [o.value.node for o in self._outputs] != nodes and [
            instead.get(o.value.node, o.value.node) for o in self._outputs
        ] != nodes:
            return None
        uses, changed = self._uses(), sorted(self._changed)
        return order_if_replaced(Edit(uses, self.order, self._read, changed, instead, nodes))

    def _relink(self, work: Canonical, before: _Before) -> None:
        """Bring order, outputs and readers up to date; notes in ``before`` what was read."""
        rank = dict(zip(work.order, range(len(work.order)), strict=True))
        gone = [*filterfalse(rank.__contains__, self.order)]
        self.order, self.rank = work.order, rank
        self._outputs = tuple(work.ends)
        self._leaves_at = _first_places(self._outputs)
        edited = sorted(self._changed)
        for key in (*gone, *edited):
            operands = self._read.pop(key, ())
            self._of_several_results.pop(key, None)
            if key < self._kept:
                before.reads.setdefault(key, operands)
            for value in dict.fromkeys(operands):
                del self._readers[value][key]
        self._link(key for key in edited if key in rank)

    def _change_since(self, before: _Before, known: Replaced | None) -> Change:
        gone = tuple(filterfalse(self.rank.__contains__, before.order))
        new = tuple(sorted(key for key in self._changed if key in self.rank))
        read = [value for key in (*gone, *new) for value in before.reads.get(key, ())]
        read += [value for key in new for value in self._nodes[key].operands]
        near = dict.fromkeys(map(NODE, read))
        moved = known.moved if known else moved_among(*_in_both(before.order, self.order))
        uses = self._moved_uses(before, known) if known else read
        inputs = dict.fromkeys(v.port for v in uses if v.node < 0)
        beside = tuple(key for key in near if key in self.rank)
        return Change(new, beside, gone, tuple(inputs), moved, self._cuts(before))

    def _moved_uses(self, before: _Before, known: Replaced) -> tuple[Value, ...]:
        """What was read late, and where the reads of the window begin to differ, and behind."""
        nodes = self._nodes
        old = [v for k in known.window for v in before.reads.get(k) or nodes[k].operands]
        new = [v for k in known.inside for v in nodes[k].operands]
        late = [v for k in known.late for v in before.reads[k]]
        same = sum(1 for _ in takewhile(bool, map(eq, old, new)))
        return (*old[same:], *new[same:], *late)

    def _link(self, keys: Iterable[int]) -> None:
        for key in keys:
            node = self._nodes[key]
            operands = node.operands
            self._read[key] = operands
            if len(node.types) > 1:
                self._of_several_results[key] = None
            for value in operands:
                self._readers.setdefault(value, {})[key] = None

    def _cuts(self, before: _Before) -> bool:
        """Whether a path may have gone: not if one new node stands for all that went."""
        new = sorted(key for key in self._changed if key in self.rank)
        made = [key for key in new if key >= self._kept]
        if len(made) != 1:
            return True
        instead = {key: made[0] for key in before.reads if key not in self.rank}
        for key, was_read in before.reads.items():
            reader = instead.get(key, key)
            reads = {*map(NODE, self._nodes[reader].operands), reader}
            if any(instead.get(node, node) not in reads for node in {*map(NODE, was_read)}):
                return True
        return False

    # the order of results

    def _uses(self) -> Uses:
        return Uses(self._nodes, self.rank, self._readers, self._leaves_at)

    def _touched(self, before: _Before) -> dict[int, None]:
        """The nodes of several results of which some result is or was read by what changed."""
        keys = [*sorted(self._changed)]
        reads = [self._nodes[key].operands for key in keys if key in self.rank]
        keys += [value.node for operands in (*before.reads.values(), *reads) for value in operands]
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


def _in_both(old: Sequence[int], new: Sequence[int]) -> tuple[list[int], list[int]]:
    """The nodes that are in both orders, as they stand in the one and in the other."""
    was, now = {*old}, {*new}
    return [*filter(now.__contains__, old)], [*filter(was.__contains__, new)]


def _first_places(outputs: Sequence[Output]) -> dict[Value, int]:
    """The values that leave the graph, and where each does so first."""
    places: dict[Value, int] = {}
    for at, output in enumerate(outputs):
        places.setdefault(output.value, at)
    return places
