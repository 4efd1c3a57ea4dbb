"""Realistic sizes of dims, from how a program uses them: long sequences, wide layers, small heads.

A dim is narrow if it is the length of rows that are compared with other rows, as queries with keys:
it is the last axis of two inputs or more, over rows of different dims, and never another axis. Rows
that are compared with themselves have two dims of one size, S and S'. So is the last axis of what
those rows stand for, as values stand for keys.
"""

from __future__ import annotations

from blockbuster.ir.graph import Graph, Read
from blockbuster.ir.lengths import Length
from blockbuster.ir.list_only import list_only
from blockbuster.ir.types import Dim, size_class
from blockbuster.ir.views import array_dim

WIDE, NARROW, UNIT = 4096, 64, 4
"""Elements of a dim, of a narrow one, and of one without blocks, such as the batch."""


def usual_sizes(graph: Graph, dims: tuple[Dim, ...]) -> dict[Dim, int]:
    """The size with which a page opens, for each of ``dims``.

    A dim that is cut into heads has as many elements as give each head ``NARROW`` of them.
    """
    units, few = list_only(graph), narrow(graph)
    sizes = {d: UNIT if d in units else NARROW if d in few else WIDE for d in dims}
    for rule in graph.size_rules:
        for term in rule.length.terms if rule.exact else ():
            dims, share = Length((term,)).dims, term[1]
            if len(dims) == len(term[0]) == 1 and 0 < share < 1 and dims[0] not in (*units, *few):
                sizes[dims[0]] = int(NARROW / share)
    return sizes


def narrow(graph: Graph) -> tuple[Dim, ...]:
    """The narrow dims of a program, by size class."""
    shapes = _shapes(graph)
    inner = {size_class(d) for shape in shapes for d in shape[:-1]}
    rows: dict[Dim, dict[Dim, None]] = {}
    for *_, row, end in shapes:
        last = size_class(end)
        if last not in inner:
            rows.setdefault(last, {})[row] = None
    found = {last: None for last, of in rows.items() if len(of) > 1}
    keys = {row for last in found for row in rows[last]}
    found |= {last: None for last, of in rows.items() if not keys.isdisjoint(of)}
    return tuple(found)


def _shapes(graph: Graph) -> list[tuple[Dim, ...]]:
    """The dims of every input array of two axes or more, axes of extent 1 left out."""
    arrays: dict[str, tuple[Dim, ...]] = {}
    for given in graph.inputs:
        if isinstance(given.view, Read):
            axes = [array_dim(axis) for axis in given.view.axes]
            arrays[given.view.source] = tuple(d for d in axes if d is not None)
    return [shape for shape in arrays.values() if len(shape) > 1]
