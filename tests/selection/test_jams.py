"""Kernels that take two blocks of rows: which could, when that pays, and for which sizes."""

from dataclasses import replace
from functools import cache

import pytest

import blockbuster as bb
from blockbuster.emit.schedule.jam import Jam
from blockbuster.emit.schedule.scheduled import unscheduled
from blockbuster.emit.schedule.script import replayed
from blockbuster.emit.schedule.site import Site
from blockbuster.emit.target.targets import target_of
from blockbuster.emit.tile.array_dtypes import given_by, typed_for_gpu
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.machines import machine
from blockbuster.rules import safe
from blockbuster.selection.contest import best_schedule
from blockbuster.selection.decisions.default_schedule import default_schedule
from blockbuster.selection.nearby.jams import (
    jams_near,
    moves_too_much,
    pairs_in,
    pays,
)
from blockbuster.selection.price import priced
from blockbuster.selection.priors import PRIORS

BLOCKS = "block M 128, D' 128 whole, N 64, D 128 whole\nfactor nest 1"
MATMUL = "block M 128, K 64, N 128"


def attention(q, k, v):
    return bb.softmax(q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5, axis=-1) @ v


def matmul(x, w):
    return x @ w


@cache
def bare(fn, names, **sizes):
    graph = safe(bb.fuse(bb.lower(bb.trace(fn, **dict(names)))).final)
    program = typed_for_gpu(graph, lower_to_tiles(graph), given_by("float16"))
    return unscheduled(program, sizes, target_of("sm_90"))


HEADS = (("q", "H M D"), ("k", "H N D"), ("v", "H N D"))


def heads(m, d=128):
    return bare(attention, HEADS, H=16, M=m, N=m, D=d)


@cache
def chosen(m, d=128):
    program = heads(m, d)
    return best_schedule(default_schedule(program.start, program.known, device=program.target))


@pytest.mark.parametrize(("m", "d", "two"), [(4096, 128, True), (4096, 64, False),
                                              (1024, 128, False)])  # fmt: skip
def test_two_blocks_where_they_are_faster_on_an_h200(m, d, two):
    """A program for 256 rows leaves half of the processors idle at 1024 positions."""
    assert ("jam nest 1 M" in chosen(m, d).schedule) == two


def test_a_product_alone_has_no_use_for_them():
    program = replayed(bare(matmul, (("x", "M K"), ("w", "K N")), M=4096, K=4096, N=4096), MATMUL)
    assert list(jams_near(program)) == []
    assert [*map(str, jams_near(replayed(heads(4096), BLOCKS)))] == ["jam nest 1 M"]


def test_a_computed_operand_alone_waits_for_no_dot():
    sizes = dict(M=4096, K=4096, N=4096)
    program = replayed(bare(activated, (("x", "M K"), ("w", "K N")), **sizes), MATMUL)

    assert list(jams_near(program)) == []


def activated(x, w):
    return bb.maximum(x, 0) @ w


def test_sizes_tell_whether_blocks_come_in_pairs():
    program = replayed(heads(4096), BLOCKS)
    two = replayed(program, "jam nest 1 M")
    ragged = replayed(heads(4096 + 128), BLOCKS)

    assert list(pairs_in(program)) == []
    assert list(pairs_in(two)) == [("M", 256)]
    assert Jam().why_not(ragged, Site(1, "M"))


def test_they_pay_if_they_are_faster_for_certain_and_load_less():
    settings = "\nwarps 8\nstage nest 1 N 3"
    one, two = (
        priced(replayed(heads(4096), BLOCKS + more + settings)) for more in ("", "\njam nest 1 M")
    )
    assert pays(two, one, 1.05)
    assert not pays(two, one, one.microseconds / two.microseconds)
    assert not pays(replace(two, works=one.works), one, 1.05)


def test_two_blocks_load_half_as_much_at_least_so_many_kernels_need_not_be_tried():
    one, two = (
        priced(replayed(heads(4096), f"{BLOCKS}{more}\nwarps 8")) for more in ("", "\njam nest 1 M")
    )
    assert one.moved > two.moved >= one.moved - sum(one.works[0].loaded.values()) / 2
    assert not moves_too_much(one, 1, one)
    assert moves_too_much(replace(one, works=one.works * 6), 1, replace(one, works=one.works * 6))


def test_their_room_is_what_compilers_make_do_with():
    """255 registers and 28 bytes spilled, outside of the loop, by the assembler of CUDA 13."""
    made = replayed(heads(4096), f"{BLOCKS}\njam nest 1 M\nwarps 8\nstage nest 1 N 3")
    (footprint,) = (work.footprint for work in priced(made).works)
    wanted = footprint.registers / footprint.available(machine("h200"))
    assert 1.0 < wanted < PRIORS.jammed_room


def test_a_class_of_sizes_has_pairs_or_not():
    program = bb.trace(attention, **dict(HEADS))
    calls = [
        bb.compile(program, dict(H=16, M=m, N=4096, D=128), machine="h200", library=False)
        for m in (4096, 4224)
    ]
    texts = ["M_half" in call.plan.source for call in calls]
    assert texts == [True, False]
