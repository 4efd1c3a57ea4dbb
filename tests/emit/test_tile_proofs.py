"""What a comparison of tile programs shows, in which tier, with which bound."""

import json
from dataclasses import replace

import numpy as np
import pytest

from blockbuster.emit.closing.lead_first import lead_first
from blockbuster.emit.interpret.draws import Draws
from blockbuster.emit.interpret.interpreter import run_tiles
from blockbuster.emit.interpret.observer import TileObserver
from blockbuster.emit.interpret.proof import UNROUNDED, UNTYPED, Comparison, prove_tiles
from blockbuster.emit.interpret.remembered import Remembered
from blockbuster.emit.interpret.sides import Side, cuts, unrestricting
from blockbuster.emit.tile.array_dtypes import given_by, typed_for_gpu
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.program import Block, For, Store
from blockbuster.errors import VerifyError
from blockbuster.interp.semantics import Float64
from blockbuster.ir.lengths import Rule, share_of, size
from blockbuster.ir.parse import parse
from tests.emit.cases import TEXTS, defer_lane_sums, graph_of, hoist
from tests.emit.parse_tiles import parse_tiles
from tests.emit.tile_texts import LANES, RUNNING, TWO


def tiles(name):
    return lower_to_tiles(graph_of(name))


@pytest.mark.parametrize("name", TEXTS)
def test_lowered_programs_are_equal(name):
    proof = prove_tiles(graph_of(name), tiles(name))

    assert proof.equal is True
    assert proof.tier == ("B" if name == "attention safe" else "A")
    if proof.tier == "A":
        assert 0 < proof.false_accept_bound < 1e-10
    else:
        assert proof.false_accept_bound is None


def test_a_law_of_exp_needs_tier_b():
    program = hoist(tiles("attention safe"))
    led = lead_first(program)
    proof = prove_tiles(program, led)

    assert led != program
    assert (proof.equal, proof.tier) == (True, "B")


def test_what_runs_in_another_order_is_equal_as_terms():
    program = parse_tiles(TWO)
    made = defer_lane_sums(program)

    assert made != program
    assert prove_tiles(program, made).tier == "A"


SUM = RUNNING.replace("t2 * t1 over", "t2 * 2 over")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("t2 * 2", "t2 * 3"),
        ("t1 += t3", "t1 += t1"),
        ("row_sum", "row_max"),
        ("init +", "init max"),
    ],
)
def test_what_differs_has_a_counterexample(old, new):
    before, after = parse_tiles(SUM), parse_tiles(SUM.replace(old, new))
    proof = prove_tiles(before, after)
    found = proof.counterexample

    assert (proof.equal, proof.false_accept_bound) == (False, None)
    assert any(not np.array_equal(found.left[n], found.right[n]) for n in found.left)
    assert "sizes {'M':" in str(proof)
    assert json.loads(proof.to_json())["counterexample"]["left"].keys() == {"Y", "Z"}


def test_an_ill_formed_program_is_no_other_way_of_writing_it():
    program = parse_tiles(SUM)
    (nest,) = program.nests
    (outer,) = nest.body
    stores = tuple(stmt for stmt in outer.body if not isinstance(stmt, Store))
    lost = replace(program, nests=(replace(nest, body=(replace(outer, body=stores),)),))
    proof = prove_tiles(program, lost)

    assert proof.equal is False
    assert proof.reason == "Y[0] is never written"
    with pytest.raises(VerifyError, match="is never written"):
        prove_tiles(lost, program)
    shared = tuple(
        replace(stmt, parallel=True) if isinstance(stmt, For) else stmt for stmt in outer.body
    )
    shared = replace(program, nests=(replace(nest, body=(replace(outer, body=shared),)),))
    assert "share the accumulator" in prove_tiles(program, shared).reason


def test_lanes_are_looked_at_where_that_is_asked():
    text = LANES.replace("{value}", "exp(t2)").replace("{reduction}", "row_sum")
    program = parse_tiles(text)

    assert prove_tiles(program, program).equal is True
    proof = prove_tiles(program, program, lanes=True)
    assert proof.equal is False
    assert "past the end of N count: they hold 1" in proof.reason


def test_blocks_that_a_program_names_are_made_small():
    program = parse_tiles(SUM)
    named = replace(
        program,
        nests=(replace(program.nests[0], blocks=(Block("M", 128), Block("N", 64, ragged=False))),),
    )
    for cut in cuts([Side(named)], 6, np.random.default_rng(0), (1, 2, 3, 4, 5)):
        assert set(cut.lanes) == {("M", 128), ("N", 64)}
        assert max(cut.lanes.values()) <= 3
        assert cut.setting.sizes["N"] % cut.lanes["N", 64] == 0
    assert prove_tiles(program, named, lanes=False).equal is True


CAST = parse("""
graph(X: M,N[M,N], W: L,N[L,N]) {
  Y = map M (x in !X, w = !W) {
    y = map L (v in !w, x2 = !x) {
      s = map N (a in !x2, b in !v) { e = exp(a)  d = dot(e, b)  yield +d }
      yield s
    }
    yield y
  }
  return Y
}
""")


