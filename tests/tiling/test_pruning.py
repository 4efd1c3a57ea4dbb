"""The four rules and their counts, and equations 1 to 5, by hand."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blockbuster.tiling import (
    Candidate,
    candidate,
    deep,
    estimate,
    expressions,
    gemm_chain,
    parse_expression,
    pruned,
)
from blockbuster.tiling.candidate import bound
from blockbuster.tiling.pruning import (
    distinct,
    overwhelms,
    pads,
    shared_bytes,
    tile_sizes,
    too_large,
)
from tests.tiling.chains import SMALL, three_products

GEMM = gemm_chain(1024, 1024, 512, 512)
A100 = 163 * 1024


def test_counts_of_the_example_of_the_source():
    counts = pruned(GEMM, A100).counts

    assert counts.expressions == (26, 3, 2, 2, 2)
    assert counts.tiles == (64 * 64 * 32 * 32,) * 3 + (7 * 7 * 6 * 6, 751)
    assert counts.candidates == (109_051_904, 12_582_912, 8_388_608, 3_528, 1_502)


def test_deep_expressions_alone():
    counts = pruned(GEMM, A100, among=deep(GEMM)).counts
    assert counts.expressions == (24, 2, 1, 1, 1)
    assert counts.candidates[0] == 100_663_296


def test_rule_1_takes_spatial_loops_away():
    assert [str(body) for body in distinct(GEMM, expressions(GEMM))] == ["nk", "kn", "n(k,h)"]
    assert bound(GEMM, parse_expression("mnkh")) == bound(GEMM, parse_expression("mhnk"))
    assert bound(GEMM, parse_expression("nm(k,h)")).grid == ("m",)


def test_rule_2_says_which_tiles_are_kept():
    found = {str(body): overwhelms(GEMM, body) for body in distinct(GEMM, expressions(GEMM))}
    assert found["nk"] == found["n(k,h)"] == ""
    assert found["kn"] == "C sums over k around n: all its tiles along n are kept"


@pytest.mark.parametrize(
    ("size", "tile", "reason"),
    [
        (512, 64, ""),
        (512, 48, "512 is a power of two, and 48 does not divide it"),
        (80, 80, ""),
        (80, 48, "tiles of 48 pad 80 by 20%"),
        (1000, 48, ""),  # 1008: 0.8%
        (160, 48, "tiles of 48 pad 160 by 20%"),
        (160, 84, "tiles of 84 pad 160 by 5%"),  # 168: exactly a twentieth is too much
    ],
)
def test_rule_3(size, tile, reason):
    assert pads(size, tile) == reason


def test_raw_tiles_are_multiples_of_16():
    assert tile_sizes(80) == (16, 32, 48, 64, 80)
    assert tile_sizes(70) == (16, 32, 48, 64, 80)
    assert tile_sizes(1) == (16,)
    assert len(tile_sizes(1024)) == 64


def test_rule_4_counts_a_tile_of_every_tensor():
    one = candidate(GEMM, parse_expression("mhnk"), (64, 32, 16, 128))
    a, b, c, d, e = 64 * 16, 16 * 32, 64 * 32, 32 * 128, 64 * 128

    assert shared_bytes(GEMM, one) == 2 * (a + b + c + d + e) == 31744
    assert too_large(GEMM, one, 26454) == ""  # 1.2 times that is 31744.8
    assert (
        too_large(GEMM, one, 26453) == "about 31744 bytes of shared memory, above 1.2 times 26453"
    )


def test_spaces_without_candidates():
    assert pruned(GEMM, 100).candidates == ()  # bytes of shared memory
    assert pruned(gemm_chain(100, 64, 64, 64), A100).candidates == ()  # rule 3: 12% and more


@given(st.integers(1, 200), st.integers(1, 200), st.sampled_from([4096, 65536]))
def test_rules_keep_what_they_say(m, k, limit):
    chain = gemm_chain(m, 64, k, 32)
    space = pruned(chain, limit)
    for one in space.candidates:
        assert not overwhelms(chain, one.body)
        assert all(not pads(chain.sizes[loop], tile) for loop, tile in one.tiles)
        assert not too_large(chain, one, limit)
    assert len(space.candidates) == space.counts.candidates[-1]


# equations 1 to 5 ------------------------------------------------------------------------


def test_equations_by_hand():
    chain = gemm_chain(128, 64, 64, 32, batch=3)
    one = candidate(chain, parse_expression("mhnk"), (64, 32, 16, 16))
    found = estimate(chain, one, SMALL)  # m 2, n 2, k 4, h 2: 12 blocks
    loaded = 12 * 2 * 4 * (64 * 16 + 16 * 32) + 12 * 2 * (32 * 16)
    stored = 12 * 64 * 16
    operations = 12 * 2 * 4 * 2 * 64 * 32 * 16 + 12 * 2 * 2 * 64 * 32 * 16

    assert found.blocks == 12
    assert found.moved == 2 * (loaded + stored)
    assert found.operations == operations
    assert found.memory == pytest.approx(2 * (loaded + stored) / 1e9)
    assert found.compute == pytest.approx(operations / 1e12)
    assert found.slowdown == pytest.approx((12 + 4) / 12)
    assert found.seconds == pytest.approx((found.memory + found.compute) * 16 / 12)


def test_a_loop_of_extent_one_saves_loads_of_a():
    chain = gemm_chain(64, 64, 16, 16)
    one = candidate(chain, parse_expression("mhnk"), (64, 16, 16, 16))
    assert estimate(chain, one, SMALL).moved == 2 * (64 * 16 + 4 * (16 * 16 + 16 * 16) + 64 * 16)


def test_flat_tiling_computes_the_first_product_once():
    chain = gemm_chain(64, 64, 64, 128)
    tiles = (32, 32, 32, 32)
    flat = estimate(chain, candidate(chain, parse_expression("mn(k,h)"), tiles), SMALL)
    nested = estimate(chain, candidate(chain, parse_expression("mhnk"), tiles), SMALL)
    first, second = 2 * 64 * 64 * 64, 2 * 64 * 64 * 128

    assert flat.operations == first + second
    assert nested.operations == 4 * first + second
    assert (flat.blocks, nested.blocks) == (2, 8)


def test_a_machine_without_the_rate_says_so():
    one = pruned(gemm_chain(64, 64, 64, 64, dtype="bfloat16"), 65536).candidates[0]
    with pytest.raises(ValueError, match="small has no rate of matrix units for bfloat16"):
        estimate(gemm_chain(64, 64, 64, 64, dtype="bfloat16"), one, SMALL)


@given(st.data())
def test_operations_are_at_least_those_of_the_chain(data):
    chain = three_products(**{loop: data.draw(st.sampled_from([16, 48, 64])) for loop in "mnkhp"})
    expression = data.draw(st.sampled_from(expressions(chain)))
    tiles = [data.draw(st.sampled_from(tile_sizes(size))) for size in chain.sizes.values()]
    sizes = dict(zip(chain.sizes, chain.sizes.values(), strict=True))
    one = Candidate(bound(chain, expression), tuple(zip(sizes, tiles, strict=True)))
    ordered = candidate(chain, expression, [one.tile[loop] for loop in chain.loops])
    least = sum(2 * math.prod(sizes[loop] for loop in op.loops) for op in chain.operators)
    assert estimate(chain, ordered, SMALL).operations >= least


@pytest.mark.parametrize(
    ("text", "tiles", "reason"),
    [
        ("mhn", (16, 16, 16, 16), "each of them once"),
        ("mhnkp", (16, 16, 16, 16), "each of them once"),
        ("mhnk", (16, 16, 16), "3 tiles for the 4 loops"),
        ("mhnk", (16, 16, 16, 16, 16), "5 tiles for the 4 loops"),
        ("mhnk", (0, 16, 16, 16), "the tile of m is 0"),
        ("mhnk", (16.0, 16, 16, 16), "the tile of m is 16.0"),
    ],
)
def test_what_is_no_candidate_of_the_chain(text, tiles, reason):
    with pytest.raises(ValueError, match=reason):
        candidate(GEMM, parse_expression(text), tiles)
