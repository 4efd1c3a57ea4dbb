"""Judging errors beside eager's: what is systematic or wrong fails, what is luck passes."""

import math

import numpy as np
import pytest

from blockbuster.check.judge import (
    ENOUGH,
    FEW,
    GROUPS,
    ROUNDING,
    SEEN,
    Sample,
    ratio,
    sampled,
    verdict,
    worst,
)

UNIT = 2.0**-24


def errors(random, size, heavy=False):
    spread = np.exp(0.8 * random.standard_normal(size)) if heavy else 1.0
    return 4 * UNIT * random.standard_normal(size) * spread


def groups(seed, change=lambda ours, exact: ours, *, size=1000, heavy=False, dtype="float32"):
    """Samples of results to which ours and eager add errors of one distribution."""
    random = np.random.default_rng(seed)
    found = []
    for _ in range(GROUPS):
        exact = random.uniform(0.5, 1.0, size)
        theirs = exact + errors(random, size, heavy)
        ours = change(exact + errors(random, size, heavy), exact)
        found.append(sampled(ours, theirs, exact, dtype))
    return found


# what passes ------------------------------------------------------------------------------


def test_eager_itself_passes():
    random = np.random.default_rng(0)
    exact = random.standard_normal(1000)
    theirs = exact + errors(random, 1000)
    found = verdict([sampled(theirs, theirs, exact, "float32")], "float32")

    assert found.passed
    assert found.ratio_max == found.ratio_rms == found.ratio_all == 1.0


@pytest.mark.parametrize("heavy", [False, True])
@pytest.mark.parametrize("size", [FEW, ENOUGH, 1000])
def test_luck_passes(size, heavy):
    drawn = [groups(s, size=size, heavy=heavy) for s in range(100)]

    assert sum(not verdict(d, "float32").passed for d in drawn) <= (5 if heavy else 0)
    if heavy:  # where one draw fails often
        assert sum(not verdict(d[:1], "float32").passed for d in drawn) >= 10


def test_a_result_that_is_exact_in_both_says_nothing():
    random = np.random.default_rng(0)
    exact = np.ones(10_000)
    theirs, ours = exact.copy(), exact.copy()
    theirs[:10] += errors(random, 10)
    ours[:10] = 1 + 2 * (theirs[:10] - 1)
    found = sampled(ours, theirs, exact, "float32")

    assert found.erring == 10
    assert verdict([found] * GROUPS, "float32").passed  # few errors: only the bound decides


def test_one_rounding_passes_where_eager_is_exact():
    exact = np.linspace(0.95, 1, 1000)
    for dtype, unit in ROUNDING.items():
        ours = exact + 0.9 * unit
        assert verdict([sampled(ours, exact, exact, dtype)] * GROUPS, dtype).passed
        ours = exact + 1.1 * unit
        assert not verdict([sampled(ours, exact, exact, dtype)] * GROUPS, dtype).passed


# what fails -------------------------------------------------------------------------------


@pytest.mark.parametrize("heavy", [False, True])
@pytest.mark.parametrize("size", [FEW, ENOUGH, 1000])
def test_a_systematic_excess_fails(size, heavy):
    def doubled(ours, exact):
        return exact + 2 * (ours - exact)

    verdicts = [verdict(groups(s, doubled, size=size, heavy=heavy), "float32") for s in range(50)]

    assert sum(v.passed for v in verdicts) <= (size == FEW and heavy)


def test_an_excess_in_one_part_of_the_results_fails():
    def ragged_edge(ours, exact):
        return np.where(np.arange(ours.size) >= 900, exact + 2.5 * (ours - exact), ours)

    assert not any(verdict(groups(s, ragged_edge), "float32").passed for s in range(50))


def test_a_larger_mean_error_fails_though_the_largest_is_the_same():
    def spread(ours, exact):
        most = np.abs(ours - exact).max()
        return exact + np.copysign(np.minimum(3 * np.abs(ours - exact), most), ours - exact)

    found = verdict(groups(0, spread), "float32")

    assert found.ratio_max < 1.5 < found.ratio_rms
    assert not found.passed


