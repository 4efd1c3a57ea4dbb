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


def test_few_rows_are_one_block_and_their_long_sum_runs_in_more_chunks(derivation):
    made = chosen(derivation, M=128, D=2048, K=8192)
    *_, product = kernels_of_dots(made)
    nest = made.draft.nests[product - 1]
    lanes = {block.dim: block.lanes for block in nest.blocks}

    assert lanes["M"] == 128
    assert [chunks.count for chunks in made.draft.chunks] == [4]
    assert programs(made, nest) <= made.target.processors


def test_blocks_and_chunks_grow_by_the_same(derivation):
    made = chosen(derivation, M=128, D=2048, K=8192)
    before = {c.dim: c.count for c in made.draft.chunks}
    found = list(wider_in_chunks(made, ()))

    assert found
    for chunks, steps, recuts in found:
        (walked,) = steps
        widened = [
            (number, dim)
            for number, dim, lanes in recuts
            if dim != walked
            and lanes == 2 * {b.dim: b.lanes for b in made.draft.nests[number - 1].blocks}[dim]
        ]
        assert chunks[walked] == before.get(walked, 1) << len(widened)


def test_kernels_of_many_programs_keep_their_blocks(derivation):
    made = chosen(derivation, M=4096, D=2048, K=8192)

    assert list(wider_in_chunks(made, ())) == []


def test_only_dims_that_dots_sum_over_run_in_chunks(derivation):
    made = chosen(derivation, M=128, D=2048, K=8192)
    loops = {s.dim for n in made.draft.nests for s in statements(n.body) if isinstance(s, For)}

    assert {dim for chunks, _, _ in wider_in_chunks(made, ()) for dim in chunks} <= loops
