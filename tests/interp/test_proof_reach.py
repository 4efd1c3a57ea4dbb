"""What small sizes and small numbers do not show: far positions, large constants, long slices."""

import numpy as np
import pytest

from blockbuster.frontend import arange, concat, lower, maximum, minimum, softmax, trace, where
from blockbuster.interp import positions
from blockbuster.interp.equal import prove_equal
from blockbuster.interp.setting import settings
from blockbuster.rules import fuse
from tests.parameters import rest_slow


def window(width):
    """Attention to the last ``width`` positions."""

    def attention(q, k, v):
        i = arange(q.shape[0])
        seen = (i[:, None] >= i) & (i[:, None] - i < width)
        return softmax(where(seen, q @ k.T, -np.inf)) @ v

    return lower(trace(attention, q="S D", k="S D", v="S E"))


def rows(function):
    return lower(trace(function, x="M N"))


@pytest.mark.parametrize("width", rest_slow([2, 4, 5, 7, 11], [4, 7]))
def test_masks_that_are_off_by_one(width):
    assert prove_equal(window(width), window(width + 1)).equal is False
    assert prove_equal(window(width), fuse(window(width)).final).equal is True


def test_the_last_setting_gets_past_the_numbers_of_masks():
    random = np.random.default_rng(0)
    *others, last = settings(window(7), window(7), 4, random)

    assert last.sizes["S"] == 9
    assert len(range(0, 9, last.block_sizes["S"])) == 3
    assert all(max(setting.sizes.values()) <= 5 for setting in others)


def test_numbers_that_no_position_gets_to():
    proof = prove_equal(
        rows(lambda x: where(arange(x.shape[0])[:, None] < 4096, x, 0)),
        rows(lambda x: where(arange(x.shape[0])[:, None] < 4097, x, 0)),
    )

    assert proof.equal is None
    assert "only one mentions 4096, 4097" in proof.reason
    assert prove_equal(window(4096), fuse(window(4096)).final).equal is True


@pytest.mark.parametrize(
    "function",
    [
        lambda x: maximum(x, -1e30),
        lambda x: minimum(x, 1e30),
        lambda x: minimum(x, 1e8),
        lambda x: where(x < 1e12, x, 0),
        lambda x: where(x > -1e12, x, 0),
    ],
)
def test_what_happens_beyond_large_numbers(function):
    proof = prove_equal(rows(function), rows(lambda x: x * 1))

    assert proof.equal is False


@pytest.mark.parametrize("start", [2, 5, 10])
def test_slices_that_small_sizes_leave_nothing_of(start):
    right = rows(lambda x: x[start:] * 2)

    assert prove_equal(right, fuse(right).final).equal is True
    assert prove_equal(right, rows(lambda x: x[start:] * 3)).equal is False
    assert prove_equal(right, rows(lambda x: x[start:] + x[start:])).equal is True


def test_an_array_written_in_parts_and_one_written_whole():
    joined = rows(lambda x: concat([x[:2], x[2:]], 0))
    swapped = rows(lambda x: concat([x[2:], x[:2]], 0))
    whole = rows(lambda x: x * 1)

    assert prove_equal(joined, whole).equal is True
    assert prove_equal(swapped, whole).equal is False
    exec(str(prove_equal(swapped, whole).counterexample), {})


def larger_by(choose):
    """A choice between two numbers, beside a fifth power of positions that is a result, too."""

    def function(x):
        i = arange(x.shape[0])
        return choose(x), i * i * i * i * i * 1.0

    return rows(function)


def test_powers_of_positions_do_not_count_where_both_programs_compute_the_same():
    by_maximum = larger_by(lambda x: maximum(x, 3 - x))
    by_comparison = larger_by(lambda x: where(x < 3 - x, 3 - x, x))

    assert prove_equal(by_maximum, by_comparison).equal is True


def batched(q, k):
    """Attention of several heads, with a mask by position and one by the number of the head."""
    i, h = arange(q.shape[1]), arange(q.shape[0])
    seen = (i[:, None] >= i) & (i[:, None] - i < 5) | (h[:, None, None] > 3)
    return softmax(where(seen, q @ k.mT, -np.inf))


@pytest.mark.parametrize(
    ("function", "dims", "once"),
    [
        (lambda q, k: batched(q, k), {"q": "H S D", "k": "H S D"}, set()),
        (lambda x: where(arange(x.shape[1]) > 4, x.sum(0), x.shape[0]), {"x": "B S"}, set()),
        (lambda x: where(arange(x.shape[2]) > 6, x, 0), {"x": "B M N"}, {"B"}),
    ],
)
def test_batches_that_differ_in_their_data_alone_show_no_other_positions(
    monkeypatch, function, dims, once
):
    derivation = fuse(lower(trace(function, **dims)))
    programs = [derivation.graph_after(step) for step in range(len(derivation.steps) + 1)]
    found = [positions.comparisons.__wrapped__(program) for program in programs]
    assert all(positions.alike(program) == once for program in programs)
    assert all(found)

    monkeypatch.setattr(positions, "alike", lambda graph: frozenset())
    assert found == [positions.comparisons.__wrapped__(program) for program in programs]


def test_comparisons_are_tried_beside_a_size_that_is_a_quotient_of_others():
    def gated(x, w):
        (heads, places), groups = x.shape, w.shape[0]
        y = x.reshape(groups, heads // groups, places) * w[:, None, None]
        return where(arange(places) < 3, y, 0.0).sum(-1)

    start = lower(trace(gated, x="H M", w="G"))
    assert [str(rule) for rule in start.size_rules] == ["|A| is |H| / |G|"]
    assert prove_equal(start, fuse(start).final, trials=2).equal is True
