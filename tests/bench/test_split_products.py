"""Schedules of split products that a GPU compares: their prices, and which a search would take."""

from bench.gpu.split_products import SHAPES, record, regrets, trials


def schedule(columns, depth):
    tile = f"block M 128, K {depth}, N {columns}"
    return f"split-float nest 1\n{tile}\nwarps 4\nstage nest 1 K 3\noverlap nest 1"


def test_every_product_is_tried_with_the_same_schedules():
    found = list(trials())

    assert {name for name, _ in found} == {*SHAPES}
    assert len({*found}) == len(found)
    assert ("x @ w", schedule(32, 64)) in found


def test_a_schedule_that_spills_has_a_price_and_does_not_fit():
    fits, spills = (record("x @ w", schedule(columns, 64)) for columns in (32, 64))

    assert fits["fits"]
    assert not spills["fits"]
    assert fits["predicted"] > 0 < spills["predicted"]


def test_a_schedule_that_cannot_be_made_is_told():
    assert "ParseError" in record("x @ w", "block M")["error"]


def test_regrets_are_of_schedules_that_fit():
    times = [("a", 2.0, 9.0, False), ("b", 3.0, 20.0, True), ("c", 4.0, 10.0, True)]
    found = [
        {"name": "x @ w", "schedule": text, "predicted": price, "warm": warm, "fits": fits}
        for text, price, warm, fits in times
    ]

    assert regrets(found).splitlines()[-1] == "| x @ w | 9.0 | 20.0 | 122% | b |"
