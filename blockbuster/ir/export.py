"""A block program as networkx graphs, for analyses that networkx does well; never the storage.

There is one ``MultiDiGraph`` per level. Its nodes are the positions of the equations, ``("input",
i)`` and ``("output", i)``; each operand is one edge. The attributes are:

node  ``op`` (the operator; the ``Input`` or ``Output`` of a terminal), ``types`` (result types);
      for a map also ``body``, the networkx graph of its body
edge  ``operand`` (which operand of the consumer), ``port`` (which result of the producer),
      ``type``, ``buffered``
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import networkx

from blockbuster.ir.graph import Graph, Value
from blockbuster.ir.ops import Map

Key = int | tuple[str, int]


def to_networkx(graph: Graph) -> networkx.MultiDiGraph[Any]:
    """The level ``graph``, and in the attribute ``body`` of each map the level inside it."""
    level: networkx.MultiDiGraph[Any] = networkx.MultiDiGraph()
    for place, given in enumerate(graph.inputs):
        level.add_node(("input", place), op=given, types=(given.type,))
    for position, node in enumerate(graph.nodes):
        level.add_node(position, op=node.op, types=node.types)
        if isinstance(node.op, Map):
            level.nodes[position]["body"] = to_networkx(node.op.body)
    for place, output in enumerate(graph.outputs):
        # the value of an output is an edge, so that its position is not part of the attribute
        terminal = replace(output, value=Value(0))
        level.add_node(("output", place), op=terminal, types=(graph.type_of(output.value),))

    def connect(value: Value, consumer: Key, operand: int) -> None:
        producer: Key = ("input", value.port) if value.node < 0 else value.node
        port = 0 if value.node < 0 else value.port
        kind = graph.type_of(value)
        level.add_edge(
            producer, consumer, operand=operand, port=port, type=kind, buffered=kind.buffered
        )

    for position, node in enumerate(graph.nodes):
        for operand, value in enumerate(node.operands):
            connect(value, position, operand)
    for place, output in enumerate(graph.outputs):
        connect(output.value, ("output", place), 0)
    return level
