"""``bb.simulate``: what it takes, what it refuses, and what a report says."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.costs.tiered import time_of
from blockbuster.costs.work import work_of
from blockbuster.machines import NAMES, machine
from blockbuster.selection.plans.plan import Plan
from blockbuster.simulator import simulated
from blockbuster.simulator.coefficients import REACHED, UNWRITTEN
from tests.simulator.kernels import (
    IDEAL,
    WIDE,
    h200,
    kernel,
    run,
    softmax,
    unshared,
    without_latency,
)

LONG = dict(M=64, N=64, K=8192)  # of a matmul in chunks: two kernels
GPUS = [name for name in NAMES if machine(name).kind != "cpu"]


@pytest.mark.parametrize("name", GPUS)
def test_on_every_gpu(name):
    report = bb.simulate(kernel("attention"), name)

    assert report.machine == name
    assert report.time_us > machine(name).launch.plain * 1e6
    assert set(report.bytes) == {tier.name for tier in machine(name).tiers[:3]}
    assert report.critical in (*report.busy, "latency")


def test_the_report_reads_and_is_json():
    report = bb.simulate(kernel("matmul"), launch="graph")
    data = json.loads(report.to_json())

    head = f"{report.time_us:,.1f} us on h200 (simulator, cold cache), limited by "
    assert str(report).startswith(head)
    assert data["time_us"] == report.time_us
    assert len(data["timeline"]) == len(report.timeline)
    assert all(0 <= e["start"] <= e["end"] <= report.time_us for e in data["timeline"])
    assert report.assumed[:2] == (
        "the cache is empty before the first kernel",
        "launches: graph",
    )


def test_one_program_takes_what_its_steps_take():
    made = kernel("gelu", dict(M=1, N=128))
    on, report = machine("h200"), run(kernel("gelu", dict(M=1, N=128)), launch="graph")
    begin, load = on.launch.graph + REACHED.start, on.memory.latency

    assert report.time_us / 1e6 > begin + load
    assert report.time_us / 1e6 < begin + load + 1e-6
    assert report.bytes["hbm"] == 2 * 128 * 2
    assert len([e for e in report.timeline if e.program == 0]) == 2  # its loads, and the rest
    assert made.tile_program is not None


def test_a_lone_program_agrees_with_the_closed_form():
    for name, sizes in ONE_PROGRAM.items():
        made = kernel(name, sizes)
        assert len(made.tile_program.nests) == 1
        agrees(made, without_latency(h200()))


ONE_PROGRAM = {
    "matmul": dict(M=64, N=64, K=8192),
    "attention": dict(H=1, M=64, N=4096, D=64, L=64),
    "softmax": dict(M=1, N=2048),  # four warps: of more, one computes while others wait for loads
    "gelu": dict(M=1, N=4096),
}


@pytest.mark.parametrize(
    ("name", "sizes", "tiles"),
    [
        ("matmul", dict(M=128 * 12, N=256 * 11, K=8192), dict(M=128, N=256)),
        ("attention", dict(WIDE, H=8, M=1024, N=4096), {}),
        ("causal", dict(WIDE, M=1024, N=1024), {}),
        ("gelu", dict(M=1000, N=4096), {}),
    ],
)
def test_a_wave_that_computes_agrees_with_the_closed_form(name, sizes, tiles):
    # of a causal loop in two parts, each waits for its first tiles
    agrees(
        kernel(name, sizes, tiles=tiles), unshared(132), within=0.12 if name == "causal" else 0.06
    )


def agrees(made, on, within=0.06):
    """A kernel without contention takes as long, and moves as much, in both models."""
    simulated = run(made, on, launch="graph", coefficients=IDEAL)
    (work,) = work_of(made.tile_program, made.sizes, made.target)
    closed = time_of(work, on, coefficients=IDEAL)

    assert simulated.time_us / 1e6 - on.launch.graph == pytest.approx(closed.seconds, rel=within)
    assert simulated.bytes == closed.bytes


@pytest.mark.parametrize(
    ("rows", "waves", "tail"), [(6, 0.5, 0.5), (12, 1.0, 0.0), (18, 1.5, 0.25)]
)
def test_waves_and_tail_are_those_of_the_closed_form(rows, waves, tail):
    """Programs of 128 x 256, of which one fits a processor: rows of 11 on 132 processors."""
    made = kernel("matmul", dict(M=128 * rows, N=256 * 11, K=4096), tiles=dict(M=128, N=256))
    simulated = run(made, unshared(132), launch="graph", coefficients=IDEAL)
    (work,) = work_of(made.tile_program, made.sizes, made.target)
    closed = time_of(work, unshared(132), coefficients=IDEAL)

    assert simulated.waves == (closed.waves,) == (waves,)
    assert closed.tail == pytest.approx(tail, abs=0.03)
    assert simulated.tail == pytest.approx((tail,), abs=0.03)
    assert f"kernel 1: {waves:.2g} waves, tail" in str(simulated)


@pytest.mark.parametrize("launch", ["plain", "graph", "dependent"])
def test_kernels_follow_one_another(launch):
    made = kernel("matmul", LONG, chunks={"K": 16})
    on, kernels = machine("h200"), len(made.tile_program.nests)
    assert kernels > 1
    report = bb.simulate(made, on, launch=launch)
    launches = [e for e in report.timeline if e.resource == "launch"]
    lasting = [(e.end - e.start) / 1e6 - REACHED.start for e in launches]
    ends = [max(e.end for e in report.timeline if e.kernel == k) for k in range(kernels)]

    assert [e.kernel for e in launches] == list(range(kernels))
    assert [e.start for e in launches[1:]] == pytest.approx(ends[:-1])
    first = on.launch.plain if launch == "plain" else on.launch.graph
    assert lasting[0] == pytest.approx(first)
    if launch != "plain":
        later = [on.launch.dependent] * (kernels - 1)  # they overlap, as is usual here
        assert lasting[1:] == pytest.approx(later, abs=1e-12)


def test_the_host_launches_while_a_kernel_runs():
    made = kernel("matmul", LONG, chunks={"K": 16})
    slow = replace(machine("h200"), launch=replace(machine("h200").launch, plain=1e-3))
    plain, usual = bb.simulate(made, slow), bb.simulate(made, slow, launch="graph")

    assert plain.time_us < usual.time_us + 1000 * len(made.tile_program.nests)


def test_what_a_kernel_stored_the_next_finds_in_the_cache():
    made = kernel("matmul", LONG, chunks={"K": 16})
    inputs, output, parts = 2 * 64 * 8192 * 2, 64 * 64 * 2, 16 * 64 * 64 * 4

    assert run(made).bytes["hbm"] == inputs + output + parts  # written, and not read again


def test_warm_and_cold():
    made = kernel("softmax", dict(M=256, N=4096))

    warm, empty, flushed = (run(made, **{state: True}) for state in ("warm", "group", "flushed"))

    assert warm.bytes["hbm"] == 0
    written = flushed.bytes["hbm"] / empty.bytes["hbm"] - 1  # each byte drives another one out
    assert written == pytest.approx(UNWRITTEN, rel=1e-3)
    assert warm.time_us < empty.time_us < flushed.time_us


def test_ten_thousand_programs():
    made = kernel("softmax", dict(M=10_000, N=1024), tiles={"M": 1})
    report = run(made)

    assert len({e.program for e in report.timeline if e.program >= 0}) == 10_000
    assert report.bytes["l2"] == 2 * 2 * 10_000 * 1024


def test_an_empty_loop_ends_at_once():
    """Rows after the last key of a causal kernel would walk no block at all."""
    made = kernel("causal", dict(WIDE, M=64, N=1024))

    assert run(made).bytes["l2"] < run(kernel("attention", dict(WIDE, M=64, N=1024))).bytes["l2"]


def test_a_plan():
    jitted = bb.jit(softmax)
    plan = bb.compile(bb.trace(softmax, x="M N"), {"M": 512, "N": 1024}, "float16", "h200").plan
    assert isinstance(plan, Plan)
    assert jitted is not None
    report = bb.simulate(plan)

    assert report.bytes["hbm"] == 2 * 2 * 512 * 1024


def test_a_plan_on_the_cpu_has_no_kernels():
    plan = bb.jit(softmax).plan_for(np.ones((8, 8), np.float32))

    with pytest.raises(ValueError, match="planned for NumPy on the CPU"):
        bb.simulate(plan)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (dict(launch="fast"), "unknown launch 'fast'"),
        (dict(machine="h300"), "h300"),
        (dict(machine="cpu"), "cpu runs no kernels: they are for GPUs"),
        (dict(machine=h200(compute={"vector": {"float32": 1e12}})), "no rate of matrix units"),
        (
            dict(machine=replace(h200(), limits=replace(h200().limits, shared_per_program=1000))),
            "bytes of shared memory",
        ),
    ],
)
def test_refusals_say_why(change, words):
    with pytest.raises(ValueError, match=words):
        bb.simulate(kernel("matmul"), **change)


def test_sizes_of_zero_are_refused():
    made = replace(kernel("matmul"), sizes={"M": 0, "N": 256, "K": 192})

    with pytest.raises(ValueError, match="M has size 0"):
        bb.simulate(made)


def test_missing_sizes_are_refused():
    made = replace(kernel("matmul"), sizes={"M": 256, "N": 256})

    with pytest.raises(ValueError, match="no size given for K"):
        bb.simulate(made)


@pytest.mark.parametrize("what", ["matmul", None, softmax])
def test_only_kernels_and_plans(what):
    with pytest.raises(TypeError, match="expected a kernel"):
        bb.simulate(what)


def test_a_kernel_without_a_tile_program():
    with pytest.raises(ValueError, match="emit it again"):
        bb.simulate(replace(kernel("matmul"), tile_program=None))


def test_ideal_coefficients_are_no_slower():
    made = kernel("attention")

    assert run(made, coefficients=IDEAL).time_us < run(made).time_us


SCRIPT = """
from tests.simulator.kernels import kernel, run
print(hash(run(kernel("causal")).to_json()) and run(kernel("causal")).to_json())
"""


def test_two_processes_say_the_same():
    root = Path(__file__).parents[2]
    said = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, cwd=root,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(root)},
        ).stdout
        for seed in ("1", "2")
    ]  # fmt: skip

    assert said[0] == said[1]
    assert json.loads(said[0])["timeline"]


def test_a_plan_of_several_files():
    """Each file is given the sizes of the whole plan, also those of dims that it has not."""

    def stacked(x, w, y, u):
        return bb.concat([bb.exp(x) @ w, y], axis=0) @ u

    dims = dict(x="M K", w="K N", y="P N", u="N J")
    sizes = {"M": 64, "K": 32, "N": 48, "P": 16, "J": 80}
    plan = bb.compile(bb.trace(stacked, **dims), sizes, "float16", "h200", check=False).plan
    first, second = plan.files
    assert "P" in first.considered.best.scheduled.known

    for report in (plan.cost(), bb.simulate(plan)):
        assert report.bytes["hbm"] >= 2 * (64 * 32 + 32 * 48 + 48 * 80 + 80 * 80)
        assert any("concat" in said for said in report.assumed)
    alone = [bb.simulate(file.considered.best.scheduled).time_us for file in (first, second)]
    assert min(alone) > 0


def test_kernels_that_write_parts_of_one_array_lose_no_bytes():
    sizes = dict(M=256, N=256, P=256)
    graph = bb.lower(bb.trace(lambda x, y: bb.concat([x, y], axis=-1), x="M N", y="M P"))
    made = bb.emit(bb.fuse(graph).final, sizes)
    inputs, output = 2 * 2 * 256 * 256, 2 * 256 * 512

    assert len(made.tile_program.nests) == 2
    assert bb.simulate(made).bytes["hbm"] == made.cost().bytes["hbm"] == inputs + output
    assert bb.simulate(made, warm=True).bytes["hbm"] == 0


def test_no_kernel_at_all():
    with pytest.raises(ValueError, match="no kernel that could be simulated"):
        simulated([], machine("h200"))


def test_a_machine_of_another_target():
    made = kernel("gelu")
    words = "compiled for sm_90: what a compiler would make of it for sm_80 is not known"

    for report in (bb.simulate(made, "a100"), made.cost("a100")):
        assert report.assumed[-1] == words
    for report in (bb.simulate(made, "h100"), made.cost("h100")):
        assert words[:12] not in str(report)


def test_kernels_that_read_parts_of_one_array_read_all_of_it():
    def halves(x, y):
        return bb.concat([bb.exp(x[:, :256]), y, bb.exp(x[:, 256:])], axis=-1)

    sizes = dict(M=256, N=512, P=256)
    graph = bb.lower(bb.trace(halves, x="M N", y="M P"))
    made = bb.emit(bb.fuse(graph).final, sizes)

    assert len(made.tile_program.nests) == 3
    assert bb.simulate(made).bytes["hbm"] == 2 * 2 * 256 * 768
