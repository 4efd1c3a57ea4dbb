"""The two subgraphs that the algebra rules look for: a mapped row operator, and a matmul.

A recognizer returns the parts that it found, or the reason in words why the node does not match. A
matmul that reads the list found by ``row_map`` reads it as its left operand: the right operand is a
list of lists.
"""

from __future__ import annotations

from dataclasses import dataclass

from blockbuster.ir.graph import Graph, Value
from blockbuster.ir.ops import Accumulate, Collect, Functional, Map, Reduce
from blockbuster.ir.types import Dim
from blockbuster.rules.base import label


@dataclass(frozen=True)
class RowMap:
    """``map K (x in source, c = vector) { y = row_op(x, c)  yield y }``: one row of blocks."""

    node: int
    dim: Dim
    source: Value
    vector: Value


@dataclass(frozen=True)
class Matmul:
    """``map N { sum over K of dot(left[k], right[n][k]) }``: ``left`` is passed whole."""

    node: int
    contraction: Dim
    left: Value
    right: Value


def row_map(graph: Graph, position: int, name: str) -> RowMap | str | None:
    """The map at ``position`` if its body is only the row operator ``name`` of one vector.

    A reason if the operator is applied to what cannot be moved; None if the node is something else.
    """
    node = graph.nodes[position]
    op = node.op
    if not isinstance(op, Map) or len(op.body.nodes) != 1 or not _collects(op):
        return None
    inner = op.body.nodes[0]
    if inner.op != Functional(name):
        return None
    block, vector = inner.operands
    if not op.iterated[block.port]:
        return f"the block of {name} does not change with {op.dim}"
    if op.iterated[vector.port]:
        return f"the vector of {name} changes with {op.dim}: it cannot be taken out of the sum"
    return RowMap(position, op.dim, node.operands[block.port], node.operands[vector.port])


def matmul(graph: Graph, position: int) -> Matmul | str:
    """The map at ``position`` if its body is only a sum of dots of a whole row with a list."""
    node = graph.nodes[position]
    op = node.op
    if not isinstance(op, Map) or not _collects(op):
        return f"{label(node)} is not a matmul: not a map with one collected result"
    body = op.body
    inner = body.nodes[0] if body.nodes else None
    if inner is None or not isinstance(inner.op, Map) or len(inner.op.results) != 1:
        return f"{label(node)} is not a matmul: its body is more than a sum of dots"
    loop = inner.op
    reduced = len(body.nodes) == 2 and body.nodes[1].op == Reduce(loop.dim, "+")
    summed = (reduced and isinstance(loop.results[0], Collect)) or (
        len(body.nodes) == 1 and loop.results == (Accumulate("+"),)
    )
    if not summed or body.outputs[0].value != Value(len(body.nodes) - 1):
        return f"{label(node)} is not a matmul: its body is more than a sum of dots"
    dots = loop.body.nodes
    if len(dots) != 1 or dots[0].op != Functional("dot") or loop.body.outputs[0].value != Value(0):
        return f"{label(node)} is not a matmul: its sum is not of dots alone"
    left, right = (inner.operands[v.port] for v in dots[0].operands)
    if loop.iterated != (True, True) or left.node >= 0 or right.node >= 0:
        return f"{label(node)} is not a matmul: a factor of its dot does not run along the sum"
    if op.iterated[left.port] and not op.iterated[right.port]:
        return f"{label(node)} takes the whole row as the right operand of its dot"
    if op.iterated[left.port] or not op.iterated[right.port]:
        return f"{label(node)} is not a matmul of a whole row with a list over {op.dim}"
    return Matmul(position, loop.dim, node.operands[left.port], node.operands[right.port])


def _collects(op: Map) -> bool:
    """True if one result is collected, from every iteration."""
    return op.results == (Collect(),) and not op.start
