"""Excerpts of a program: some nodes of one level, as a program of their own to be drawn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from blockbuster.ir.graph import Graph, Node, Output, Value
from blockbuster.ir.ops import Map
from blockbuster.rules.derivation import Path
from blockbuster.view.picture import as_input, hint_of


@dataclass(frozen=True)
class Excerpt:
    """A program of some nodes of another, in its order; ``paths`` are where they stand in that."""

    graph: Graph
    paths: tuple[Path, ...]


def excerpt(graph: Graph, paths: Sequence[Path]) -> Excerpt:
    """The nodes at ``paths``, all of one level; what they read from others becomes inputs."""
    level = graph.at(paths[0][:-1])
    kept = sorted({path[-1] for path in paths})
    place = {old: new for new, old in enumerate(kept)}
    read = [v for at in kept for v in level.nodes[at].operands if v.node not in place]
    given = {value: Value(-1, port) for port, value in enumerate(dict.fromkeys(read))}
    inputs = tuple(as_input(level, value) for value in given)

    def seen(value: Value) -> Value:
        inner = value.node in place
        return Value(place[value.node], value.port) if inner else given[value]

    nodes = tuple(
        level.nodes[at].reading(tuple(map(seen, level.nodes[at].operands))) for at in kept
    )
    outputs = tuple(Output(seen(v), hint_of(level, v)) for v in _read_elsewhere(level, place))
    return Excerpt(Graph(inputs, nodes, outputs), tuple((*paths[0][:-1], at) for at in kept))


def around(graph: Graph, sites: Iterable[Path], most: int) -> Excerpt:
    """The nodes where a step takes place and those near them, about ``most`` in all.

    Of sites at several levels, those are taken that share the level of the first.
    """
    first, *_ = sites = list(sites)
    level = graph.at(first[:-1])
    near = dict.fromkeys(path[-1] for path in sites if path[:-1] == first[:-1])
    count = sum(_size(level.nodes[at]) for at in near)
    for at in near_first(level, list(near)):
        count += _size(level.nodes[at])
        if count > most:
            break
        near[at] = None
    return excerpt(graph, [(*first[:-1], at) for at in near])


def near_first(level: Graph, sites: Sequence[int]) -> list[int]:
    """The other nodes of a level, the neighbours of ``sites`` first, then theirs, and so on."""
    joined: dict[int, dict[int, None]] = {at: {} for at in range(len(level.nodes))}
    for at, node in enumerate(level.nodes):
        for value in node.operands:
            if value.node >= 0:
                joined[at][value.node] = None
                joined[value.node][at] = None
    found = dict.fromkeys(sites)
    todo = list(sites)
    for at in todo:  # grows
        more = [other for other in joined[at] if other not in found]
        found |= dict.fromkeys(more)
        todo += more
    return todo[len(sites) :]


def _size(node: Node) -> int:
    """How many nodes a picture gets by one more, with its maps opened once."""
    return 1 + (len(node.op.body.nodes) if isinstance(node.op, Map) else 0)


def _read_elsewhere(level: Graph, kept: Iterable[int]) -> list[Value]:
    """The values of ``kept`` nodes that other nodes or the level's outputs read."""
    inside = set(kept)
    read = [v for at, n in enumerate(level.nodes) if at not in inside for v in n.operands]
    read += [output.value for output in level.outputs]
    found = dict.fromkeys(value for value in read if value.node in inside)
    unread = {Value(at, 0): None for at in sorted(inside) if not any(v.node == at for v in found)}
    used = {v.node for at in inside for v in level.nodes[at].operands}
    return [*found, *(value for value in unread if value.node not in used)]