@pytest.mark.parametrize("group", [0, GROUPS // 2, GROUPS - 1])
def test_one_wrong_element_of_one_draw_fails(group):
    samples = groups(0)
    exact = np.ones(1000)
    ours = exact + UNIT * 3
    ours[17] = 1.0001
    samples[group] += sampled(ours, exact + UNIT * 3, exact, "float32")
    found = verdict(samples, "float32")

    assert found.ratio_max < 1.5
    assert found.ratio_all > 4
    assert not found.passed


def test_a_wrong_element_fails_even_where_errors_are_few():
    exact = np.ones(1000)
    ours = exact.copy()
    ours[3] = 0.99

    assert not verdict([sampled(ours, exact, exact, "float32")], "float32").passed


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_lost_fails(bad):
    exact = np.ones(10)
    ours = exact.copy()
    ours[3] = bad
    found = verdict([sampled(ours, exact, exact, "float16"), Sample()], "float16")

    assert not found.passed
    assert found.lost == 1
    assert found.relative == math.inf


FINITE, FAR = 3.0, 900.0  # FAR: a number that is neither the exact one nor eager's
INF, NAN = math.inf, math.nan
GIVEN = (FINITE, FAR, INF, -INF, NAN)
MEANINGS = {"j": "judged", "s": "spared", "o": "odd", "l": "lost"}

# (eager, exact): what becomes of ours where it is each of GIVEN
TABLE = {
    (FINITE, FINITE): "jjlll",  # an error is measured, however large
    (INF, FINITE): "josll",  # eager is off: the exact number, or what eager gives
    (-INF, FINITE): "jolsl",
    (NAN, FINITE): "jolls",
    (FINITE, INF): "sojll",
    (INF, INF): "oojll",  # eager is right: nothing else will do
    (-INF, INF): "oojsl",
    (NAN, INF): "oojls",
    (FINITE, -INF): "soljl",
    (INF, -INF): "oosjl",
    (-INF, -INF): "ooljl",
    (NAN, -INF): "ooljs",
    (FINITE, NAN): "solls",
    (INF, NAN): "oosls",
    (-INF, NAN): "oolss",
    (NAN, NAN): "oolls",  # NaN may be poison
}
OVERFLOWS = {  # in float16, whose largest number is 65504
    (INF, 1e5): TABLE[INF, INF],
    (-INF, -1e5): TABLE[-INF, -INF],
    (65504.0, 1e5): "oojll",
    (NAN, -1e5): TABLE[NAN, -INF],
    (INF, 1e300): TABLE[INF, INF],
    (INF, 40000.0): "oosll",  # hardly fits
    (-40000.0, -40000.0): "jjlsl",
    (20000.0, 20000.0): "jjlll",
}


@pytest.mark.parametrize("kind", ["numpy", "torch"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_every_kind_of_element_beside_every_kind_of_eager_and_exact(dtype, kind):
    make = np.array if kind == "numpy" else pytest.importorskip("torch").tensor
    rows = TABLE | (OVERFLOWS if dtype == "float16" else {})
    for (theirs, exact), row in rows.items():
        for ours, letter in zip(GIVEN, row, strict=True):
            # beside an element that is right
            arrays = [make([1.0, x], dtype=make([1.0]).dtype) for x in (ours, theirs, exact)]
            if kind == "torch":
                arrays = [x.double() for x in arrays]
            found = sampled(*arrays, dtype)
            seen = dict(judged=found.results - 1 - found.odd - found.lost, spared=found.spared)
            seen |= dict(odd=found.odd, lost=found.lost)
            case = f"ours {ours}, eager {theirs}, exact {exact}"
            assert seen == dict.fromkeys(seen, 0) | {MEANINGS[letter]: 1}, case
            assert letter in "js" or not verdict([found], dtype).passed, case


def test_where_eager_is_off_a_number_is_right_within_the_tolerance():
    exact, theirs = np.array([10.0, 0.001]), np.array([10.0, NAN])

    def judged(ours, **options):
        return sampled(np.array([10.0, ours]), theirs, exact, "float32", **options).odd == 0

    assert judged(0.0019)  # 1e-4 of the largest result
    assert not judged(0.0021)
    assert judged(0.0021, tolerance=1e-3)
    assert not judged(0.0019, tolerance=1e-5)


@pytest.mark.parametrize("lost", [INF, NAN])
def test_an_output_of_which_nothing_can_be_judged_does_not_pass(lost):
    theirs = np.full(4, lost)
    found = verdict([sampled(theirs, theirs, np.ones(4), "float32")] * 2, "float32")

    assert (found.results, found.spared) == (0, 8)
    assert found.says_nothing
    assert found.relative == INF
    assert not found.passed


def test_infinities_that_are_right_are_judged():
    """A row that is all masked has the log-sum-exp -inf: a kernel that never stores it is wrong."""
    masked = np.full(4, -INF)
    found = verdict([sampled(masked, masked, masked, "float32")], "float32")

    assert found.passed
    assert (found.results, found.spared) == (4, 0)


def test_truth_values_are_right_or_wrong():
    right = np.array([True, False])

    assert verdict([sampled(right, right, right, "bool")], "bool").passed
    assert verdict([sampled(~right, right, right, "bool")], "bool").lost == 2
    assert not verdict([sampled(~right, right, right, "bool")], "bool").passed


# samples ----------------------------------------------------------------------------------


def test_a_sample_has_the_errors_of_what_is_measured():
    exact = np.array([1.0, NAN, INF, 40000.0, 2.0])
    theirs = np.array([NAN, NAN, INF, 40000.0, 2.5])
    ours = np.array([1.0, NAN, INF, INF, 1.75])

    assert sampled(ours, theirs, exact, "float16") == Sample(
        results=3, erring=1, spared=2, peak=0.25, squares=0.0625,
        eager_peak=0.5, eager_squares=0.25, exact_peak=2.0, exact_squares=4.0,
    )  # fmt: skip


def test_samples_add_up():
    random = np.random.default_rng(1)
    rows = [exact + errors(random, 20) for exact in [np.linspace(1, 2, 20)] * 2]
    rows.append(np.linspace(1, 2, 20))
    whole = sampled(*rows, "float32")
    parts = sampled(*(r[:7] for r in rows), "float32") + sampled(*(r[7:] for r in rows), "float32")

    assert parts.peak == whole.peak
    assert parts.erring == whole.erring == whole.results == 20
    assert parts.squares == pytest.approx(whole.squares)


def test_no_results_are_no_errors():
    none = np.zeros((0, 3))
    found = verdict([sampled(none, none, none, "float32")], "float32")

    assert found.passed
    assert not found.says_nothing


def test_enough_is_errors_or_very_many_results():
    assert not Sample(results=SEEN - 1, erring=ENOUGH - 1).is_enough
    assert Sample(results=ENOUGH, erring=ENOUGH).is_enough
    assert Sample(results=SEEN).is_enough
    assert Sample(results=1, lost=1).is_enough
    assert Sample(results=1, odd=1).is_enough


def test_torch_tensors_give_the_same_sample():
    torch = pytest.importorskip("torch")
    random = np.random.default_rng(2)
    exact = random.standard_normal(100)
    rows = (exact + errors(random, 100), exact + errors(random, 100), exact)

    found = sampled(*map(torch.from_numpy, rows), "float32")

    assert found.peak == sampled(*rows, "float32").peak
    assert found.squares == pytest.approx(sampled(*rows, "float32").squares)
    assert found.erring == 100


def test_the_worst_output_is_reported():
    good, bad = verdict(groups(0), "float32"), verdict([Sample(results=1, lost=1)], "float32")

    assert worst([good]) == good
    assert worst([good, bad]).lost == 1
    assert not worst([good, bad]).passed
    assert ratio(0.0, 0.0) == 0.0
