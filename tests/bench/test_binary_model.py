"""The second stage: phases are matched with loops, and machine code takes the place of guesses."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blockbuster as bb
from bench.costs.binary import from_data
from bench.costs.binary_model import (
    counts_of,
    fetched_by,
    matched,
    time_of_binary,
    unrolled,
)
from bench.costs.machine_loops import Code, Loop
from blockbuster.costs.work import work
from blockbuster.errors import EmitError

GOLDEN = Path(__file__).parents[1] / "golden" / "binary"
H200 = bb.machine("h200")
SCHEDULE = "block M 64, K 64, N 32\nwarps 4\nstage nest 1 K 3"


def matmul(x, w):
    return x @ w


def works(fn=matmul, schedule=SCHEDULE, inputs=None, sizes=None):
    """What the kernels of a schedule do."""
    program = bb.trace(fn, **(inputs or dict(x="M K", w="K N")))
    graph = bb.fuse(bb.lower(program)).snapshots[-1]
    kernel = bb.emit(graph, sizes or dict(M=512, K=512, N=512), schedule=schedule)
    return work(kernel.derivation.final)


@pytest.fixture(scope="module")
def product():
    (found,) = works()
    return found


@pytest.fixture(scope="module")
def binary():
    """The kernel of the same schedule."""
    return from_data(json.loads((GOLDEN / "matmul-sm_90.json").read_text())["binary"])


def loop(issue, **kinds):
    return Loop("0000", "0010", 0, True, Code(issue, kinds))


def test_a_loop_stands_for_its_phase(product, binary):
    once, each = matched(product.phases, binary, product.warps)
    assert once.issue == binary.straight.issue
    assert each.issue == binary.loops[0].code.issue
    assert each.operations * product.warps == 2 * 64 * 32 * 64


def test_matrix_instructions_read_what_their_operands_hold():
    """Four warps share 64 x 16 and 16 x 256 elements of two bytes; HMMA takes registers."""
    assert 4 * fetched_by("HGMMA 64x256x16") == 2 * 16 * (64 + 256)
    assert fetched_by("HMMA 16x8x16") == 0


def test_a_short_loop_that_finishes_an_unrolled_one_is_left_aside(product, binary):
    long, short = binary.loops[0], loop(9)
    found = matched(product.phases, replace(binary, loops=(long, short)), product.warps)
    assert found == matched(product.phases, binary, product.warps)


def test_a_loop_that_machine_code_has_not_stands_among_what_runs_once(product, binary):
    once, each = matched(product.phases, replace(binary, loops=()), product.warps)
    assert each is None
    assert once is not None


def test_loads_tell_how_often_a_loop_is_unrolled():
    (found, *_) = works(
        lambda x: bb.max(x, axis=0),
        "block M 64, N 8\nwarps 2",
        dict(x="M N"),
        dict(M=4096, N=4096),
    )
    phase = found.phases[1]
    each = 64 * 8 * 2 // 2  # bytes of a warp in a run
    assert unrolled(phase, Code(100, {"loads": 4}, {"loads": 4 * each}), 2) == 4
    assert unrolled(phase, Code(100, {"loads": 1}, {"loads": 4 * each}), 2) == 1  # twice the same
    assert unrolled(phase, Code(100, {"loads": 3}, {"loads": 3 * each}), 2) == 1
    assert unrolled(phase, Code(100, {"loads": 1}, {"loads": each}), 2) == 1
    assert (
        unrolled(phase, Code(100, {"loads": 4}, {"loads": 4 * each}, {"HMMA 16x8x16": 1}), 2) == 4
    )
    assert counts_of(Code(100, {"loads": 4}), 4).issue == 25


def test_matrix_loops_that_do_a_run_twice_are_not_unrolled(product, binary):
    """Loads that are four times as many as wanted, where the products are not."""
    phase, code = product.phases[1], binary.loops[0].code
    assert unrolled(phase, code, product.warps) == 1
    loads = {**code.bytes, "copies": 4 * code.moved("copies")}
    kinds = {**code.kinds, "copies": 4 * code.count("copies")}
    more = replace(code, bytes=loads, kinds=kinds)
    assert unrolled(phase, more, product.warps) == 1
    four = {name: 4 * count for name, count in code.matrix.items()}
    assert unrolled(phase, replace(more, matrix=four), product.warps) == 4


def test_waits_and_lone_warps_add_up():
    drained = Code(9, matrix={"HGMMA 64x64x16": 4}, waits=(1, 0))
    assert counts_of(drained).drained
    assert not counts_of(replace(drained, waits=(1,))).drained
    softmax = Code(9, {"special": 2}, matrix={"HMMA 16x8x16": 4})
    assert counts_of(softmax).drained
    assert not counts_of(replace(softmax, kinds={})).drained


def test_a_wait_for_matrix_units_costs_time(product, binary):
    def time(waits):
        (inner,) = binary.loops
        long = {"HGMMA 64x256x16": 40}
        changed = replace(inner, code=replace(inner.code, matrix=long, waits=waits))
        return time_of_binary(replace(binary, loops=(changed,)), product, H200).seconds

    assert time((0,)) > time((1,))


def test_more_programs_side_by_side_hide_waits(product, binary):
    alone = replace(binary, shared=200_000)
    assert binary.resident(H200.limits) == 6
    assert alone.resident(H200.limits) == 1
    many = works(sizes=dict(M=4096, K=512, N=4096))[0]
    times = [time_of_binary(each, many, H200) for each in (alone, binary)]
    assert times[0].seconds > times[1].seconds
    assert [time.resident for time in times] == [1, 6]


COUNTS = st.dictionaries(
    st.sampled_from(["special", "halves", "shared", "barriers", "shuffles"]), st.integers(1, 2000)
)


@settings(max_examples=30, deadline=None)
@given(kinds=COUNTS, issue=st.integers(1, 3000))
def test_more_instructions_never_take_less_time(product, binary, kinds, issue):
    (inner,) = binary.loops
    before = inner.code
    more = replace(
        before,
        issue=before.issue + issue,
        kinds={kind: before.count(kind) + kinds.get(kind, 0) for kind in (*before.kinds, *kinds)},
        bytes={**before.bytes, "shared": before.moved("shared") + 128 * kinds.get("shared", 0)},
    )
    slower = replace(binary, loops=(replace(inner, code=more),))
    assert (
        time_of_binary(slower, product, H200).seconds
        >= time_of_binary(binary, product, H200).seconds
    )


def test_a_kernel_that_no_processor_holds(product, binary):
    words = "no program of out_kernel fits a processor of h200: it takes 300,000 bytes of shared"
    with pytest.raises(EmitError, match=words):
        time_of_binary(replace(binary, shared=300_000), product, H200)


def test_the_binary_of_another_program(binary):
    schedule, sizes = "block M 64, N 8\nwarps 2", dict(M=512, N=512)
    (found, *_) = works(lambda x: bb.max(x, axis=0), schedule, dict(x="M N"), sizes)
    with pytest.raises(EmitError, match="uses matrix units, its tile program does not"):
        time_of_binary(binary, found, H200)


def test_memory_is_counted_as_the_closed_form_counts_it(product, binary):
    report = time_of_binary(binary, product, H200)
    assert report.bytes["l2"] == product.moved
    assert set(report.busy) == {"hbm", "l2", "shared", "matrix", "vector", "special", "issue"}
