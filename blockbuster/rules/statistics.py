"""Statistics: values inside maps that can be computed separately, at a rate of their own.

A statistic is a sum, or made of sums only, and smaller than the arrays it comes from: the mean of a
row, its reciprocal deviation, the sums of a weight's columns. Its *slice* is the set of nodes that
compute it. Its *rate* is the set of dims, of the maps around it, over which the slice reads items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from blockbuster.ir.builder import Builder
from blockbuster.ir.graph import Graph, Node, Value
from blockbuster.ir.ops import (
    Collect,
    Functional,
    Map,
    Misc,
    Reduce,
    Rescale,
)
from blockbuster.ir.origin import Origin
from blockbuster.ir.ports import with_inputs
from blockbuster.ir.types import Dim, Type
from blockbuster.rules.base import Note, Refusal, Rule, hint_of, label, map_of
from blockbuster.rules.element_formulas import applies
from blockbuster.rules.legality import first_iteration_gone, map_at

Path = tuple[int, ...]
Rate = tuple[Dim, ...]


@dataclass(frozen=True)
class Values:
    """``values`` of the level at ``path``, of one ``rate``: all that the rest of it reads."""

    path: Path
    values: tuple[Value, ...]
    rate: Rate


@dataclass(frozen=True)
class Slice:
    """The nodes that compute some values of an inner level, as part of the outermost map's body.

    ``map`` is that map, ``walks`` says of each map around the values, outermost first, whether the
    slice reads items of its lists.
    """

    map: Node
    body: Graph
    walks: tuple[bool, ...]
    rate: Rate

    @property
    def read(self) -> tuple[Value, ...]:
        """The values that the slice reads outside of all maps."""
        return tuple(self.map.operands[port] for port in self.body.inputs_by_first_use)


def slice_of(graph: Graph, path: Path, values: tuple[Value, ...], origin: Origin) -> Slice:
    """The slice of ``values`` of the level at ``path``; its maps have the ``origin``."""
    levels = [*graph.along(path)]
    body = Builder(levels[-1]).finish(*values)
    around = [level.nodes[at] for level, at in zip(levels, path, strict=False)]
    walks = [_walks(around[-1], body)]
    for level, inner, outer in zip(levels[-2:0:-1], around[:0:-1], around[-2::-1], strict=True):
        edit = Builder(level)
        body = edit.finish(*added(edit, inner, body, origin))
        walks.insert(0, _walks(outer, body))
    dims = [map_of(node).dim for node in around]
    rate = tuple(dim for dim, walked in zip(dims, walks, strict=True) if walked)
    return Slice(around[0], body, tuple(walks), rate)


def added(edit: Builder, node: Node, body: Graph, origin: Origin) -> tuple[Value, ...]:
    """The results of ``body``, a part of the body of the map ``node``, computed beside the map.

    In a map of their own that lists them, where they differ from one iteration to the next.
    """
    op, read = map_of(node), body.inputs_by_first_use
    part, operands = with_inputs(body, read), [node.operands[port] for port in read]
    if not _walks(node, body):
        nodes = tuple(replace(inner, origin=origin) for inner in part.nodes)
        return edit.inline(replace(part, nodes=nodes), operands)
    results = (Collect(),) * len(part.outputs)
    made = Map(op.dim, part, tuple(op.iterated[port] for port in read), results)
    hints = tuple(hint_of(body, output.value) for output in body.outputs)
    return edit.add(made, *operands, hints=hints, origin=origin)


def statistics(rule: Rule, graph: Graph, position: int, note: Note) -> Iterator[Values]:
    """The statistics inside the map at ``position``, outer levels first; ``note`` hears of other
    sums.
    """
    for inner, level in map_at(graph, position).body.walk():
        path = (position, *inner)

        def refuse(value: Value, reason: str, level: Graph = level) -> None:
            note(Refusal(rule, (position,), reason.format(name_of(level, value))))

        rates = dict(_rates(graph, path, level, refuse))
        for rate in dict.fromkeys(rates.values()):
            values = tuple(v for v in rates if rates[v] == rate and _needed(level, v, rates))
            part = slice_of(graph, path, values, Origin()) if values else None
            stored = already_stored(graph, path, part) if part else ""
            if stored:
                refuse(values[0], stored)
            elif part:  # nobody reads the maximum that a group is rescaled by
                yield Values(path, values, rate)


def _rates(
    graph: Graph, path: Path, level: Graph, refuse: Callable[[Value, str], None]
) -> Iterator[tuple[Value, Rate]]:
    """The statistics of one level: sums, and what is made of those of one rate."""
    rates: dict[Value, Rate] = {}
    for at, node in enumerate(level.nodes):
        for port in range(len(node.types)):
            value, summed = Value(at, port), _accumulated(node, port)
            made_of = {rates[v] for v in node.operands if v in rates}
            if not summed and (isinstance(node.op, Map) or len(made_of) != 1):
                continue
            part = slice_of(graph, path, (value,), Origin())
            reason = why_not_apart(graph, path, part) or no_smaller(graph, part)
            if summed and reason:
                refuse(value, reason)
            elif not reason and (summed or made_of == {part.rate}):
                rates[value] = part.rate
                yield value, part.rate


def _accumulated(node: Node, port: int) -> bool:
    if isinstance(node.op, Map):
        return not isinstance(node.op.results[port], Collect)
    return isinstance(node.op, Reduce)


def _needed(level: Graph, value: Value, rates: Mapping[Value, Rate]) -> bool:
    """True if ``value`` leaves the level, or is read by what is no statistic of its rate."""
    elsewhere = any(rates.get(reader) != rates[value] for reader in _readers(level, value))
    return elsewhere or value in level.output_values


def _readers(level: Graph, value: Value) -> Iterator[Value]:
    return (Value(node) for node, _ in level.uses_of(value))


# Side conditions: each returns "" where it is met, else the reason, with {} for the value --------


def why_not_apart(graph: Graph, path: Path, part: Slice) -> str:
    """Why a slice cannot stand apart from the maps around it, or should not."""
    return (
        _inside_a_peeled_map(graph, path)
        or in_a_group(part)
        or holds_matmul(part)
        or holds_exponential(part)
        or opaque(part)
        or spread_over_blocks(graph, path, part)
    )


def _inside_a_peeled_map(graph: Graph, path: Path) -> str:
    """The values of a peeled map's first iteration are computed elsewhere."""
    around = zip(graph.along(path), path, strict=False)
    return next(filter(None, (first_iteration_gone(level, at) for level, at in around)), "")


