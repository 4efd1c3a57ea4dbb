"""The interpreter of tile programs: any semantics, any order; what it refuses, with its words."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blockbuster.emit.print.numpy.run import run_numpy
from blockbuster.emit.schedule.bind import bind
from blockbuster.emit.schedule.guard import guard
from blockbuster.emit.schedule.hoist import hoist
from blockbuster.emit.tile.counting import count_run
from blockbuster.emit.tile.interpreter import run_tiles
from blockbuster.emit.tile.lanes import check_lanes
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.memory import Hazard
from blockbuster.emit.tile.program import (
    OUTPUT,
    Await,
    Block,
    Buffer,
    BufferAxis,
    For,
    Guard,
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
from blockbuster.interp.traffic import graph_traffic
from blockbuster.ir.expr import Arg, call
from blockbuster.ir.lengths import completed
from blockbuster.ir.ops import Elementwise
from blockbuster.ir.parse import parse
from blockbuster.testing.strategies import block_graphs, inputs_for, sizes_and_blocks
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
  Y = map M (x in !X, s in S) { y = map N (b in !x, v = s) { z = row_scale(b, v)  yield z } yield y }
  return Y
}
""")


# the same arrays as evaluate ---------------------------------------------------------------


@pytest.mark.parametrize("name", (*TEXTS, "causal batched"))
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


# loads that run ahead --------------------------------------------------------------------------


def ahead(program, by, slots, *, behind=False, waiting=True):
    """``program`` with the loads of serial loops issued ahead: first in the body, or last."""

    def walked(body):
        return tuple(
            stmt
            if not isinstance(stmt, For)
            else replace(stmt, body=walked(stmt.body))
            if stmt.parallel
            else replace(stmt, body=looped(stmt.body))
            for stmt in body
        )

    def looped(body):
        loads = [s for s in body if isinstance(s, Load)]
        issues = [Issue(f"p{s.target.name}", s.target, s.view, by, slots) for s in loads]
        rest = [Await(s.target, f"p{s.target.name}") if s in loads else s for s in body]
        if not waiting:
            rest = [s for s in rest if not isinstance(s, Await)]
        return tuple((*rest, *issues) if behind else (*issues, *rest))

    nests = tuple(replace(nest, body=walked(nest.body)) for nest in program.nests)
    return replace(program, nests=nests)


DOT_SIZES = {"M": 3, "N": 3, "K": 7}
DOT_INPUTS = {"A": np.arange(21.0).reshape(3, 7), "B": np.arange(21.0).reshape(3, 7) - 9}
DOT_BLOCKS = {"M": 2, "N": 2, "K": 2}


def dots(program):
    return run_tiles(program, DOT_INPUTS, block_sizes=DOT_BLOCKS, seed=4)["out"]


@pytest.mark.parametrize(
    ("by", "slots", "behind"),
    [(1, 2, False), (2, 3, False), (3, 4, False), (9, 10, False), (1, 1, True), (2, 2, True)],
)
def test_rings_that_are_large_enough(by, slots, behind):
    made = dots(ahead(lower_to_tiles(DOTS), by, slots, behind=behind))

    np.testing.assert_array_equal(made, DOT_INPUTS["A"] @ DOT_INPUTS["B"].T)


def test_loads_that_run_ahead_count_as_loads():
    plain = lower_to_tiles(DOTS)
    for by in (1, 2, 9):
        counts = count_run(ahead(plain, by, by + 1), DOT_SIZES, DOT_BLOCKS)
        assert counts == count_run(plain, DOT_SIZES, DOT_BLOCKS)


@pytest.mark.parametrize(
    ("by", "slots", "behind", "waiting", "reason"),
    [
        (1, 1, False, True, "takes slot 0 of 1, into which that for iteration 0 is on its way"),
        (2, 2, False, True, "takes slot 0 of 2, into which that for iteration 0 is on its way"),
        (3, 2, True, True, "takes slot 0 of 2, into which that for iteration 0 is on its way"),
        (1, 2, False, False, "is read before it is made"),
    ],
)
def test_rings_that_are_too_small(by, slots, behind, waiting, reason):
    with pytest.raises(Hazard, match=reason) as found:
        dots(ahead(lower_to_tiles(DOTS), by, slots, behind=behind, waiting=waiting))
    assert "\n>" in str(found.value)  # with the line


