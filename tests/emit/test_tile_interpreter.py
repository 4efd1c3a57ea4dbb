"""The interpreter of tile programs: any semantics, any order; what it refuses, with its words."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blockbuster.emit.closing.bind import bind
from blockbuster.emit.closing.guard import guard
from blockbuster.emit.closing.hoist import hoist
from blockbuster.emit.interpret.interpreter import run_tiles
from blockbuster.emit.interpret.lanes import check_lanes
from blockbuster.emit.interpret.memory import Hazard
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.program import (
    OUTPUT,
    Block,
    Buffer,
    BufferAxis,
    For,
    Init,
    Issue,
    Let,
    Load,
    Nest,
    Store,
    Tile,
    TileProgram,
    View,
    statements,
)
from blockbuster.interp.evaluate import evaluate
from blockbuster.interp.exact import Exact
from blockbuster.interp.free_order import FreeCharacters
from blockbuster.interp.semantics import Float16, Float32, Float64
from blockbuster.ir.expr import Arg, call
from blockbuster.ir.lengths import completed
from blockbuster.ir.ops import Pointwise
from blockbuster.ir.parse import parse
from tests.emit import cases
from tests.emit.cases import (
    FOLDER,
    TEXTS,
    blocked_dims,
    graph_of,
    pass_chains,
    ragged_blocks,
    sizes_of,
)
from tests.emit.counting import count_run
from tests.emit.numpy_runs import run_numpy
from tests.parameters import rest_slow
from tests.random_programs.strategies import block_graphs, inputs_for, sizes_and_blocks

SQUARE = parse("graph(X: M[M]) { Y = map M (x in X) { y = square(x) yield y } return Y }")
SUM = parse("""
graph(X: M,N[M,N]) {
  Y = map M (x in !X) { s = map N (b in !x) { t = row_sum(b)  yield +t }  yield s }
  return Y
}
""")
DOTS = parse("""
graph(A: M,K[M,K], B: N,K[N,K]) {
  Y = map M (a in !A, b = !B) {
    y = map N (c in !b, a2 = !a) {
      s = map K (x in !a2, z in !c) { d = dot(x, z)  yield +d }
      yield s
    }
    yield y
  }
  return Y
}
""")
CROSSING = parse("""
graph(X: M,N[M,N]) {
  S = map M (x in !X) { s = map N (b in !x) { t = row_sum(b)  yield +t }  yield s }
  Y = map M (x in !X, s in S) {
    y = map N (b in !x, v = s) { z = row_scale(b, v)  yield z }
    yield y
  }
  return Y
}
""")


# the same arrays as evaluate -------------------------------------------------------


@pytest.mark.parametrize("name", rest_slow([*TEXTS, "causal batched"], TEXTS))
@pytest.mark.parametrize(
    ("semantics", "tolerance"), [(Float64, 1e-9), (Float32, 2e-3), (Float16, 0.2)]
)
def test_floats_are_those_of_evaluate(name, semantics, tolerance):
    graph = graph_of(name)
    sizes = sizes_of(graph)
    inputs, blocks = cases.inputs_for(graph, sizes), ragged_blocks(graph, sizes)
    wanted = evaluate(graph, inputs, sizes=sizes, block_sizes=blocks)
    for label, program, can_pad in list(pass_chains(graph))[::4]:
        for padded in (False, True) if can_pad else (False,):
            found = run_tiles(
                program, inputs, sizes, blocks, semantics=semantics, seed=1, padded=padded
            )
            for output, array in wanted.items():
                assert found[output].dtype == semantics.dtype
                np.testing.assert_allclose(
                    found[output], array, rtol=tolerance, atol=tolerance, err_msg=label
                )


@pytest.mark.parametrize("kind", [Exact, FreeCharacters])
def test_residues_are_those_of_evaluate(kind):
    graph = graph_of("layer norm final")
    sizes = sizes_of(graph)
    semantics, random = kind(seed=5), np.random.default_rng(3)
    inputs = {
        name: semantics.random(random, array.shape)
        for name, array in cases.inputs_for(graph, sizes).items()
    }
    blocks = ragged_blocks(graph, sizes)
    setting = cases_setting(sizes, blocks)
    wanted = setting.run(graph, inputs, semantics)
    found = run_tiles(lower_to_tiles(graph), inputs, sizes, blocks, semantics=semantics, seed=0)

    assert found.keys() == wanted.keys()
    for name, array in wanted.items():
        assert semantics.compared(array, found[name]) == (False, False)


def cases_setting(sizes, blocks):
    from blockbuster.interp.setting import Setting

    return Setting(sizes, {dim: blocks.get(dim, 1) for dim in sizes})


@given(data=st.data())
def test_it_agrees_with_numpy_text_and_evaluate(data):
    graph = data.draw(block_graphs(), label="program")
    setting = data.draw(sizes_and_blocks(graph), label="sizes")
    inputs = data.draw(inputs_for(graph, setting), label="inputs")
    seed = data.draw(st.integers(0, 99), label="order")
    sizes, blocks = setting.sizes, setting.block_sizes
    wanted = evaluate(graph, inputs, sizes=sizes, block_sizes=blocks)
    tiles = lower_to_tiles(graph)
    for program, padded in ((tiles, False), (guard(tiles, blocked_dims(tiles)), True)):
        found = run_tiles(program, inputs, sizes, blocks, seed=seed, padded=padded)
        text = run_numpy(program, inputs, sizes, blocks, seed=seed, padded=padded, folder=FOLDER)
        for name, array in wanted.items():
            np.testing.assert_array_equal(found[name], array)
            np.testing.assert_array_equal(found[name], text[name])
        if padded:
            check_lanes(program, completed(sizes, program.rules), blocks, seed=seed)


@pytest.mark.parametrize("sizes", [{"M": 0, "N": 3}, {"M": 3, "N": 0}, {"M": 0, "N": 0}])
def test_dims_without_elements(sizes):
    inputs = {"X": np.ones((sizes["M"], sizes["N"]))}
    for program in (lower_to_tiles(SUM), bind(hoist(lower_to_tiles(SUM)))):
        found = run_tiles(program, inputs, block_sizes={"M": 2, "N": 2})["out"]
        np.testing.assert_array_equal(found, np.zeros(sizes["M"]))


def test_blocks_that_a_nest_names_are_its_own():
    program = lower_to_tiles(SUM)
    named = replace(
        program, nests=tuple(replace(n, blocks=(Block("N", 3),)) for n in program.nests)
    )
    sizes = {"M": 4, "N": 9}

    assert count_run(named, sizes, {"M": 2, "N": 9}).moved["X"].tiles_loaded == 6
    assert count_run(program, sizes, {"M": 2, "N": 9}).moved["X"].tiles_loaded == 2


def test_nests_that_disagree_on_the_blocks_of_an_array_are_refused():
    program = lower_to_tiles(graph_of("partial"))
    first, *others = program.nests
    odd = replace(program, nests=(replace(first, blocks=(Block("N", 1),)), *others))
    inputs = cases.inputs_for(graph_of("partial"), {"M": 3, "N": 5})

    with pytest.raises(ValueError, match="nests differ in how many blocks axis 1 of I1 has"):
        run_tiles(odd, inputs, block_sizes={"N": 2})


def loop_of(*body, buffers=()):
    """A serial loop over N, which reads X[N] and stores to Y[N]."""
    x, y = Buffer("X", (BufferAxis("N"),), "input"), Buffer("Y", (BufferAxis("N"),), OUTPUT)
    return TileProgram((x,), (y, *buffers), (), (Nest((For("N", False, body),)),))


T1, T2 = Tile("t1", ("N",)), Tile("t2", ("N",))
X = View(Buffer("X", (BufferAxis("N"),), "input"), ("N",))
Y = View(Buffer("Y", (BufferAxis("N"),), OUTPUT), ("N",))
NEXT = Issue("x", T1, X, 1, 2)
TWICE = Let(T2, Pointwise(call("mul", Arg(0), 2), ("N",)), (T1,))


def run_loop(*body):
    return run_tiles(loop_of(*body), {"X": np.arange(5.0)}, block_sizes={"N": 2})["Y"]


# what is not there -----------------------------------------------------------------------


def without(program, kind, nest=0):
    """``program`` without the first statement of a kind in a nest."""
    dropped = next(s for s in statements(program.nests[nest].body) if isinstance(s, kind))

    def walked(body):
        return tuple(
            replace(s, body=walked(s.body)) if isinstance(s, For) else s
            for s in body
            if s is not dropped
        )

    nests = list(program.nests)
    nests[nest] = replace(nests[nest], body=walked(nests[nest].body))
    return replace(program, nests=tuple(nests))


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (Init, "is folded into without an init"),
        (Load, "is read before it is made"),
        (Store, r"I1\[0\] is read before it is written"),
    ],
)
def test_a_statement_that_is_missing(kind, reason):
    program = without(lower_to_tiles(CROSSING), kind)
    with pytest.raises(Hazard, match=reason) as found:
        run_tiles(program, {"X": np.ones((3, 4))}, block_sizes={"M": 2, "N": 2})
    assert "\n>" in str(found.value)


def test_an_output_that_is_not_stored():
    program = without(lower_to_tiles(SQUARE), Store)
    with pytest.raises(Hazard, match=r"out\[0\] is never written"):
        run_tiles(program, {"X": np.ones(3)})


def test_nests_in_the_wrong_order():
    program = lower_to_tiles(CROSSING)
    backward = replace(program, nests=program.nests[::-1])
    with pytest.raises(Hazard, match="is read before it is written"):
        run_tiles(backward, {"X": np.ones((3, 4))}, block_sizes={"M": 2, "N": 2})


def test_a_parallel_loop_does_not_share_an_accumulator():
    program = lower_to_tiles(SUM)
    (nest,) = program.nests
    (outer,) = nest.body
    inner = tuple(replace(s, parallel=True) if isinstance(s, For) else s for s in outer.body)
    shared = replace(program, nests=(Nest((replace(outer, body=inner),)),))
    with pytest.raises(Hazard, match="iterations of a parallel loop share the accumulator t"):
        run_tiles(shared, {"X": np.ones((3, 4))}, block_sizes={"N": 2})


def test_a_parallel_loop_does_not_read_what_another_iteration_writes():
    whole = View(Y.buffer, ("N'",))
    tile = Tile("t3", ("N'",))
    body = (Load(T1, X), Store(Y, T1), Load(tile, whole))
    program = replace(loop_of(), nests=(Nest((For("N", True, body),)),))
    with pytest.raises(Hazard, match=r"Y\[\d\] is read before it is written"):
        run_tiles(program, {"X": np.ones(4)}, block_sizes={"N": 2})
    first = Nest((For("N", True, body[:2]),))
    program = replace(loop_of(), nests=(first, *program.nests))
    with pytest.raises(
        Hazard, match=r"an iteration over N reads Y\[\d\], which another one writes"
    ):
        run_tiles(program, {"X": np.ones(4)}, block_sizes={"N": 2})


def test_an_input_is_not_stored():
    with pytest.raises(Hazard, match="the input X is stored"):
        run_loop(Load(T1, X), Store(X, T1), Store(Y, T1))
