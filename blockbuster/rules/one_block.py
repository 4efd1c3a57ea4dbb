"""What a program becomes where a dim is one block: its maps have one iteration, its lists one item.

The arrays that it reads and fills stay what they are. ``WholeDim`` makes a step of this;
``explain`` asks which tile would let the rules go on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from blockbuster.ir.builder import Builder
from blockbuster.ir.graph import Graph, Index, Input, Node, Read, Value
from blockbuster.ir.list_only import list_only
from blockbuster.ir.ops import Head, Map, Misc, Op, Reduce, Relabel, Transpose
from blockbuster.ir.origin import Origin
from blockbuster.ir.types import Dim, Type, size_class, whole


def with_one_block(graph: Graph, dim: Dim, made_by: str = "") -> Graph:
    """``graph`` with one block along the size class of ``dim``: its items are whole along it.

    What leaves a map, and maps whose bodies change, come from the rule ``made_by``, if there is
    one. Raises ValueError for a list-only dim: its blocks have one element, whatever its size.
    """
    if size_class(dim) in list_only(graph):
        raise ValueError(f"{dim} is a list-only dim: its blocks have one element each")
    return _OneBlock(size_class(dim), made_by).program(graph)


@dataclass(frozen=True)
class _OneBlock:
    """One block along the size class ``dim``, at all levels."""

    dim: Dim
    made_by: str

    def program(self, graph: Graph) -> Graph:
        """A program: its inputs and outputs say which axes of arrays they are."""
        builder = Builder()
        inputs = tuple(
            builder.input(_unlisted(given.type, self.dim), _view(given, at), given.hint)
            for at, given in enumerate(graph.inputs)
        )
        made = self.level(graph, inputs, builder)
        outputs = (
            replace(output, value=value, axes=graph.output_axes(at))
            for at, (output, value) in enumerate(zip(graph.outputs, made, strict=True))
        )
        return builder.finish(*outputs)

    def body(self, graph: Graph) -> Graph:
        """The body of a map over another dim."""
        builder = Builder()
        types = (_unlisted(given.type, self.dim) for given in graph.inputs)
        given = zip(types, graph.inputs, strict=True)
        inputs = tuple(builder.input(type, hint=old.hint) for type, old in given)
        return builder.finish(*self.level(graph, inputs, builder))

    def level(
        self, graph: Graph, inputs: Sequence[Value], builder: Builder, *, moved: bool = False
    ) -> tuple[Value, ...]:
        """The outputs of ``graph``, its equations added to ``builder``: ``moved`` out of a map."""
        made = {Value(-1, port): value for port, value in enumerate(inputs)}
        for position, node in enumerate(graph.nodes):
            operands = tuple(made[value] for value in node.operands)
            results = self.node(node, operands, builder, moved=moved)
            made.update((Value(position, port), value) for port, value in enumerate(results))
        return tuple(made[output.value] for output in graph.outputs)

    def node(
        self, node: Node, operands: tuple[Value, ...], builder: Builder, *, moved: bool
    ) -> tuple[Value, ...]:
        """The results of an equation."""
        op = node.op
        if isinstance(op, Map) and size_class(op.dim) == self.dim:
            if op.start:  # nothing is left to iterate over: the results are those of iteration 0
                return op.first_values(operands)
            return self.level(op.body, operands, builder, moved=True)
        if isinstance(op, Reduce | Head) and size_class(op.dim) == self.dim:
            return operands
        changed = self.op(op)
        if isinstance(changed, Transpose | Relabel) and _changes_nothing(
            changed, builder.type_of(operands[0])
        ):
            return operands
        kept = (changed == op and not moved) or not self.made_by
        origin = node.origin if kept else Origin(self.made_by, (node.origin,))
        return builder.add(changed, *operands, hints=node.hints, origin=origin)

    def op(self, op: Op) -> Op:
        """An operator that does not loop over the dim."""
        if isinstance(op, Map):
            return replace(op, body=self.body(op.body))
        if isinstance(op, Transpose):
            return Transpose(_unlisted(Type(op.lists), self.dim).lists, op.axes)
        if isinstance(op, Misc):
            return replace(op, results=tuple(_unlisted(t, self.dim) for t in op.results))
        return op


def _view(given: Input, position: int) -> Read | Index | None:
    """The array that an input reads, its axes named, since lists no longer say their order."""
    if given.view is not None or not given.type.buffered:
        return given.view
    return Read(given.hint or f"in{position}", whole(given.type))


def _changes_nothing(op: Transpose | Relabel, type: Type) -> bool:
    """What an addressing operator did to lists that are gone needs no operator."""
    if isinstance(op, Relabel):
        return op.old not in type.lists + type.axes
    return Type(op.lists, op.axes) == type


def _unlisted(type: Type, dim: Dim) -> Type:
    """The type of a value that was a list over a dim, where that is one item."""
    return Type(tuple(d for d in type.lists if size_class(d) != dim), type.axes)
