"""The move spell: tanh by an exponential, where that is used, and that results stay."""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.emission import emit
from blockbuster.emit.interpret.proof import prove_tiles
from blockbuster.emit.schedule.site import EVERYWHERE, Site
from blockbuster.emit.schedule.spell import Spell
from blockbuster.ir.base_two import LOG2_E, tanh_by, with_tanh
from blockbuster.ir.expr import Arg, call
from tests.emit.cases import FOLDER
from tests.emit.numpy_runs import run_numpy
from tests.emit.parse_tiles import parse_tiles
from tests.emit.test_factor import BLOCKS, SIZES, capped, drawn, graph_of, rows, start_of

INF = float("inf")


def squashed(x):
    return bb.tanh(3.0 * x)


def nested(x):
    return bb.softmax(bb.tanh(bb.tanh(x) + x), axis=-1)


@pytest.mark.parametrize("fn", [capped, squashed, nested])
def test_results_stay_also_at_infinities_and_nan(fn):
    start = start_of(fn)
    made = Spell().apply(start, EVERYWHERE)
    assert "tanh" not in str(made.draft)
    assert parse_tiles(str(made.draft)) == made.draft
    for seed, extremes in enumerate(([0.0], [INF, -INF], [np.nan], [1e30, -1e30, 1e-30])):
        inputs = drawn(start.draft, np.random.default_rng(seed), extremes)
        with np.errstate(all="ignore"):
            wanted, found = (
                run_numpy(scheduled.draft, inputs, SIZES, BLOCKS, folder=FOLDER)
                for scheduled in (start, made)
            )
        for name, array in wanted.items():
            np.testing.assert_allclose(found[name], array, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("fn", [capped, squashed, nested])
def test_it_is_proved_without_any_law(fn):
    start = start_of(fn)

    proof = prove_tiles(start.draft, Spell().apply(start, EVERYWHERE).draft, trials=2)

    assert proof.equal, proof
    assert proof.tier == "A"


def test_what_is_no_tanh_is_another_program():
    start = start_of(squashed)
    made = str(Spell().apply(start, EVERYWHERE).draft)
    for old, new in (("1 - 2", "1 - 3"), ("2 * 1.44", "1 * 1.44"), ("(1 + 2", "(2 + 2")):
        assert old in made
        assert (
            prove_tiles(start.draft, parse_tiles(made.replace(old, new)), trials=2).equal is False
        )


def test_the_scale_is_folded_into_the_exponent():
    made = Spell().apply(start_of(squashed), EVERYWHERE)

    assert "* (2 * 1.4426950408889634 * 3)" in " ".join(str(made.draft).split())


def test_without_a_tanh_there_is_nothing_to_do():
    start = start_of(rows)

    assert list(Spell().sites(start)) == []
    assert Spell().why_not(start, EVERYWHERE) == "there is no tanh"
    assert Spell().why_not(start, Site(7)).startswith("there is no nest 7")


def returned(q, k, v):
    """Weights of a soft cap, and the capped scores themselves."""
    s = bb.tanh(q @ k.swapaxes(-1, -2))
    return bb.softmax(s, axis=-1) @ v, s


@pytest.mark.parametrize(
    ("fn", "dtype", "used"),
    [
        (capped, "float16", True),
        (capped, "float32", False),  # it shows: 1.5 times the error of eager on an H200
        (returned, "float16", False),
        (squashed, "float16", False),
        (nested, "float32", False),
    ],
)
def test_the_default_uses_it_where_only_exponentials_read_it(fn, dtype, used):
    graph = graph_of(fn)
    sizes = SIZES if fn in (capped, returned) else dict(M=6, N=7)

    assert ("spell" in emit(graph, sizes, dtype).schedule) is used


def test_exact_semantics_read_it_as_tanh():
    x = call("mul", Arg(0), 3.0)
    read = with_tanh(call("exp", tanh_by(x)))

    assert read == call("exp", call("tanh", call("div", x, call("mul", 2.0, LOG2_E))))
    other = call("sub", 1.0, call("div", 3.0, call("add", 1.0, call("pow", 2.0, x))))
    assert with_tanh(other) == other


def test_a_statement_may_read_a_tile_twice():
    def masked(x, y, z, u):
        above = bb.arange(x.shape[0])[:, None] >= bb.arange(y.shape[0])
        ahead = bb.arange(x.shape[0])[:, None] - bb.arange(y.shape[0]) < 1
        scores = bb.where(~above | ahead, 5.0 * bb.tanh(x @ y.T * 0.025), -INF)
        return (bb.softmax(scores, axis=-1) * u / 0.9) @ z

    program = bb.trace(masked, x="M D", y="N D", z="N D", u="M N")
    sizes = dict(M=33, N=130, D=64)

    assert "spell" in emit(bb.fuse(bb.lower(program)).final, sizes, "bfloat16").schedule
