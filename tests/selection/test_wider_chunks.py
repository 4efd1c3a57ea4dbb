"""Wider blocks with more chunks, for kernels of few programs."""

import pytest

import blockbuster as bb
from blockbuster.emission import emit
from blockbuster.emit.tile.program import For, statements
from blockbuster.selection.combining import programs
from blockbuster.selection.recut_blocks import kernels_of_dots
from blockbuster.selection.wider_chunks import wider_in_chunks


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


@pytest.mark.parametrize(("features", "hidden", "chunks"), [(2048, 8192, 4), (4096, 14336, 2)])
def test_few_rows_are_one_block_and_their_long_sum_runs_in_more_chunks(
    derivation, features, hidden, chunks
):
    made = chosen(derivation, M=128, D=features, K=hidden)
    *_, product = kernels_of_dots(made)
    nest = made.draft.nests[product - 1]
    lanes = {block.dim: block.lanes for block in nest.blocks}

    assert (lanes["M"], lanes["D"]) == (128, 64)
    assert [one.count for one in made.draft.chunks] == [chunks]
    assert programs(made, nest) <= made.target.processors


HALF = """
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
