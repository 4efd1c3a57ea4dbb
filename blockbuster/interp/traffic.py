"""Graph traffic: how many blocks a program moves between global and local memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from blockbuster.interp.binding import bind, sources
from blockbuster.interp.evaluate import evaluate
from blockbuster.interp.layout import Array
from blockbuster.interp.observers import Observer, Tensor
from blockbuster.ir.expr import calls
from blockbuster.ir.graph import Graph
from blockbuster.ir.ops import Elementwise, Functional, Op, Pointwise, Rescale, Result
from blockbuster.ir.types import Dim


@dataclass
class Moved:
    """The traffic of one tensor: numbers of items, and of their elements."""

    loads: int = 0
    stores: int = 0
    loaded_elements: int = 0
    stored_elements: int = 0


@dataclass
class GraphTraffic(Observer):
    """Counts loads and stores per tensor, dots and flops, while a program is interpreted.

    ``flops`` are the multiplications and additions of dots on matrix units; on vector units, each
    function applied to an element counts as one, folds included. Casts count nothing.
    """

    tensors: dict[Tensor, Moved] = field(default_factory=dict)
    dots: int = 0
    flops: dict[str, int] = field(default_factory=lambda: {"matrix": 0, "vector": 0})

    def load(self, tensor: Tensor, item: Array) -> None:
        moved = self.tensors.setdefault(tensor, Moved())
        moved.loads += 1
        moved.loaded_elements += item.size

    def store(self, tensor: Tensor, item: Array) -> None:
        moved = self.tensors.setdefault(tensor, Moved())
        moved.stores += 1
        moved.stored_elements += item.size

    def execute(self, op: Op, args: tuple[Array, ...], made: Array) -> None:
        match op:
            case Functional("dot"):
                self.dots += 1
                self.flops["matrix"] += 2 * args[0].size * args[1].shape[0]
            case Functional("outer"):
                self.flops["vector"] += made.size
            case Functional():
                self.flops["vector"] += args[0].size
            case Elementwise(expr) | Pointwise(expr):
                self.flops["vector"] += calls(expr) * made.size

    def fold(self, result: Result, item: Array) -> None:
        self.flops["vector"] += fold_flops(result) * item.size

    @property
    def loads(self) -> int:
        """Items read, over all tensors."""
        return sum(moved.loads for moved in self.tensors.values())

    @property
    def stores(self) -> int:
        """Items written, over all tensors."""
        return sum(moved.stores for moved in self.tensors.values())


def fold_flops(result: Result) -> int:
    """Operations per element to fold an item in: in a group, both sides are rescaled before."""
    return 1 + (2 * calls(result.factor) if isinstance(result, Rescale) else 0)


def graph_traffic(
    graph: Graph, sizes: Mapping[Dim, int], blocks: Mapping[Dim, int] | None = None
) -> GraphTraffic:
    """The traffic of a program at these sizes and numbers of blocks, by running it on ones."""
    bound = bind(graph, None, sizes=sizes, blocks=blocks)
    inputs = {
        name: np.ones([1 if d is None else bound.size(d) for d in axes])
        for name, axes in sources(graph).items()
    }
    traffic = GraphTraffic()
    evaluate(graph, inputs, blocks, sizes, observer=traffic)
    return traffic
