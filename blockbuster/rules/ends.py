"""Ends: operators that reduce values which are larger than all their inputs.

The scores of attention are such values: they have the dims of queries and of keys, which no input
has together. An end reads them and returns a smaller value: a sum of rows or a product. A value
that is computed again for each of its ends is never stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from blockbuster.ir.graph import Graph, Index, Read, Value
from blockbuster.ir.ops import Map, Relabel
from blockbuster.ir.types import Dim
from blockbuster.ir.uses import results_of

Dims = frozenset[tuple[Dim, int]]
"""Dims by what they are called first, with a number that tells M and M' apart: M is there twice."""

Names = Mapping[Dim, Dim]


def first_names(graph: Graph) -> Names:
    """Of dims that are one axis under several names, the first: of one array, or relabeled.

    Words of the user do not count: dims of one size class may be axes that have nothing in common.
    """
    pairs = [(op.old, op.new) for _, level in graph.walk() for _, op in level.of_type(Relabel)]
    axes: dict[tuple[str, int], Dim] = {}
    for view in [given.view for given in graph.inputs if isinstance(given.view, Read)]:
        named_axes = ((at, axis) for at, axis in enumerate(view.axes) if isinstance(axis, str))
        pairs += [(axes.setdefault((view.source, at), axis), axis) for at, axis in named_axes]
    found = {dim: dim for dim in graph.mentions.dims}
    for old, new in pairs:
        first, other = found.setdefault(old, old), found.setdefault(new, new)
        found |= {dim: first for dim, name in found.items() if name == other}
    return found


def dims_of(graph: Graph, value: Value, names: Names) -> Dims:
    """The dims of its lists and axes."""
    type = graph.type_of(value)
    return named((*type.lists, *type.axes), names)


def named(dims: Iterable[Dim], names: Names) -> Dims:
    """``dims`` by their first names, as many times as there are dims of these."""
    found: list[Dim] = [names.get(dim, dim) for dim in dict.fromkeys(dims)]
    return frozenset((dim, found[:at].count(dim)) for at, dim in enumerate(found))


def stored_dims(graph: Graph, names: Names) -> set[Dims]:
    """The dims of what is stored between maps, with those of the maps around it."""
    found = set[Dims]()
    for path, value, _ in graph.buffered_edges():
        around = (graph.at(path[:depth]).nodes[at].op for depth, at in enumerate(path))
        type = graph.at(path).type_of(value)
        loops = (op.dim for op in around if isinstance(op, Map))
        found.add(named((*loops, *type.lists, *type.axes), names))
    return found


def larger(graph: Graph) -> dict[int, None]:
    """The nodes whose results have more dims than each array that goes into them, and are stored.

    What has all dims of a larger operand is larger too, whatever else it is made from: a mask that
    is an input does not make the masked scores small. What lacks one of them is an end: it counts
    as an array. Results of the program are stored in any case, and are not larger either.
    """
    found: dict[int, None] = {}
    given: list[frozenset[Dims]] = []
    names = first_names(graph)
    for at, node in enumerate(graph.nodes):
        arrays: set[Dims] = set()
        for value in node.operands:
            arrays |= given[value.node] if value.node >= 0 else _array(graph, value, names)
        if _is_larger(graph, at, found, arrays, names):
            found[at] = None
        else:
            arrays = {dims_of(graph, value, names) for value in results_of(graph.nodes, at)}
        given.append(frozenset(arrays))
    return found


def _array(graph: Graph, value: Value, names: Names) -> set[Dims]:
    """The dims of an input, unless it only counts."""
    counts = isinstance(graph.inputs[value.port].view, Index)
    return set() if counts else {dims_of(graph, value, names)}


def _is_larger(
    graph: Graph, at: int, found: dict[int, None], arrays: set[Dims], names: Names
) -> bool:
    results, leaving = results_of(graph.nodes, at), graph.output_values
    if any(value in leaving or not graph.type_of(value).buffered for value in results):
        return False
    own = [dims_of(graph, value, names) for value in results]
    large = [dims_of(graph, v, names) for v in graph.nodes[at].operands if v.node in found]
    if large:
        return all(operand <= dims for operand in large for dims in own)
    return not any(dims <= array for dims in own for array in arrays)


def ends_of(graph: Graph, large: dict[int, None]) -> dict[int, tuple[int, ...]]:
    """For each node of ``large`` the ends that it is made for, in order of their positions."""
    ends: dict[int, tuple[int, ...]] = {}
    for at in sorted(large, reverse=True):
        found: set[int] = set()
        for value in results_of(graph.nodes, at):
            for reader in graph.consumers(value):
                found.update(ends.get(reader, (reader,)))
        ends[at] = tuple(sorted(found))
    return ends
