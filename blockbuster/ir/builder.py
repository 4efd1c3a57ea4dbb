"""The one mutable object: makes graphs, and edits of graphs.

``finish`` brings the result into canonical form, in three passes of one idea each: *merge*
duplicate ports (``_merged``), *prune and order* ports by first use (``ports.py``), *number* nodes
depth-first from the outputs. Two graphs built in different orders come out equal.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from blockbuster.errors import VerifyError
from blockbuster.ir.expr import Expr
from blockbuster.ir.graph import Graph, Index, Input, Node, Origin, Output, Read, Value
from blockbuster.ir.ops import Elementwise, Map, Op, Pointwise
from blockbuster.ir.ports import merge_ports, merge_repeated_arguments, select_results
from blockbuster.ir.types import Type


class Builder:
    """Collects inputs and nodes in any order; ``finish`` makes the graph.

    >>> from blockbuster.ir.ops import Functional
    >>> builder = Builder()
    >>> a = builder.input(Type((), ("M", "K")), hint="a")
    >>> (total,) = builder.add(Functional("row_sum"), a, hints=("total",))
    >>> print(builder.finish(total))
    graph(a: [M,K]) {
      total = row_sum(a)
      return total
    }
    <BLANKLINE>
    """

    def __init__(self, graph: Graph | None = None) -> None:
        """An empty builder, or one that starts as an edit of ``graph`` (same positions)."""
        self._inputs: list[Input] = list(graph.inputs) if graph else []
        self._nodes: list[Node] = list(graph.nodes) if graph else []
        self._outputs: tuple[Output, ...] = graph.outputs if graph else ()
        self._kept = len(self._nodes)
        self._redirects: dict[Value, Value] = {}
        self.positions: dict[int, int] = {}
        """After ``finish``: the new position of each surviving node."""

    def input(self, type: Type, view: Read | Index | None = None, hint: str = "") -> Value:
        """A new graph input."""
        self._inputs.append(Input(type, view, hint))
        return Value(-1, len(self._inputs) - 1)

    def add(
        self, op: Op, *operands: Value, hints: tuple[str, ...] = (), origin: Origin = Origin()
    ) -> tuple[Value, ...]:
        """A new node; returns its results. Raises VerifyError where the operands do not fit."""
        types = op.result_types(tuple(self.type_of(v) for v in operands))
        named = (hints + ("",) * len(types))[: len(types)]
        self._nodes.append(Node(op, operands, types, named, origin))
        return tuple(Value(len(self._nodes) - 1, port) for port in range(len(types)))

    def inline(self, graph: Graph, args: Sequence[Value]) -> tuple[Value, ...]:
        """Copies of the nodes of ``graph`` with ``args`` for its inputs; returns its outputs."""
        made: list[tuple[Value, ...]] = []

        def resolved(value: Value) -> Value:
            return args[value.port] if value.node < 0 else made[value.node][value.port]

        for node in graph.nodes:
            operands = [resolved(v) for v in node.operands]
            made.append(self.add(node.op, *operands, hints=node.hints, origin=node.origin))
        return tuple(resolved(output.value) for output in graph.outputs)

    def redirect(self, old: Value, new: Value) -> None:
        """Let the edited graph's own nodes and outputs read ``new`` where they read ``old``.

        Nodes added since are not redirected, so a replacement may read what it replaces.
        """
        assert self.type_of(old) == self.type_of(new), (self.type_of(old), self.type_of(new))
        self._redirects[old] = new

    def set_operand(self, node: int, index: int, value: Value) -> None:
        """Let operand ``index`` of node ``node`` read ``value``."""
        old = self._nodes[node]
        operands = (*old.operands[:index], value, *old.operands[index + 1 :])
        self._nodes[node] = replace(old, operands=operands)

    def replace_op(self, node: int, op: Op, operands: Sequence[Value] | None = None) -> None:
        """Let node ``node`` compute ``op``, whose results have the types they had."""
        old = self._nodes[node]
        taken = old.operands if operands is None else tuple(operands)
        types = op.result_types(tuple(self.type_of(v) for v in taken))
        assert types == old.types, (types, old.types)
        self._nodes[node] = replace(old, op=op, operands=taken)

    def type_of(self, value: Value) -> Type:
        """The type of ``value``."""
        return (
            self._inputs[value.port].type
            if value.node < 0
            else self._nodes[value.node].types[value.port]
        )

    def expr_of(self, value: Value) -> Expr | None:
        """The scalar expression that makes ``value``, where one does."""
        op = self._nodes[value.node].op if value.node >= 0 else None
        return op.expr if isinstance(op, Elementwise | Pointwise) else None

    def finish(self, *outputs: Value | Output) -> Graph:
        """The graph with these outputs (those of the edited graph if none are given), canonical."""
        chosen = outputs or tuple(
            replace(o, value=self._redirected(o.value)) for o in self._outputs
        )
        ends = [o if isinstance(o, Output) else Output(o) for o in chosen]
        order = _dependency_order(self._operands_of, [o.value for o in ends])
        merged, alias = self._merged(order)
        ends = [replace(o, value=alias.get(o.value, o.value)) for o in ends]
        dropped = True
        while dropped:
            pruning = _Pruning(merged, ends)
            merged, ends = pruning.run()
            dropped = pruning.dropped
        return self._numbered(merged, ends)

    def _redirected(self, value: Value) -> Value:
        seen = 0
        while value in self._redirects:
            value = self._redirects[value]
            seen += 1
            assert seen <= len(self._redirects), "redirects form a loop"
        return value

    def _operands_of(self, position: int) -> tuple[Value, ...]:
        operands = self._nodes[position].operands
        if position < self._kept and self._redirects:
            return tuple(self._redirected(v) for v in operands)
        return operands

    def _merged(self, order: Iterable[int]) -> tuple[dict[int, Node], dict[Value, Value]]:
        """Nodes without duplicate operands or results, and the twin of each dropped result."""
        merged: dict[int, Node] = {}
        alias: dict[Value, Value] = {}
        for position in order:
            node = self._nodes[position]
            operands = self._operands_of(position)
            if alias:
                operands = tuple(alias.get(v, v) for v in operands)
            if operands != node.operands:
                node = replace(node, operands=operands)
            if isinstance(node.op, Map):
                node, twins = merge_ports(node, _rebuild)
                alias.update({Value(position, a): Value(position, b) for a, b in twins.items()})
            elif isinstance(node.op, Elementwise | Pointwise):
                node = merge_repeated_arguments(node)
            merged[position] = node
        return merged, alias

    def _numbered(self, nodes: dict[int, Node], ends: list[Output]) -> Graph:
        order = _dependency_order(lambda p: nodes[p].operands, [o.value for o in ends])
        self.positions = {old: new for new, old in enumerate(order)}

        def moved(value: Value) -> Value:
            return value if value.node < 0 else Value(self.positions[value.node], value.port)

        numbered = []
        for old in order:
            node = nodes[old]
            operands = tuple(moved(v) for v in node.operands)
            numbered.append(node if operands == node.operands else replace(node, operands=operands))
        graph = Graph(tuple(self._inputs), tuple(numbered), ())
        outputs = (replace(o, value=moved(o.value)) for o in ends)
        return replace(graph, outputs=tuple(_plain(graph, o) for o in outputs))


def _plain(graph: Graph, output: Output) -> Output:
    """The output without axes where they are its list dims in order."""
    natural = output.axes == graph.type_of(output.value).lists
    return replace(output, axes=None) if natural else output


def _rebuild(graph: Graph, inputs: Sequence[Value], outputs: Sequence[int]) -> Graph:
    """``graph`` with input i read as ``inputs[i]`` and only the ``outputs`` named, canonical."""
    builder = Builder(graph)
    for position, value in enumerate(inputs):
        if value != Value(-1, position):
            builder.redirect(Value(-1, position), value)
    kept = [graph.outputs[i] for i in outputs]
    return builder.finish(*(replace(o, value=builder._redirected(o.value)) for o in kept))


class _Pruning:
    """Drops what no output needs and puts ports in order of first use, consumers first."""

    def __init__(self, nodes: dict[int, Node], ends: list[Output]) -> None:
        self._nodes = nodes
        self._ends = ends
        self._pending = dict.fromkeys(nodes, 0)
        self._first_use: dict[int, dict[int, tuple[int, int]]] = {p: {} for p in nodes}
        self._ready: list[tuple[tuple[int, int], int]] = []
        self._kept: dict[int, Node] = {}
        self._ports: dict[Value, Value] = {}
        self.dropped = False
        """True if a consumer went: its producers may have been visited later than they would be."""

    def run(self) -> tuple[dict[int, Node], list[Output]]:
        """The nodes kept, and the outputs, with their ports renumbered."""
        for rank, output in enumerate(self._ends):
            self._use(output.value, (-1, rank))
        for node in self._nodes.values():
            for operand in node.operands:
                if operand.node >= 0:
                    self._pending[operand.node] += 1
        for position, pending in self._pending.items():
            if not pending:
                self._push(position)
        while self._ready:
            self._visit(heapq.heappop(self._ready)[1])
        for position, node in self._kept.items():
            operands = tuple(self._ports.get(v, v) for v in node.operands)
            if operands != node.operands:
                self._kept[position] = replace(node, operands=operands)
        ends = [replace(o, value=self._ports.get(o.value, o.value)) for o in self._ends]
        return self._kept, ends

    def _visit(self, position: int) -> None:
        original, used = self._nodes[position], self._first_use[position]
        wanted: tuple[Value, ...] = ()
        if used:
            node, order = select_results(original, sorted(used, key=used.__getitem__), _rebuild)
            wanted = node.operands
            for index, operand in enumerate(wanted):
                self._use(operand, (len(self._kept), index))
            self._kept[position] = node
            for new, old in enumerate(order):
                self._ports[Value(position, old)] = Value(position, new)
        self.dropped |= len(wanted) < len(original.operands)
        for operand in original.operands:
            if operand.node >= 0:
                self._pending[operand.node] -= 1
                if not self._pending[operand.node]:
                    self._push(operand.node)

    def _use(self, value: Value, rank: tuple[int, int]) -> None:
        if value.node >= 0:
            self._first_use[value.node].setdefault(value.port, rank)

    def _push(self, position: int) -> None:
        unused = (len(self._nodes), position)
        key = min(self._first_use[position].values(), default=unused)
        heapq.heappush(self._ready, (key, position))


def _dependency_order(
    operands_of: Callable[[int], tuple[Value, ...]], ends: Sequence[Value]
) -> list[int]:
    """Positions of the nodes that ``ends`` need: depth-first, operands left to right."""
    order: list[int] = []
    state: dict[int, bool] = {}  # absent: not seen; False: being visited; True: done
    stack: list[tuple[int, Iterator[Value]]] = []

    def enter(value: Value) -> None:
        if value.node < 0 or state.get(value.node, False):
            return
        if value.node in state:
            raise VerifyError("the graph has a cycle: a node depends on its own result")
        state[value.node] = False
        stack.append((value.node, iter(operands_of(value.node))))

    for end in ends:
        enter(end)
        while stack:
            position, operands = stack[-1]
            operand = next(operands, None)
            if operand is None:
                stack.pop()
                state[position] = True
                order.append(position)
            else:
                enter(operand)
    return order
