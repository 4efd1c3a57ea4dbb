"""What choosing leaves out because it cannot matter, and what it makes later."""

from math import inf

import blockbuster as bb
from blockbuster.emit.tile.array_dtypes import given_by
from blockbuster.selection.choice import Fused
from blockbuster.selection.considered import MadeLater, blocks_of
from blockbuster.selection.priors import PRIORS

GIVEN = given_by("float16")


def product() -> Fused:
    return Fused(bb.lower(bb.trace(lambda x, w: bb.maximum(x @ w, 0.0), x="M K", w="K N")))


def rows_by_their_squares(x: str, w: str) -> Fused:
    def function(x, w):  # type: ignore[no-untyped-def]
        return x / (x * x).sum(-1, keepdims=True) @ w

    return Fused(bb.lower(bb.trace(function, x=x, w=w)))


def test_no_schedules_are_looked_for_above_a_limit_until_somebody_asks() -> None:
    fused, sizes = product(), {"M": 512, "K": 256, "N": 1024}
    usual = fused.consider(sizes, GIVEN, "h100")
    assert usual.best.least < usual.best.price

    hopeless = fused.consider(sizes, GIVEN, "h100", limit=0.9 * usual.best.least)

    assert hopeless.rest is not None
    assert hopeless.best.price > usual.best.price
    assert hopeless.within(usual.best.least).best.price == usual.best.price
    assert usual.rest is None


def test_where_a_glance_and_a_default_schedule_say_hopeless_no_other_candidate_is_made() -> None:
    sizes, far = {"M": 512, "K": 256, "N": 1024}, PRIORS.glance_far
    usual = rows_by_their_squares("M K", "K N").consider(sizes, GIVEN, "h100")
    fused = rows_by_their_squares("M K", "K N")
    hopeless = fused.consider(sizes, GIVEN, "h100", limit=0.01)

    assert not hopeless.others
    assert len(usual.others) > 0
    assert hopeless.least == hopeless.best.least / far
    assert hopeless.within(0.99 * hopeless.least) is hopeless
    assert hopeless.within(1.01 * hopeless.least).others
    assert hopeless.within(inf).best.price == usual.best.price


def test_others_of_an_equal_program_cut_dims_as_they_will_when_they_are_made() -> None:
    first = rows_by_their_squares("M K", "K N").consider({"M": 64, "K": 32, "N": 64}, GIVEN, "h100")

    made = rows_by_their_squares("R C", "C S").like(
        first, {"R": 64, "C": 32, "S": 64}, GIVEN, "h100"
    )

    assert made is not None
    assert isinstance(made.others, MadeLater)
    assert len(made.others) == len(first.others) > 0
    assert made.blocks == blocks_of([made.best, *made.others])