def test_roundings_are_part_of_what_is_compared_where_they_can_be():
    plain = lower_to_tiles(CAST)
    half = typed_for_gpu(CAST, plain, given_by("float16"))
    full = typed_for_gpu(CAST, plain, given_by("float32"))

    assert prove_tiles(half, half).assumptions == prove_tiles(plain, plain).assumptions
    assert UNTYPED in prove_tiles(CAST, half).assumptions
    assert UNTYPED in prove_tiles(half, full).assumptions
    assert prove_tiles(half, full).equal is True


def test_casts_of_the_program_itself_are_unknown_functions():
    def text(first, second):
        return parse_tiles(f"""
tiles {{
  inputs X: [N]
  outputs Y: [N]
  nest 1 {{
    forall N {{
      t1: [N] = load X[N]
      t2: [N] = {first}
      t3: [N] = {second}
      store Y[N] = t3
    }}
  }}
}}
""")

    doubled = text("t1 * 2 over [N]", "cast float16 (t2)")
    before = text("cast float16 (t1)", "t2 * 2 over [N]")

    assert prove_tiles(doubled, doubled).assumptions[-1] != UNROUNDED
    proof = prove_tiles(doubled, before)
    assert proof.equal is True
    assert proof.assumptions[-1] == UNROUNDED


def test_interfaces_have_to_agree():
    with pytest.raises(ValueError, match="the programs read different arrays"):
        prove_tiles(tiles("partial"), tiles("swiglu final"))
    with pytest.raises(ValueError, match="trials is 0, expected at least 1"):
        prove_tiles(tiles("partial"), tiles("partial"), trials=0)
    program = parse_tiles(SUM)
    with pytest.raises(ValueError, match="the programs return different arrays"):
        prove_tiles(program, replace(program, outputs=program.outputs[::-1]))


def test_the_same_seed_gives_the_same_proof():
    program = hoist(tiles("attention final"))
    comparison = Comparison((Side(graph_of("attention final")), Side(program)), 4, 3)

    assert comparison.proof() == prove_tiles(graph_of("attention final"), program, trials=4, seed=3)


def test_proofs_that_share_draws_say_the_same_and_count_each_other():
    program = parse_tiles(TWO)
    made = defer_lane_sums(program)
    draws = Draws()
    alone = prove_tiles(program, made)
    first, again = (prove_tiles(program, made, draws=draws) for _ in range(2))
    between = prove_tiles(made, hoist(made), draws=draws)

    assert first == again == alone
    assert (between.equal, between.tier) == (True, "A")
    assert between.false_accept_bound >= prove_tiles(made, hoist(made)).false_accept_bound


def test_sizes_are_drawn_together_with_programs_that_ask_no_more_of_them():
    program = parse_tiles(TWO)
    dim = Side(program).classes[0]
    ragged, even = (Block(dim, 4, ragged=ragged) for ragged in (True, False))
    blocked, halves = (
        replace(program, nests=(replace(program.nests[0], blocks=(b,)), *program.nests[1:]))
        for b in (ragged, even)
    )
    whole = replace(program, whole=(*program.whole, dim))
    ruled = replace(program, rules=(Rule(dim, size("Q") * share_of(2)),))
    apart = replace(program, rules=(Rule("P", size("Q") * share_of(2)),))
    others = [Side(p) for p in (blocked, halves, whole, ruled, apart)]

    assert [s.program for s in unrestricting([Side(program)], others)] == [blocked, apart]
    joined = Draws((program, blocked, whole)).together([Side(program), Side(blocked)])
    assert [side.program for side in joined] == [program, blocked]
    assert [side.program for side in Draws().together([Side(whole)])] == [whole]


def test_what_differs_is_found_beside_what_was_remembered():
    draws, right = Draws(), parse_tiles(SUM)
    for old, new in (("t2 * 2", "t2 * 3"), ("row_sum", "row_max"), ("init +", "init max")):
        assert prove_tiles(right, right, draws=draws).equal is True
        wrong = prove_tiles(right, parse_tiles(SUM.replace(old, new)), draws=draws)
        assert wrong.equal is False
        assert str(wrong) == str(prove_tiles(right, parse_tiles(SUM.replace(old, new))))


def test_a_nest_is_run_once_for_the_same_arrays_and_again_for_others():
    program, runs = parse_tiles(TWO), []
    known = Remembered()
    random = np.random.default_rng(0)
    shapes = {b.name: [3 + len(b.name)] * len(b.axes) for b in program.inputs}
    inputs = {name: random.integers(1, 9, shape) for name, shape in shapes.items()}

    class Counting(TileObserver):
        def store(self, view, elements):
            runs.append(view.buffer.name)

    def outputs(given):
        return run_tiles(program, given, semantics=Float64, observer=Counting(), known=known)

    first = outputs(inputs)
    count = len(runs)
    again = outputs(inputs)
    assert count == len(runs) > 0
    other = outputs({name: array + 1 for name, array in inputs.items()})
    assert len(runs) == 2 * count
    for name, array in run_tiles(program, inputs).items():
        assert np.array_equal(first[name], array)
        assert np.array_equal(again[name], array)
        assert not np.array_equal(other[name], array)
