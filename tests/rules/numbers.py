"""Comparing programs by their numbers: several sizes, several blocks, ragged ones included."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from blockbuster.interp.binding import dims_of, sources
from blockbuster.interp.evaluate import evaluate
from blockbuster.ir.expr import Arg, Call, Const, Expr
from blockbuster.ir.fitting import fitted
from blockbuster.ir.graph import Graph
from blockbuster.ir.list_only import list_only
from blockbuster.ir.ops import Elementwise, Functional, Map, Pointwise, Rescale
from blockbuster.ir.types import size_class

Arrays = Mapping[str, np.ndarray]

SIZES_AND_STEPS = (((3, 4, 5, 2, 4), (2, 3, 2, 1, 3)), ((4, 2, 3, 4, 2), (2, 1, 1, 2, 1)),
                   ((1, 3, 2, 5, 3), (1, 1, 2, 5, 3)))  # fmt: skip
"""Sizes of the dims in order, and the sizes of their blocks: ragged; even; one block or one row."""

INTEGER = frozenset({
    "add", "sub", "mul", "neg", "square", "abs", "relu", "maximum", "minimum", "sub0",
    "lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not", "where",
})  # fmt: skip


def keeps_integers(graph: Graph) -> bool:
    """True if integer inputs give integers all the way, so that sums may be reordered exactly."""

    def exact(expr: Expr) -> bool:
        if isinstance(expr, Call):
            return expr.fn in INTEGER and all(map(exact, expr.args))
        return isinstance(expr, Arg) or (isinstance(expr, Const) and expr.value.is_integer())

    for _, level in graph.walk():
        for node in level.nodes:
            op = node.op
            if isinstance(op, Elementwise | Pointwise) and not exact(op.expr):
                return False
            if isinstance(op, Map) and any(isinstance(r, Rescale) for r in op.results):
                return False
            if op == Functional("div"):
                return False
    return True


def settings(*graphs: Graph) -> Iterator[tuple[dict[str, int], dict[str, int]]]:
    """Sizes and block sizes by size class; a dim without an axis has blocks of one."""
    dims = dict.fromkeys(size_class(d) for graph in graphs for d in dims_of(graph))
    single = frozenset().union(*map(list_only, graphs))
    for sizes, steps in SIZES_AND_STEPS:
        drawn = {d: sizes[i % len(sizes)] for i, d in enumerate(dims)}
        chosen = fitted(drawn, [rule for graph in graphs for rule in graph.size_rules])
        step = {d: 1 if d in single else steps[i % len(steps)] for i, d in enumerate(dims)}
        yield chosen, step


def random_inputs(graph: Graph, sizes: Mapping[str, int], seed: int = 0) -> dict[str, np.ndarray]:
    """Small integers where they stay integers, else numbers between -2 and 2 away from zero."""
    random = np.random.default_rng(seed)
    exact = keeps_integers(graph)
    arrays = {}
    for name, axes in sources(graph).items():
        shape = [1 if d is None else sizes[size_class(d)] for d in axes]
        if exact:
            arrays[name] = random.integers(-3, 4, shape).astype(float)
        else:
            arrays[name] = random.uniform(0.1, 2, shape) * random.choice([-1, 1], shape)
    return arrays


def run(
    graph: Graph, inputs: Arrays, sizes: Mapping[str, int], steps: Mapping[str, int]
) -> dict[str, np.ndarray]:
    """The outputs of ``graph``; sizes and blocks of dims it does not have are left out."""
    own = dict.fromkeys(map(size_class, dims_of(graph)))
    return evaluate(
        graph,
        {name: inputs[name] for name in sources(graph)},
        sizes={d: sizes[d] for d in own},
        block_sizes={d: steps[d] for d in own},
    )


def assert_same_numbers(before: Graph, after: Graph, *, rtol: float = 1e-9) -> None:
    """Both programs give the same outputs: exactly where integers stay integers."""
    rtol = 0.0 if keeps_integers(before) and keeps_integers(after) else rtol
    for seed, (sizes, steps) in enumerate(settings(before, after)):
        inputs = random_inputs(before, sizes, seed)
        expected, found = run(before, inputs, sizes, steps), run(after, inputs, sizes, steps)
        assert expected.keys() == found.keys()
        for name, array in expected.items():
            np.testing.assert_allclose(
                found[name],
                array,
                rtol=rtol,
                atol=rtol * max(1.0, float(np.max(np.abs(array), initial=0.0))),
                err_msg=f"{name} differs at sizes {sizes}, blocks of {steps}\n{before}{after}",
            )


def gives_other_numbers(before: Graph, after: Graph) -> bool:
    """True if some output differs in shape, or clearly in value, at some size."""
    for seed, (sizes, steps) in enumerate(settings(before, after)):
        inputs = random_inputs(before, sizes, seed)
        expected, found = run(before, inputs, sizes, steps), run(after, inputs, sizes, steps)
        for a, b in zip(expected.values(), found.values(), strict=True):
            if a.shape != b.shape or not np.allclose(a, b, rtol=1e-3, atol=1e-3, equal_nan=True):
                return True
    return False
