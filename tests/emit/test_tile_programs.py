"""Every tile program means what its graph means, after lowering and after every pass."""

from dataclasses import replace

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.emit.schedule.split_nests import split_nests
from blockbuster.emit.tile.dataflow import conflicts
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.verify import verify_tiles
from blockbuster.errors import EmitError
from blockbuster.interp.evaluate import evaluate
from blockbuster.ir.parse import parse
from tests.emit.cases import (
    FOLDER,
    PORTS,
    SIZES,
    TEXTS,
    assert_every_pass_keeps,
    derivation_of,
    fused_of,
    graph_of,
    inputs_for,
    pass_chains,
    sizes_of,
)
from tests.emit.numpy_runs import run_numpy
from tests.frontend.programs import OPAQUE, PROGRAMS
from tests.parameters import rest_slow

ARRAYS = [name for name in PROGRAMS if name not in OPAQUE]
LARGE = (
    "attention over one array", "causal batched", "decoder", "decoder batched", "grouped heads",
    "grouped query", "multi-head attention", "projected rope", "rope attention",
    "rotated attention", "self attention", "self attention batched", "two layers",
)  # fmt: skip
"""They take seconds each; "attention", "causal", "packed heads" and the like are built as they."""


@pytest.mark.parametrize("name", TEXTS)
def test_texts(name):
    graph = graph_of(name)
    if name == "partial":  # its interior lists over N have no axis
        assert any(axis.per_block for b in lower_to_tiles(graph).workspaces for axis in b.axes)
    assert_every_pass_keeps(graph, sizes_of(graph))


@pytest.mark.parametrize("name", rest_slow(ARRAYS, [n for n in ARRAYS if n not in LARGE][::4]))
def test_array_programs(name):
    for number, graph in enumerate(dict.fromkeys((graph_of(name), fused_of(name)))):
        assert_every_pass_keeps(graph, sizes_of(graph), seed=number)


@pytest.mark.slow
@pytest.mark.parametrize("name", ARRAYS)
def test_snapshots_of_array_programs(name):
    """Those that the test above leaves out."""
    snapshots = dict.fromkeys(derivation_of(name).snapshots)
    others = [s for s in snapshots if s not in (graph_of(name), fused_of(name))]
    for number, snapshot in enumerate(others):
        assert_every_pass_keeps(snapshot, sizes_of(snapshot), seed=number)


def test_values_that_leave_as_they_came():
    graph = parse(PORTS)

    assert_every_pass_keeps(graph, sizes_of(graph))


@pytest.mark.parametrize("empty", "MNDL")
def test_empty_dims(empty):
    graph = graph_of("attention safe")
    sizes = sizes_of(graph, {**SIZES, empty: 0})

    assert_every_pass_keeps(graph, sizes)


def test_float32():
    graph = graph_of("attention safe")
    inputs = inputs_for(graph, sizes_of(graph))
    (wanted,) = evaluate(graph, inputs).values()
    for _, program, _ in pass_chains(graph):
        (result,) = run_numpy(program, inputs, dtype=np.float32, folder=FOLDER).values()
        assert result.dtype == np.float32
        np.testing.assert_allclose(result, wanted, rtol=1e-5)


def test_large_scores_stay_finite():
    graph = graph_of("attention safe")
    inputs = {name: 1e4 * array for name, array in inputs_for(graph, sizes_of(graph)).items()}
    (result,) = run_numpy(
        lower_to_tiles(graph), inputs, block_sizes={"N": 2}, folder=FOLDER
    ).values()

    assert np.isfinite(result).all()


@pytest.mark.parametrize("name", [*TEXTS, *ARRAYS])
def test_after_splitting_no_nest_reads_what_it_wrote(name):
    for nest in split_nests(lower_to_tiles(graph_of(name))).nests:
        assert conflicts(nest.body) == ()


SERIAL = """
graph(X: M,N[M,N], W: K,N[K,N]) {
  S = map M (x in !X, w = !W) {
    y, q = map K (r in !w, x2 = !x) {
      p = map N (a in !x2, b in !r) { d = dot(a, b)  yield d }
      z = reduce + N (!p)
      v = map N (d2 in !p, z2 = z) { e = d2 * z2  yield e }
      u = reduce max N (!v)
      t = row_sum(z)
      t2 = row_max(u)
      yield +t
      yield max t2
    }
    s = y + q
    yield s
  }
  return S
}
"""


@pytest.mark.parametrize("seed", range(3))
def test_a_serial_loop_around_a_workspace_is_distributed(seed):
    graph = parse(SERIAL)
    program = lower_to_tiles(graph)
    split = split_nests(program)
    random = np.random.default_rng(seed)
    shapes = {"X": (5, 7), "W": (6, 7)}
    inputs = {name: random.integers(-3, 4, shape) * 1.0 for name, shape in shapes.items()}
    blocks = {"M": 2, "N": 3, "K": 4}
    wanted = evaluate(graph, inputs, block_sizes=blocks)["out"]

    assert any(conflicts(nest.body) for nest in program.nests)
    assert not any(conflicts(nest.body) for nest in split.nests)
    verify_tiles(split)
    for made in (program, split):
        (found,) = run_numpy(made, inputs, block_sizes=blocks, seed=seed, folder=FOLDER).values()
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", OPAQUE)
def test_misc_operators_have_no_tiles(name):
    with pytest.raises(EmitError, match="function of whole arrays") as caught:
        lower_to_tiles(graph_of(name))

    assert "programs.py:" in str(caught.value)


def test_an_element_that_nothing_wrote_is_poisoned():
    graph = graph_of("partial")
    program = lower_to_tiles(graph)
    inputs = inputs_for(graph, sizes_of(graph))
    short = replace(program, nests=program.nests[1:])  # the first workspace is never filled
    results = run_numpy(short, inputs, folder=FOLDER)

    assert np.isnan(results["out0"]).all()


def test_dots_may_be_summed_over_heads_beside_other_sums_of_what_they_read():
    def largest(x, y, z):
        return bb.max((bb.merge_heads(x) @ (y + z)) * 0.1, axis=0, keepdims=True)

    shapes = (4, 17, 25), (100, 1), (1, 1)
    given = [np.ones(shape, "float32") for shape in shapes]

    assert bb.jit(largest, machine="sm_90").plan_for(*given).kernels
