"""A nest that needs no dim whole runs over it in blocks: where, why not elsewhere, what of it."""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.emit.interpret.proof import prove_tiles
from blockbuster.emit.schedule.scheduled import unscheduled
from blockbuster.emit.schedule.script import replayed
from blockbuster.emit.schedule.site import Site
from blockbuster.emit.schedule.spread import Spread
from blockbuster.emit.target.targets import target_of
from blockbuster.emit.tile.program import For
from blockbuster.emit.tile.trips import sized
from blockbuster.errors import EmitError
from blockbuster.selection.choice import Fused
from tests.emit.parse_tiles import parse_tiles
from tests.emit.spread_texts import COLUMN_SUMS, LENGTHS, ONE_STORE, SQUARE
from tests.rules.test_whole_dim import layer_norm_backward

SPREAD, NEST = Spread(), Site(1)
INPUTS = {"x": "M D", "g": "D", "dy": "M D"}


def start(text, schedule=""):
    program = parse_tiles(text)
    sizes = dict.fromkeys(sized(program), 64)
    return replayed(unscheduled(program, sizes, target_of("sm_90")), schedule)


@pytest.mark.parametrize(
    ("text", "dim", "reason"),
    [
        (LENGTHS, "N", "t2 is made of all of N"),
        (ONE_STORE, "N", "Z would be stored by every block of N"),
        (SQUARE, "M", "t2 is made of all of M"),
        (SQUARE, "M'", "t2 has the elements of M under the name M'"),
        (COLUMN_SUMS, "M", "no tile of nest 1 holds all of M"),
        (COLUMN_SUMS, "E", "no tile of nest 1 holds all of E"),
    ],
)
def test_refuses(text, dim, reason):
    assert SPREAD.why_not(start(text), NEST, dim=dim) == reason
    with pytest.raises(EmitError, match=f"'spread nest 1 {dim}' does not apply: {reason}"):
        SPREAD.apply(start(text), NEST, dim=dim)


def test_refuses_what_is_cut_or_not_there():
    cut = start(COLUMN_SUMS, "block M 16, N 64 whole")

    assert SPREAD.why_not(cut, NEST, dim="N") == "N is cut already"
    assert "there is no nest 2" in SPREAD.why_not(start(COLUMN_SUMS), Site(2), dim="N")


def test_spreads_and_is_proved():
    before = start(COLUMN_SUMS)
    assert [*SPREAD.arguments(before, NEST)] == [{"dim": "N"}]

    after = SPREAD.apply(before, NEST, dim="N")

    (loop,) = after.draft.nests[0].body
    assert isinstance(loop, For)
    assert (loop.dim, loop.parallel) == ("N", True)
    assert prove_tiles(before.draft, after.draft, trials=4).equal
    assert after.schedule == "spread nest 1 N\n"
    assert start(COLUMN_SUMS, after.schedule).draft == after.draft


def test_a_loop_over_another_dim_of_its_size_is_no_hindrance():
    """Words do not count: M and M' have nothing in common, unless one is relabeled to the other."""
    before = start(COLUMN_SUMS.replace("N", "M'"))

    assert [*SPREAD.arguments(before, NEST)] == [{"dim": "M'"}]
    after = SPREAD.apply(before, NEST, dim="M'")
    assert prove_tiles(before.draft, after.draft, trials=4).equal


def test_gradients_of_a_layer_norm():
    graph = bb.lower(bb.trace(layer_norm_backward, **INPUTS))
    derivation = bb.fuse(graph, whole=("D",))

    kernel = bb.emit(derivation, {"M": 64, "D": 100})

    assert "spread nest 2 D" in kernel.schedule
    assert "block nest 1 M 1, D 128 whole" in kernel.schedule
    proof = kernel.derivation.prove(trials=2)
    assert all(entry.proof.equal for entry in proof.entries), str(proof)


@pytest.mark.parametrize("d", [128, 1024, 4096, 8192, 16384])
def test_what_is_chosen_for_them(d):
    fused = Fused(bb.lower(bb.trace(layer_norm_backward, **INPUTS)))

    found = fused.consider({"M": 4096, "D": d}, "float16", "sm_90")

    assert found.best.name == "with D in one block"
    assert 4 * found.best.moved < 3 * min(choice.moved for choice in found.others)


def test_they_run():
    derivation = bb.fuse(bb.lower(bb.trace(layer_norm_backward, **INPUTS)), whole=("D",))
    kernel = bb.emit(derivation, {"M": 35, "D": 37}, "float32")
    random = np.random.default_rng(5)
    x, dy = random.normal(size=(2, 35, 37)).astype("f4")
    g = random.normal(size=37).astype("f4")

    made = kernel(x=x, g=g, dy=dy)

    wanted = layer_norm_backward(*(array.astype(float) for array in (x, g, dy)))
    for one, right in zip(made, wanted, strict=True):
        np.testing.assert_allclose(one, right, rtol=1e-3, atol=1e-4)
