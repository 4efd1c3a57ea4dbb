"""Which float32 dots are split for the matrix units by default, where a caller asks for it."""

import pytest

import blockbuster as bb
from blockbuster.emit.schedule.scheduled import unscheduled
from blockbuster.emit.target.targets import target_of
from blockbuster.selection.decisions.split_floats import split_floats
from blockbuster.selection.priors import PRIORS

LEAST = PRIORS.split_sum_elements


def start(fn, dims, sizes, dtype="float32", target="sm_90"):
    graph = bb.fuse(bb.lower(bb.trace(fn, **dims))).final
    made = bb.emit(graph, sizes, dtype, target).derivation.start
    return unscheduled(made.draft, made.sizes, target_of(target))


def attention(q, k, v):
    return bb.softmax(q @ k.T, axis=-1) @ v


HEAD = dict(q="M D", k="N D", v="N L")


def matmul(x, w):
    return x @ w


PRODUCT = dict(x="M K", w="K N")


@pytest.mark.parametrize(("depth", "is_split"), [(LEAST, True), (LEAST - 16, False)])
def test_long_sums_are_split(depth, is_split):
    made = split_floats(start(matmul, PRODUCT, dict(M=64, K=depth, N=64)))
    assert [move.move for move in made.moves] == ["split-float"] * is_split


@pytest.mark.parametrize(("depth", "is_split"), [(64, True), (32, False)])
def test_the_shortest_sum_of_a_kernel_decides(depth, is_split):
    made = split_floats(start(attention, HEAD, dict(M=64, N=512, D=depth, L=64)))
    assert bool(made.moves) is is_split


def test_narrow_dtypes_rows_and_other_targets_stay():
    sizes = dict(M=64, K=256, N=64)
    for given in (
        start(matmul, PRODUCT, sizes, "float16"),
        start(matmul, PRODUCT, sizes, target="gfx942"),
        start(lambda x: bb.softmax(x, axis=-1), dict(x="M N"), dict(M=64, N=256)),
    ):
        assert split_floats(given) == given


def convolution(x, w):
    return bb.einsum("n(h+r)(v+s)c, rsck -> nhvk", x, w)


TAPS = dict(x="N A B C", w="R S C K")


@pytest.mark.parametrize(("taps", "is_split"), [(3, True), (1, False)])
def test_the_sum_of_a_convolution_goes_on_from_tap_to_tap(taps, is_split):
    sizes = dict(N=2, A=18, B=18, C=LEAST // 2, K=64, R=taps, S=taps)
    made = split_floats(start(convolution, TAPS, sizes))
    assert bool(made.moves) is is_split


def test_loops_over_results_make_no_sum_longer():
    def batches(x, w):
        return x @ w

    sizes = dict(B=64, M=64, K=LEAST // 2, N=64)
    made = split_floats(start(batches, dict(x="B M K", w="B K N"), sizes))
    assert not made.moves