def loop_of(*body, buffers=()):
    """A serial loop over N, which reads X[N] and stores to Y[N]."""
    x, y = Buffer("X", (BufferAxis("N"),), "input"), Buffer("Y", (BufferAxis("N"),), OUTPUT)
    return TileProgram((x,), (y, *buffers), (), (Nest((For("N", False, body),)),))


T1, T2 = Tile("t1", ("N",)), Tile("t2", ("N",))
X = View(Buffer("X", (BufferAxis("N"),), "input"), ("N",))
Y = View(Buffer("Y", (BufferAxis("N"),), OUTPUT), ("N",))
NEXT = Issue("x", T1, X, 1, 2)
TWICE = Let(T2, Elementwise(call("mul", Arg(0), 2)), (T1,))


def run_loop(*body):
    return run_tiles(loop_of(*body), {"X": np.arange(5.0)}, block_sizes={"N": 2})["Y"]


def test_a_loop_with_a_ring():
    np.testing.assert_array_equal(
        run_loop(NEXT, Await(T1, "x"), TWICE, Store(Y, T2)), 2 * np.arange(5.0)
    )


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ((replace(NEXT, slots=1), Await(T1, "x"), Store(Y, T1)), "is on its way"),
        ((Await(T1, "x"), replace(NEXT, slots=1), Store(Y, T1)), "iteration 0 reads t1 in slot 0"),
        ((NEXT, Store(Y, T1), Await(T1, "x")), "t1 is read before it is made"),
        ((NEXT, Load(T1, X), Store(Y, T1)), "takes slot 0 of 2"),
        ((replace(NEXT, ahead=9, slots=9), Load(T1, X), Store(Y, T1)), "nobody waits for the load"),
        ((Await(T1, "x"), Store(Y, T1)), "waits for x, which no load brings"),
        (
            (replace(NEXT, ahead=0), Store(Y, T1)),
            "t1 is read before it is made",
        ),
        (
            (Load(T2, X), Store(Y, T2), Issue("y", T1, Y, 1, 2), Await(T1, "y")),
            r"Y\[0\] is read before it is written",
        ),
    ],
)
def test_waits_and_slots_that_are_wrong(body, reason):
    with pytest.raises(Hazard, match=reason):
        run_loop(*body)


def test_what_is_stored_while_it_is_loaded():
    """The first iteration writes an entry that the load for the second has on its way."""
    first = Nest((For("N", False, (Load(T2, X), Store(Y, T2))),))
    inner = (
        replace(NEXT, view=Y), Await(T1, "x"), TWICE, Store(Y, T2), For("N'", False, (Store(
            View(Y.buffer, ("N'",)), Tile("t3", ("N'",))),)),
    )  # fmt: skip
    everywhere = (
        Load(Tile("t3", ("N'",)), View(X.buffer, ("N'",))),
        Store(View(Y.buffer, ("N'",)), Tile("t3", ("N'",))),
    )
    body = (*inner[:4], For("N'", False, everywhere))
    program = replace(loop_of(), nests=(first, Nest((For("N", False, body),))))

    with pytest.raises(Hazard, match="Y is written while t1 is loaded from it"):
        run_tiles(program, {"X": np.arange(4.0)}, block_sizes={"N": 2})


# what is not there -------------------------------------------------------------------------------


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


# padded lanes ----------------------------------------------------------------------------------------

EXP_SUM = parse("""
graph(X: M,N[M,N]) {
  Y = map M (x in !X) { s = map N (b in !x) { e = exp(b) t = row_sum(e) yield +t } yield s }
  return Y
}
""")


