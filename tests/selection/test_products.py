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


def split(fn, columns, **inputs):
    """The microseconds of a split product of 1024 in all dims, with so many columns to a tile."""
    graph = bb.fuse(bb.lower(bb.trace(fn, **inputs))).final
    text = f"split-float nest 1\nblock M 128, K 32, N {columns}\nwarps 4\nstage nest 1 K 3"
    kernel = bb.emit(graph, dict(M=1024, K=1024, N=1024), "float32", schedule=text)
    return kernel.cost("h200").time_us


def test_columns_wait_for_banks_where_they_lie_along_memory():
    """On an H200, tiles of 32, 64 and 128 columns take 324, 313 and 589 microseconds with weights
    of 2048 x 2048 as ``x @ w`` reads them; as ``x @ w.T`` does 210 with 64 columns.
    """
    turned = [split(lambda x, w: x @ w, columns, **PRODUCT) for columns in (32, 64, 128)]
    along = [split(lambda x, w: x @ w.T, columns, x="M K", w="N K") for columns in (32, 64, 128)]

    assert all(one > other for one, other in zip(turned, along, strict=True))
    assert turned[2] - along[2] > 3 * (turned[0] - along[0])


@pytest.mark.parametrize(
    ("fn", "inputs", "columns"),
    [
        (lambda x, w: x @ w, PRODUCT, "N 32"),
        (lambda x, w: x @ w.T, dict(x="M K", w="N K"), "N 128"),
    ],
)
def test_tiles_of_split_products_are_wide_where_nothing_is_turned(fn, inputs, columns):
    graph = bb.fuse(bb.lower(bb.trace(fn, **inputs))).final
    text = bb.emit(graph, dict(M=2048, K=2048, N=2048), "float32").schedule

    assert text.startswith(f"split-float nest 1\nblock M 128, K 64, {columns}\n")


def gated(x, w, v, u):
    n = bb.rms_norm(x)
    return (bb.silu(n @ w) * (n @ v)) @ u


@cache
def network():
    graph = bb.fuse(bb.lower(bb.trace(gated, x="M D", w="D K", v="D K", u="K D"))).snapshots[0]
    return bb.emit(graph, dict(M=128, D=256, K=512), "float16", chunks={}).derivation.final


def test_what_is_summed_before_the_loop_is_not_made_in_every_program():
    assert "sink" not in network().schedule
