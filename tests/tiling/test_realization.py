"""Candidates as schedules of our kernels, and schedules as candidates."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster import examples
from blockbuster.emit.schedule.scheduled import unscheduled
from blockbuster.emit.schedule.script import checked_complete, replayed
from blockbuster.emit.target.targets import target_of
from blockbuster.emit.tile.array_dtypes import given_by, typed_for_gpu
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.rules import safe
from blockbuster.tiling import candidate, gemm_chain, parse_expression, pruned, self_attention
from blockbuster.tiling.realization import (
    candidate_of,
    not_expressible,
    schedule_of,
    simplified,
)
from tests.tiling.chains import three_products

LIMIT = 227 * 1024


def three(a, b, d, f):
    return ((a @ b) @ d) @ f


def fused(program):
    return bb.fuse(bb.lower(program)).snapshots


GEMM = fused(examples.GEMM_CHAINS[0].program())
ATTENTION = fused(examples.SELF_ATTENTIONS[0].program())
THREE = fused(bb.trace(three, a="M K", b="K N", d="N H", f="H P"))


def scheduled(graph, chain, text):
    program = typed_for_gpu(graph, lower_to_tiles(safe(graph)), given_by("float16"))
    sizes = {dim: chain.sizes[loop] for loop, dim in chain.dims.items()}
    sizes |= {"B": 1} if "B" in program.units else {}
    return checked_complete(replayed(unscheduled(program, sizes, target_of("sm_90")), text))


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_a_schedule_has_the_loops_and_tiles_it_was_made_for(data):
    sizes = [data.draw(st.sampled_from([16, 64, 80, 96, 256])) for _ in range(4)]
    make, snapshots = data.draw(st.sampled_from([(gemm_chain, GEMM), (self_attention, ATTENTION)]))
    chain = make(*sizes)
    space = pruned(chain, LIMIT).candidates
    at = data.draw(st.integers(0, len(space) - 1))
    one = next(one for one in space[at:] + space if not not_expressible(chain, one))
    text = schedule_of(chain, one, warps=8, stages=data.draw(st.integers(1, 3)))

    assert candidate_of(chain, scheduled(snapshots[-1], chain, text)) == simplified(chain, one)


def test_three_products():
    chain = three_products(m=64, n=96, k=128, h=64, p=64)
    one = candidate(chain, parse_expression("mphnk"), (64, 32, 64, 32, 64))
    made = scheduled(THREE[-1], chain, schedule_of(chain, one))

    assert made.schedule == "block M 64 whole, N 32, K 64, H 32, P 64 whole\nwarps 4\n"
    assert candidate_of(chain, made) == simplified(chain, one)
    assert str(candidate_of(chain, made).body) == "hnk"


REFUSED = [
    ("mhkn", (64, 64, 64, 64), "all tiles of C along n are kept while a loop runs"),
    ("mn(k,h)", (64, 64, 64, 64), "all tiles of E along h are kept while a loop runs"),
    ("mn(k,h)", (64, 128, 64, 64), "our fused program runs k, not \\(k,h\\)"),
    ("mhnk", (64, 48, 64, 64), "the tile of n is 48, and Triton's are powers of two"),
]


@pytest.mark.parametrize(("text", "tiles", "reason"), REFUSED)
def test_what_our_kernels_cannot_express(text, tiles, reason):
    chain = gemm_chain(128, 128, 128, 128)
    one = candidate(chain, parse_expression(text), tiles)
    with pytest.raises(bb.EmitError, match=reason):
        schedule_of(chain, one)


def test_flat_tiling_with_one_tile_of_the_output_is_ours():
    chain = gemm_chain(128, 128, 128, 128)
    flat = candidate(chain, parse_expression("mn(k,h)"), (64, 64, 64, 128))
    nested = candidate(chain, parse_expression("mhnk"), (64, 64, 64, 128))

    assert simplified(chain, flat) == simplified(chain, nested)
    assert schedule_of(chain, flat) == schedule_of(chain, nested)


def test_schedules_that_are_no_expression():
    chain = gemm_chain(128, 128, 64, 64)
    split = """
        split
        block nest 1 M 64, K 64, N 32
        block nest 2 M 64, N 64, H 32
        warps 4
    """
    with pytest.raises(bb.EmitError, match="the schedule has 2 kernels"):
        candidate_of(chain, scheduled(GEMM[0], chain, split))
    nothing = gemm_chain(128, 128, 64, 64)
    renamed = type(nothing)(nothing.operators, nothing.sizes, dims=dict.fromkeys("mnkh", "X"))
    made = scheduled(GEMM[-1], chain, "block M 64, K 64 whole, N 64, H 64 whole; warps 4")
    with pytest.raises(bb.EmitError, match="does not cut X"):
        candidate_of(renamed, made)


def test_a_chain_without_dims_has_no_schedule():
    chain = gemm_chain(64, 64, 64, 64)
    plain = type(chain)(chain.operators, chain.sizes)
    one = pruned(plain, LIMIT).candidates[0]
    assert not_expressible(plain, one) == "loop m runs over no dim of a program"


@pytest.mark.interpreter
def test_a_candidate_runs():
    chain = self_attention(48, 80, 32, 16, batch=2)
    one = candidate(chain, parse_expression("mhnk"), (32, 32, 16, 16))
    sizes = dict(B=2, M=48, N=80, K=32, H=16)
    kernel = bb.emit(ATTENTION[-1], sizes, "float32", schedule=schedule_of(chain, one, stages=2))
    program = examples.SELF_ATTENTIONS[0].program()
    random = np.random.default_rng(0)
    shapes = {"q": (2, 48, 32), "k": (2, 80, 32), "v": (2, 80, 16)}
    arrays = {name: random.standard_normal(shape) for name, shape in shapes.items()}
    found = kernel(**{name: x.astype(np.float32) for name, x in arrays.items()})

    assert np.abs(found - program.numpy(arrays)["out"]).max() < 1e-5