def test_a_lost_guard_shows_in_numbers_and_in_words():
    inputs, blocks = {"X": np.zeros((3, 5))}, {"M": 2, "N": 4}
    plain = lower_to_tiles(EXP_SUM)
    guarded = guard(plain, ("M", "N"))
    np.testing.assert_array_equal(
        run_tiles(guarded, inputs, block_sizes=blocks, padded=True)["out"], [5, 5, 5]
    )
    check_lanes(guarded, {"M": 3, "N": 5}, blocks)

    lost = without_guards(guarded)
    np.testing.assert_array_equal(
        run_tiles(lost, inputs, block_sizes=blocks, padded=True)["out"], [8, 8, 8]
    )
    with pytest.raises(Hazard, match="past the end of N count: they hold 1, where 0 would"):
        check_lanes(lost, {"M": 3, "N": 5}, blocks)
    check_lanes(lost, {"M": 3, "N": 8}, blocks)  # nothing is past the end


def without_guards(program):
    alias = {
        s.target: s.value for n in program.nests for s in statements(n.body) if type(s) is Guard
    }

    def walked(body):
        out = []
        for stmt in body:
            if isinstance(stmt, For):
                stmt = replace(stmt, body=walked(stmt.body))
            elif isinstance(stmt, Let):
                stmt = replace(stmt, args=tuple(alias.get(a, a) for a in stmt.args))
            if not isinstance(stmt, Guard):
                out.append(stmt)
        return tuple(out)

    nests = tuple(replace(nest, body=walked(nest.body)) for nest in program.nests)
    return replace(program, nests=nests)


def test_lanes_of_a_dot():
    graph = parse("""
graph(A: M,K[M,K], B: N,K[N,K]) {
  Y = map M (a in !A, b = !B) {
    y = map N (c in !b, a2 = !a) {
      s = map K (x in !a2, z in !c) { e = reciprocal(x)  d = dot(e, z)  yield +d }
      yield s
    }
    yield y
  }
  return Y
}
""")
    plain = lower_to_tiles(graph)
    with pytest.raises(Hazard, match="past the end of K count: their product is nan, not 0"):
        check_lanes(plain, {"M": 3, "N": 3, "K": 5}, {"M": 2, "N": 2, "K": 4})
    check_lanes(guard(plain, "MNK"), {"M": 3, "N": 3, "K": 5}, {"M": 2, "N": 2, "K": 4})
    check_lanes(lower_to_tiles(DOTS), {"M": 3, "N": 3, "K": 5}, {"M": 2, "N": 2, "K": 4})


def test_padding_needs_floats():
    with pytest.raises(ValueError, match="padded lanes need floats, not Exact"):
        run_tiles(lower_to_tiles(SQUARE), {"X": np.ones(3)}, semantics=Exact(), padded=True)


# counting --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TEXTS)
def test_dots_and_flops_are_those_of_the_block_program(name):
    graph = graph_of(name)
    sizes = dict.fromkeys(sizes_of(graph), 4)
    counts = count_run(lower_to_tiles(graph), sizes, dict.fromkeys(sizes, 2))
    wanted = graph_traffic(graph, sizes, dict.fromkeys(sizes, 2))

    assert counts.dots == wanted.dots
    assert counts.flops["matrix"] == wanted.flops["matrix"]


def test_folds_count_in_the_first_iteration_too():
    counts = count_run(lower_to_tiles(SUM), {"M": 3, "N": 5}, {"M": 2, "N": 2})

    assert counts.flops == {"matrix": 0, "vector": 15 + 3 * 3}


def test_bytes_of_arrays_with_dtypes():
    tiles = lower_to_tiles(SQUARE)

    def typed(program, dtypes):
        change = {b.name: replace(b, dtype=dtypes[b.name]) for b in (*tiles.inputs, *tiles.outputs)}

        def of(stmt):
            if isinstance(stmt, For):
                return replace(stmt, body=tuple(map(of, stmt.body)))
            if isinstance(stmt, Load | Store):
                view = replace(stmt.view, buffer=change[stmt.view.buffer.name])
                return replace(stmt, view=view)
            return stmt

        nests = tuple(replace(n, body=tuple(map(of, n.body))) for n in program.nests)
        return replace(
            program,
            nests=nests,
            inputs=tuple(change[b.name] for b in program.inputs),
            outputs=tuple(change[b.name] for b in program.outputs),
        )

    counts = count_run(typed(tiles, {"X": "bfloat16", "out": "float32"}), {"M": 5}, {"M": 2})
    assert counts.bytes == {"X": 10, "out": 20}
    assert count_run(tiles, {"M": 5}, {"M": 2}).bytes == {}
