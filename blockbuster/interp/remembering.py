"""An interpreter for many programs on the same inputs, which computes nothing twice.

The programs of a derivation have most of their equations in common, and a step leaves most values
as they were. A level is walked once, for all iterations of the maps around it: the values of an
equation in these iterations are a *column* (``columns.py``), and an operator computes a column at
once. Equal columns are one object, so an equation that a step did not change is looked up: an
operator on columns that it has met before returns its earlier results. A semantics is a function of
its arguments, so the remembered results are the right ones.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any, ClassVar

import numpy as np

from blockbuster.interp.accumulators import aligned, folded
from blockbuster.interp.columns import Around, Column, Columns, Pattern, Places, Shape, Stacked
from blockbuster.interp.evaluate import MEANING, POSITIONAL, Interpreter, Positional
from blockbuster.interp.held import Held, Site, Spans
from blockbuster.interp.layout import Array, Layout, Nested
from blockbuster.interp.observers import Observer
from blockbuster.interp.scanned import scanned
from blockbuster.interp.semantics import Semantics
from blockbuster.ir.graph import Graph, Input, Node, Output
from blockbuster.ir.ops import (
    Accumulate,
    Collect,
    Map,
    Op,
    Pointwise,
    Reduce,
    Relabel,
    Result,
    Scan,
    Transpose,
)
from blockbuster.ir.types import Dim, Type, whole

Line = tuple[Node, int, bool]
"""An equation, ready to be looked up: its node, the number of its operator (the same number, the
same results for the same operands), and whether blocks matter too."""
Key = tuple[int, ...]
"""The number of an operator, the id of where it stands or 0, and the ids of its operands."""


class Remembering(Interpreter):
    """The meaning of programs that all read ``arrays``, in one layout.

    ``semantics`` must have numbers as elements, not objects: columns are told apart by their bytes.
    What is looked up by its id stays alive here, so that its id stays its own.
    """

    counts: ClassVar[bool] = False

    def __init__(self, layout: Layout, semantics: Semantics, arrays: Mapping[str, Array]) -> None:
        super().__init__(layout, semantics, Observer())
        self.arrays = arrays
        self.columns = Columns()
        self.results: dict[Key, Sequence[Column]] = {}
        """Of equations that were met."""
        self.cut: dict[tuple[int, int], tuple[Input, Column]] = {}
        self.joined: dict[Hashable, Array] = {}
        self.operators: dict[Hashable, Any] = {}
        self.numbers: dict[int, Line] = {}
        self.nowhere = Around(1, {})
        self.inside: dict[tuple[Dim, int, int], Around] = {}
        self.placed: dict[Hashable, Places] = {}
        self.spread: dict[tuple[tuple[Dim, ...], int], Pattern] = {}

    def outputs(self, graph: Graph) -> dict[str, Array]:
        """The outputs of a program."""
        with np.errstate(all="ignore"):
            inputs = [self._read(given, at) for at, given in enumerate(graph.inputs)]
            made = self._level(graph, inputs, self.nowhere)
            parts: dict[str, list[tuple[Column, Type, Output]]] = {}
            for name, output, column in zip(graph.output_names, graph.outputs, made, strict=True):
                parts.setdefault(name, []).append((column, graph.type_of(output.value), output))
            return {name: self._written(held) for name, held in parts.items()}

    def _read(self, given: Input, position: int) -> Column:
        known = self.cut.get((id(given), position))
        if known is None:
            held = self.read(given, position, self.arrays)
            column = self._flat([held.data], held.type)
            known = self.cut[id(given), position] = given, column
        return known[1]

    def _written(self, parts: Sequence[tuple[Column, Type, Output]]) -> Array:
        """The array that these values fill, each its part."""
        key = tuple((id(column), type, output.axes) for column, type, output in parts)
        if key not in self.joined:
            array: Array | None = None
            for column, type, output in parts:
                axes = type.lists if output.axes is None else output.axes
                array = self.filled(self._whole(column, type), whole(type), axes, array)
            assert array is not None
            self.joined[key] = array
        return self.joined[key]

    def _whole(self, column: Column, type: Type) -> Array:
        """The whole array behind the value of a column that holds one."""
        if not type.buffered:
            return self.layout.join(column.items()[0], type, self.semantics.dtype)
        stacks = zip(column.pattern.places, column.stacks, strict=True)
        return self.layout.join_stacks(stacks, type, self.semantics.dtype)

    # levels ------------------------------------------------------------------------------

    def _level(self, graph: Graph, inputs: list[Column], around: Around) -> list[Column]:
        """The outputs of a level for its inputs, in all iterations at once."""
        results, here = self.results, id(around)
        made: list[Sequence[Column]] = [()] * len(graph.nodes)
        made.append(inputs)  # the last entry, which is that of node -1
        for position, node in enumerate(graph.nodes):
            args = [made[at][port] for at, port in node.operands]
            line = self.numbers.get(id(node)) or self._number(graph, node)
            _, number, placed = line
            key = (number, here if placed else 0, *map(id, args))
            known = results.get(key)
            if known is None:
                known = self._made(key, self._computed, graph, node, args, around)
            elif self.counts:
                self._again(key)
            made[position] = known
        return [made[at][port] for at, port in [output.value for output in graph.outputs]]

    def _number(self, graph: Graph, node: Node) -> Line:
        """The node, ready to be looked up."""
        op = node.op
        if isinstance(op, Map):  # told apart by identity: comparing bodies takes too long
            line = self.numbers[id(node)] = node, id(op), True
        elif isinstance(op, POSITIONAL):
            line = self.numbers[id(node)] = node, id(self.operators.setdefault(op, op)), False
        else:  # what its operands are matters too, and that the node does not say
            key = (op, node.types, graph.types_of(node.operands))
            line = node, id(self.operators.setdefault(key, key)), True
        return line

    def _made(self, key: Key, make: Callable[..., Sequence[Any]], *given: Any) -> Sequence[Any]:
        """The results of an equation that is met for the first time."""
        made = self.results[key] = make(*given)
        return made

    def _again(self, key: Key) -> None:
        """An equation is met again; called if a subclass ``counts``."""

    def _computed(
        self, graph: Graph, node: Node, args: Sequence[Column], around: Around
    ) -> Sequence[Column]:
        """The results of an equation in all iterations, anew."""
        op, types = node.op, graph.types_of(node.operands)
        if isinstance(op, Map):
            return self._iterated(node, op, types, args, around)
        if isinstance(op, POSITIONAL):
            return (self.columns.mapped(args, partial(self._positional, op)),)
        if isinstance(op, Pointwise):
            extents = self._extents(op.axes, around)
            return (self.columns.mapped(args, partial(self._pointwise, op, types), extents),)
        if isinstance(op, Relabel):
            return args
        if isinstance(op, Transpose):
            return (self._turned(op, types[0], args[0], len(around)),)
        if isinstance(op, Scan):
            dim, made = types[0].axes[-1], partial(scanned, op, self.semantics, self.columns)
            count = len(self.layout.blocks[dim]) if dim in around.numbers else 1
            return (made(args[0], count, self._chosen),)
        if isinstance(op, Reduce) and self.layout.blocks[op.dim]:
            shape = (len(around), len(self.layout.blocks[op.dim]))
            return self._folded([Accumulate(op.monoid)], node.types, [*args], shape)
        return self._each(op, node, types, args, around)

    def _positional(self, op: Positional, items: Sequence[Array], stack: Shape) -> Array:
        """An operator on items alone; these are stacked."""
        made = self.item(op, items, stack)
        return made if made.ndim else np.broadcast_to(made, stack)

    def _pointwise(
        self, op: Pointwise, types: Sequence[Type], items: Sequence[Array], stack: Shape,
        extents: Shape,
    ) -> Array:  # fmt: skip
        """An operator on stacked items that are matched by dim."""
        shape = dict(zip(op.axes, extents, strict=True))
        for item, type in zip(items, types, strict=True):
            shape |= dict(zip(type.axes, item.shape[1:], strict=True))
        same = [aligned(item, t.axes, op.axes) for item, t in zip(items, types, strict=True)]
        made = np.asarray(self.semantics.expression(op.expr, same, self.layout.size, stack))
        if made.ndim == 1:  # of no operands
            made = made.reshape(*made.shape, *(1,) * len(op.axes))
        return np.broadcast_to(made, (*stack, *(shape[dim] for dim in op.axes)))

    def _extents(self, axes: tuple[Dim, ...], around: Around) -> Pattern:
        """The shapes of items with these axes, where the current blocks say them."""
        known = self.spread.get((axes, id(around)))
        if known is None:
            extents = np.empty((len(around), len(axes)), np.intp)
            for column, dim in zip(extents.T, axes, strict=True):
                lengths = np.array([*map(len, self.layout.blocks[dim])], np.intp)
                held = around.numbers.get(dim)
                column[:] = self.layout.size(dim) if held is None else lengths[held]
            known = self.spread[axes, id(around)] = self.columns.of_extents(extents)
        return known

    def _spans(self, around: Around) -> list[Spans]:
        """The blocks of each iteration."""
        blocks = self.layout.blocks
        held = [[blocks[dim][n] for n in at.tolist()] for dim, at in around.numbers.items()]
        rows = zip(*held, strict=True) if held else [()] * len(around)
        return [dict(zip(around.numbers, row, strict=True)) for row in rows]

    def _each(
        self, op: Op, node: Node, types: Sequence[Type], args: Sequence[Column], around: Around
    ) -> Sequence[Column]:
        """The results of an operator that is no function of items, iteration by iteration."""
        count = len(around)
        nested = [self._nested(arg, type, count) for arg, type in zip(args, types, strict=True)]
        rows = []
        for here, *values in zip(self._spans(around), *nested, strict=True):
            made = MEANING[type(op)](self, op, Site(node, (), here), [*map(Held, types, values)])
            rows.append([held.data for held in made])
        return [self._flat([row[port] for row in rows], t) for port, t in enumerate(node.types)]

    def _turned(self, op: Transpose, type: Type, column: Column, count: int) -> Column:
        """Lists and axes in another order, in each of ``count`` iterations."""
        lists = [type.lists.index(dim) for dim in op.lists]
        axes = [1 + type.axes.index(dim) for dim in op.axes]
        extents = [len(self.layout.blocks[dim]) for dim in type.lists]

        def order() -> Places:
            numbers = np.arange(count * prod(extents)).reshape(count, *extents)
            return numbers.transpose(0, *(1 + at for at in lists)).ravel()

        places = self._chosen("turned", count, *extents, *lists, make=order)
        turned = self.columns.taken(column, places)
        return self.columns.mapped([turned], lambda items, _: items[0].transpose(0, *axes))

    # lists -------------------------------------------------------------------------------

    def _count(self, lists: Sequence[Dim]) -> int:
        """The number of items of a list over these dims."""
        return prod(len(self.layout.blocks[dim]) for dim in lists)

    def _flat(self, values: Sequence[Nested], type: Type) -> Column:
        """The column of the values of all iterations."""
        items = list(values)
        for _ in type.lists:
            items = [entry for value in items for entry in value]
        return self.columns.of_items([np.asarray(item) for item in items])

    def _nested(self, column: Column, type: Type, count: int) -> list[Nested]:
        """The value in each of ``count`` iterations."""
        items: list[Nested] = column.items()
        for depth in reversed(range(len(type.lists))):
            each, lists = len(self.layout.blocks[type.lists[depth]]), type.lists[:depth]
            starts = [at * each for at in range(count * self._count(lists))]
            items = [items[at : at + each] for at in starts]
        return items

    def _chosen(self, *key: Hashable, make: Callable[[], Places]) -> Places:
        """Places of a column, made once for each key."""
        if key not in self.placed:
            self.placed[key] = np.asarray(make(), np.intp)
        return self.placed[key]

    # maps --------------------------------------------------------------------------------

    def _iterated(
        self, node: Node, op: Map, types: Sequence[Type], args: Sequence[Column], around: Around
    ) -> Sequence[Column]:
        """``map``, of columns: those of its body hold the items of all its iterations."""
        inside = self._inside(op, around)
        entering = zip(args, types, op.iterated, strict=False)  # first values do not enter
        ends = self._level(
            op.body, [self._entering(op, *given, len(around)) for given in entering], inside
        )
        taken = (*ends, *args[len(op.iterated) :])
        folds = (op.results, node.types)
        number = id(self.operators.setdefault(folds, folds))
        key = (number, id(around), *map(id, taken))
        known = self.results.get(key)
        if known is None:
            known = self._made(key, self._gathered, node, op, taken, around)
        elif self.counts:
            self._again(key)
        return known

    def _inside(self, op: Map, around: Around) -> Around:
        """The iterations of a map, for each of the iterations around it."""
        key = (op.dim, op.start, id(around))
        known = self.inside.get(key)
        if known is None:
            blocks = range(op.start, max(len(self.layout.blocks[op.dim]), op.start))
            known = self.inside[key] = around.inside(op.dim, blocks)
        return known

    def _entering(self, op: Map, column: Column, type: Type, iterated: bool, count: int) -> Column:
        """An operand in the body of a map: its entries, or itself as often as the map iterates."""
        blocks, start = len(self.layout.blocks[op.dim]), op.start
        if iterated and not start:
            return column
        own, later = self._count(type.lists), max(blocks - start, 0)

        def order() -> Places:
            every = np.arange(count * own)
            if iterated:
                return every.reshape(count, blocks, self._count(type.lists[1:]))[:, start:].ravel()
            return np.repeat(every.reshape(count, 1, own), later, axis=1).ravel()

        places = self._chosen("entering", iterated, count, own, blocks, start, make=order)
        return self.columns.taken(column, places)

    def _gathered(
        self, node: Node, op: Map, taken: Sequence[Column], around: Around
    ) -> Sequence[Column]:
        """The results of a map in each iteration around it, from those of its own iterations."""
        blocks = len(self.layout.blocks[op.dim])
        made: list[Column] = list(taken[: len(op.results)])
        for port, first in enumerate(taken[len(op.results) :] if blocks else ()):
            folds = not isinstance(op.results[port], Collect)
            items = 1 if folds else self._count(node.types[port].lists[1:])
            made[port] = self._behind(first, made[port], (len(around), blocks - op.start, items))
        if all(isinstance(result, Collect) for result in op.results):
            return made
        if blocks:
            return self._folded(op.results, node.types, made, (len(around), blocks))
        for port, result in enumerate(op.results):
            if not isinstance(result, Collect):
                start = partial(self._identity, result.monoid)
                extents = self._extents(node.types[port].axes, around)
                made[port] = self.columns.mapped((), start, extents)
        return made

    def _identity(self, monoid: str, items: Sequence[Array], stack: Shape, shape: Shape) -> Array:
        return self.semantics.identity(monoid, (*stack, *shape))

    def _behind(self, first: Column, rest: Column, shape: tuple[int, int, int]) -> Column:
        """For each iteration the first value, and behind it the others."""
        around, count, own = shape

        def order() -> Places:
            before = np.arange(around * own).reshape(around, own)
            behind = around * own + np.arange(around * count * own).reshape(around, count * own)
            return np.concatenate([before, behind], axis=1).ravel()

        both = self.columns.joined((first, rest))
        return self.columns.taken(both, self._chosen("behind", *shape, make=order))

    def _folded(
        self, results: Sequence[Result], types: Sequence[Type], made: list[Column],
        shape: tuple[int, int],
    ) -> list[Column]:  # fmt: skip
        """The results of a map, those that are folded over ``shape[1]`` entries each."""
        around, count = shape
        folds = [port for port, r in enumerate(results) if not isinstance(r, Collect)]
        numbers = [
            self._chosen("entry", *shape, at, make=partial(np.arange, at, around * count, count))
            for at in range(count)
        ]
        entries = [self.columns.taken(made[port], at) for port in folds for at in numbers]
        stacked = [Type((), ("", *type.axes)) for type in types]
        patterns = [column.pattern for column in entries]
        parts: list[list[Any]] = [[] for _ in folds]
        for part in self.columns.parts(patterns):
            items: Iterator[Array] = iter(part.of(entries))
            columns: list[list[Array]] = [[] for _ in results]
            for port in folds:
                columns[port] = [next(items) for _ in range(count)]
            stack = (len(part.places),)
            totals = folded(results, columns, stacked, self.semantics, self.layout.size, stack)
            for held, port in zip(parts, folds, strict=True):
                held.append(Stacked(part.places, totals[port]))
        for held, port in zip(parts, folds, strict=True):
            made[port] = self.columns.of_parts(around, held)
        return made
