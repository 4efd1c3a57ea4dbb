"""Dims in one block as candidates: where they are tried, what is chosen, and what it computes."""

from random import Random

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.emit.schedule.block import unlooped
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.errors import EmitError
from blockbuster.ir.types import size_class
from blockbuster.ir.whole_dims import whole_dims
from blockbuster.rules import safe
from blockbuster.selection.candidates.repeating import repeating
from blockbuster.selection.candidates.whole import Tiles, WholeDims, measure
from blockbuster.selection.choice import Fused
from blockbuster.selection.priors import PRIORS
from tests.rules.test_whole_dim import UNLOCKED, lowered

ROWS = ("residual", "softmax and log", "layer norm twice", "chain")


def sizes(d, m=4096):
    return {"M": m, "D": d}


@pytest.mark.parametrize("d", [128, 1024, 4096, 8192, 16384])
def test_a_residual_and_its_norm_are_one_kernel(d):
    found = Fused(lowered("residual")).consider(sizes(d), "float16", "sm_90")

    assert found.best.name == "with D in one block"
    assert found.best.kernels == 1
    assert found.best.moved <= min(c.moved for c in found.others)
    assert "with D in one block " in found.reason
    elements = 4096 * d
    weights = found.best.moved // 2 - 4 * elements  # x, r are read once, both results written once
    assert 0 < weights <= elements


def test_a_row_that_is_wider_than_a_tile_is_not():
    wide = sizes(2 * PRIORS.whole_elements)
    found = Fused(lowered("residual")).consider(wide, "float16", "sm_90")

    assert [c.name for c in (found.best, *found.others)] == ["snapshot 1"]


@pytest.mark.parametrize("name", ROWS)
def test_what_is_chosen_holds_for_the_sizes(name):
    fused = Fused(lowered(name))
    for d in (100, 3000, 16384):
        for choice in candidates(fused, sizes(d)):
            for dim in whole_dims(choice.graph) if "one block" in choice.name else ():
                nests = choice.scheduled.draft.nests
                blocks = [block for nest in nests for block in nest.blocks if block.dim == dim]
                assert blocks
                assert all(block.whole and block.lanes >= d for block in blocks)


def candidates(fused, known):
    found = fused.consider(known, "float16", "sm_90")
    return found.best, *found.others


def test_rows_that_loops_read_again_are_read_once_where_they_are_wide():
    """Narrower rows are one block by schedule; nothing is left to store either way."""
    fused = Fused(lowered("chain"))

    assert fused.derivation.final.buffered_edges() == ()
    assert candidates(fused, sizes(4096))[0].name == "snapshot 1"
    wide = candidates(fused, sizes(8192))
    assert wide[0].name == "with D in one block"
    assert wide[0].moved == 8 * 4096 * 8192  # bytes: what is read and written once, no more


def test_numbers_do_not_depend_on_what_was_asked_before():
    orders = ([128, 2048, 8192], [8192, 128, 2048], [2048, 8192, 128])
    found = []
    for order in orders:
        fused = Fused(lowered("norm and product"))
        chosen = {d: candidates(fused, {"M": 512, "D": d, "N": 256}) for d in order}
        found.append({d: [(c.name, c.snapshot, c.key) for c in of] for d, of in chosen.items()})

    assert found[0] == found[1] == found[2]


def test_dims_are_tried_only_where_something_goes():
    """A norm alone stores nothing; a product of small matrices has nothing to keep."""
    for function, dims in (
        (lambda x: bb.rms_norm(x), {"x": "M D"}),
        (lambda x, w: x @ w, {"x": "M D", "w": "D N"}),
    ):
        fused = bb.fuse(bb.lower(bb.trace(function, **dims)))
        assert WholeDims(fused).for_sizes({"M": 64, "D": 64, "N": 64}) == {}


def test_two_dims_are_whole_where_one_leaves_an_edge():
    def both(x):
        return bb.softmax(bb.softmax(x, axis=0) * x, axis=1)

    derivation = bb.fuse(bb.lower(bb.trace(both, x="M D")))
    found = WholeDims(derivation).for_sizes({"M": 64, "D": 64})

    assert found
    for one in found.values():
        assert measure(one.graph) < measure(derivation.final)
        tiles = lower_to_tiles(safe(one.graph))
        held = {size_class(d) for nest in tiles.nests for d in unlooped(nest, tiles.units)}
        assert set(one.dims) <= held


def projected(q, q_w, k, v, wo):
    """Attention whose queries and results go through matrices: a product in each block of keys."""
    return bb.softmax((q @ q_w) @ k.T, axis=-1) @ v @ wo


APART = {"q": "M K", "q_w": "K D", "k": "N D", "v": "N L", "wo": "L E"}
ALIKE = {"q": "M K", "q_w": "K D", "k": "N D", "v": "N D", "wo": "D D"}


