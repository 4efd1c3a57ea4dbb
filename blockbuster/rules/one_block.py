"""Programs with some dims in one block: maps over them have one iteration, lists one item.

The arrays that the program reads and writes stay the same. ``WholeDim`` makes a step of this;
``explain`` asks which tile would let the rules go on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from blockbuster.ir.builder import Builder
from blockbuster.ir.graph import Graph, Index, Input, Node, Read, Value
from blockbuster.ir.list_only import list_only
from blockbuster.ir.ops import Head, Map, Misc, Op, Reduce, Relabel, Transpose
from blockbuster.ir.origin import Origin
from blockbuster.ir.types import Dim, Type, size_class, whole


def with_one_block(graph: Graph, dims: Iterable[Dim], made_by: str = "") -> Graph:
    """``graph`` with one block along each of ``dims`` and what is tied to them.

    Its items are whole along these. What leaves a map, and maps whose bodies change, come from the
    rule ``made_by``, if there is one. Raises ValueError for a list-only dim: its blocks have one
    element, whatever its size.
    """
    found, single = tied(graph, dims), list_only(graph)
    if refused := sorted(dim for dim in found if size_class(dim) in single):
        raise ValueError(f"{refused[0]} is a list-only dim: its blocks have one element each")
    return _OneBlock(found, made_by).program(graph)


def tied(graph: Graph, dims: Iterable[Dim]) -> frozenset[Dim]:
    """``dims`` and those that relabels make of them: one list under several names."""
    relabels = [op for _, level in graph.walk() for _, op in level.of_type(Relabel)]
    found = frozenset(dims)
    while more := [{op.old, op.new} for op in relabels if (op.old in found) != (op.new in found)]:
        found = found.union(*more)
    return found


def called(graph: Graph, word: Dim) -> tuple[Dim, ...]:
    """The dims that ``word`` means: D all dims of its size class, D' itself alone."""
    return tuple(dim for dim in graph.mentions.dims if word in (dim, size_class(dim)))


@dataclass(frozen=True)
class _OneBlock:
    """One block along ``dims``, at all levels."""

    dims: frozenset[Dim]
    made_by: str

    def program(self, graph: Graph) -> Graph:
        """A program: its inputs and outputs say which axes of arrays they are."""
        builder = Builder()
        inputs = tuple(
            builder.input(_unlisted(given.type, self.dims), _view(given, at), given.hint)
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
        types = (_unlisted(given.type, self.dims) for given in graph.inputs)
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
        if isinstance(op, Map) and op.dim in self.dims:
            if op.start:  # nothing is left to iterate over: the results are those of iteration 0
                return op.first_values(operands)
            return self.level(op.body, operands, builder, moved=True)
        if isinstance(op, Reduce | Head) and op.dim in self.dims:
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
        """An operator that does not loop over the dims."""
        if isinstance(op, Map):
            return replace(op, body=self.body(op.body))
        if isinstance(op, Transpose):
            return Transpose(_unlisted(Type(op.lists), self.dims).lists, op.axes)
        if isinstance(op, Misc):
            return replace(op, results=tuple(_unlisted(t, self.dims) for t in op.results))
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


def _unlisted(type: Type, dims: frozenset[Dim]) -> Type:
    """The type of a value that was a list over ``dims``, where each is one item."""
    return Type(tuple(d for d in type.lists if d not in dims), type.axes)
