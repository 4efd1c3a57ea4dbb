"""The only mutable object: it makes graphs, and edits of graphs.

``finish`` brings the result into canonical form (``canonical.py``) and numbers the nodes. Two
graphs built in different orders are then equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import is_

from blockbuster.ir.canonical import canonical
from blockbuster.ir.expr import Expr
from blockbuster.ir.graph import Graph, Index, Input, Node, Output, Read, Value
from blockbuster.ir.ops import Elementwise, Op, Pointwise
from blockbuster.ir.order import order_with_inlined
from blockbuster.ir.origin import Origin
from blockbuster.ir.types import Type, whole

NOTHING = Graph((), (), ())


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
        self._nodes: dict[int, Node] = dict(enumerate(graph.nodes)) if graph else {}
        self._outputs: tuple[Output, ...] = graph.outputs if graph else ()
        self._next = len(self._nodes)
        self._kept = self._next
        self._changed: set[int] = set()
        self._start = graph or NOTHING
        self._several = False  # whether an added node has several results
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
        """A new node; returns its results. Raises VerifyError if the operands do not fit."""
        types = op.result_types(self.types_of(operands))
        named = (hints + ("",) * len(types))[: len(types)]
        return self._append(Node(op, operands, types, named, origin))

    def _append(self, node: Node) -> tuple[Value, ...]:
        key = self._next
        self._next += 1
        self._nodes[key] = node
        self._changed.add(key)
        if len(node.types) == 1:
            return (Value(key),)
        self._several = True
        return tuple(Value(key, port) for port in range(len(node.types)))

    def inline(self, graph: Graph, args: Sequence[Value]) -> tuple[Value, ...]:
        """Copies of the nodes of ``graph`` with ``args`` for its inputs; returns its outputs."""
        for given, arg in zip(graph.inputs, args, strict=True):
            assert self.type_of(arg) == given.type, (self.type_of(arg), given.type)
        first = self._next

        def resolved(values: Iterable[Value]) -> tuple[Value, ...]:
            return tuple([args[p] if n < 0 else Value(first + n, p) for n, p in values])

        for key, node in enumerate(graph.nodes, first):
            self._nodes[key] = node.reading(resolved(node.operands))
        self._next += len(graph.nodes)
        self._several |= graph.several_results
        if len(set(args)) < len(args):  # what reads distinct values is as canonical as it was
            self._changed.update(range(first, self._next))
        return resolved([output.value for output in graph.outputs])

    def redirect(self, old: Value, new: Value) -> None:
        """Let the edited graph's own nodes and outputs read ``new`` where they read ``old``.

        Nodes added since are not redirected, so a replacement may read what it replaces.
        """
        assert self.type_of(old) == self.type_of(new), (self.type_of(old), self.type_of(new))
        self._redirects[old] = new

    def redirect_all(self, old: Sequence[Value], new: Sequence[Value]) -> None:
        """``redirect`` each of ``old`` to its counterpart."""
        was, now = self.types_of(old), self.types_of(new)
        assert was == now, (was, now)
        self._redirects.update(zip(old, new, strict=True))

    def set_operand(self, node: int, index: int, value: Value) -> None:
        """Let operand ``index`` of node ``node`` read ``value``."""
        old = self._nodes[node]
        operands = (*old.operands[:index], value, *old.operands[index + 1 :])
        self._nodes[node] = old.reading(operands)
        self._changed.add(node)

    def replace_op(self, node: int, op: Op, operands: Sequence[Value] | None = None) -> None:
        """Let node ``node`` compute ``op``, whose results have the types they had."""
        old = self._nodes[node]
        taken = old.operands if operands is None else tuple(operands)
        types = op.result_types(self.types_of(taken))
        assert types == old.types, f"the results had types {old.types} and would have {types}"
        self._nodes[node] = replace(old, op=op, operands=taken)
        self._changed.add(node)

    def type_of(self, value: Value) -> Type:
        """The type of ``value``."""
        return (
            self._inputs[value.port].type
            if value.node < 0
            else self._nodes[value.node].types[value.port]
        )

    def types_of(self, values: Iterable[Value]) -> tuple[Type, ...]:
        """The types of ``values``."""
        inputs, nodes = self._inputs, self._nodes
        return tuple([inputs[p].type if n < 0 else nodes[n].types[p] for n, p in values])

    def expr_of(self, value: Value) -> Expr | None:
        """The scalar expression that makes ``value``, where one does."""
        op = self._nodes[value.node].op if value.node >= 0 else None
        return op.expr if isinstance(op, Elementwise | Pointwise) else None

    def maker_of(self, value: Value) -> Node | None:
        """The node that makes ``value``; None for an input."""
        return self._nodes[value.node] if value.node >= 0 else None

    def finish(self, *outputs: Value | Output) -> Graph:
        """The graph with these outputs (those of the edited graph if none are given), canonical."""
        ends = self._ends(outputs)
        self._apply_redirects(key for key in self._nodes if key < self._kept)
        order = self._order_if_only_added(ends)
        nodes = dict(self._nodes)
        several = self._several or self._start.several_results
        order, ends = canonical(nodes, ends, set(self._changed), rebuild, order, several)
        return self._numbered(nodes, order, ends)

    def _ends(self, outputs: Sequence[Value | Output]) -> list[Output]:
        if outputs:
            return [o if isinstance(o, Output) else Output(o) for o in outputs]
        instead = self._instead()
        return [o.of(instead[o.value]) if o.value in instead else o for o in self._outputs]

    def _order_if_only_added(self, ends: Sequence[Output]) -> list[int] | None:
        """The order of the nodes where the edit only added some, and it can be told."""
        if not self._kept or self._redirects or min(self._changed, default=self._kept) < self._kept:
            return None
        old = [output.value.node for output in self._outputs]
        made = range(self._kept, self._next)
        return order_with_inlined(self._nodes, old, made, [end.value.node for end in ends])

    def _instead(self) -> dict[Value, Value]:
        """What is to be read instead of each redirected value in the end."""
        new = self._redirects
        if new.keys().isdisjoint(new.values()):
            return new
        return {value: self._redirected(value) for value in new}

    def _redirected(self, value: Value) -> Value:
        seen = 0
        while value in self._redirects:
            value = self._redirects[value]
            seen += 1
            assert seen <= len(self._redirects), "redirects form a loop"
        return value

    def _apply_redirects(self, readers: Iterable[int]) -> None:
        if not self._redirects:
            return
        instead = self._instead()
        for key in readers:
            node = self._nodes[key]
            if not instead.keys().isdisjoint(node.operands):
                operands = tuple([instead.get(v, v) for v in node.operands])
                self._nodes[key] = node.reading(operands)
                self._changed.add(key)

    def _numbered(
        self, made: Mapping[int, Node], order: Sequence[int], ends: Sequence[Output]
    ) -> Graph:
        nodes = [made[key] for key in order]
        outputs = tuple(ends)
        self.positions = dict(zip(order, range(len(order)), strict=True))
        same = next((i for i, key in enumerate(order) if i != key), len(order))
        if same < len(order):
            places = self.positions
            for at in range(same, len(order)):
                operands = nodes[at].operands
                moved = tuple([v if v[0] < 0 else Value(places[v[0]], v[1]) for v in operands])
                if moved != operands:
                    nodes[at] = nodes[at].reading(moved)
            outputs = tuple([o.of(Value(places.get(o.value[0], -1), o.value[1])) for o in ends])
        start = self._start
        old = len(start.nodes)
        unedited = 0 < old <= len(nodes) and all(map(is_, start.nodes, nodes))
        if unedited:  # not only equal: origins do not count there
            graph = start.grown(self._inputs[len(start.inputs) :], nodes[old:], outputs)
        else:
            graph = Graph(tuple(self._inputs), tuple(nodes), outputs)
        plain = tuple([_plain(graph, output) for output in outputs])
        return graph if plain == outputs else replace(graph, outputs=plain)


def _plain(graph: Graph, output: Output) -> Output:
    """The output without axes where they are those of its value in order."""
    if output.axes is None or output.axes != whole(graph.type_of(output.value)):
        return output
    return replace(output, axes=None)


def rebuild(graph: Graph, inputs: Sequence[Value], outputs: Sequence[int]) -> Graph:
    """``graph`` with input i read as ``inputs[i]`` and only the ``outputs`` named, canonical."""
    builder = Builder(graph)
    for position, value in enumerate(inputs):
        if value != Value(-1, position):
            builder.redirect(Value(-1, position), value)
    kept = [graph.outputs[i] for i in outputs]
    return builder.finish(*(o.of(builder._redirected(o.value)) for o in kept))
