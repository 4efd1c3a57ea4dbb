"""Programs that are alone on their processors, with many results to a thread, take eight warps."""

import pytest

import blockbuster as bb
from blockbuster.selection.decisions.more_warps import more_warps

SIZES = dict(M=1024, K=256, N=512)
WIDE = "block M 16, K 64, N 512 whole\nwarps 4\nstage nest 1 K 4\noverlap nest 1\n"


@pytest.fixture(scope="module")
def program():
    def fn(x, w):
        h = x @ w
        return bb.silu(h), bb.rms_norm(h)

    return bb.fuse(bb.lower(bb.trace(fn, x="M K", w="K N")))


def scheduled(program, text, **sizes):
    named = f"for the program with N in one block\n{text}"
    return bb.emit(program, SIZES | sizes, schedule=named).derivation.final


def test_warps_that_share_the_columns_of_sixteen_rows_are_doubled(program):
    assert more_warps(scheduled(program, WIDE)).schedule == f"{WIDE}warps nest 1 8\n"
    assert bb.emit(program, SIZES).schedule.endswith("warps nest 1 8\n")


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        pytest.param(WIDE, dict(M=4096), id="more programs than processors"),
        pytest.param(WIDE.replace("K 4", "K 2"), {}, id="two programs to a processor"),
        pytest.param(WIDE.replace("warps 4", "warps 8"), {}, id="eight warps already"),
        pytest.param(WIDE.replace("512", "256"), dict(N=256), id="fewer results to a thread"),
        pytest.param(WIDE.replace("M 16", "M 64"), {}, id="rows that warps divide"),
    ],
)
def test_others_keep_theirs(program, text, sizes):
    start = scheduled(program, text, **sizes)

    assert more_warps(start) is start


def test_kernels_without_dots_keep_theirs():
    rows = bb.fuse(bb.lower(bb.trace(lambda x: bb.softmax(x), x="M N")))
    start = bb.emit(rows, dict(M=64, N=8192)).derivation.final

    assert more_warps(start) is start
