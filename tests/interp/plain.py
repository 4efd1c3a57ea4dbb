"""A second interpreter of block programs, which the first one is compared with.

An item is computed from its block numbers when it is asked for, straight from the definition of its
operator. How arrays are cut, and how lists are made, folded and joined, is implemented here a
second time and shares no line with ``evaluate.py`` and ``layout.py``: if the two interpreters
differ, one of them is wrong. Slow, for small arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from blockbuster.interp.binding import source_of
from blockbuster.interp.layout import Array
from blockbuster.interp.outside import with_zeros
from blockbuster.interp.semantics import Semantics
from blockbuster.ir.graph import Graph, Index, Input, Node, Value
from blockbuster.ir.ops import (
    Cast,
    Collect,
    Elementwise,
    Functional,
    Head,
    Map,
    Misc,
    Pointwise,
    Reduce,
    Relabel,
    Rescale,
    Scan,
    Transpose,
)
from blockbuster.ir.types import Dim, Type, size_class
from blockbuster.ir.views import AxisView, Strided, dims_along, is_padded

Numbers = tuple[int, ...]
"""Block numbers along the lists of a value, outermost first."""

Items = Callable[[Numbers], Array]
"""A value: the item at any block numbers."""


def plain(
    graph: Graph,
    inputs: Mapping[str, Array],
    sizes: Mapping[Dim, int],
    block_sizes: Mapping[Dim, int],
    semantics: Semantics,
) -> dict[str, Array]:
    """The outputs of ``graph``; sizes and block sizes are those of size classes.

    Raises ValueError if a block has several elements and its items no axis for them.
    """
    reader = _Reader(sizes, block_sizes, semantics)
    with np.errstate(all="ignore"):
        given = [reader.given(entry, at, inputs) for at, entry in enumerate(graph.inputs)]
        level = _Level(reader, graph, given, {})
        found: dict[str, Array] = {}
        for at, name in enumerate(graph.output_names):
            items, axes = level.items(graph.outputs[at].value), graph.output_axes(at)
            reader.fill(items, graph.type_of(graph.outputs[at].value), axes, name, found)
        return found


@dataclass(frozen=True)
class _Reader:
    """Sizes, blocks, and what operators do to numbers."""

    sizes: Mapping[Dim, int]
    steps: Mapping[Dim, int]
    semantics: Semantics

    def size(self, dim: Dim) -> int:
        return self.sizes[size_class(dim)]

    def count(self, dim: Dim) -> int:
        """The number of blocks along a dim."""
        return -(-self.size(dim) // self.steps[size_class(dim)])

    def block(self, dim: Dim, number: int) -> range:
        """The positions in a block."""
        step = self.steps[size_class(dim)]
        return range(number * step, min((number + 1) * step, self.size(dim)))

    def positions(self, type: Type, at: Numbers) -> dict[Dim, range]:
        """Where an item lies in the whole array, along each dim."""
        found = {dim: range(self.size(dim)) for dim in type.axes}
        for dim, number in zip(type.lists, at, strict=True):
            found[dim] = self.block(dim, number)
            if dim not in type.axes and len(found[dim]) != 1:
                raise ValueError(f"a block of {dim} has {len(found[dim])} elements, {type} has one")
        return found

    def numbers(self, lists: Sequence[Dim]) -> Iterator[Numbers]:
        """The block numbers of all items."""
        return product(*(range(self.count(dim)) for dim in lists))

    def along(self, axis: AxisView, where: Mapping[Dim, range]) -> Array:
        """The elements of an array's axis that an item holds, an axis for each dim along it."""
        if not isinstance(axis, Strided):
            return np.array(0 if axis is None else where[axis])
        total = np.array(axis.start.value(self.sizes))
        for run in axis.runs:
            steps = np.array(where[run.dim]) * run.step.value(self.sizes)
            total = np.add.outer(total, steps)
        return total

    def places(
        self, axes: Sequence[AxisView], where: Mapping[Dim, range]
    ) -> tuple[tuple[Array, ...], list[Dim]]:
        """An index of the array that gives an item, and the order of its axes."""
        order = [dim for axis in axes for dim in dims_along(axis)]
        found, before = [], 0
        for axis in axes:
            places, own = self.along(axis, where), len(dims_along(axis))
            behind = len(order) - before - own
            found.append(places.reshape((1,) * before + places.shape + (1,) * behind))
            before += own
        return tuple(found), order

    def given(self, given: Input, position: int, inputs: Mapping[str, Array]) -> Items:
        """An input of the program."""
        if isinstance(given.view, Index):
            dim = given.view.dim
            whole, axes = np.arange(float(self.size(dim))), (dim,)
            return self.cut(whole, given.type, axes)
        name, views = source_of(given, position)
        return self.cut(np.asarray(inputs[name]), given.type, views)

    def cut(self, array: Array, type: Type, axes: Sequence[AxisView]) -> Items:
        """The items of a whole array."""

        def item(at: Numbers) -> Array:
            places, order = self.places(axes, self.positions(type, at))
            if any(map(is_padded, axes)):
                zero = self.semantics.item(np.zeros(()))
                outside = [*map(is_padded, axes)]
                found = with_zeros(self.semantics.item(array), places, outside, zero)
            else:
                found = np.asarray(array[places])
            single = tuple(i for i, dim in enumerate(order) if dim not in type.axes)
            kept = [dim for dim in order if dim in type.axes]
            found = found.squeeze(single).transpose([kept.index(dim) for dim in type.axes])
            return self.semantics.item(found)

        return item

    def fill(
        self,
        items: Items,
        type: Type,
        axes: Sequence[AxisView],
        name: str,
        found: dict[str, Array],
    ) -> None:
        """Write the items of a value into the array of a name."""
        shown = [dim for axis in axes for dim in dims_along(axis)]
        axes = (*axes, *(dim for dim in _dims(type) if dim not in shown))
        if name not in found:
            dims = [axis.of if isinstance(axis, Strided) else axis for axis in axes]
            shape = [1 if dim is None else self.size(dim) for dim in dims]
            found[name] = np.empty(shape, self.semantics.dtype)
        for at in self.numbers(type.lists):
            places, order = self.places(axes, self.positions(type, at))
            kept = [dim for dim in order if dim in type.axes]
            item = items(at).transpose([type.axes.index(dim) for dim in kept])
            item = item.reshape([item.shape[kept.index(d)] if d in kept else 1 for d in order])
            place: tuple[Any, ...] = (*places, ...)  # of one object, too, an array
            found[name][place] = item


