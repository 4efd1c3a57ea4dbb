"""The values of a program that need an exponent for each element, not one for each row.

    yield +e                   blocks are added: elements at one position need a common exponent
    f = transpose N,M[N,M] !e  rows become columns: exponents per row would belong to no row

They are found from the outputs backwards. A row reduction, or a product that contracts rows, brings
elements under one exponent per row, so it demands nothing of its operands.
"""

from __future__ import annotations

from collections.abc import Sequence

from blockbuster.ir.graph import Graph, Node, Value
from blockbuster.ir.ops import (
    Cast,
    Collect,
    Elementwise,
    Functional,
    Map,
    Pointwise,
    Reduce,
    Relabel,
    Transpose,
)
from blockbuster.ir.types import Type

PASSING = ("add", "sub", "mul", "div", "row_scale", "col_scale")


def by_element(graph: Graph, wanted: Sequence[bool]) -> dict[Value, None]:
    """The values of ``graph`` that need it; ``wanted`` says so of each output."""
    pairs = zip(graph.outputs, wanted, strict=True)
    found: dict[Value, None] = {output.value: None for output, asked in pairs if asked}
    for position, node in reversed(tuple(enumerate(graph.nodes))):
        asked = [Value(position, port) in found for port in range(len(node.types))]
        operands = zip(node.operands, _passed_on(graph, node, asked), strict=True)
        found.update((value, None) for value, needs in operands if needs)
    return found


def in_body(op: Map, asked: Sequence[bool]) -> dict[Value, None]:
    """The values of a map's body that need it, where ``asked`` says so of the map's results."""
    body = op.body
    wanted = [
        needs if isinstance(result, Collect) else _is_block(body.type_of(output.value))
        for needs, result, output in zip(asked, op.results, body.outputs, strict=True)
    ]
    return by_element(body, wanted)


def _passed_on(graph: Graph, node: Node, asked: Sequence[bool]) -> list[bool]:
    """For each operand of a node: whether it needs it."""
    nothing = [False] * len(node.operands)
    match node.op:
        case Map() as op:
            inside = in_body(op, asked)
            return [Value(-1, port) in inside for port in range(len(nothing))]
        case Reduce():
            return [_is_block(node.types[0])]
        case Transpose(axes=axes) if axes != graph.type_of(node.operands[0]).axes:
            return [True]
        case Elementwise() | Pointwise() | Cast() | Relabel() | Transpose():
            return [asked[0]] * len(nothing)
        case Functional(name) if name in PASSING:
            return [asked[0]] * len(nothing)
    return nothing


def _is_block(type: Type) -> bool:
    return len(type.axes) == 2
