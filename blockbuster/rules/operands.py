"""Operands: values that a loop recomputes in every iteration although they do not depend on it.

An example is a normalized row that is recomputed for each block of columns of its product: its rate
lacks the dim of the columns. Stored, it is computed once, and a loop of dots reads it as it reads
an input. Statistics (statistics.py) are excluded here, recomputed or not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from blockbuster.ir.builder import Builder
from blockbuster.ir.expr import calls
from blockbuster.ir.graph import Graph, Value
from blockbuster.ir.ops import MONOID_OF, Elementwise, Functional, Misc, Pointwise, Reduce
from blockbuster.ir.origin import Origin
from blockbuster.ir.uses import results_of
from blockbuster.rules.base import Note, Refusal, Rule
from blockbuster.rules.legality import map_at
from blockbuster.rules.statistics import (
    Path,
    Slice,
    Values,
    dims_of,
    name_of,
    nodes_of,
    slice_of,
    statistics,
    why_not_apart,
)


def operands(rule: Rule, graph: Graph, position: int, note: Note) -> Iterator[Values]:
    """The operands inside the map at ``position``, outer levels first, of each level by their
    rates.

    ``note`` hears of others that are computed again, unless it did as of statistics.
    """
    told: list[Refusal] = []
    known = {(s.path, v) for s in statistics(rule, graph, position, told.append) for v in s.values}
    for inner, level in map_at(graph, position).body.walk():
        path = (position, *inner)
        parts = {value: slice_of(graph, path, (value,), Origin()) for value in _results(level)}

        def refuse(value: Value, reason: str, level: Graph = level) -> None:
            refusal = Refusal(rule, (position,), reason.format(name_of(level, value)))
            if refusal not in told:
                note(refusal)

        again = [v for v in parts if (path, v) not in known and computed_again(level, v, parts)]
        found = [value for value in again if _may_leave(graph, path, value, parts[value], refuse)]
        for rate in dict.fromkeys(parts[value].rate for value in found):
            yield Values(path, tuple(v for v in found if parts[v].rate == rate), rate)


def _results(level: Graph) -> Iterator[Value]:
    for at in range(len(level.nodes)):
        yield from results_of(level.nodes, at)


def _may_leave(
    graph: Graph, path: Path, value: Value, part: Slice, refuse: Callable[[Value, str], None]
) -> bool:
    reason = (
        why_not_apart(graph, path, part)
        or sums_a_block(graph, path, value, part)
        or larger(graph, part)
    )
    if reason:
        refuse(value, reason)
    return not reason


# Conditions: which values are meant, and why they should stay; {} is for the value ------------


def computed_again(level: Graph, value: Value, parts: Mapping[Value, Slice]) -> bool:
    """True for what is computed, and read by what some map around it changes, but not it."""
    own = parts[value]
    if not computes(own):
        return False
    readers = (reader for reader, _ in level.uses_of(value))
    results = (result for reader in readers for result in results_of(level.nodes, reader))
    walks = (zip(parts[result].walks, own.walks, strict=True) for result in results)
    return any(theirs and not ours for pairs in walks for theirs, ours in pairs)


def computes(part: Slice) -> bool:
    """False for items of lists as they come, or in another order, shape or dtype."""
    for node in nodes_of(part.body):
        if isinstance(node.op, Elementwise | Pointwise):
            if calls(node.op.expr):
                return True
        elif isinstance(node.op, Functional | Reduce | Misc):
            return True
    return False


def sums_a_block(graph: Graph, path: Path, value: Value, part: Slice) -> str:
    """What a loop folds block by block would be a list whose length is the number of blocks."""
    level = graph.at(path)
    for node in Builder(level).finish(value).nodes:
        if isinstance(node.op, Functional) and node.op.name in MONOID_OF:
            (whole,) = (level.type_of(v) for v in node.operands)
            if whole.axes[-1] in part.rate:
                return f"{{}} is made of sums of single blocks of {whole.axes[-1]}"
    return ""


def larger(graph: Graph, part: Slice) -> str:
    """To read the sum of a row and a column takes more than to compute it from both."""
    (output,) = part.body.outputs
    own = dims_of(part.body.type_of(output.value)).union(part.rate)
    if any(len(dims_of(graph.type_of(value))) >= len(own) for value in part.read):
        return ""
    return "{} has more dims than each of what it is computed from"
