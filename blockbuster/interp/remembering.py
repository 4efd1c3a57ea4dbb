"""An interpreter for many programs on the same inputs, which computes nothing twice.

The programs of a derivation have most of their equations in common, and a step leaves most values
as they were. Values are interned (arrays by their content, lists by their elements), so that equal
values are one object, and an operator on operands that it has met before returns its earlier
results. A semantics is a function of its arguments, so the remembered results are the right ones.

A level is walked once, for all iterations of the maps around it: the values of an equation in these
iterations are a *column*, interned like a value. So an equation that a step did not change is
looked up once, not block by block; in new columns, operators on items are looked up item by item.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from blockbuster.interp.evaluate import MEANING, POSITIONAL, Interpreter
from blockbuster.interp.held import Held, Site, Spans
from blockbuster.interp.layout import Array, Layout, Nested
from blockbuster.interp.observers import Observer
from blockbuster.interp.semantics import Semantics
from blockbuster.ir.graph import Graph, Input, Node, Output
from blockbuster.ir.ops import Map
from blockbuster.ir.types import Dim, Type
from blockbuster.ir.views import Strided

Column = tuple[Nested, ...]
"""What a value is in each iteration of the maps around it; a tuple, as no value is."""
Places = tuple[Spans, ...]
"""The blocks of each of these iterations; one object wherever they are the same."""
Line = tuple[Node, int, bool]
"""An equation, ready to be looked up: its node, the number of its operator (the same number, the
same results for the same operands), and whether blocks matter too."""
Key = tuple[int, ...]
"""The number of an operator, the id of where it stands or 0, and the ids of its operands."""


class Remembering(Interpreter):
    """The meaning of programs that all read ``arrays``, in one layout.

    ``semantics`` must have numbers as elements, not objects: arrays are told apart by their bytes.
    What is looked up by its id stays alive here, so that its id stays its own.
    """

    counts: ClassVar[bool] = False

    def __init__(self, layout: Layout, semantics: Semantics, arrays: Mapping[str, Array]) -> None:
        super().__init__(layout, semantics, Observer())
        self.arrays = arrays
        self.results: dict[Key, Sequence[Any]] = {}
        """Of equations that were met: columns by columns, and items by items."""
        self.values: dict[Hashable, Nested] = {}
        self.interned: dict[int, Nested] = {}
        self.columns: dict[tuple[int, ...], Column] = {}
        self.entered: dict[tuple[bool, int, int], Column] = {}
        self.cut: dict[tuple[int, int], tuple[Input, Column]] = {}
        self.joined: dict[Hashable, Array] = {}
        self.operators: dict[Hashable, Any] = {}
        self.numbers: dict[int, Line] = {}
        self.nowhere: Places = ({},)
        self.inside: dict[tuple[Dim, int, int], Places] = {}

    def outputs(self, graph: Graph) -> dict[str, Array]:
        """The outputs of a program."""
        with np.errstate(all="ignore"):
            inputs = [self._read(given, at) for at, given in enumerate(graph.inputs)]
            made = self._level(graph, inputs, self.nowhere)
            arrays: dict[str, Array] = {}
            for name, output, (data,) in zip(graph.output_names, graph.outputs, made, strict=True):
                type = graph.type_of(output.value)
                arrays[name] = self._written(data, type, output, name, arrays.get(name))
            return arrays

    def _read(self, given: Input, position: int) -> Column:
        known = self.cut.get((id(given), position))
        if known is None:
            column = self._column([self._intern(self.read(given, position, self.arrays).data)])
            known = self.cut[id(given), position] = given, column
        return known[1]

    def _written(
        self, data: Nested, type: Type, output: Output, name: str, into: Array | None
    ) -> Array:
        axes = type.lists if output.axes is None else output.axes
        if any(isinstance(axis, Strided) for axis in axes):  # a part of an array: not a value
            return self.write(Held(type, data), name, axes, into)
        key = (id(data), type, axes)
        if key not in self.joined:
            self.joined[key] = self.write(Held(type, data), name, axes, into)
        return self.joined[key]

    def _level(self, graph: Graph, inputs: list[Column], places: Places) -> list[Column]:
        """The outputs of a level for its inputs, in all ``places`` at once."""
        results, here = self.results, id(places)
        made: list[Sequence[Column]] = [()] * len(graph.nodes)
        made.append(inputs)  # the last entry, which is that of node -1
        for position, node in enumerate(graph.nodes):
            args = [made[at][port] for at, port in node.operands]
            line = self.numbers.get(id(node)) or self._number(graph, node)
            _, number, placed = line
            key = (number, here if placed else 0, *map(id, args))
            known = results.get(key)
            if known is None:
                known = self._made(key, self._columns, graph, line, args, places)
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

    def _columns(
        self, graph: Graph, line: Line, args: Sequence[Column], places: Places
    ) -> Sequence[Column]:
        """The results of an equation in all places, anew."""
        node, number, placed = line
        if isinstance(node.op, Map):
            return self._iterated(node, node.op, args, places)
        types = graph.types_of(node.operands)
        rows = []
        for here, *values in zip(places, *args, strict=True):
            key = (number, id(here) if placed else 0, *map(id, values))
            known = self.results.get(key)
            if known is None:
                known = self._made(key, self._values, node, types, values, here)
            elif self.counts:
                self._again(key)
            rows.append(known)
        return self._transposed(rows, len(node.types))

    def _values(
        self, node: Node, types: Sequence[Type], values: Sequence[Nested], here: Spans
    ) -> Sequence[Nested]:
        """The results of an equation in one place, anew."""
        op = node.op
        if isinstance(op, POSITIONAL):
            return (self._intern(self.item(op, values)),)
        made = MEANING[type(op)](self, op, Site(node, (), here), [*map(Held, types, values)])
        return [self._intern(held.data) for held in made]

    def _iterated(
        self, node: Node, op: Map, args: Sequence[Column], places: Places
    ) -> Sequence[Column]:
        """``map``, of columns: those of its body have an entry for each of its iterations too."""
        inside = self._inside(op, places)
        count = len(inside) // max(len(places), 1)
        entering = zip(args, op.iterated, strict=False)  # first values do not enter
        inner = [self._entering(column, count, op, iterated) for column, iterated in entering]
        ends = self._level(op.body, inner, inside)
        folds = (op.results, node.types)
        number = id(self.operators.setdefault(folds, folds))
        taken = (*ends, *args[len(op.iterated) :])
        key = (number, id(places), *map(id, taken))
        known = self.results.get(key)
        if known is None:
            known = self._made(key, self._gathered, node, op, taken, count, places)
        elif self.counts:
            self._again(key)
        return known

    def _inside(self, op: Map, places: Places) -> Places:
        """The blocks in each iteration of a map, for each of the iterations around it."""
        key = (op.dim, op.start, id(places))
        known = self.inside.get(key)
        if known is None:
            blocks = self.layout.blocks[op.dim][op.start :]
            known = tuple([{**here, op.dim: span} for here in places for span in blocks])
            self.inside[key] = known
        return known

    def _entering(self, column: Column, count: int, op: Map, iterated: bool) -> Column:
        """An operand in the body of a map: its entries, or itself as often as the map iterates."""
        key = (iterated, op.start if iterated else count, id(column))
        known = self.entered.get(key)
        if known is None:
            made = (
                [entry for value in column for entry in value[op.start :]]
                if iterated
                else [value for value in column for _ in range(count)]
            )
            known = self.entered[key] = self._column(made)
        return known

    def _gathered(
        self, node: Node, op: Map, taken: Sequence[Column], count: int, places: Places
    ) -> Sequence[Column]:
        """What the results of a map are in each place, of those of its body and first values."""
        starts = [at * count for at in range(len(places))]
        lists = [
            [[*column[at : at + count]] for at in starts] for column in taken[: len(op.results)]
        ]
        firsts = taken[len(op.results) :]
        for first, entries in zip(firsts, lists, strict=False):
            for value, entry in zip(first, entries, strict=True):
                entry.insert(0, value)
        if not op.serial:
            return [self._column([*map(self._intern, entries)]) for entries in lists]
        rows = []
        for here, *columns in zip(places, *lists, strict=True):
            made = self.folded(op.results, columns, Site(node, (), here))
            rows.append([*map(self._intern, made)])
        return self._transposed(rows, len(op.results))

    def _transposed(self, rows: Sequence[Sequence[Nested]], count: int) -> Sequence[Column]:
        """The columns of ``count`` results whose values in each place are ``rows``."""
        if count == 1:
            return (self._column([value for (value,) in rows]),)
        return [self._column([row[port] for row in rows]) for port in range(count)]

    def _column(self, values: Sequence[Nested]) -> Column:
        """A column of interned values."""
        return self.columns.setdefault(tuple(map(id, values)), tuple(values))

    def _intern(self, value: Nested) -> Nested:
        if id(value) in self.interned:
            return value
        key: tuple[Hashable, ...]
        if isinstance(value, list):
            key = tuple(map(id, value))
            if key in self.values:
                return self.values[key]
            if not all(map(self.interned.__contains__, key)):
                value = [*map(self._intern, value)]
                key = tuple(map(id, value))
        else:
            key = (value.shape, value.tobytes())
        value = self.values.setdefault(key, value)
        self.interned[id(value)] = value
        return value
