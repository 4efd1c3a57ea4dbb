"""The move regroup: folds over pieces of a product's columns in blocks of whole pieces."""

import numpy as np
import pytest
import torch

import blockbuster as bb
from blockbuster.emission import emit
from blockbuster.emit.interpret.proof import prove_tiles
from blockbuster.emit.schedule.regroup import Regroup
from blockbuster.emit.schedule.scheduled import unscheduled
from blockbuster.emit.schedule.script import replayed
from blockbuster.emit.schedule.site import loops_of
from blockbuster.emit.target.targets import target_of
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.typed import typed
from blockbuster.errors import EmitError, ParseError
from blockbuster.runtime.launch import run_batch
from tests.emit.parse_tiles import parse_tiles

DIMS, SIZES = dict(x="M K", w="K N"), dict(M=37, K=24, N=96)
CUT = "regroup nest 1 A\nblock N {}, M 16, K 16\nwarps 4\nstage nest 1 K 2"


def pieces(y, g):
    return y.reshape(y.shape[0], y.shape[1] // g, g)


def largest(g):
    return lambda x, w: pieces(x @ w, g).max(-1)


def scaled(g):
    def fn(x, w):
        y = pieces(x @ w, g)
        y = y / ((y * y).mean(-1, keepdims=True) + 1e-5) ** 0.5
        return y.reshape(y.shape[0], -1)

    return fn


def both(g):
    def fn(x, w):
        y = bb.relu(pieces(x @ w, g))
        return y.max(-1), y.sum(-1)

    return fn


def rows(x, w):
    y = pieces(x @ w, 8)
    return (y + y.sum(0)).max(-1)


def scheduled(fn, dims=DIMS, sizes=SIZES):
    graph = bb.fuse(bb.lower(bb.trace(fn, **dims))).final
    program = typed(lower_to_tiles(graph), {}, "float32")
    known = {**sizes, "A": sizes["N"] // 8, "B": 8}
    return unscheduled(program, known, target_of("sm_90"))


def why_not(made, dim="A"):
    site = next(site for site, loop in loops_of(made.draft) if loop.dim == dim)
    return Regroup().why_not(made, site)


@pytest.mark.parametrize(("g", "lanes"), [(2, 16), (8, 64), (16, 32)])
@pytest.mark.parametrize("make", [largest, both])
def test_regrouped_folds_are_proved_and_run(make, g, lanes):
    program = bb.trace(make(g), **DIMS)
    derivation = bb.fuse(bb.lower(program))
    kernel = emit(derivation, SIZES, dtype="float32", schedule=CUT.format(lanes))

    assert "forall A" in str(kernel.tile_program)
    assert parse_tiles(str(kernel.tile_program)) == kernel.tile_program
    assert prove_tiles(derivation.final, kernel.tile_program).equal
    random = np.random.default_rng(0)
    arrays = [random.integers(-3, 4, shape).astype("float32") for shape in ((37, 24), (24, 96))]
    inputs = dict(zip("xw", arrays, strict=True))
    (made,) = run_batch([(kernel, inputs)])
    for name, wanted in program.numpy(inputs).items():
        np.testing.assert_array_equal(made[name], wanted)


def per_head(x, w):
    y = bb.einsum("mk,khd->mhd", x, w)
    return y / (y * y + 1).sum(-1, keepdims=True)


def rotated(x, w, c):
    y = (x @ w).reshape(x.shape[0], w.shape[1] // 8, 8)
    a, b = y[..., :4], y[..., 4:]
    return np.concatenate([a * c - b, b * c + a], -1)


def weighted(x, w, b):
    return (bb.einsum("mk,khd->mhd", x, w) * b).max(-1)


BESIDE = {
    "weights of heads": (per_head, {"x": "M K", "w": "K H 16"}, {"M": 37, "K": 40, "H": 5}),
    "a vector of a head": (
        weighted, {"x": "M K", "w": "K H 16", "b": "16"}, {"M": 37, "K": 40, "H": 5}
    ),
    "rotary positions": (rotated, {"x": "M K", "w": "K N", "c": "4"}, {"M": 37, "K": 24, "N": 48}),
}  # fmt: skip


@pytest.mark.parametrize(("fn", "dims", "sizes"), BESIDE.values(), ids=BESIDE)
def test_pieces_of_a_product_beside_a_head_that_has_lanes_of_its_own(fn, dims, sizes):
    program = bb.trace(fn, **dims)
    kernel = emit(bb.fuse(bb.lower(program)), sizes, dtype="float32")
    random = np.random.default_rng(0)
    shapes = {n: [int(sizes.get(d, d)) for d in axes.split()] for n, axes in dims.items()}
    inputs = {n: random.integers(-3, 4, s).astype("float32") for n, s in shapes.items()}
    (made,) = run_batch([(kernel, inputs)])
    for name, wanted in program.numpy(inputs).items():
        np.testing.assert_allclose(made[name], wanted, rtol=1e-5)


def test_a_norm_of_pieces_is_one_kernel_of_whole_columns():
    program = bb.trace(scaled(64), x="M K", w="K N")
    sizes = dict(M=1024, K=4096, N=4096)
    plan = bb.select(program, sizes, machine="h100", library=False)
    alone = bb.select(bb.trace(lambda x, w: x @ w, **DIMS), sizes, machine="h100", library=False)

    assert plan.kernels == 1
    assert plan.total_us < 1.06 * alone.total_us
    assert "tl.reshape(" in plan.steps[0].text


def test_it_asks_for_pieces_of_a_power_of_two():
    odd = scheduled(largest(12))
    odd = unscheduled(odd.start, {**SIZES, "A": 8, "B": 12}, odd.target)

    assert why_not(odd) == "a piece has 12 elements, and tiles have powers of two"


def test_it_is_for_loops_over_single_pieces():
    made = scheduled(largest(8))

    assert why_not(made) == ""
    assert "several elements already" in why_not(made, "M")
    assert "cut already" in why_not(replayed(made, "block M 16, B 16 whole, K 16"))


def test_blocks_hold_whole_pieces():
    made = replayed(scheduled(largest(8)), "regroup nest 1 A")

    with pytest.raises((EmitError, ParseError), match="at least 16"):
        replayed(made, "block N 8, M 16, K 16")
    with pytest.raises((EmitError, ParseError), match="A are pieces of N"):
        replayed(made, "block N 128 whole, M 16, K 16")
    with pytest.raises((EmitError, ParseError), match="A are pieces of N"):
        replayed(made, "block A 4, N 32, M 16, K 16")
    cut = replayed(made, "block N 32, M 16, K 16")
    with pytest.raises((EmitError, ParseError), match="hold whole pieces"):
        replayed(cut, "recut nest 1 N 16")

def test_pieces_of_dims_that_were_told_apart_have_a_size():
    """A dim with primes has the size of the one without: the columns' dim needs a plain name."""
    conv = torch.nn.Conv2d(8, 16, 5, stride=3, padding=1, groups=8)
    module = torch.nn.Sequential(conv, torch.nn.LocalResponseNorm(3)).half().requires_grad_(False)
    plan = bb.jit(module, machine="h100").plan_for(torch.ones(2, 8, 8, 8).half())

    assert all(step.text for step in plan.steps)
