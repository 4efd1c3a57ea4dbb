"""Steps half as long, with more stages, for kernels of few programs."""

from dataclasses import replace

import pytest

import blockbuster as bb
from blockbuster.emit.schedule.script import parsed
from blockbuster.selection.decisions import under_way as module
from blockbuster.selection.decisions.under_way import bytes_ahead, finer_steps
from blockbuster.selection.priors import PRIORS
from tests.selection.test_products import scheduled

LONG = "block M 64, K 256, N 64; warps 4; stage nest 1 K 3"
SIZES = dict(M=128, K=4096, N=4096)  # 128 programs


def cut(made, dim="K", nest=1):
    (lanes,) = (b.lanes for b in made.draft.nests[nest - 1].blocks if b.dim == dim)
    (stages,) = (line.args["stages"] for line in parsed(made.schedule) if line.move.name == "stage")
    return lanes, stages


def test_a_long_step_becomes_two_with_as_many_bytes_under_way():
    before = scheduled(LONG, **SIZES)
    after = finer_steps(before)
    assert (cut(before), cut(after)) == ((256, 3), (128, 5))
    assert "block M 64, K 128, N 64" in after.schedule
    (line,) = (line for line in parsed(after.schedule) if line.move.name == "stage")
    assert bytes_ahead(after, line) * 4 == bytes_ahead(before, line) * 2 >= PRIORS.bytes_under_way


def test_two_steps_are_four_whose_loads_are_all_under_way():
    assert cut(finer_steps(scheduled(LONG, M=128, K=512, N=4096))) == (128, 4)


def test_steps_are_cut_once():
    once = finer_steps(scheduled(LONG, **SIZES))
    assert PRIORS.shortest_step == 128
    assert finer_steps(once) is once


def test_where_processors_have_several_programs_steps_stay_long():
    many = scheduled(LONG, M=512, K=4096, N=4096)
    assert finer_steps(many) is many


def test_steps_stay_long_where_fewer_bytes_would_be_under_way(monkeypatch):
    before = scheduled(LONG, **SIZES)
    monkeypatch.setattr(module, "MOST", 3)
    assert finer_steps(before) is before


def test_steps_stay_long_where_the_closed_form_says_that_shorter_ones_cost_more(monkeypatch):
    before = scheduled(LONG, **SIZES)
    monkeypatch.setattr(module, "PRIORS", replace(PRIORS, equal_time=0.9))
    assert finer_steps(before) is before


CHUNKED = "block M 16, K 256, N 64; chunk nest 1 K 2 all at once; warps 4; stage nest 1 K 4"


def test_chunks_keep_their_number():
    before = scheduled(CHUNKED, M=16, K=4096, N=4096)
    after = finer_steps(before)
    assert cut(after) == (128, 6)
    assert "chunk nest 1 K 2 all at once" in after.schedule


@pytest.mark.parametrize("dim", ["M", "N"])
def test_other_blocks_of_as_many_lanes_stay(dim):
    sizes = dict(M=256, K=2048, N=2048)
    lanes = dict(M=16, N=16) | {dim: 256}
    text = f"block M {lanes['M']}, K 256, N {lanes['N']}; warps 8; stage nest 1 K 2"
    made = finer_steps(scheduled(text, **sizes))
    assert cut(made, dim)[0] == 256


LARGE = "block M 128, K 128, N 128; warps 8; stage nest 1 K 3"


def test_a_large_step_with_one_dot_is_halved_from_fewer_lanes_on():
    before = scheduled(LARGE, M=2048, K=4096, N=1024)  # 128 programs, 64 kB a step
    small = scheduled(LARGE.replace("N 128", "N 64"), M=2048, K=4096, N=512)
    assert cut(finer_steps(before)) == (64, 5)
    assert finer_steps(small) is small


def test_a_large_step_with_two_dots_is_not():
    graph = bb.fuse(bb.lower(bb.trace(gated, x="M K", w="K N", v="K N"))).final
    text = "block M 16, K 128, N 128; warps 4; stage nest 1 K 3"
    sizes = dict(M=16, K=4096, N=8192)  # 68 kB a step
    before = bb.emit(graph, sizes, "float16", schedule=text).derivation.final
    (line,) = (line for line in parsed(before.schedule) if line.move.name == "stage")
    assert bytes_ahead(before, line) >= PRIORS.large_step_bytes
    assert finer_steps(before) is before


def gated(x, w, v):
    return bb.silu(x @ w) * (x @ v)