class _Level:
    """A graph whose inputs are at hand, in one iteration of the maps around it."""

    def __init__(
        self, reader: _Reader, graph: Graph, inputs: Sequence[Items], spans: Mapping[Dim, range]
    ) -> None:
        self.reader = reader
        self.graph = graph
        self.inputs = inputs
        self.spans = spans
        self.beside: Callable[[int], _Level] = lambda _: self
        """The level in another iteration of the innermost map around it."""
        self.items = cache(self._items)
        self._bodies: dict[tuple[int, int], _Level] = {}

    def _items(self, value: Value) -> Items:
        """A value of this level; each of its items is computed once."""
        if value.node < 0:
            return self.inputs[value.port]
        node = self.graph.nodes[value.node]
        return cache(_MEANING[type(node.op)](self, node, value))

    def operands(self, node: Node) -> list[Items]:
        return [self.items(operand) for operand in node.operands]

    def extents(self, axes: Sequence[Dim], node: Node, items: Sequence[Array]) -> list[int]:
        """The shape of a result: as operands show it, else of this iteration's block, else all."""
        types = self.graph.types_of(node.operands)
        shown: dict[Dim, int] = {}
        for type, item in zip(types[: len(items)], items, strict=True):
            shown |= dict(zip(type.axes, item.shape, strict=True))
        here = {dim: len(span) for dim, span in self.spans.items()}
        return [shown.get(d, here.get(d, self.reader.size(d))) for d in axes]

    def body(self, value: Value, number: int) -> _Level:
        """The body of the map ``value`` comes from, in one iteration."""
        if (value.node, number) not in self._bodies:
            node = self.graph.nodes[value.node]
            op: Any = node.op
            entering = zip(self.operands(node), op.iterated, strict=False)
            inputs = [_element(items, number) if walks else items for items, walks in entering]
            spans = {**self.spans, op.dim: self.reader.block(op.dim, number)}
            level = _Level(self.reader, op.body, inputs, spans)
            level.beside = lambda other: self.body(value, other)
            self._bodies[value.node, number] = level
        return self._bodies[value.node, number]

    def iteration(self, value: Value, port: int, number: int) -> Items:
        """Result ``port`` of one iteration of the map that ``value`` comes from."""
        node = self.graph.nodes[value.node]
        op: Any = node.op
        if number < op.start:
            return self.items(node.operands[len(op.iterated) + port])
        return self.body(value, number).items(op.body.outputs[port].value)

    def map(self, node: Node, value: Value) -> Items:
        op: Any = node.op
        result = op.results[value.port]
        if isinstance(result, Collect):
            return lambda at: self.iteration(value, value.port, at[0])(at[1:])
        return lambda at: self.folded(node, value)

    def folded(self, node: Node, value: Value) -> Array:
        """A result that is folded over the iterations, perhaps under a running exponent."""
        op: Any = node.op
        result = op.results[value.port]
        if not self.reader.count(op.dim):
            shape = self.extents(node.types[value.port].axes, node, [])
            return self.reader.semantics.identity(result.monoid, shape)
        return self.reader.semantics.item(self.running(node, value, value.port)[-1])

    def running(self, node: Node, value: Value, port: int) -> list[Array]:
        """The partial results of a fold, one behind each iteration."""
        op: Any = node.op
        result, wide = op.results[port], self.reader.semantics.accumulator
        parts = self.parts(node, value, port)
        leads = result.leads if isinstance(result, Rescale) else ()
        before = [self.running(node, value, lead) for lead in leads]
        own = [self.parts(node, value, lead) for lead in leads]
        axes = node.types[port].axes

        def rescaled(x: Array, number: int, old: list[list[Array]], at: int) -> Array:
            if not leads:
                return x
            given = [each[at] for each in old] + [each[number] for each in before]
            of = [node.types[lead].axes for lead in (*leads, *leads)]
            args = (x, *(_over(r, dims, axes) for r, dims in zip(given, of, strict=True)))
            return np.asarray(wide.expression(result.factor, args, self.reader.size))

        totals = parts[:1]
        for number in range(1, len(parts)):
            new = rescaled(parts[number], number, own, number)
            old = rescaled(totals[-1], number, before, number - 1)
            totals.append(wide.fold(result.monoid, old, new))
        return totals

    def parts(self, node: Node, value: Value, port: int) -> list[Array]:
        """What each iteration gives to a fold."""
        op: Any = node.op
        wide, count = self.reader.semantics.accumulator, self.reader.count(op.dim)
        return [wide.item(self.iteration(value, port, number)(())) for number in range(count)]

    def reduce(self, node: Node, _value: Value) -> Items:
        op: Any = node.op
        (items,) = self.operands(node)
        wide = self.reader.semantics.accumulator

        def total(_at: Numbers) -> Array:
            parts = [wide.item(items((number,))) for number in range(self.reader.count(op.dim))]
            if not parts:
                shape = self.extents(node.types[0].axes, node, [])
                return self.reader.semantics.identity(op.monoid, shape)
            made = parts[0]
            for part in parts[1:]:
                made = wide.fold(op.monoid, made, part)
            return self.reader.semantics.item(made)

        return total

    def head(self, node: Node, _value: Value) -> Items:
        return _element(self.operands(node)[0], 0)

    def pointwise(self, node: Node, _value: Value) -> Items:
        op: Any = node.op
        types = self.graph.types_of(node.operands)

        def item(_at: Numbers) -> Array:
            items = [operand(()) for operand in self.operands(node)]
            args = [_over(x, t.axes, op.axes) for x, t in zip(items, types, strict=True)]
            made = self.reader.semantics.expression(op.expr, args, self.reader.size)
            return np.broadcast_to(made, self.extents(op.axes, node, items))

        return item

    def local(self, node: Node, _value: Value) -> Items:
        op: Any = node.op
        semantics = self.reader.semantics

        def item(_at: Numbers) -> Array:
            items = [operand(()) for operand in self.operands(node)]
            if isinstance(op, Functional):
                return semantics.functional(op.name, items)
            if isinstance(op, Cast):
                return semantics.cast(items[0], op.dtype)
            return np.asarray(semantics.expression(op.expr, items, self.reader.size))

        return item

    def scan(self, node: Node, _value: Value) -> Items:
        op: Any = node.op
        (operand,), wide = node.operands, self.reader.semantics.accumulator
        dim = node.types[0].axes[-1]

        def item(_at: Numbers) -> Array:
            parts = [self.items(operand)(())]
            first, last = 0, parts[0].shape[-1]
            if dim in self.spans:
                levels = map(self.beside, range(self.reader.count(dim)))
                parts = [level.items(operand)(()) for level in levels]
                first, last = self.spans[dim].start, self.spans[dim].stop
            line = wide.item(np.concatenate(parts, axis=-1))
            made = []
            for at in range(first, last):
                near = range(at, line.shape[-1]) if op.back else range(at + 1)
                total = line[..., near[0] : near[0] + 1]
                for other in near[1:]:
                    total = wide.fold(op.monoid, total, line[..., other : other + 1])
                made.append(total)
            return self.reader.semantics.item(np.concatenate([line[..., :0], *made], axis=-1))

        return item

    def transpose(self, node: Node, _value: Value) -> Items:
        op: Any = node.op
        (type,) = self.graph.types_of(node.operands)
        (items,) = self.operands(node)

        def item(at: Numbers) -> Array:
            number = dict(zip(op.lists, at, strict=True))
            found = items(tuple(number[dim] for dim in type.lists))
            return found.transpose([type.axes.index(dim) for dim in op.axes])

        return item

    def relabel(self, node: Node, _value: Value) -> Items:
        return self.operands(node)[0]

    def misc(self, node: Node, value: Value) -> Items:
        op: Any = node.op
        arrays: dict[str, Array] = {}
        types = self.graph.types_of(node.operands)
        for at, (items, type) in enumerate(zip(self.operands(node), types, strict=True)):
            self.reader.fill(items, type, _dims(type), str(at), arrays)
        shapes = [[self.reader.size(dim) for dim in _dims(type)] for type in node.types]
        made = self.reader.semantics.misc(op, list(arrays.values()), shapes)[value.port]
        type = node.types[value.port]
        return self.reader.cut(np.asarray(made), type, _dims(type))


def _dims(type: Type) -> tuple[Dim, ...]:
    return tuple(dict.fromkeys((*type.lists, *type.axes)))


def _element(items: Items, number: int) -> Items:
    return lambda at: items((number, *at))


def _over(item: Array, axes: Sequence[Dim], target: Sequence[Dim]) -> Array:
    """An item for arithmetic with items of the axes ``target``."""
    extents = dict(zip(axes, item.shape, strict=True))
    lost = [dim for dim, extent in extents.items() if dim not in target and extent != 1]
    if lost:
        raise ValueError(f"{extents[lost[0]]} elements along {lost[0]} have no place in {target}")
    return item.reshape([extents.get(dim, 1) for dim in target])


_MEANING: Mapping[type, Callable[[_Level, Node, Value], Items]] = {
    Map: _Level.map, Reduce: _Level.reduce, Head: _Level.head, Pointwise: _Level.pointwise,
    Functional: _Level.local, Elementwise: _Level.local, Cast: _Level.local, Scan: _Level.scan,
    Transpose: _Level.transpose, Relabel: _Level.relabel, Misc: _Level.misc,
}  # fmt: skip
