"""Depth-first order of nodes, and its update after an edit without a walk over the whole graph.

A node stands behind the nodes it depends on, operands left to right. So whenever a node is done,
all nodes before it in the order are done, too. The order after an edit then follows from the order
before it, as long as the walk comes to the same nodes in the same state. ``order_with_inlined``
computes it if nodes were added behind a graph, ``order_if_replaced`` if new nodes replace old ones;
both return None if they cannot tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, filterfalse

from blockbuster.errors import VerifyError
from blockbuster.ir.graph import Node, Value
from blockbuster.ir.uses import Uses, results_of

Nodes = Mapping[int, Node]
Reads = Mapping[int, Sequence[int]]


def dependency_order(nodes: Nodes, ends: Iterable[Value]) -> list[int]:
    """Keys of the nodes that ``ends`` need: depth-first, operands left to right."""
    reads = {key: [value[0] for value in node.operands] for key, node in nodes.items()}
    return depth_first(reads, [end[0] for end in ends])


def depth_first(reads: Reads, ends: Sequence[int]) -> list[int]:
    """The nodes of ``reads`` that ``ends`` need, each behind what it reads of them, in order."""
    order: list[int] = []
    done: set[int] = set()
    entered: set[int] = set()
    stack = [end for end in reversed(ends) if end in reads]
    while stack:
        key = stack[-1]
        if key not in entered:
            entered.add(key)
            below = [k for k in reversed(reads[key]) if k in reads and k not in done]
            if not entered.isdisjoint(below):
                raise VerifyError("the graph has a cycle: a node depends on its own result")
            if below:
                stack += below
                continue  # until all of them are done and the node is on top again
        stack.pop()
        if key not in done:
            done.add(key)
            order.append(key)
    return order


def order_with_inlined(
    nodes: Nodes, old: Sequence[int], made: Iterable[int], ends: Sequence[int]
) -> list[int] | None:
    """The order of a graph's nodes and those ``made`` since, which may read its outputs.

    ``old`` are the nodes of its outputs; before the edit a node's key is its position. The graph's
    part up to an output is done when that is read, if the outputs are read as they come: then the
    next one's part stands behind.
    """
    reads = {key: [value[0] for value in nodes[key].operands] for key in made}
    count = len(nodes) - len(reads)
    order: list[int] = []
    done = 0  # nodes of the graph
    parts = iter(_increasing(old))
    for key in depth_first({**dict.fromkeys(old, ()), **reads}, ends):
        if key >= count:
            order.append(key)
        elif key >= done:
            if key != next(parts):
                return None
            order += range(done, key + 1)
            done = key + 1
    return order if done == count and _within(reads.values(), {-1, *old, *reads}) else None


def _increasing(keys: Iterable[int]) -> Iterator[int]:
    """The keys that are greater than all before them."""
    last = -1
    for key in keys:
        if key > last:
            last = key
            yield key


def _within(reads: Iterable[Sequence[int]], known: set[int]) -> bool:
    return all(known.issuperset(keys) for keys in reads)


@dataclass(frozen=True)
class Edit:
    """An edit of nodes that ``were`` in order: ``uses`` and ``order`` are from before it.

    Only ``uses.nodes`` has come further. ``changed`` are the nodes that are new or that read
    something else, the new ones being no keys of ``were``; what read a value of the node ``k``
    reads one of ``instead[k]``. ``ends`` are the nodes of the outputs.
    """

    uses: Uses
    order: Sequence[int]
    were: Nodes
    changed: Sequence[int]
    instead: Mapping[int, int]
    ends: Sequence[int]

    def gone(self) -> dict[int, None]:
        """The old nodes that nothing needs any more."""
        nodes, changed = self.uses.nodes, dict.fromkeys(self.changed)
        reading: dict[int, list[int]] = {}
        for key in changed:
            for node in nodes[key].makers:
                reading.setdefault(node, []).append(key)
        found: dict[int, None] = {}

        def needed(key: int) -> bool:
            before = (self.uses.readers.get(value, ()) for value in results_of(nodes, key))
            readers = chain(reading.get(key, ()), filterfalse(changed.__contains__, chain(*before)))
            return key in self.ends or not all(map(found.__contains__, readers))

        stack = [*self.instead]
        stack += chain.from_iterable(self.were[k].makers for k in changed if k in self.were)
        while stack:
            key = stack.pop()
            if key in self.were and key not in found and not needed(key):
                found[key] = None
                stack += (*self.were[key].makers, *nodes[key].makers)
        return found


@dataclass(frozen=True)
class Replaced:
    """The order after a new node took the place of an old one.

    What stood in ``window`` stands as in ``inside``, what stood ``late`` is gone, and all else
    stands as it stood; ``moved`` are those of window and inside that changed places.
    """

    order: list[int]
    window: list[int]
    late: list[int]
    inside: list[int]
    moved: tuple[int, ...]


def order_if_replaced(edit: Edit) -> Replaced | None:
    """The order where a new node, with others behind it, takes the place of one that goes.

    The walk comes to the new node in the state in which it came to the old one. If it leaves with
    the same nodes done, all others stand as they stood. What else the new node stands for must have
    added nothing to the order but itself.
    """
    places = {*edit.instead.values()}
    if len(places) != 1 or -1 in edit.instead:
        return None
    gone, rank = edit.gone(), edit.uses.rank
    (top,) = places
    first, *late = sorted(edit.instead, key=rank.__getitem__)
    if (
        top in edit.were
        or not gone.keys() >= edit.instead.keys()
        or not _same_places(edit, gone)
        or not all(_adds_only_itself(edit, key, first, gone) for key in late)
    ):
        return None
    begin, end = _begin(edit, first, top, gone), rank[first] + 1
    if begin is None:
        return None
    window = [*edit.order[begin:end]]
    stay = [*filterfalse(gone.__contains__, window)]
    if len(stay) + len(gone) - len(late) != end - begin or _entered_sooner(edit, stay, end, late):
        return None
    made = [key for key in edit.changed if key not in edit.were]
    reads = {key: edit.uses.nodes[key].makers for key in (*made, *stay)}
    before = {node for nodes in reads.values() for node in nodes if node not in reads}
    inside = depth_first(reads, [top])
    if len(inside) < len(reads) or any(rank[node] >= begin for node in before):
        return None
    rest = [*filterfalse(late.__contains__, edit.order[end:])]
    moved = moved_among(stay, [*filter(rank.__contains__, inside)])
    return Replaced([*edit.order[:begin], *inside, *rest], window, late, inside, moved)


def _same_places(edit: Edit, gone: Mapping[int, None]) -> bool:
    """True if all that stay read what they read, but for what takes another's place."""
    return all(
        [v.node for v in edit.uses.nodes[key].operands]
        == [edit.instead.get(v.node, v.node) for v in edit.were[key].operands]
        for key in edit.changed
        if key in edit.were and key not in gone
    )