@pytest.mark.parametrize("dims", [APART, ALIKE], ids=["apart", "alike"])
def test_work_that_loops_repeat_leaves_them(dims):
    """The columns of v are whole, so that nothing is stored; those of k, so that q is made once."""
    known = {"M": 512, "N": 512, "K": 256} | dict.fromkeys("DLE", 64)
    derivation = bb.fuse(bb.lower(bb.trace(projected, **dims)))
    found = list(WholeDims(derivation).for_sizes(known).values())

    assert [len(one.dims) for one in found] == [1, 2]
    assert [measure(one.graph) for one in found] == [(0, 0), (0, 0)]
    assert [bool(repeating(one.graph)) for one in found] == [True, False]


def linear_attention(q, k, v):
    q, k = bb.exp(q), bb.exp(k)
    return (q @ (k.T @ v)) / (q @ bb.sum(k, axis=0)[:, None])


def test_work_leaves_a_loop_that_is_longer_than_a_tile():
    """The sums over all keys are made for each block of queries, unless the features are whole."""
    derivation = bb.fuse(bb.lower(bb.trace(linear_attention, q="M D", k="N D", v="N L")))
    whole, long = WholeDims(derivation), {"M": 4096, "N": 4096, "D": 64, "L": 64}
    (found,) = whole.for_sizes(long).values()

    assert measure(found.graph) == measure(derivation.final) == (0, 0)
    assert "M" in repeating(derivation.final)
    assert repeating(found.graph) == ()
    assert whole.for_sizes(long | {"M": 256}) == {}, "one block holds all queries"
    assert whole.for_sizes(long | {"D": 1024, "L": 1024}) == {}, "no tile holds the features"


def test_dims_of_one_size_fit_by_the_tiles_in_which_they_stand():
    derivation = bb.fuse(bb.lower(bb.trace(projected, **APART)))
    tiles = Tiles(derivation.final)
    known = {"M": 512, "N": 512, "K": 256, "D": 128, "L": 128, "E": 64}

    assert tiles.fit(frozenset("DL"), known)  # no tile has both
    assert not tiles.fit(frozenset("DK"), known)  # q_w would be a tile of 128 by 256
    assert tiles.lanes(frozenset("DL"), known) == 128
    assert tiles.lanes(frozenset("DK"), known) == 128 * 256


def test_a_wide_row_beside_a_dot_is_refused_in_words():
    derivation = bb.fuse(lowered("norm and product"), whole=("D",))
    kernel = bb.emit(derivation, {"M": 64, "D": 512, "N": 256})

    assert "D 512 whole" in kernel.schedule
    assert (
        WholeDims(bb.fuse(lowered("norm and product"))).for_sizes({"M": 64, "D": 1024, "N": 1024})
        == {}
    )
    with pytest.raises(EmitError, match="no loop runs over it"):
        bb.emit(derivation, {"M": 64, "D": 512, "N": 256}, tiles={"D": 64})


@pytest.mark.parametrize("d", [1, 5, 100])
@pytest.mark.parametrize("name", UNLOCKED)
def test_compiled_for_the_cpu(name, d):
    function, dims = UNLOCKED[name]
    program = bb.trace(function, **dims)
    known = {"M": 7, "D": d} | ({"N": 6} if name == "norm and product" else {})
    random = np.random.default_rng(d)
    arrays = {
        key: random.normal(size=[known[dim] for dim in axes.split()]).astype(np.float32)
        for key, axes in dims.items()
    }

    made = bb.compile(program, known, "float32", "cpu")(*arrays.values())

    wanted = tuple(program.numpy({key: x.astype(float) for key, x in arrays.items()}).values())
    made, wanted = (x if isinstance(x, tuple) else (x,) for x in (made, wanted))
    for x, y in zip(made, wanted, strict=True):
        np.testing.assert_allclose(x, y, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("name", [*ROWS, "norm and product"])
def test_kernels_run(name):
    """In Triton's interpreter, at sizes that fill no block."""
    derivation = bb.fuse(lowered(name), whole=("D",))
    known = {"M": 11, "D": 37} | ({"N": 21} if name == "norm and product" else {})
    kernel = bb.emit(derivation, known, "float32")
    random = np.random.default_rng(Random(name).randrange(99))
    arrays = {
        buffer.name: random.normal(size=[known[axis.dim] for axis in buffer.axes]).astype("f4")
        for buffer in kernel.tile_program.inputs
    }

    made = kernel(**arrays)

    wanted = bb.evaluate(lowered(name), {key: x.astype(float) for key, x in arrays.items()})
    made = made if isinstance(made, tuple) else (made,)
    for x, y in zip(made, wanted.values(), strict=True):
        np.testing.assert_allclose(x, y, rtol=2e-3, atol=2e-4)