def in_a_group(part: Slice) -> str:
    """A sum that is rescaled as a maximum grows depends on what the same loop accumulates."""
    for node in nodes_of(part.body):
        if isinstance(node.op, Map) and any(isinstance(r, Rescale) for r in node.op.results):
            return "{} is rescaled by a running maximum, which the same loop accumulates"
    return ""


def holds_matmul(part: Slice) -> str:
    """What a matmul makes is larger than what it reads: it would be computed twice."""
    if any(node.op == Functional("dot") for node in nodes_of(part.body)):
        return "{} comes of a matmul, which would be computed twice"
    return ""


def holds_exponential(part: Slice) -> str:
    """The safe form of an exponential's sum is a pair, and both would have to be stored."""
    for node in nodes_of(part.body):
        if applies(node, "exp"):
            return "{} comes of an exponential, whose sums go with a running maximum"
    return ""


def opaque(part: Slice) -> str:
    """Nobody knows what a misc operator costs, or whether it may run more than once."""
    for node in nodes_of(part.body):
        if isinstance(node.op, Misc):
            return f"{{}} depends on {label(node)}, which is opaque"
    return ""


def spread_over_blocks(graph: Graph, path: Path, part: Slice) -> str:
    """Outside of a map no block of its dim says how far a value is spread."""
    dims = [map_at(level, at).dim for level, at in zip(graph.along(path), path, strict=False)]
    for dim, walked in zip(dims, part.walks, strict=True):
        if not walked and any(dim in t.axes for node in nodes_of(part.body) for t in node.types):
            return f"{{}} is computed from values spread over a block of {dim}"
    return ""


def no_smaller(graph: Graph, part: Slice) -> str:
    """A value with as many dims as what it is computed from is no statistic of it."""
    (output,) = part.body.outputs
    own = {*part.rate, *dims_of(part.body.type_of(output.value))}
    if any(len(own) < len(dims_of(graph.type_of(value))) for value in part.read):
        return ""
    return "{} has as many dims as what it is computed from"


def already_stored(graph: Graph, path: Path, part: Slice) -> str:
    """Maps that do nothing but list the values are what materializing them would make."""
    around = [map_at(level, at) for level, at in zip(graph.along(path), path, strict=False)]
    lists = all(isinstance(result, Collect) for op in around for result in op.results)
    if lists and all(part.walks) and part.body.size == around[0].body.size:
        return "{} is stored already, and its map computes nothing else"
    return ""


def nodes_of(body: Graph) -> Iterator[Node]:
    """The nodes of all levels."""
    return (node for _, level in body.walk() for node in level.nodes)


def dims_of(type: Type) -> set[Dim]:
    """The dims of lists and of axes."""
    return {*type.lists, *type.axes}


def _walks(node: Node, body: Graph) -> bool:
    return any(map_of(node).iterated[port] for port in body.inputs_by_first_use)


def name_of(level: Graph, value: Value) -> str:
    """A readable name of a value: its hint, or what is folded, or the operator that made it."""
    hint, node = hint_of(level, value), level.nodes[value.node]
    if hint or not isinstance(node.op, Map):
        return hint or label(node)
    body = node.op.body
    folded = body.outputs[value.port].value
    made = label(body.nodes[folded.node]) if folded.node >= 0 else "items"
    return f"{hint_of(body, folded) or made} over {node.op.dim}"
