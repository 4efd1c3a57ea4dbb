"""Closed forms compared with what the interpreter counts and holds."""

import numpy as np

from blockbuster.interp.binding import bind
from blockbuster.interp.evaluate import Interpreter
from blockbuster.interp.semantics import Float64
from blockbuster.interp.traffic import GraphTraffic
from blockbuster.selection import closed_traffic


def counted(graph, setting):
    """What the observer counts at the sizes and block sizes of ``setting``."""
    shapes = setting.shapes(graph)
    layout = bind(graph, shapes, sizes=setting.sizes, block_sizes=setting.block_sizes)
    observer = GraphTraffic()
    inputs = {name: np.ones(shape) for name, shape in shapes.items()}
    Interpreter(layout, Float64, observer).run(graph, inputs)
    return observer


def assert_equals_the_count(graph, *settings):
    form = closed_traffic(graph)
    for setting in settings:
        count = counted(graph, setting)
        closed = form.at(setting.sizes, block_sizes=setting.block_sizes)
        assert closed.tensors == count.tensors, (graph.show(), setting)
        assert (closed.flops, closed.dots) == (count.flops, count.dots), (graph.show(), setting)
        assert (closed.loads, closed.stores) == (count.loads, count.stores)
