"""What a program becomes where a dim is one block: its maps have one iteration, its lists one item.

The arrays that it reads and fills stay what they are. ``WholeDim`` makes a step of this;
``explain`` asks which tile would let the rules go on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from blockbuster.ir.builder import Builder
from blockbuster.ir.graph import Graph, Index, Input, Node, Read, Value
from blockbuster.ir.list_only import list_only
from blockbuster.ir.ops import Head, Map, Misc, Op, Reduce, Relabel, Transpose
from blockbuster.ir.types import Dim, Type, size_class, whole


def with_one_block(graph: Graph, dim: Dim) -> Graph:
    """``graph`` with one block along the size class of ``dim``: its items are whole along it.

    Raises ValueError for a list-only dim: its blocks have one element, whatever its size.
    """
    if size_class(dim) in list_only(graph):
        raise ValueError(f"{dim} is a list-only dim: its blocks have one element each")
    builder = Builder()
    inputs = tuple(
        builder.input(_unlisted(given.type, size_class(dim)), _view(given, at), given.hint)
        for at, given in enumerate(graph.inputs)
    )
    made = _level(graph, inputs, size_class(dim), builder)
    outputs = (
        replace(output, value=value, axes=graph.output_axes(at))
        for at, (output, value) in enumerate(zip(graph.outputs, made, strict=True))
    )
    return builder.finish(*outputs)


def _view(given: Input, position: int) -> Read | Index | None:
    """The array that an input reads, its axes named, since lists no longer say their order."""
    if given.view is not None or not given.type.buffered:
        return given.view
    return Read(given.hint or f"in{position}", whole(given.type))


def _body(graph: Graph, dim: Dim) -> Graph:
    builder = Builder()
    inputs = tuple(builder.input(_unlisted(i.type, dim), hint=i.hint) for i in graph.inputs)
    made = _level(graph, inputs, dim, builder)
    return builder.finish(*made)


def _level(graph: Graph, inputs: Sequence[Value], dim: Dim, builder: Builder) -> tuple[Value, ...]:
    """The outputs of ``graph``, its equations added to ``builder``."""
    made = {Value(-1, port): value for port, value in enumerate(inputs)}
    for position, node in enumerate(graph.nodes):
        operands = tuple(made[value] for value in node.operands)
        results = _node(node, operands, dim, builder)
        made.update((Value(position, port), value) for port, value in enumerate(results))
    return tuple(made[output.value] for output in graph.outputs)


def _node(node: Node, operands: tuple[Value, ...], dim: Dim, builder: Builder) -> tuple[Value, ...]:
    op = node.op
    if isinstance(op, Map) and size_class(op.dim) == dim:
        if op.start:  # nothing is left to iterate over: the results are those of iteration 0
            return op.first_values(operands)
        return _level(op.body, operands, dim, builder)
    if isinstance(op, Reduce | Head) and size_class(op.dim) == dim:
        return operands
    changed = _op(op, dim)
    if isinstance(changed, Transpose | Relabel) and _changes_nothing(
        changed, builder.type_of(operands[0])
    ):
        return operands
    return builder.add(changed, *operands, hints=node.hints, origin=node.origin)


def _op(op: Op, dim: Dim) -> Op:
    if isinstance(op, Map):
        return replace(op, body=_body(op.body, dim))
    if isinstance(op, Transpose):
        return Transpose(_unlisted(Type(op.lists), dim).lists, op.axes)
    if isinstance(op, Misc):
        return replace(op, results=tuple(_unlisted(type, dim) for type in op.results))
    return op


def _changes_nothing(op: Transpose | Relabel, type: Type) -> bool:
    """What an addressing operator did to lists that are gone needs no operator."""
    if isinstance(op, Relabel):
        return op.old not in type.lists + type.axes
    return Type(op.lists, op.axes) == type


def _unlisted(type: Type, dim: Dim) -> Type:
    """The type of a value that was a list over a dim, where that is one item."""
    return Type(tuple(d for d in type.lists if size_class(d) != dim), type.axes)
