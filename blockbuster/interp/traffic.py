"""Graph traffic: how many blocks a program moves between global and local memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from blockbuster.interp.binding import sources
from blockbuster.interp.evaluate import evaluate
from blockbuster.interp.layout import Array
from blockbuster.interp.observers import Observer, Tensor
from blockbuster.ir.graph import Graph
from blockbuster.ir.ops import Functional, Op
from blockbuster.ir.types import Dim, size_class


@dataclass
class Moved:
    """What was moved from and to one tensor: numbers of items, and of their elements."""

    loads: int = 0
    stores: int = 0
    loaded_elements: int = 0
    stored_elements: int = 0


@dataclass
class GraphTraffic(Observer):
    """Counts loads and stores per tensor, and executed dots, while a program is interpreted."""

    tensors: dict[Tensor, Moved] = field(default_factory=dict)
    dots: int = 0

    def load(self, tensor: Tensor, item: Array) -> None:
        moved = self.tensors.setdefault(tensor, Moved())
        moved.loads += 1
        moved.loaded_elements += item.size

    def store(self, tensor: Tensor, item: Array) -> None:
        moved = self.tensors.setdefault(tensor, Moved())
        moved.stores += 1
        moved.stored_elements += item.size

    def execute(self, op: Op, args: tuple[Array, ...]) -> None:
        self.dots += op == Functional("dot")

    @property
    def loads(self) -> int:
        """Items read, over all tensors."""
        return sum(moved.loads for moved in self.tensors.values())

    @property
    def stores(self) -> int:
        """Items written, over all tensors."""
        return sum(moved.stores for moved in self.tensors.values())


def graph_traffic(
    graph: Graph, sizes: Mapping[Dim, int], blocks: Mapping[Dim, int] | None = None
) -> GraphTraffic:
    """The traffic of a program at these sizes and numbers of blocks, by running it on ones."""
    inputs = {
        name: np.ones([1 if d is None else sizes[size_class(d)] for d in axes])
        for name, axes in sources(graph).items()
    }
    traffic = GraphTraffic()
    evaluate(graph, inputs, blocks, sizes, observer=traffic)
    return traffic
