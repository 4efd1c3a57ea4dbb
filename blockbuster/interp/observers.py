"""Observers of an interpretation: they are told of each load, store and execution.

A *load* is the first use of a buffered item in the body where it becomes local: once per iteration
of that body, however deep inside it is used. ``reduce`` and misc operators load every item of
their lists, ``head`` the first one. A *store* is a local item that is collected into a list or
leaves the program. Index vectors have no memory behind them, and addressing (transpose, relabel,
an item handed on as it is) moves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from blockbuster.interp.layout import Array
from blockbuster.ir.graph import Graph, Value
from blockbuster.ir.ops import Collect, Map, Op, Relabel, Result, Transpose

Path = tuple[int, ...]


@dataclass(frozen=True)
class Tensor:
    """A value in global memory: a source array, or a result of the map at ``path``."""

    name: str
    path: Path = ()
    port: int = 0


class Observer:
    """Watches an interpretation; this one ignores everything it sees."""

    def load(self, tensor: Tensor, item: Array) -> None:
        """An item is read from global memory."""

    def store(self, tensor: Tensor, item: Array) -> None:
        """An item is written to global memory."""

    def execute(self, op: Op, args: tuple[Array, ...], made: Array) -> None:
        """An operator is applied to the items ``args`` and returns ``made``."""

    def fold(self, result: Result, item: Array) -> None:
        """An item is folded into the result of the items before it."""


@lru_cache(maxsize=4096)
def touched_inputs(graph: Graph) -> tuple[bool, ...]:
    """For each input of a body, whether an item behind it is read, not merely handed on."""
    touched = [False] * len(graph.inputs)
    address: dict[Value, int] = {Value(-1, port): port for port in range(len(graph.inputs))}
    for position, node in enumerate(graph.nodes):
        op = node.op
        if isinstance(op, Transpose | Relabel):
            if node.operands[0] in address:
                address[Value(position)] = address[node.operands[0]]
            continue
        reads = _reads(op) if isinstance(op, Map) else (True,) * len(node.operands)
        for operand, read in zip(node.operands, reads, strict=True):
            if read and operand in address:
                touched[address[operand]] = True
    return tuple(touched)


def _reads(op: Map) -> tuple[bool, ...]:
    """For each operand of a map, whether an item behind it is read: first values are if folded."""
    folded = tuple(not isinstance(r, Collect) for r in op.results) if op.start else ()
    return touched_inputs(op.body) + folded


@lru_cache(maxsize=4096)
def loaded_ports(op: Map) -> tuple[int, ...]:
    """The ports through which one iteration of a map loads an item."""
    touched = list(touched_inputs(op.body))
    for output, result in zip(op.body.outputs, op.results, strict=True):
        if output.value.node < 0 and not isinstance(result, Collect):
            touched[output.value.port] = True
    return tuple(
        port
        for port, (given, iterated) in enumerate(zip(op.body.inputs, op.iterated, strict=True))
        if iterated and touched[port] and not given.type.buffered
    )
