"""The move recut, its refusals, and how chunks are combined by default."""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.emission import check_schedule, emit
from blockbuster.emit.schedule.recut import Recut
from blockbuster.emit.schedule.site import Site
from blockbuster.errors import EmitError, ParseError
from blockbuster.runtime.launch import run_interpreted
from tests.emit.test_group_heads import PARTS, attention, graph_of, scheduled

PRODUCT = dict(x="M K", w="K N")
SIZES = dict(M=20, K=512, N=40)
CHUNKED = "block M 16, K 64, N 16\nchunk nest 1 K 4\n"
FIT = "warps 4\n"


@pytest.fixture(scope="module")
def graph():
    return graph_of(lambda x, w: x @ w, **PRODUCT)


def inputs():
    random = np.random.default_rng(0)
    shapes = {name: [SIZES[d] for d in dims.split()] for name, dims in PRODUCT.items()}
    return {name: random.integers(-3, 4, shape).astype("float32") for name, shape in shapes.items()}


def test_results_are_the_same_in_other_blocks(graph):
    text = f"{CHUNKED}recut nest 2 M 1\nrecut nest 2 N 64\nrecut nest 1 M 32\n{FIT}"
    kernel = emit(graph, SIZES, "float32", schedule=text)
    x, w = inputs().values()

    assert [block.lanes for block in kernel.tile_program.nests[1].blocks if block.dim in "MN"] == [
        1,
        64,
    ]
    np.testing.assert_array_equal(run_interpreted(kernel, inputs())["out"], x @ w)


def test_it_is_proved(graph):
    text = f"{CHUNKED}recut nest 2 M 1\n{FIT}"

    assert check_schedule(graph, text, SIZES, "float32", trials=3).equal


def test_a_block_that_fits_is_not_ragged(graph):
    text = f"{CHUNKED}recut nest 2 M 4\nrecut nest 2 N 8\n{FIT}"
    kernel = emit(graph, SIZES, schedule=text)

    assert not any(block.ragged for block in kernel.tile_program.nests[1].blocks)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("recut nest 3 M 1", "there is no nest 3"),
        ("recut nest 2 L 1", "L is not cut here; cut are: M, N"),
        ("recut nest 2 M 16", "the blocks of M have 16 lanes already"),
        ("recut nest 2 M 3", "the block of M is 3, expected a power of two of at least 1"),
        ("recut nest 1 M 8", "the block of M is 8, expected a power of two of at least 16"),
        ("recut nest 1 K 32", "the loop over K runs in chunks of whole blocks"),
        ("recut nest 2 N 2097152", "Triton takes|expected a power of two"),
    ],
)
def test_refusals(graph, text, reason):
    with pytest.raises(EmitError, match=reason):
        emit(graph, SIZES, schedule=f"{CHUNKED}{text}\n{FIT}")


def test_dims_of_one_block_stay():
    graph = graph_of(attention)
    sizes = dict(B=1, H=1, G=1, M=40, N=40, D=16, L=16)
    text = "block M 16, N 16, D 16 whole, L 16 whole\nrecut nest 1 D 32\nwarps 4"
    with pytest.raises(EmitError, match="D is one block: no loop runs over it"):
        emit(graph, sizes, schedule=text)


def test_blocks_that_bound_loops_stay():
    def causal(q, k):
        s = q @ k.T
        seen = bb.arange(q.shape[0])[:, None] >= bb.arange(k.shape[0])
        return bb.where(seen, s, 0.0).sum(-1)

    graph = graph_of(causal, q="M D", k="N D")
    text = "block M 16, N 16, D 16\nnarrow nest 1 N\nrecut nest 1 M 32\nwarps 4"
    with pytest.raises(EmitError, match="spans of loops are of the blocks of M as they are"):
        emit(graph, dict(M=64, N=64, D=16), schedule=text)


def test_arrays_with_an_entry_per_block_keep_theirs():
    start = scheduled(PARTS, "block M 16, N 16")
    reason = Recut().why_not(start, Site(1), dim="M", lanes=32)

    assert reason == "I1 has an entry per block of M"


def test_other_words_are_no_block(graph):
    with pytest.raises(ParseError, match="expected DIM LANES, got 'M one'"):
        emit(graph, SIZES, schedule=f"{CHUNKED}recut nest 2 M one")


def test_arguments_are_legal(graph):
    start = emit(graph, SIZES, schedule=f"{CHUNKED}{FIT}").derivation.final
    found = [args for site in Recut().sites(start) for args in Recut().arguments(start, site)]

    assert {"dim": "M", "lanes": 1} in found
    assert {"dim": "K", "lanes": 32} not in list(Recut().arguments(start, Site(1)))


# how chunks are combined ---------------------------------------------------------------


def test_few_programs_combine_chunks_in_single_rows():
    sizes = dict(B=1, H=8, G=8, M=1, N=8192, D=128, L=128)
    text = emit(graph_of(attention), sizes).schedule

    assert "recut nest 2 G 1\n" in text
    assert "stage nest 2" not in text


def test_rows_past_the_end_are_not_combined():
    sizes = dict(B=1, H=32, G=1, M=1, N=8192, D=128, L=128)

    assert "recut nest 2 M 1\n" in emit(graph_of(attention), sizes).schedule


def test_chunks_that_many_programs_combine_stay_in_their_blocks(graph):
    text = emit(graph, dict(M=64, K=65536, N=64), chunks={"K": 64}).schedule
    many = emit(graph, dict(M=1024, K=65536, N=1024), chunks={"K": 2}).schedule

    assert "recut nest 2 M 1\n" in text
    assert "chunk nest 1 K 2" in many
    assert "recut" not in many
