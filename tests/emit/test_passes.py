"""What single passes do and refuse; that they keep the numbers is in test_tile_programs."""

import itertools
import sys
from dataclasses import replace

import numpy as np
import pytest

from blockbuster.emit.closing.bind import bind
from blockbuster.emit.closing.hoist import hoist, not_invariant
from blockbuster.emit.closing.order import tidied
from blockbuster.emit.schedule.drop_unit_loops import drop_unit_loops
from blockbuster.emit.schedule.split_nests import split_nests
from blockbuster.emit.schedule.steps import derived
from blockbuster.emit.target.targets import target_of
from blockbuster.emit.tile.array_dtypes import given_by, typed_for_gpu
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.program import (
    WORKSPACE,
    Buffer,
    BufferAxis,
    Fold,
    For,
    Init,
    Load,
    Store,
    Tile,
    View,
    statements,
)
from blockbuster.emit.tile.verify import verify_tiles
from blockbuster.errors import EmitError, VerifyError
from blockbuster.interp.evaluate import evaluate
from blockbuster.ir.parse import parse
from blockbuster.ir.types import size_class
from blockbuster.selection.decisions.default_schedule import default_schedule
from tests.emit.cases import FOLDER, TEXTS, graph_of, inputs_for, ragged_blocks, sizes_of
from tests.emit.numpy_runs import run_numpy


def tiles(name):
    return lower_to_tiles(graph_of(name))


def all_statements(program):
    return [stmt for nest in program.nests for stmt in statements(nest.body)]


def test_binding_takes_the_perfectly_nested_parallel_loops():
    assert [nest.grid for nest in bind(tiles("attention final")).nests] == [("M", "L")]
    assert [nest.grid for nest in bind(tiles("attention first")).nests] == [("M",)]


def test_binding_leaves_serial_loops():
    (nest,) = bind(tiles("attention final")).nests

    assert [s.dim for s in statements(nest.body) if isinstance(s, For)] == ["N", "D"]


def test_hoisting_needs_the_inner_loop_to_go_first():
    program = tiles("attention final")
    assert hoist(bind(program)) == bind(program)

    (nest,) = hoist(bind(drop_unit_loops(program, ("D",)))).nests
    first = next(s for s in nest.body if isinstance(s, Load))
    assert first.view.buffer.name == "Q"


def test_nothing_is_hoisted_out_of_the_grid():
    program = drop_unit_loops(tiles("attention final"), ("D", "N"))

    assert [nest.grid for nest in bind(hoist(program)).nests] == [("M", "L")]


def test_a_load_stays_behind_the_store_it_reads():
    program = drop_unit_loops(tiles("attention start"), ("D",))
    for stmt in all_statements(hoist(program)):
        if isinstance(stmt, For):
            for inner in stmt.body:
                if isinstance(inner, Load) and inner.view.buffer in program.workspaces:
                    assert not_invariant(inner, stmt, frozenset())


def test_reasons_not_to_hoist():
    (nest,) = bind(drop_unit_loops(tiles("attention final"), ("D",))).nests
    loop = next(s for s in nest.body if isinstance(s, For))
    made = frozenset(s.target for s in loop.body if not isinstance(s, Fold | For))
    reasons = [not_invariant(stmt, loop, made) for stmt in loop.body]

    assert reasons[0] == ""
    assert reasons[1] == "t5 is a tile of the loop's own dim N"
    assert "it changes something" in reasons


@pytest.mark.parametrize("name", TEXTS)
def test_without_loops_there_are_no_folds(name):
    program = drop_unit_loops(tiles(name), ("M", "N", "K", "D", "L"))

    assert not any(isinstance(s, For | Fold | Init) for s in all_statements(program))


@pytest.mark.parametrize("name", TEXTS)
def test_every_tile_is_defined_once_in_a_nest(name):
    for program in (tiles(name), split_nests(tiles(name))):
        for nest in program.nests:
            targets = [
                s.target.name
                for s in statements(nest.body)
                if hasattr(s, "target") and not isinstance(s, Fold)
            ]
            assert len(targets) == len(set(targets))


def test_a_local_tile_that_crosses_a_cut_becomes_a_workspace():
    program = tiles("attention first")
    split = split_nests(program)

    assert [b.name for b in program.workspaces] == ["I1"]
    assert [b.name for b in split.workspaces] == ["I1", "I2"]
    assert [axis.dim for axis in split.workspaces[1].axes] == ["M"]
    assert len(split.nests) == 2


