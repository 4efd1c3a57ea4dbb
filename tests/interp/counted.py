"""The traffic of a program, counted while it runs."""

from collections.abc import Mapping

import numpy as np

from blockbuster.interp.binding import bind, sources
from blockbuster.interp.evaluate import evaluate
from blockbuster.interp.traffic import GraphTraffic
from blockbuster.ir.graph import Graph
from blockbuster.ir.types import Dim


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
