"""Which loops in chunks count as combined by a kernel that does little else."""

import pytest

import blockbuster as bb
from blockbuster.selection.price import _looped, priced
from blockbuster.selection.priors import PRIORS


def combined(fn, text, dims, sizes):
    graph = bb.fuse(bb.lower(bb.trace(fn, **dims))).final
    return priced(bb.emit(graph, sizes, schedule=text).derivation.final)


def total(x):
    return bb.sum(x, axis=-1)


def less_the_largest(x):
    return bb.exp(x - bb.max(x, axis=-1, keepdims=True))


def product(x, w):
    return x @ w


ROWS, MATRICES = dict(x="M N"), dict(x="M K", w="K N")
WIDE, DEEP = dict(M=64, N=65536), dict(M=128, K=8192, N=128)


@pytest.mark.parametrize(
    ("fn", "text", "dims", "sizes", "count"),
    [
        pytest.param(total, "block M 1, N 1024; warps 4", ROWS, WIDE, 0, id="no chunks"),
        pytest.param(
            total, "block M 1, N 1024; chunk nest 1 N 8; warps 4", ROWS, WIDE, 1,
            id="numbers, chunk by chunk",
        ),
        pytest.param(
            total, "block M 1, N 1024; chunk nest 1 N 8 at once; warps 4", ROWS, WIDE, 1,
            id="numbers, in one tile",
        ),
        pytest.param(
            less_the_largest,
            "block M 1, N 1024; chunk nest 1 N 8 at once; chunk nest 2 N 8; warps 4", ROWS, WIDE, 0,
            id="numbers, before a loop over the elements",
        ),
        pytest.param(
            product, "block M 64, K 64, N 64; chunk nest 1 K 8; warps 4", MATRICES, DEEP, 1,
            id="blocks",
        ),
    ],
)  # fmt: skip
def test_chunks_count_unless_a_loop_of_the_combining_kernel_hides_them(
    fn, text, dims, sizes, count
):
    cost = combined(fn, text, dims, sizes)

    assert cost.combined == count
    assert cost.microseconds == pytest.approx(cost.report.time_us + PRIORS.combining_us * count)


def test_blocks_count_though_a_loop_follows():
    """Programs would hold them while they wait."""

    def softmax_of_product(x, w):
        return bb.softmax(x @ w, axis=-1)

    blocks = "split; block nest 1 M 64, K 64, N 64; block nest 2 M 64, N 64"
    text = f"{blocks}; chunk nest 1 K 8; warps 4"
    graph = bb.fuse(bb.lower(bb.trace(softmax_of_product, **MATRICES))).snapshots[0]
    scheduled = bb.emit(graph, DEEP, schedule=text).derivation.final

    assert _looped(scheduled.draft.nests[1], ()) > {"N"}
    assert priced(scheduled).combined == 1
