"""Long kernels load by descriptors where their arrays allow it; short ones and others do not."""

import pytest

import blockbuster as bb
from blockbuster.costs import time_of
from blockbuster.emit.schedule.script import replayed
from blockbuster.selection.decisions.by_descriptors import by_descriptors
from blockbuster.selection.price import priced
from blockbuster.selection.priors import PRIORS

LONG, IN_TURN = PRIORS.descriptor_us, PRIORS.descriptor_in_turn_us

BLOCKS = "block M 128, K 64, N 256\nwarps 8\nstage nest 1 K 3\n"
LARGE = dict(M=2048, K=4096, N=4096)


@pytest.fixture(scope="module")
def product():
    return bb.fuse(bb.lower(bb.trace(lambda x, w: x @ w, x="M K", w="K N"))).final


def scheduled(graph, text, target="sm_90", **sizes):
    return bb.emit(graph, sizes, "float16", target, schedule=text).derivation.final


def test_a_long_product_does(product):
    made = by_descriptors(start := scheduled(product, BLOCKS, **LARGE), priced(start))

    assert made.schedule == BLOCKS.replace("K 3\n", "K 3 by descriptors\n")
    assert priced(start).microseconds > LONG


def test_only_moves_behind_the_given_ones_are_made_again(product):
    before = scheduled(product, "block M 128, K 64, N 256\nwarps 8\n", **LARGE)
    start = replayed(before, "stage nest 1 K 3")
    cost = priced(start)

    assert by_descriptors(start, cost, before=before) == by_descriptors(start, cost)
    with pytest.raises(AssertionError, match="does not begin"):
        by_descriptors(before, cost, before=start)


def test_a_short_one_does_not(product):
    start = scheduled(product, BLOCKS, M=256, K=256, N=512)

    assert priced(start).microseconds < LONG
    assert by_descriptors(start, priced(start)) is start


def test_a_target_without_them_does_not(product):
    text = BLOCKS.replace("N 256", "N 128")
    start = scheduled(product, text, "sm_80", **LARGE)

    assert priced(start).microseconds > LONG
    assert by_descriptors(start, priced(start)).schedule == text


def test_of_two_kernels_only_the_long_one_does():
    def chain(x, w, u):
        return (x @ w) @ u

    graph = bb.fuse(bb.lower(bb.trace(chain, x="M K", w="K N", u="N H"))).snapshots[0]
    text = (
        "split; block nest 1 M 128, K 64, N 128; block nest 2 M 128, N 64, H 16\n"
        "warps 8; stage nest 1 K 3; stage nest 2 N 3"
    )
    start = scheduled(graph, text, M=2048, K=8192, N=512, H=16)
    lines = by_descriptors(start, priced(start)).schedule.splitlines()

    assert lines[-2:] == ["stage nest 1 K 3 by descriptors", "stage nest 2 N 3"]


@pytest.mark.parametrize(
    ("warps", "stages", "does"),
    [
        pytest.param(4, 3, True, id="two to a processor in turn"),
        pytest.param(4, 2, False, id="by a grid: its loads run one ahead"),
        pytest.param(8, 3, False, id="by a grid: only one of two would have registers"),
    ],
)
def test_a_shorter_one_does_if_it_takes_turns_then(warps, stages, does):
    """An H200 took 15.9 microseconds for 64 matrices in turn, 19.4 where loads run one ahead."""
    graph = bb.fuse(bb.lower(bb.trace(lambda x, w: x @ w, x="B M K", w="B K N"))).final
    text = f"block M 128, K 64, N 128\nwarps {warps}\nstage nest 1 K {stages}\n"
    start = scheduled(graph, text, B=48, M=512, K=128, N=512)

    assert IN_TURN < time_of(*priced(start).works, start.target.machine).seconds * 1e6 < LONG
    made = by_descriptors(start, priced(start))
    assert (made.schedule == f"{text.rstrip()} by descriptors\n") == does
    assert (made is start) == (not does)


def test_the_shortest_do_not_though_they_would_take_turns():
    graph = bb.fuse(bb.lower(bb.trace(lambda x, w: x @ w, x="B M K", w="B K N"))).final
    text = "block M 128, K 64, N 128\nwarps 4\nstage nest 1 K 3\n"
    start = scheduled(graph, text, B=20, M=512, K=128, N=512)

    assert time_of(*priced(start).works, start.target.machine).seconds * 1e6 < IN_TURN
    assert by_descriptors(start, priced(start)) is start
