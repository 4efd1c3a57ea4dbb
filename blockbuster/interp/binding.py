"""Binding of a program's names to numbers: its arrays, the size of each dim, its blocks.

A dim is *list-only* in a program if it is a list dim of some input but no axis of its items: batch,
heads. Its blocks hold one element; in another input that has it as an axis, that axis has extent 1.
Relabeled dims (M, M') share size and blocks, unless blocks are given for M' by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from blockbuster.errors import a_kind
from blockbuster.interp.layout import Array, Layout
from blockbuster.ir.dtypes import INTEGERS, own_dtypes
from blockbuster.ir.graph import Graph, Index, Input, Read
from blockbuster.ir.list_only import list_only
from blockbuster.ir.ops import Map, Relabel
from blockbuster.ir.sizes import bind_sizes
from blockbuster.ir.types import Dim, size_class, whole
from blockbuster.ir.views import AxisView, array_dim


def source_of(given: Input, position: int) -> tuple[str, tuple[AxisView, ...]]:
    """The name under which an input's array is given, and how its axes are read."""
    if isinstance(given.view, Read):
        return given.view.source, given.view.axes
    return given.hint or f"in{position}", whole(given.type)


def source_names(graph: Graph) -> tuple[str, ...]:
    """For each input the name under which its array is given, "" for an index vector."""
    return tuple(
        "" if isinstance(given.view, Index) else source_of(given, position)[0]
        for position, given in enumerate(graph.inputs)
    )


def sources(graph: Graph) -> dict[str, tuple[Dim | None, ...]]:
    """The arrays a program takes: name -> the dims of its axes in the first view of it."""
    found: dict[str, tuple[Dim | None, ...]] = {}
    for position, given in enumerate(graph.inputs):
        if not isinstance(given.view, Index):
            name, axes = source_of(given, position)
            found.setdefault(name, tuple(map(array_dim, axes)))
    return found


def checked(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """The inputs, if they are arrays of what the program reads under their names."""
    needed = sources(graph)
    own = own_dtypes(graph)
    names = f"the program reads {', '.join(needed) or 'nothing'}"
    for name, array in inputs.items():
        if name not in needed:
            raise ValueError(f"unknown input {name}: {names}")
        if not isinstance(array, np.ndarray | np.generic):
            raise TypeError(f"input {name} is {a_kind(array)}, expected a NumPy array")
        if array.dtype.kind in "iu" and own.get(name) in INTEGERS:
            continue
        if array.dtype.kind in "iu":
            raise TypeError(
                f"input {name} holds {array.dtype}: integers where floats are needed, "
                "use .astype(float)"
            )
        if array.dtype.kind not in "fb":
            raise TypeError(f"input {name} holds {array.dtype}, expected floating-point numbers")
    for name in needed:
        if name not in inputs:
            raise ValueError(f"missing input {name}: {names}")
    return {name: np.asarray(inputs[name]) for name in needed}


def dims_of(graph: Graph) -> tuple[Dim, ...]:
    """Every dim of a program, level by level; last those that only have a size."""
    return graph.mentions.dims


def bind(
    graph: Graph,
    shapes: Mapping[str, tuple[int, ...]] | None,
    *,
    sizes: Mapping[Dim, int] | None = None,
    blocks: Mapping[Dim, int] | None = None,
    block_sizes: Mapping[Dim, int] | None = None,
) -> Layout:
    """The layout of ``graph`` for inputs of these shapes, or for ``sizes`` alone.

    Raises ValueError if they disagree, or if sizes or blocks do not fit the program.
    """
    dims = dims_of(graph)
    for name, given in (("sizes", sizes), ("blocks", blocks), ("block_sizes", block_sizes)):
        unknown = [d for d in given or () if d not in dims and d not in map(size_class, dims)]
        if unknown:
            raise ValueError(f"unknown dim {unknown[0]} in {name}; known: {', '.join(dims)}")
    arrays = [] if shapes is None else _arrays(graph)
    bound = bind_sizes(arrays, shapes or {}, graph.size_rules, sizes, needed=dims)
    single = list_only(graph)
    spans = {}
    for dim in dims:
        size = bound[size_class(dim)]
        step = _block_size(dim, size, blocks or {}, block_sizes or {}, size_class(dim) in single)
        spans[dim] = tuple(range(at, min(at + step, size)) for at in range(0, size, step))
    _relabels_keep_blocks(relabels(graph), spans)
    return Layout(bound, spans)


def _arrays(graph: Graph) -> list[tuple[str, list[Dim | None]]]:
    """The arrays with their axes, once for each view of them."""
    views = [source_of(g, at) for at, g in enumerate(graph.inputs) if not isinstance(g.view, Index)]
    return [(name, [*map(array_dim, axes)]) for name, axes in views]


def _block_size(
    dim: Dim, size: int, blocks: Mapping[Dim, int], block_sizes: Mapping[Dim, int], single: bool
) -> int:
    step = block_sizes.get(dim, block_sizes.get(size_class(dim)))
    count = blocks.get(dim, blocks.get(size_class(dim)))
    for name, number in (("block_sizes", step), ("blocks", count)):
        if number is not None and number < 1:
            raise ValueError(f"{name} of {dim} is {number}, expected at least 1")
    if step is None:
        step = -(-size // count) if count is not None else 1 if single else size
    if single and size and step != 1:
        raise ValueError(
            f"dim {dim} is list-only (batch, heads): its block size is 1, so it has {size} blocks"
        )
    step = max(step, 1)
    if count is not None and size and -(-size // step) != count:
        raise ValueError(
            f"dim {dim} of size {size} does not make {count} blocks: blocks of {step} make "
            f"{-(-size // step)}"
        )
    return step


@lru_cache(maxsize=4096)
def relabels(graph: Graph) -> tuple[Relabel, ...]:
    """The relabels at all levels."""
    inner = [op for _, map in graph.of_type(Map) for op in relabels(map.body)]
    return (*(op for _, op in graph.of_type(Relabel)), *inner)


def _relabels_keep_blocks(ops: Sequence[Relabel], spans: Mapping[Dim, tuple[range, ...]]) -> None:
    for op in ops:
        if spans[op.old] != spans[op.new]:
            raise ValueError(
                f"{op.new} is {op.old} relabeled inside the program: give both the same blocks"
            )
