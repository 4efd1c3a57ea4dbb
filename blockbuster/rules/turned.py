"""The body that computes the transposed block: the same operators with transposed operands.

A dot exchanges its operands, an operator by rows becomes one by columns, and an elementwise
operator is applied to transposed blocks. Vectors and scalars stay as they are.
"""

from __future__ import annotations

from blockbuster.ir.builder import Builder
from blockbuster.ir.graph import Graph, Node, Value
from blockbuster.ir.ops import (
    Cast,
    Elementwise,
    Functional,
    Map,
    Op,
    Pointwise,
    Reduce,
    Relabel,
    Rescale,
    Transpose,
)
from blockbuster.ir.origin import Origin
from blockbuster.ir.types import Type
from blockbuster.rules.base import label

SWAPPED = ("dot", "outer")
BY_ELEMENTS = ("add", "sub", "mul", "div")
ACROSS = {
    "row_scale": "col_scale", "col_scale": "row_scale",
    "row_shift": "col_shift", "col_shift": "row_shift",
}  # fmt: skip


class Turning:
    """``body`` with its only result turned, if ``turns``.

    ``ports`` says of each input of the new body which input of the old one it is, and whether it
    takes its blocks turned.
    """

    def __init__(self, graph: Graph, turns: bool, origin: Origin) -> None:
        self.ports: list[tuple[int, bool]] = []
        self._graph, self._edit, self._origin = graph, Builder(), origin
        self._known: dict[tuple[Value, bool], Value] = {}
        (output,) = graph.outputs
        made = self._value(output.value, turns)
        built = self._edit.finish(made)
        self.body = built

    def _value(self, value: Value, turned: bool) -> Value:
        """``value`` in the new body, its block turned or not."""
        turned = turned and len(self._graph.type_of(value).axes) > 1
        if (value, turned) not in self._known:
            if value.node < 0:
                self._known[value, turned] = self._input(value.port, turned)
            else:
                self._node(value, turned)
        return self._known[value, turned]

    def _input(self, port: int, turned: bool) -> Value:
        given = self._graph.inputs[port]
        self.ports.append((port, turned))
        return self._edit.input(_turned(given.type) if turned else given.type, hint=given.hint)

    def _node(self, value: Value, turned: bool) -> None:
        node = self._graph.nodes[value.node]
        if not turned:
            args = [self._value(v, False) for v in node.operands]
            made = self._edit.add(node.op, *args, hints=node.hints, origin=self._origin)
            for port, result in enumerate(made):
                self._known.setdefault((Value(value.node, port), False), result)
        elif isinstance(node.op, Map):
            self._known[value, True] = self._map(node, node.op, value.port)
        else:
            op, order = _turned_op(self._graph, node)
            args = [self._value(node.operands[at], turn) for at, turn in order]
            (result,) = self._edit.add(op, *args, hints=node.hints, origin=self._origin)
            self._known[value, True] = result

    def _map(self, node: Node, op: Map, port: int) -> Value:
        """One result of an inner map, turned: that of a map of its own."""
        output = op.body.outputs[port]
        one = Builder(op.body).finish(output)
        inner = Turning(one, True, self._origin)
        args = [self._value(node.operands[at], turn) for at, turn in inner.ports]
        iterated = tuple(op.iterated[at] for at, _ in inner.ports)
        made = Map(op.dim, inner.body, iterated, (op.results[port],))
        hints = node.hints[port : port + 1]
        return self._edit.add(made, *args, hints=hints, origin=self._origin)[0]


def _turned(type: Type) -> Type:
    return Type(type.lists, type.axes[::-1])


def _turned_op(graph: Graph, node: Node) -> tuple[Op, list[tuple[int, bool]]]:
    """What gives the turned result, and of which operands, each turned or not."""
    every = [(at, True) for at in range(len(node.operands))]
    match node.op:
        case Functional(name) if name in SWAPPED:
            return node.op, [(1, False), (0, False)]
        case Functional(name):
            return Functional(ACROSS.get(name, name)), every
        case Pointwise(expr, axes):
            both = [len({*graph.type_of(v).axes} & {*axes}) > 1 for v in node.operands]
            return Pointwise(expr, axes[::-1]), [(at, turn) for at, turn in enumerate(both)]
        case Transpose(lists, axes):
            return Transpose(lists, axes[::-1]), [(0, False)]
        case op:
            return op, every


def cannot_turn(body: Graph, turns: bool) -> str:
    """The reason why the block that a body makes cannot be transposed, or ""."""
    return _blocked(body, body.outputs[0].value) if turns else ""


def _blocked(graph: Graph, value: Value) -> str:
    """The first operator on the way to ``value`` whose result has no turned form."""
    stack, seen = [value], {value}
    while stack:
        value = stack.pop()
        if value.node < 0 or len(graph.type_of(value).axes) < 2:
            continue
        node = graph.nodes[value.node]
        match node.op:
            case Map(body=body, results=results, start=start):
                if start or isinstance(results[value.port], Rescale):
                    return f"{label(node)} starts from or is rescaled by other results"
                if reason := _blocked(body, body.outputs[value.port].value):
                    return reason
            case Functional(name) if name in SWAPPED:
                continue
            case Functional(name) if name in BY_ELEMENTS or name in ACROSS:
                pass
            case Elementwise() | Pointwise() | Cast() | Relabel() | Reduce() | Transpose():
                pass
            case _:
                return f"{label(node)} has no transposed form"
        for operand in node.operands:
            if operand not in seen:
                seen.add(operand)
                stack.append(operand)
    return ""
