"""A symbolic walk over a program, in which every item stands for all iterations at once.

It follows the interpreter equation by equation, with extents in place of arrays and loops in place
of iterations. It records loads, stores and arithmetic where the interpreter tells its observer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from blockbuster.interp.binding import source_of
from blockbuster.interp.observers import Path, Tensor, loaded_ports, touched_inputs
from blockbuster.interp.traffic import Moved, fold_flops
from blockbuster.ir.graph import Graph, Index, Input, Node, Value
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
from blockbuster.ir.types import Dim, Type
from blockbuster.selection.traffic.closed_forms import ZERO, ClosedForm, first_block, number, size
from blockbuster.selection.traffic.extents import (
    Extent,
    Loop,
    OfList,
    OfLoop,
    elements,
    folded,
    largest,
    listed,
    taken,
    whole_extents,
)
from blockbuster.selection.traffic.footprint import Peak, peak


class Held(NamedTuple):
    """A value in all iterations at once, and the tensor behind it (none for a local result)."""

    type: Type
    extents: tuple[Extent, ...]
    home: Tensor | None = None

    def element(self, entry: Extent) -> Held:
        """The entries of the outermost list, of extent ``entry`` along it."""
        return Held(self.type.element(), taken(self.extents, entry), self.home)


class Site(NamedTuple):
    """The place of an equation: its path, and the loops around it, outermost first."""

    node: Node
    path: Path
    loops: tuple[Loop, ...]

    def tensor(self, port: int) -> Tensor:
        """The tensor that result ``port`` is, if it is stored."""
        return Tensor(self.node.hints[port] if self.node.hints else "", self.path, port)

    def extent(self, dim: Dim) -> Extent:
        """The extent of the current block of ``dim``: all of it outside a map over it."""
        dims = [loop.dim for loop in self.loops]
        return OfLoop(dims.index(dim)) if dim in dims else size(dim)


class Walk:
    """The sums of one walk, and ``run``, which fills them and returns the footprint."""

    def __init__(self) -> None:
        self.moved: dict[Tensor, Moved[list[ClosedForm]]] = {}
        self.flops: dict[str, list[ClosedForm]] = {"matrix": [], "vector": []}
        self.dots: list[ClosedForm] = []

    def run(self, graph: Graph) -> Peak:
        """Walk over a program."""
        inputs = [self.read(given, at) for at, given in enumerate(graph.inputs)]
        touched = touched_inputs(graph)
        loaded = [at for at, held in enumerate(inputs) if touched[at] and not held.type.buffered]
        for at in loaded:
            self.load(inputs[at], ())
        results, footprint = self.graph(graph, (), inputs, (), loaded)
        for name, held in zip(graph.output_names, results, strict=True):
            self.store(held, Tensor(name), ())
        return footprint

    def read(self, given: Input, position: int) -> Held:
        """A program's input."""
        home = Tensor(source_of(given, position)[0])
        if isinstance(given.view, Index) or (given.view is None and not given.type.buffered):
            return Held(given.type, whole_extents(given.type))
        return Held(given.type, whole_extents(given.type), home)

    def graph(
        self,
        graph: Graph,
        path: Path,
        inputs: Sequence[Held],
        loops: tuple[Loop, ...],
        loaded: Sequence[int],
    ) -> tuple[list[Held], Peak]:
        """The outputs of one level, and the most that it holds; ``loaded`` inputs are its own."""
        made: list[Sequence[Held]] = []
        inner: dict[int, Peak] = {}

        def held(value: Value) -> Held:
            return inputs[value.port] if value.node < 0 else made[value.node][value.port]

        for position, node in enumerate(graph.nodes):
            site = Site(node, (*path, position), loops)
            found, extra = MEANING[type(node.op)](self, node.op, site, [*map(held, node.operands)])
            made.append(found)
            inner[position] = extra

        def room(value: Value) -> ClosedForm:
            return largest(held(value).extents, loops)

        outputs = [held(output.value) for output in graph.outputs]
        return outputs, peak(graph, room, loaded, inner)

    # equations: each gives its results, and what it holds beside operands and results ------------

    def map(self, op: Map, site: Site, args: Sequence[Held]) -> tuple[list[Held], Peak]:
        """A loop: its body once, in all iterations from ``op.start`` on."""
        depth, homes = len(site.loops), [site.tensor(port) for port in range(len(op.results))]
        entering, firsts = args[: len(op.iterated)], args[len(op.iterated) :]
        for port, held in enumerate(firsts):
            if isinstance(op.results[port], Collect):
                homes[port] = self.store(held, homes[port], site.loops)
        loops = (*site.loops, Loop(op.dim, op.start))
        inner = [
            arg.element(OfLoop(depth)) if iterated else arg
            for arg, iterated in zip(entering, op.iterated, strict=True)
        ]
        loaded = loaded_ports(op)
        for port in loaded:
            self.load(inner[port], loops)
        results, body = self.graph(op.body, site.path, inner, loops, loaded)
        made = []
        for port, (held, result) in enumerate(zip(results, op.results, strict=True)):
            if isinstance(result, Collect):
                home = self.store(held, homes[port], loops)
                home = homes[port] if op.start else home
                made.append(Held(site.node.types[port], listed(held.extents, depth), home))
            else:
                self.fold(result, held, site.loops, op.dim)
                made.append(Held(site.node.types[port], folded(held.extents, depth, op.dim)))
        return made, body

    def reduce(self, op: Reduce, site: Site, args: Sequence[Held]) -> tuple[list[Held], Peak]:
        """A list folded to one item; while it is, one more item is held."""
        depth = len(site.loops)
        item = args[0].element(OfLoop(depth))
        self.load(item, (*site.loops, Loop(op.dim)))
        self.fold(Accumulate(op.monoid), item, site.loops, op.dim)
        extents = folded(item.extents, depth, op.dim)
        return [Held(site.node.types[0], extents)], (largest(extents, site.loops),)

    def head(self, op: Head, site: Site, args: Sequence[Held]) -> tuple[list[Held], Peak]:
        """The first entry of a list."""
        held = args[0].element(first_block(op.dim))
        if not held.type.buffered:
            self.load(held, site.loops)
            held = held._replace(home=None)
        return [held], NOTHING

    def local(self, op: Op, site: Site, args: Sequence[Held]) -> tuple[list[Held], Peak]:
        """An operator on items."""
        known: dict[Dim, Extent] = {}
        for held in args:
            known.update(zip(held.type.axes, held.extents, strict=True))
        (type,) = site.node.types
        shown = (known[d] if d in known else site.extent(d) for d in type.axes)
        made = Held(type, tuple(shown))
        known.update(zip(type.axes, made.extents, strict=True))
        times, dims = op.flops(tuple(held.type for held in args))
        if times:
            done = elements(tuple(known[d] for d in dims), site.loops) * number(times)
            self.flops["matrix" if op == DOT else "vector"].append(done)
        if op == DOT:
            self.dots.append(elements((), site.loops))
        return [made], NOTHING

    def transpose(self, op: Transpose, site: Site, args: Sequence[Held]) -> tuple[list[Held], Peak]:
        """Lists and axes in another order."""
        (held,) = args
        known = dict(zip(held.type.axes, held.extents, strict=True))
        lists = [op.lists.index(d) for d in held.type.lists]
        extents = (known[d] for d in op.axes)
        moved = tuple(OfList(lists[e.level]) if isinstance(e, OfList) else e for e in extents)
        return [Held(site.node.types[0], moved, held.home)], NOTHING

    def relabel(self, op: Relabel, site: Site, args: Sequence[Held]) -> tuple[list[Held], Peak]:
        """The same value under another dim."""
        return [args[0]._replace(type=site.node.types[0])], NOTHING

    def misc(self, op: Misc, site: Site, args: Sequence[Held]) -> tuple[list[Held], Peak]:
        """An opaque function of whole arrays, which are in global memory."""
        results = [
            Held(type, whole_extents(type), site.tensor(port))
            for port, type in enumerate(site.node.types)
        ]
        for held in args:
            self.load(*_all_items(held, site.loops))
        for held in results:
            if held.home:
                self.note_store(held.home, *_all_items(held, site.loops))
        return results, NOTHING

    # what the interpreter would tell its observer ------------------------------------------------

    def load(self, held: Held, loops: tuple[Loop, ...]) -> None:
        """An item is read in every iteration, if there is memory behind it."""
        if held.home:
            moved = self.moved.setdefault(held.home, Moved([], [], [], []))
            moved.loads.append(elements((), loops))
            moved.loaded_elements.append(elements(held.extents, loops))

    def store(self, held: Held, tensor: Tensor, loops: tuple[Loop, ...]) -> Tensor:
        """A local item is written to ``tensor`` in every iteration; where the value then is."""
        if not held.home and not held.type.buffered:
            self.note_store(tensor, held, loops)
        return held.home or tensor

    def note_store(self, tensor: Tensor, held: Held, loops: tuple[Loop, ...]) -> None:
        """An item is written in every iteration."""
        moved = self.moved.setdefault(tensor, Moved([], [], [], []))
        moved.stores.append(elements((), loops))
        moved.stored_elements.append(elements(held.extents, loops))

    def fold(self, result: Result, held: Held, loops: tuple[Loop, ...], dim: Dim) -> None:
        """An item is folded in, in every iteration over ``dim`` but the first."""
        done = elements(held.extents, (*loops, Loop(dim, 1)))
        self.flops["vector"].append(done * number(fold_flops(result)))


def _all_items(held: Held, loops: tuple[Loop, ...]) -> tuple[Held, tuple[Loop, ...]]:
    """The items of nested lists, and the loops over all of them."""
    for dim in held.type.lists:
        held, loops = held.element(OfLoop(len(loops))), (*loops, Loop(dim))
    return held, loops


DOT = Functional("dot")
NOTHING: Peak = (ZERO,)

MEANING: dict[type[Op], Callable[..., tuple[list[Held], Peak]]] = {
    Functional: Walk.local,
    Elementwise: Walk.local,
    Pointwise: Walk.local,
    Cast: Walk.local,
    Scan: Walk.local,
    Map: Walk.map,
    Reduce: Walk.reduce,
    Head: Walk.head,
    Transpose: Walk.transpose,
    Relabel: Walk.relabel,
    Misc: Walk.misc,
}
