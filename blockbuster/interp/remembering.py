"""An interpreter that computes nothing twice, for many programs on the same inputs.

The programs of a derivation have most of their equations in common, and a step leaves most values
as they were. Values are interned (arrays by their content, lists by their elements), so that equal
values are one object, and an operator that meets operands it has met before gives the results of
then. A semantics is a function of its arguments: what is remembered is what would be computed.
A level is read once: what is left to do for an equation is to look up what its operands give.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from blockbuster.interp.evaluate import MEANING, Interpreter
from blockbuster.interp.held import Held, Site, Spans
from blockbuster.interp.layout import Array, Layout, Nested
from blockbuster.interp.observers import Observer
from blockbuster.interp.semantics import Semantics
from blockbuster.ir.graph import Graph, Input, Node, Output
from blockbuster.ir.ops import Cast, Elementwise, Functional, Map, Op
from blockbuster.ir.types import Type
from blockbuster.ir.views import Strided

POSITIONAL = (Functional, Elementwise, Cast)  # of items alone, whatever and wherever they are


Line = tuple[Node, int, bool, tuple[int, ...]]
"""An equation, ready to be looked up: its node, the number of its operator (the same number, the
same results for the same operands), whether blocks matter too, and where its operands stand among
the values of the level: inputs, then results in order."""


class Plan(NamedTuple):
    """A level, read: its equations, and where its outputs stand."""

    graph: Graph
    lines: list[Line]
    ends: list[int]


class Remembering(Interpreter):
    """The meaning of programs that all read ``arrays``, in one layout.

    ``semantics`` must have numbers as elements, not objects: arrays are told apart by their bytes.
    What is looked up by its id stays alive here, so that its id stays its own.
    """

    counts: ClassVar[bool] = False

    def __init__(self, layout: Layout, semantics: Semantics, arrays: Mapping[str, Array]) -> None:
        super().__init__(layout, semantics, Observer())
        self.arrays = arrays
        self.results: dict[tuple[int, ...], Sequence[Nested]] = {}
        self.values: dict[Hashable, Nested] = {}
        self.interned: dict[int, Nested] = {}
        self.cut: dict[Hashable, Nested] = {}
        self.joined: dict[Hashable, Array] = {}
        self.plans: dict[int, Plan] = {}
        self.operators: dict[Hashable, Op] = {}
        self.numbers: dict[int, tuple[Op, int]] = {}
        self.nowhere: Spans = {}
        self.places: dict[tuple[int, str, int], Spans] = {}

    def outputs(self, graph: Graph) -> dict[str, Array]:
        """The outputs of a program."""
        with np.errstate(all="ignore"):
            inputs = [self._read(given, at) for at, given in enumerate(graph.inputs)]
            made = self._level(self._plan(graph), inputs, self.nowhere)
            arrays: dict[str, Array] = {}
            for name, output, data in zip(graph.output_names, graph.outputs, made, strict=True):
                type = graph.type_of(output.value)
                arrays[name] = self._written(data, type, output, name, arrays.get(name))
            return arrays

    def _read(self, given: Input, position: int) -> Nested:
        key = (given.view, given.hint or position, given.type)
        if key not in self.cut:
            self.cut[key] = self._intern(self.read(given, position, self.arrays).data)
        return self.cut[key]

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

    def _plan(self, graph: Graph) -> Plan:
        known = self.plans.get(id(graph))
        if known is None:
            known = self.plans[id(graph)] = self._planned(graph)
        return known

    def _planned(self, graph: Graph) -> Plan:
        first = {-1: 0}  # where the results of each node begin
        place = len(graph.inputs)
        lines: list[Line] = []
        for at, node in enumerate(graph.nodes):
            operands = tuple([first[made] + port for made, port in node.operands])
            op = node.op
            if isinstance(op, Map):  # told apart by identity: comparing bodies takes too long
                lines.append((node, id(op), True, operands))
            elif isinstance(op, POSITIONAL):
                lines.append((node, self._number(op), False, operands))
            else:
                key = (op, node.types, tuple(map(graph.type_of, node.operands)))
                number = id(self.operators.setdefault(key, op))
                lines.append((node, number, True, operands))
            first[at] = place
            place += len(node.types)
        ends = [output.value for output in graph.outputs]
        return Plan(graph, lines, [first[made] + port for made, port in ends])

    def _number(self, op: Op) -> int:
        """The same for equal operators."""
        known = self.numbers.get(id(op))
        if known is None:
            known = self.numbers[id(op)] = op, id(self.operators.setdefault(op, op))
        return known[1]

    def _level(self, plan: Plan, values: list[Nested], spans: Spans) -> list[Nested]:
        """The outputs of a level for its inputs, in the blocks ``spans``."""
        results, here = self.results, id(spans)
        for node, operator, placed, operands in plan.lines:
            args = [values[at] for at in operands]
            key = (operator, here if placed else 0, *map(id, args))
            known = results.get(key)
            if known is None:
                known = self._made(key, plan.graph, node, args, spans)
            elif self.counts:
                self._again(key)
            values += known
        return [values[at] for at in plan.ends]

    def _made(
        self,
        key: tuple[int, ...],
        graph: Graph,
        node: Node,
        args: Sequence[Nested],
        spans: Spans,
    ) -> Sequence[Nested]:
        """The results of an equation that is met for the first time."""
        made = self._computed(graph, node, args, spans)
        self.results[key] = [*map(self._intern, made)]
        return self.results[key]

    def _again(self, key: tuple[int, ...]) -> None:
        """An equation is met again; called if a subclass ``counts``."""

    def _computed(
        self, graph: Graph, node: Node, args: Sequence[Nested], spans: Spans
    ) -> Sequence[Nested]:
        """The results of an equation, anew."""
        site = Site(node, (), spans)
        if isinstance(node.op, Map):
            return self._iterated(node.op, site, args)
        types = map(graph.type_of, node.operands)
        made = MEANING[type(node.op)](self, node.op, site, [*map(Held, types, args)])
        return [held.data for held in made]

    def _iterated(self, op: Map, site: Site, args: Sequence[Nested]) -> Sequence[Nested]:
        """``map``, of values alone."""
        plan, here = self._plan(op.body), id(site.spans)
        rows: list[Sequence[Nested]] = []
        for at, span in enumerate(self.layout.blocks[op.dim]):
            if at < op.start:
                rows.append(args[len(op.iterated) :])
                continue
            inside = self.places.get((here, op.dim, at))
            if inside is None:
                inside = self.places[here, op.dim, at] = {**site.spans, op.dim: span}
            entering = zip(args, op.iterated, strict=False)  # first values do not enter
            inner = [arg[at] if iterated else arg for arg, iterated in entering]
            rows.append(self._level(plan, inner, inside))
        columns = [*map(list, zip(*rows, strict=True))] if rows else [[] for _ in op.results]
        return self.folded(op.results, columns, site)

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
