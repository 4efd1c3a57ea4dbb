"""Random block programs: well formed, canonical, printable, and the same under any blocking."""

from collections import Counter
from dataclasses import replace
from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from blockbuster.interp.equal import Setting
from blockbuster.interp.semantics import Float64
from blockbuster.ir.builder import Builder
from blockbuster.ir.graph import Value
from blockbuster.ir.list_only import list_only
from blockbuster.ir.ops import Accumulate, Functional, Map, Reduce
from blockbuster.ir.parse import parse
from blockbuster.ir.verify import verify
from blockbuster.testing.programs import BlockPrograms
from tests.random_programs.strategies import block_graphs, inputs_for, sizes_and_blocks


@given(block_graphs(whole=False))
def test_programs_are_valid_and_canonical(graph):
    verify(graph)

    assert parse(graph.show()) == graph
    assert Builder(graph).finish() == graph


def rebuilt(graph, random):
    """The same program, its nodes added in a random order that respects dependencies."""
    builder = Builder()
    made = {Value(-1, p): builder.input(i.type, i.view, i.hint) for p, i in enumerate(graph.inputs)}
    waiting = list(enumerate(graph.nodes))
    while waiting:
        ready = [(p, n) for p, n in waiting if all(v in made for v in n.operands)]
        position, node = random.choice(ready)
        waiting.remove((position, node))
        for port, value in enumerate(builder.add(node.op, *(made[v] for v in node.operands))):
            made[Value(position, port)] = value
    return builder.finish(*(replace(o, value=made[o.value]) for o in graph.outputs))


@given(block_graphs(), st.randoms(use_true_random=False))
def test_equality_does_not_depend_on_build_order(graph, random):
    assert rebuilt(graph, random) == graph


@given(st.data())
def test_results_do_not_depend_on_blocks(data):
    graph = data.draw(block_graphs(), label="program")
    setting = data.draw(sizes_and_blocks(graph), label="setting")
    inputs = data.draw(inputs_for(graph, setting), label="inputs")
    single = list_only(graph)
    one_block = Setting(
        setting.sizes, {d: 1 if d in single else size for d, size in setting.sizes.items()}
    )

    expected = one_block.run(graph, inputs, Float64)

    for name, array in setting.run(graph, inputs, Float64).items():
        np.testing.assert_array_equal(array, expected[name])


def test_one_seed_gives_one_program():
    assert BlockPrograms(Random(5)).graph().show() == BlockPrograms(Random(5)).graph().show()


def test_every_construct_occurs():
    count: Counter[str] = Counter()
    for seed in range(300):
        for _, level in BlockPrograms(Random(seed)).graph().walk():
            for node in level.nodes:
                op = node.op
                count[op.name if isinstance(op, Functional) else type(op).__name__] += 1
                if isinstance(op, Map):
                    count["accumulate"] += any(isinstance(r, Accumulate) for r in op.results)
                    count["several results"] += len(op.results) > 1
                if isinstance(op, Reduce):
                    count[f"reduce {op.monoid}"] += 1

    for construct in (
        "dot",
        "row_scale",
        "row_sum",
        "add",
        "mul",
        "Elementwise",
        "Relabel",
        "Transpose",
        "accumulate",
        "several results",
        "reduce +",
        "reduce max",
    ):
        assert count[construct] >= 15, (construct, count)  # fmt: skip
