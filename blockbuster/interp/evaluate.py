"""The reference interpreter: a loop over equations.

A value is an item (a NumPy array) or a nested list of items, and a map loops over blocks. The
semantics defines the operators; the layout defines how arrays are cut into lists.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from blockbuster.interp.accumulators import aligned, folded
from blockbuster.interp.binding import bind, checked, source_of
from blockbuster.interp.held import Held, Site, Spans
from blockbuster.interp.layout import Array, Layout, Nested, item_at
from blockbuster.interp.observers import Observer, Path, Tensor, loaded_ports, touched_inputs
from blockbuster.interp.semantics import Float64, Semantics, Shape
from blockbuster.ir.graph import Graph, Index, Input, Node
from blockbuster.ir.ops import (
    Accumulate,
    Cast,
    Collect,
    Elementwise,
    Functional,
    Head,
    Map,
    Misc,
    Op,
    Pointwise,
    Reduce,
    Relabel,
    Result,
    Scan,
    Transpose,
)
from blockbuster.ir.types import Dim, whole
from blockbuster.ir.verify import check_graph
from blockbuster.ir.views import AxisView, Strided, array_dim, dims_among


def evaluate(
    graph: Graph,
    inputs: Mapping[str, Array],
    blocks: Mapping[Dim, int] | None = None,
    sizes: Mapping[Dim, int] | None = None,
    semantics: Semantics = Float64,
    observer: Observer | None = None,
    block_sizes: Mapping[Dim, int] | None = None,
) -> dict[str, Array]:
    """The outputs of ``graph`` by name, for input arrays by source name; all are whole arrays.

    ``blocks`` is the number of blocks per dim (default 1), ``block_sizes`` their size instead; the
    last block may be ragged. ``sizes`` gives dims that no input shows. Raises ValueError or
    TypeError if inputs, sizes or blocks do not fit the graph.

    >>> from blockbuster.ir.parse import parse
    >>> graph = parse('''graph(X: M,K[M,K]) {
    ...   S = map M (x in !X) { s = map K (b in !x) { t = row_sum(b) yield +t } yield s }
    ...   return S
    ... }''')
    >>> evaluate(graph, {"X": np.ones((3, 4))}, blocks={"M": 2, "K": 4})
    {'out': array([4., 4., 4.])}
    """
    check_graph(graph)
    arrays = checked(graph, inputs)
    shapes = {name: array.shape for name, array in arrays.items()}
    layout = bind(graph, shapes, sizes=sizes, blocks=blocks, block_sizes=block_sizes)
    return Interpreter(layout, semantics, observer or Observer()).run(graph, arrays)


class Interpreter:
    """The meaning of graphs, given sizes and blocks, for one semantics, watched by an observer."""

    def __init__(self, layout: Layout, semantics: Semantics, observer: Observer) -> None:
        self.layout = layout
        self.semantics = semantics
        self.observer = observer
        self.watched = type(observer) is not Observer
        self.left: dict[tuple[Path, tuple[range, ...]], Array | None] = {}
        """What scans left for the next iterations of their loops, by path and the loops around."""

    def run(self, graph: Graph, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs of a program for arrays of the sizes that the layout states."""
        with np.errstate(all="ignore"):
            inputs = [self.read(given, at, arrays) for at, given in enumerate(graph.inputs)]
            if self.watched:
                for held, touched in zip(inputs, touched_inputs(graph), strict=True):
                    if touched and not held.type.buffered:
                        self.load(held)
            results = self.graph(graph, (), inputs, {})
            arrays = {}
            for at, (name, held) in enumerate(zip(graph.output_names, results, strict=True)):
                arrays[name] = self.write(held, name, graph.output_axes(at), arrays.get(name))
            return arrays

    def read(self, given: Input, position: int, arrays: Mapping[str, Array]) -> Held:
        """A program's input, cut into blocks."""
        if isinstance(given.view, Index):
            numbers = np.arange(self.layout.size(given.view.dim), dtype=float)
            array = self.semantics.positions(given.view.dim, numbers)
            return Held(given.type, self.layout.cut(array, given.type))
        name, axes = source_of(given, position)
        array = self.semantics.item(arrays[name])
        zero = self.semantics.item(np.zeros(()))
        for at, axis in reversed(tuple(enumerate(axes))):
            if axis is None:
                array = np.asarray(array.take(0, at), array.dtype)  # one term, too, is 0-d
            elif not isinstance(axis, str):
                array = self.layout.read(array, at, axis, zero)
        dims = dims_among(axes)
        order = [dims.index(d) for d in whole(given.type)]
        home = None if given.view is None and not given.type.buffered else Tensor(name)
        return Held(given.type, self.layout.cut(array.transpose(order), given.type), home)

    def write(self, held: Held, name: str, axes: tuple[AxisView, ...], into: Array | None) -> Array:
        """A program's output as a whole array, or as a part of the array ``into``."""
        self.store(held, Tensor(name))
        array = self.layout.join(held.data, held.type, self.semantics.dtype)
        return self.filled(array, whole(held.type), axes, into)

    def filled(
        self, array: Array, kept: Sequence[Dim], axes: tuple[AxisView, ...], into: Array | None
    ) -> Array:
        """An array whose axes are ``kept`` as an output, or as a part of the array ``into``."""
        axes = (*axes, *(d for d in kept if d not in dims_among(axes)))
        array = array.transpose([kept.index(d) for d in dims_among(axes)])
        if not any(isinstance(axis, Strided) for axis in axes):
            return np.expand_dims(array, tuple(at for at, axis in enumerate(axes) if axis is None))
        if into is None:
            dims = map(array_dim, axes)
            shape = [1 if dim is None else self.layout.size(dim) for dim in dims]
            into = np.empty(shape, self.semantics.dtype)
        places = [
            self.layout.positions(axis)
            if isinstance(axis, Strided)
            else np.arange(1 if axis is None else self.layout.size(axis))
            for axis in axes
        ]
        rows = np.ix_(*(place.ravel() for place in places))
        into[rows] = array.reshape([place.size for place in places])
        return into

    def graph(self, graph: Graph, path: Path, inputs: Sequence[Held], spans: Spans) -> list[Held]:
        """The outputs of a graph: one equation after the other."""
        made: list[Sequence[Held]] = [()] * len(graph.nodes)
        made.append(inputs)  # the last entry, which is that of node -1
        for position, node in enumerate(graph.nodes):
            args = [made[at][port] for at, port in node.operands]
            made[position] = self.node(node, args, path, position, spans)
        ends = [output.value for output in graph.outputs]
        return [made[at][port] for at, port in ends]

    def node(
        self, node: Node, args: Sequence[Held], path: Path, position: int, spans: Spans
    ) -> Sequence[Held]:
        """The results of one equation of the graph at ``path``."""
        site = Site(node, (*path, position), spans)
        return MEANING[type(node.op)](self, node.op, site, args)

    def map(self, op: Map, site: Site, args: Sequence[Held]) -> list[Held]:
        """A loop over blocks: each result is collected into a list, or folded."""
        rows: list[Sequence[Held]] = []
        homes = [site.tensor(port) for port in range(len(op.results))] if self.watched else []
        entering, firsts = args[: len(op.iterated)], args[len(op.iterated) :]
        ports = [*zip(entering, op.iterated, op.body.inputs, strict=True)]
        back = any(scan.back for scan in op.scans)
        blocks = [*enumerate(self.layout.blocks[op.dim])]
        for at, span in reversed(blocks) if back else blocks:
            inner = [
                Held(given.type, arg.data[at], arg.home) if iterated else arg
                for arg, iterated, given in ports
            ]
            if at < op.start:
                row: Sequence[Held] = firsts
            else:
                for port in loaded_ports(op) if self.watched else ():
                    self.load(inner[port])
                row = self.graph(op.body, site.path, inner, {**site.spans, op.dim: span})
            rows.append(row)
            if self.watched:
                self.observe_row(op, len(rows) - 1, row, homes)
        rows = rows[::-1] if back else rows
        columns = [[row[port].data for row in rows] for port in range(len(op.results))]
        made = self.folded(op.results, columns, site)
        return [
            Held(type, data, homes[port] if type.buffered and homes else None)
            for port, (type, data) in enumerate(zip(site.node.types, made, strict=True))
        ]

    def folded(
        self, results: Sequence[Result], columns: Sequence[list[Nested]], site: Site
    ) -> Sequence[Nested]:
        """The results of all iterations combined: lists, items, or the monoid's identity."""
        types = site.node.types
        if all(columns):
            return folded(results, columns, types, self.semantics, self.layout.size)
        return [
            column
            if isinstance(result, Collect)
            else self.semantics.identity(result.monoid, self.extents(type.axes, site))
            for result, column, type in zip(results, columns, types, strict=True)
        ]

    def observe_row(self, op: Map, at: int, row: Sequence[Held], homes: list[Tensor]) -> None:
        """Tell the observer what becomes of the results of the iteration after ``at`` others."""
        for port, held in enumerate(row):
            if isinstance(op.results[port], Collect):
                home = self.store(held, homes[port])
                homes[port] = homes[port] if at else home  # the first entry's, if several
            elif at:
                self.observer.fold(op.results[port], held.data)

    def reduce(self, op: Reduce, site: Site, args: Sequence[Held]) -> list[Held]:
        """A list folded to one item."""
        for at in range(len(args[0].data) if self.watched else 0):
            held = args[0].element(at)
            self.load(held)
            if at:
                self.observer.fold(Accumulate(op.monoid), held.data)
        (total,) = self.folded([Accumulate(op.monoid)], [args[0].data], site)
        return [Held(site.node.types[0], total)]

    def head(self, op: Head, site: Site, args: Sequence[Held]) -> list[Held]:
        """The first entry of a list."""
        if not args[0].data:
            raise ValueError(f"head of a list over {op.dim}, which has no blocks")
        held = args[0].element(0)
        if not held.type.buffered:
            self.load(held)
        return [Held(held.type, held.data, held.home if held.type.buffered else None)]

    def local(self, op: Op, site: Site, args: Sequence[Held]) -> list[Held]:
        """An operator on items."""
        items = [held.data for held in args]
        if isinstance(op, POSITIONAL):
            item = self.item(op, items)
        else:
            assert isinstance(op, Pointwise)
            same = [aligned(held.data, held.type.axes, op.axes) for held in args]
            item = self.semantics.expression(op.expr, same, self.layout.size)
            item = np.broadcast_to(item, self.shape(op.axes, args, site))
        if self.watched:
            self.observer.execute(op, tuple(items), item)
        return [Held(site.node.types[0], item)]

    def scan(self, op: Scan, site: Site, args: Sequence[Held]) -> list[Held]:
        """An item scanned, going on from the iteration before in a loop over its axis."""
        (held,), dim = args, args[0].type.axes[-1]
        span = site.spans.get(dim)
        around = tuple(other for name, other in site.spans.items() if name != dim)
        left = self.left.get((site.path, around)) if span else None
        first = span is None or (span.stop == self.layout.size(dim) if op.back else not span.start)
        item, after = self.semantics.scan_last(op, held.data, None if first else left)
        self.left[site.path, around] = after
        if self.watched:
            self.observer.execute(op, (held.data,), item)
        return [Held(site.node.types[0], item)]

    def item(self, op: Positional, items: Sequence[Array], stack: Shape = ()) -> Array:
        """The result of an operator on items alone; ``stack``: the axes along which they lie."""
        if isinstance(op, Functional):
            return self.semantics.functional(op.name, items)
        if isinstance(op, Elementwise):
            made = self.semantics.expression(op.expr, items, self.layout.size, stack)
            return np.asarray(made)
        return self.semantics.cast(items[0], op.dtype)

    def shape(self, axes: Sequence[Dim], args: Sequence[Held], site: Site) -> list[int]:
        """The shape of a pointwise result: as its operands show it, else that of the current block.

        In a first iteration that was peeled off, only the operands show the extent of block 0.
        """
        shown = {
            dim: extent
            for held in args
            for dim, extent in zip(held.type.axes, held.data.shape, strict=True)
        }
        here = self.extents(axes, site)
        return [shown.get(dim, extent) for dim, extent in zip(axes, here, strict=True)]

    def extents(self, axes: Sequence[Dim], site: Site) -> list[int]:
        """The shape of an item with these axes at ``site``: of the current blocks, or all."""
        spans, size = site.spans, self.layout.size
        return [len(spans[dim]) if dim in spans else size(dim) for dim in axes]

    def transpose(self, op: Transpose, site: Site, args: Sequence[Held]) -> list[Held]:
        """Lists and axes in another order."""
        (held,) = args
        axes = [held.type.axes.index(d) for d in op.axes]
        lists = [op.lists.index(d) for d in held.type.lists]

        def entry(index: tuple[int, ...]) -> Array:
            return item_at(held.data, [index[i] for i in lists]).transpose(axes)

        return [Held(site.node.types[0], self.layout.nest(op.lists, entry), held.home)]

    def relabel(self, op: Relabel, site: Site, args: Sequence[Held]) -> list[Held]:
        """The same value under another dim."""
        return [args[0]._replace(type=site.node.types[0])]

    def misc(self, op: Misc, site: Site, args: Sequence[Held]) -> list[Held]:
        """An opaque function of whole arrays."""
        layout, types = self.layout, site.node.types
        arrays = [layout.join(held.data, held.type, self.semantics.dtype) for held in args]
        shapes = [[layout.size(d) for d in whole(type)] for type in types]
        made = self.semantics.misc(op, arrays, shapes)
        results = [
            Held(type, layout.cut(self.semantics.item(array), type), site.tensor(port))
            for port, (type, array) in enumerate(zip(types, made, strict=True))
        ]
        for held in args:
            self.observe_all(held, self.observer.load)
        for held in results:
            self.observe_all(held, self.observer.store)
        return results

    def observe_all(self, held: Held, event: Callable[[Tensor, Array], None]) -> None:
        """Tell the observer of every item behind a value."""
        if held.home:
            for index in self.layout.indices(held.type.lists):
                event(held.home, item_at(held.data, index))

    def load(self, held: Held) -> None:
        """Tell the observer that an item is read, if there is memory behind it."""
        if held.home:
            self.observer.load(held.home, held.data)

    def store(self, held: Held, tensor: Tensor) -> Tensor:
        """Tell the observer that a local item is written to ``tensor``; where the value then is."""
        if not held.home and not held.type.buffered:
            self.observer.store(tensor, held.data)
        return held.home or tensor


Positional = Functional | Elementwise | Cast
POSITIONAL = (Functional, Elementwise, Cast)
"""Operators of items alone, whatever and wherever they are."""

MEANING: dict[type[Op], Callable[..., list[Held]]] = {
    Functional: Interpreter.local,
    Elementwise: Interpreter.local,
    Pointwise: Interpreter.local,
    Cast: Interpreter.local,
    Scan: Interpreter.scan,
    Map: Interpreter.map,
    Reduce: Interpreter.reduce,
    Head: Interpreter.head,
    Transpose: Interpreter.transpose,
    Relabel: Interpreter.relabel,
    Misc: Interpreter.misc,
}
