"""Wider blocks with more chunks, for kernels of few programs."""

import pytest

import blockbuster as bb
from blockbuster.emission import emit
from blockbuster.emit.tile.program import For, statements
from blockbuster.selection.decisions.combining import programs
from blockbuster.selection.nearby import wider_chunks
from blockbuster.selection.nearby.recut_blocks import kernels_of_dots
from blockbuster.selection.nearby.wider_chunks import wider_in_chunks


def network(x, w, v, u):
    n = bb.rms_norm(x)
    return (bb.silu(n @ w) * (n @ v)) @ u


DIMS = dict(x="M D", w="D K", v="D K", u="K D")


@pytest.fixture(scope="module")
def derivation():
    return bb.fuse(bb.lower(bb.trace(network, **DIMS)))


def chosen(derivation, **sizes):
    kernel = emit(derivation, sizes)
    return kernel.derivation.final


@pytest.mark.parametrize(
    ("features", "hidden", "block", "chunks"),
    [(2048, 8192, (128, 64), 4), (4096, 14336, (128, 128), 4)],
)
def test_long_sums_of_few_rows_run_in_more_chunks(derivation, features, hidden, block, chunks):
    """Columns are twice as many with twice the chunks, but for a quarter of the bytes at most."""
    made = chosen(derivation, M=128, D=features, K=hidden)
    *_, product = kernels_of_dots(made)
    nest = made.draft.nests[product - 1]
    lanes = {block.dim: block.lanes for block in nest.blocks}

    assert (lanes["M"], lanes["D"]) == block
    assert [one.count for one in made.draft.chunks] == [chunks]
    assert programs(made, nest) <= made.target.processors


HALF = """
for snapshot 1 with statistics apart
block nest 2 M 64, D' 64, K 128, D 64
block nest 1 M 1, D' 2048 whole, D 1024
split
chunk nest 3 K 2 all at once
warps 4
"""


def test_blocks_grow_where_the_weights_are_read_again_and_chunks_by_as_much(derivation):
    sizes = dict(M=128, D=2048, K=8192)
    made = emit(derivation, sizes, schedule=HALF).derivation.final
    found = list(wider_in_chunks(made, ((2, "K", 64),)))

    assert [chunks for chunks, _, recuts in found if (3, "M", 128) in recuts] == [{"K": 4}] * 3
    assert [steps["K"] for _, steps, recuts in found if (3, "M", 128) in recuts] == [128, 64, 32]
    assert not any((3, "D", 128) in recuts for _, _, recuts in found)


def test_other_kernels_keep_their_steps(derivation):
    sizes = dict(M=128, D=2048, K=8192)
    made = emit(derivation, sizes, schedule=HALF).derivation.final

    for _, steps, recuts in wider_in_chunks(made, ()):
        if (3, "M", 128) in recuts:
            assert ((2, "K", 128) in recuts) == (steps["K"] != 128)


def test_kernels_of_many_programs_keep_their_blocks(derivation):
    made = chosen(derivation, M=4096, D=2048, K=8192)

    assert list(wider_in_chunks(made, ())) == []


def test_only_dims_that_dots_sum_over_run_in_chunks(derivation):
    made = chosen(derivation, M=128, D=2048, K=8192)
    loops = {s.dim for n in made.draft.nests for s in statements(n.body) if isinstance(s, For)}

    assert {dim for chunks, _, _ in wider_in_chunks(made, ()) for dim in chunks} <= loops


@pytest.mark.parametrize(("chunks", "wider"), [(2, True), (4, False)])
def test_partial_results_take_a_quarter_of_the_weights_at_most(derivation, chunks, wider):
    """128 x 2048 results in float32 are 1 MB, 8192 x 2048 weights in float16 are 32."""
    sizes = dict(M=128, D=2048, K=8192)
    text = HALF.replace("K 2 all", f"K {chunks} all")
    made = emit(derivation, sizes, schedule=text).derivation.final
    found = [counts["K"] for counts, _, recuts in wider_in_chunks(made, ()) if recuts[-1][0] == 3]

    assert found == ([2 * chunks] * 3 if wider else [])


def test_partial_results_are_counted_without_the_chunks_that_there_are(derivation):
    sizes = dict(M=128, D=2048, K=8192)
    made = emit(derivation, sizes, schedule=HALF).derivation.final
    product = made.draft.nests[2]
    small = [n for n in (1, 2, 4, 8, 16) if wider_chunks._parts_are_small(product, made, n)]

    assert small == [1, 2, 4]
