"""Schedules of products: bytes under way, tiles of split ones, kernels with blocks of their own."""

from functools import cache

import pytest

import blockbuster as bb
from blockbuster.emit.schedule.script import parsed
from blockbuster.selection.decisions.under_way import under_way

PRODUCT = dict(x="M K", w="K N")


@cache
def product():
    return bb.fuse(bb.lower(bb.trace(lambda x, w: x @ w, **PRODUCT))).final


def scheduled(text, **sizes):
    return bb.emit(product(), sizes, "float16", schedule=text).derivation.final


def stages(made):
    return [line.args["stages"] for line in parsed(made.schedule) if line.move.name == "stage"]


CUT = "block M 16, K 64, N 64; warps 4; stage nest 1 K 3"


def test_few_programs_have_more_under_way():
    few = under_way(scheduled(CUT, M=16, K=4096, N=4096))  # 64 programs, 10 kB an iteration
    wide = under_way(scheduled("block M 128, K 128, N 128; warps 8; stage nest 1 K 3",
                               M=128, K=4096, N=4096))  # fmt: skip
    many = under_way(scheduled(CUT, M=512, K=4096, N=4096))

    assert [stages(few), stages(wide), stages(many)] == [[6], [3], [3]]


def test_a_loop_of_few_iterations_has_all_its_loads_under_way():
    made = under_way(scheduled(CUT, M=16, K=128, N=4096))
    assert stages(made) == [3], "two iterations"
    made = under_way(scheduled(CUT, M=16, K=256, N=4096))
    assert stages(made) == [5], "four"


def chain(x, w, u):
    return (x @ w) @ u


def test_stages_leave_room_for_the_next_kernel():
    """Without dependent launches each kernel has as many bytes under way as it can."""
    graph = bb.fuse(bb.lower(bb.trace(chain, x="M K", w="K N", u="N H"))).snapshots[0]
    text = """split; block nest 1 M 64, K 128, N 32; block nest 2 M 64, N 128, H 32; warps 4
    stage nest 1 K 3; stage nest 2 N 3"""
    sizes = dict(M=512, K=1024, N=512, H=256)
    alone, beside = (
        under_way(bb.emit(graph, sizes, schedule=text + more).derivation.final)
        for more in ("", "; overlap")
    )

    assert stages(alone) == [5, 5]
    assert sum(stages(beside)) < sum(stages(alone))


@pytest.mark.parametrize(
    ("sizes", "tall"),
    [(dict(M=1024, K=1024, N=1024), True), (dict(M=256, K=1024, N=256), False)],
)
def test_split_products_have_tall_tiles_where_these_are_enough(sizes, tall):
    text = bb.emit(product(), sizes, "float32").schedule
    assert "split-float" in text
    assert ("block M 128, K 32, N 32\nwarps 4\nstage nest 1 K 3\n" in text) == tall


def gated(x, w, v, u):
    n = bb.rms_norm(x)
    return (bb.silu(n @ w) * (n @ v)) @ u


@cache
def network():
    graph = bb.fuse(bb.lower(bb.trace(gated, x="M D", w="D K", v="D K", u="K D"))).snapshots[0]
    return bb.emit(graph, dict(M=128, D=256, K=512), "float16", chunks={}).derivation.final


def test_what_is_summed_before_the_loop_is_not_made_in_every_program():
    assert "sink" not in network().schedule
