"""Milestones: the steps that matter, each with a sentence on what it achieves.

Most steps merge two loops and need no comment. A few steps shape the program: values over two dims
stop passing through memory, a scaling waits until after a sum, one loop makes several sums, work is
repeated, sums of exponentials get a running maximum.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import prod

from blockbuster.ir.expr import functions_of
from blockbuster.ir.graph import Graph
from blockbuster.ir.list_only import list_only
from blockbuster.ir.ops import Accumulate, Elementwise, Map, Pointwise, Rescale
from blockbuster.ir.types import Dim, size_class
from blockbuster.rules.derivation import Path
from blockbuster.view.explorer.frames import Frame

LATER = {
    "swap-scale-dot": "Rows are scaled after the product, once each, not entry by entry before it",
    "swap-shift-dot": "Rows are shifted after the product, by an outer product, not before it",
    "local-linearity": "Rows are scaled or shifted once, after the sum over all dots",
    "factor-out": "A factor that all terms of a fold share is multiplied once, after it",
    "factor-out-exp": "exp(-m) is multiplied once, after the sum: the maximum need not come first",
    "fold-columns": "An operator on columns moves into the product, out of the rows' way",
}
"""Rules that let something wait until after a sum, and what that gives."""

RECIPROCALS = {"recip0", "reciprocal"}
REDUCES = "fuse-reduction"

Stored = tuple[Dim, ...]
"""The size classes of a stored value's dims, sorted: scores over S and S' have S twice."""


def milestones(
    found: Sequence[Frame], sizes: Mapping[Dim, int], blocks: Mapping[Dim, int] | None = None
) -> list[str]:
    """The achievement of each step, or "" for a step that only prepares others.

    Where ``sizes`` are known, values have numbers of entries. Where the numbers of the kernels'
    ``blocks`` are known, work is only said to be repeated for a dim of several.
    """
    words: list[list[str]] = [[] for _ in found]
    said: set[str] = set()
    units = list_only(found[0].before) if found else ()
    left = _left(found, units)
    for at, frame in enumerate(found):
        rule = frame.application.rule if frame.application else None
        if rule is None:
            words[at].append(_running(frame.after))
        elif rule.name in LATER and rule.name not in said:
            said.add(rule.name)
            divides = _divides(frame) if rule.name == "swap-scale-dot" else False
            words[at].append(LATER[rule.name] + (": the division at the end" if divides else ""))
        elif rule.kind == "extension":
            words[at].append(_repeated(frame, blocks or {}))
        words[at] += _gone(frame, left[at], sizes, units)
        words[at] += _together(frame)
    return [". ".join(filter(None, told)) for told in words]


def _running(graph: Graph) -> str:
    """What numerically safe sums keep."""
    dims = dict.fromkeys(
        op.dim
        for _, level in graph.walk()
        for _, op in level.of_type(Map)
        if any(isinstance(result, Rescale) for result in op.results)
    )
    if not dims:
        return "What could overflow or cancel is computed in another way, with equal results"
    loops = " and ".join(dims)
    return (
        f"The running maximum: the loop over {loops} keeps the largest exponent so far, "
        "and rescales what it has summed whenever that grows"
    )


def _divides(frame: Frame) -> bool:
    """Whether what a step moves multiplies by a reciprocal."""
    assert frame.application is not None
    level = frame.before.at(frame.application.path)
    taken = [level.nodes[at] for at in frame.application.nodes.values()]
    makers = {v.node for node in taken for v in node.operands if v.node >= 0}
    ops = [level.nodes[at].op for at in makers]
    inner = [n.op for op in ops if isinstance(op, Map) for _, g in op.body.walk() for n in g.nodes]
    return any(
        isinstance(op, Elementwise | Pointwise)
        and RECIPROCALS & {*functions_of(op.expr)}
        for op in (*ops, *inner)
    )


def _repeated(frame: Frame, blocks: Mapping[Dim, int]) -> str:
    assert frame.application is not None
    dim = _dim_at(frame.after, frame.made)
    if blocks.get(size_class(dim)) == 1:
        return f"Each block of {dim} computes what all need: the kernel has one, so repeats nothing"
    each = f"each block of {dim}" if dim else "each block"
    return f"Work is repeated from here: {each} computes again what all of them need"


def _dim_at(graph: Graph, made: Sequence[Path]) -> str:
    for path in made:
        op = graph.at(path[:-1]).nodes[path[-1]].op
        if isinstance(op, Map):
            return op.dim
    return ""


def _left(found: Sequence[Frame], units: Sequence[Dim]) -> list[set[Stored]]:
    """The dims of what passes through memory after each step, or after later ones of its kind."""
    left: list[set[Stored]] = []
    later: dict[bool, set[Stored]] = {False: set(), True: set()}
    for frame in reversed(found):
        if frame.application is not None:
            later[frame.beside] |= _stored(frame.after, units).keys()
        left.append(set(later[frame.beside]))
    return left[::-1]


def _gone(
    frame: Frame, left: set[Stored], sizes: Mapping[Dim, int], units: Sequence[Dim]
) -> list[str]:
    """The dims over which values pass through memory until this step, and never after."""
    words: list[str] = []
    if frame.application is None:
        return words
    reduced = _dim_at(frame.after, frame.made) if frame.application.rule.name == REDUCES else ""
    for dims, names in _stored(frame.before, units).items():
        if any(Counter(dims) <= Counter(other) for other in left):
            continue
        if size_class(reduced) in dims:
            words.append(f"Terms over {reduced} are summed as they are made, and none is stored")
        elif len(dims) > 1:
            order = [*sizes, *map(size_class, names)]
            ordered = sorted(names, key=lambda dim: (order.index(size_class(dim)), dim))
            known = all(dim in sizes for dim in dims)
            count = f" ({prod(sizes[dim] for dim in dims):,} entries)" if known else ""
            what = f"Values over {' × '.join(ordered)}{count}"
            words.append(f"{what} no longer pass through global memory")
    return words


def _stored(graph: Graph, units: Sequence[Dim]) -> dict[Stored, tuple[Dim, ...]]:
    """The dims of the values on interior buffered edges, as size classes and by name.

    In a map over one of ``units``, dims without blocks such as a batch, there is a value for each
    of its elements.
    """
    found: dict[Stored, tuple[Dim, ...]] = {}
    for path, value, _ in graph.buffered_edges():
        type = graph.at(path).type_of(value)
        around = (dim for dim in _dims_around(graph, path) if size_class(dim) in units)
        names = tuple(dict.fromkeys((*around, *type.lists, *type.axes)))
        found.setdefault(tuple(sorted(map(size_class, names))), names)
    return found


def _dims_around(graph: Graph, path: Path) -> Iterator[Dim]:
    """The dims of the maps that a level is in."""
    for depth, at in enumerate(path):
        op = graph.at(path[:depth]).nodes[at].op
        if isinstance(op, Map):
            yield op.dim


def _together(frame: Frame) -> list[str]:
    """The step after which one loop makes several sums, of which none of those before made two."""
    if frame.application is None or frame.application.rule.kind != "fusion":
        return []
    words = []
    for path in frame.made:
        op = frame.after.at(path[:-1]).nodes[path[-1]].op
        if isinstance(op, Map) and _sums(op) > 1:
            taken = [frame.before.at(p[:-1]).nodes[p[-1]].op for _, p in frame.roles]
            if all(_sums(one) < 2 for one in taken if isinstance(one, Map)):
                words.append(
                    f"One loop over {op.dim} makes {_sums(op)} sums: the data is read once"
                )
    return words


def _sums(op: Map) -> int:
    return sum(isinstance(result, Accumulate) and result.monoid == "+" for result in op.results)