def test_workspaces_hold_partial_sums_per_block():
    first = tiles("partial").workspaces[0]

    assert [(axis.dim, axis.per_block) for axis in first.axes] == [("M", False), ("N", True)]


def test_two_views_of_a_source_are_one_array():
    program = lower_to_tiles(
        parse("""
graph(X: M,D[M,D], XT: M',D[M',D] = X(M',D)) {
  Y = map M (x in !X, xt = !XT) {
    y = map M' (b in !xt, x2 = !x) {
      s = map D (a in !x2, c in !b) { d = dot(a, c)  yield +d }
      yield s
    }
    yield y
  }
  return Y
}
""")
    )
    assert [buffer.name for buffer in program.inputs] == ["X"]
    views = [s.view.dims for s in all_statements(program) if isinstance(s, Load)]
    assert views == [("M", "D"), ("M'", "D")]


@pytest.mark.parametrize(
    ("reason", "name"),
    [
        ("changes something", "attention final"),
        ("own dim", "causal"),
        ("depends on a tile", "attention final"),
        ("another place", "partial"),
    ],
)
def test_hoisting_without_a_precondition_is_caught(monkeypatch, reason, name):
    def careless(stmt, loop, staying):
        return "" if reason in (found := not_invariant(stmt, loop, staying)) else found

    monkeypatch.setattr(sys.modules[hoist.__module__], "not_invariant", careless)
    program = hoist(bind(tiles(name)))
    graph = graph_of(name)
    inputs, blocks = inputs_for(graph, sizes_of(graph)), ragged_blocks(graph, sizes_of(graph))
    wanted = evaluate(graph, inputs, block_sizes=blocks)
    with pytest.raises((VerifyError, AssertionError)):
        check(program, inputs, blocks, wanted)


def check(program, inputs, blocks, wanted):
    verify_tiles(program)
    results = run_numpy(program, inputs, block_sizes=blocks, seed=0, folder=FOLDER)
    for name, array in wanted.items():
        np.testing.assert_allclose(results[name], array)


def test_a_load_does_not_cross_a_store_to_its_array():
    tile = Tile("t1", ("M",))
    view = View(Buffer("I1", (BufferAxis("M"),), WORKSPACE), ("M",))
    loop = For("N", False, (Store(view, Tile("t2", ("M",))), Load(tile, view)))

    assert not_invariant(loop.body[1], loop, frozenset()) == "I1 is stored in the loop"


def test_serial_loops_on_the_grid_are_caught():
    program = tiles("attention final")
    (nest,) = program.nests

    def parallel(stmt):
        if not isinstance(stmt, For):
            return stmt
        return replace(stmt, parallel=True, body=tuple(map(parallel, stmt.body)))

    broken = replace(program, nests=(replace(nest, body=tuple(map(parallel, nest.body))),))
    with pytest.raises(VerifyError, match="share the accumulator"):
        verify_tiles(broken)


def test_two_views_by_block_agree_on_the_blocks():
    graph = parse("""
graph(X: M,N[M,N], Y: M,N'[M,N'] = Y(M,N')) {
  P = map M (x in !X) { p = map N (b in !x) { t = row_sum(b)  yield t }  yield p }
  R = map M (p in !P, y in !Y) {
    r = relabel N -> N' (!p)
    s = map N' (c in !r, d in !y) { t = row_sum(d)  u = mul(c, t)  yield +u }
    yield s
  }
  return R
}
""")
    program = lower_to_tiles(graph)

    drop_unit_loops(program, ("N", "N'"))
    with pytest.raises(EmitError, match="I1 has one entry per block of N and is accessed under N'"):
        drop_unit_loops(program, ("N",))


@pytest.mark.parametrize("name", ["attention first", "attention final", "decoder", "two outputs"])
def test_the_normal_form_stays_and_is_not_made_again(name):
    graph = graph_of(name)
    program = typed_for_gpu(graph, lower_to_tiles(graph), given_by("float16"))
    sizes = {size_class(d): n for d, n in sizes_of(graph).items()}
    drafts = [step.after.draft for step in derived(
        default_schedule(program, sizes, device=target_of("sm_90"))
    ).steps]  # fmt: skip

    assert len(drafts) > 2
    for before, draft in itertools.pairwise(drafts):
        again = tidied(draft)
        assert again == draft == tidied(draft, before)
        assert all(a.body is b.body for a, b in zip(again.nests, draft.nests, strict=True))