def _adds_only_itself(edit: Edit, key: int, first: int, gone: Mapping[int, None]) -> bool:
    """True if the walk enters ``first`` as soon as ``key``, and finds the rest done then."""
    read, rank = edit.were[key].makers, edit.uses.rank
    return read[:1] == (first,) and all(n in gone or rank[n] < rank[first] for n in read)


def _begin(edit: Edit, first: int, top: int, gone: Mapping[int, None]) -> int | None:
    """How many nodes are done, in the old walk as in the new, before the two may differ.

    From ``first`` the walk goes down to what is read first. If that stays, it must be the same from
    ``top``; if nothing is read by a node that goes, that node itself is the first that is done.
    """
    rank = edit.uses.rank
    below = first
    while below in gone:
        node = below
        below = next(iter(edit.were[node].makers), -1)
    if below < 0:
        return rank[node]
    now = top
    while now >= 0 and now not in rank:
        now = next(iter(edit.uses.nodes[now].makers), -1)
    return rank[below] + 1 if now == below else None


def _entered_sooner(edit: Edit, window: Iterable[int], end: int, late: Sequence[int]) -> bool:
    """True if a node in the window may have been done before the walk came to the one replaced."""
    uses = edit.uses
    return any(
        value in uses.leaves_at
        or any(uses.rank[r] >= end and r not in late for r in uses.readers.get(value, ()))
        for key in window
        for value in results_of(uses.nodes, key)
    )


def moved_among(old: Sequence[int], new: Sequence[int]) -> tuple[int, ...]:
    """Of the same nodes in two orders: those between the first and the last that differ."""
    places = [i for i, (a, b) in enumerate(zip(old, new, strict=True)) if a != b]
    return tuple(new[places[0] : places[-1] + 1]) if places else ()
