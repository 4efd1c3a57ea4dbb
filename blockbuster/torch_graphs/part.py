"""A run of nodes of a captured graph as a graph of torch's functions, which ``jit`` can trace."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from blockbuster.torch_graphs.aten import is_aten, translated
from blockbuster.torch_graphs.values import is_node, layout_of, tensors, value_of

Node = Any
Graph = Any

_OF_SIZES = ("_operator", "builtins", "math")
"""Modules whose functions of sizes give sizes again."""

_OF_LENGTHS = {"Add": operator.add, "Mul": operator.mul}
"""What computes a length of torch's from its parts, by SymPy's name."""


class Part:
    """The graph of ``nodes`` and of the ``outputs`` among them, one after the other.

    ``inputs`` are the nodes outside whose tensors and numbers it takes. A size that a tensor has is
    asked of the tensor, so that one trace serves all sizes; ``numbers`` are the nodes outside that
    no tensor tells. Raises ValueError for an operator that is not translated.
    """

    def __init__(self, nodes: Sequence[Node], outputs: Sequence[Node] = ()) -> None:
        import torch

        self.graph = torch.fx.Graph()
        self.inputs: list[Node] = []
        self.inside: dict[Node, Node] = {}
        self.numbers: set[Node] = set()
        members = set(nodes)
        given = dict.fromkeys(one for node in nodes for one in node.all_input_nodes)
        outside = [one for one in given if one not in members]
        for one in sorted(outside, key=lambda one: not tensors([one])):
            self._take(one) if tensors([one]) else self._size(one)
        for node in nodes:
            self._add(node)
        self.graph.output(tuple(self._laid_out(node) for node in outputs))

    def _take(self, node: Node) -> Node:
        self.inside[node] = self.graph.placeholder(f"x{len(self.inputs)}")
        self.inputs.append(node)
        return self.inside[node]

    def _size(self, node: Node) -> Node:
        """The node inside for a size: an extent, a function of sizes, or a number that is given."""
        if node in self.inside:
            return self.inside[node]
        made = self._of_extents(getattr(getattr(value_of(node), "node", None), "expr", None))
        if made is not None:
            return self.inside.setdefault(node, made)
        if node.op == "call_function" and node.target.__module__ in _OF_SIZES:
            args = mapped(node.args, self._size)
            if not self.numbers.isdisjoint(node.all_input_nodes):
                self.numbers.add(node)
            return self.inside.setdefault(node, self.graph.call_function(node.target, args))
        self.numbers.add(node)
        return self._take(node)

    def _of_extents(self, length: Any) -> Node | None:
        """A node for a length, an expression of sympy's, of the extents of the inputs."""
        for array in self.inputs if length is not None and not length.is_number else ():
            extents = getattr(value_of(array), "shape", ())
            for axis, extent in enumerate(extents):
                if str(extent) == str(length):
                    return self.graph.call_method("size", (self.inside[array], axis))
        function = _OF_LENGTHS.get(type(length).__name__)
        if function is None:
            return None
        parts = [int(one) if one.is_Integer else self._of_extents(one) for one in length.args]
        if None in parts:
            return None
        return reduce(lambda one, other: self.graph.call_function(function, (one, other)), parts)

    def _add(self, node: Node) -> None:
        target, kwargs = node.target, dict(node.kwargs)
        if is_aten(target):
            target, kwargs = translated(node)
        args, kwargs = mapped((node.args, kwargs), self.inside.__getitem__)
        self.inside[node] = self.graph.create_node(node.op, target, args, kwargs)

    def _laid_out(self, node: Node) -> Node:
        """A result with its axes in the order in which eager execution has them in memory."""
        order = layout_of(value_of(node))
        made = self.inside[node]
        return self.graph.call_method("permute", (made, order)) if order else made


def mapped(value: Any, found: Callable[[Node], Node]) -> Any:
    """Arguments with other nodes; lists and tuples are plain ones, as generated code has them."""
    if isinstance(value, list | tuple):
        made = [mapped(one, found) for one in value]
        return made if isinstance(value, list) else tuple(made)
    if isinstance(value, dict):
        return {key: mapped(one, found) for key, one in value.items()}
    if isinstance(value, slice):
        return slice(*(mapped(one, found) for one in (value.start, value.stop, value.step)))
    return found(value) if is_node(value) else value
