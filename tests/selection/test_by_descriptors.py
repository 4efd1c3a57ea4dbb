"""Long kernels load by descriptors where their arrays allow it; short ones and others do not."""

import pytest

import blockbuster as bb
from blockbuster.selection.cost import cost_of
from blockbuster.selection.decisions.by_descriptors import LONG, by_descriptors

BLOCKS = "block M 128, K 64, N 256\nwarps 8\nstage nest 1 K 3\n"
LARGE = dict(M=2048, K=4096, N=4096)


@pytest.fixture(scope="module")
def product():
    return bb.fuse(bb.lower(bb.trace(lambda x, w: x @ w, x="M K", w="K N"))).final


def scheduled(graph, text, target="sm_90", **sizes):
    return bb.emit(graph, sizes, "float16", target, schedule=text).derivation.final


def test_a_long_product_does(product):
    made = by_descriptors(start := scheduled(product, BLOCKS, **LARGE), cost_of(start))

    assert made.schedule == BLOCKS.replace("K 3\n", "K 3 by descriptors\n")
    assert cost_of(start).microseconds > LONG


def test_a_short_one_does_not(product):
    start = scheduled(product, BLOCKS, M=256, K=256, N=512)

    assert cost_of(start).microseconds < LONG
    assert by_descriptors(start, cost_of(start)) is start


def test_a_target_without_them_does_not(product):
    text = BLOCKS.replace("N 256", "N 128")
    start = scheduled(product, text, "sm_80", **LARGE)

    assert cost_of(start).microseconds > LONG
    assert by_descriptors(start, cost_of(start)).schedule == text


def test_of_two_kernels_only_the_long_one_does():
    def chain(x, w, u):
        return (x @ w) @ u

    graph = bb.fuse(bb.lower(bb.trace(chain, x="M K", w="K N", u="N H"))).snapshots[0]
    text = (
        "split; block nest 1 M 128, K 64, N 128; block nest 2 M 128, N 64, H 16\n"
        "warps 8; stage nest 1 K 3; stage nest 2 N 3"
    )
    start = scheduled(graph, text, M=2048, K=8192, N=512, H=16)
    lines = by_descriptors(start, cost_of(start)).schedule.splitlines()

    assert lines[-2:] == ["stage nest 1 K 3 by descriptors", "stage nest 2 N 3"]
