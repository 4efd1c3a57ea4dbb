"""Kernels on the simulated device: what must hold whatever the order of events."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blockbuster.costs.steps import Rates
from blockbuster.costs.work import work_of
from blockbuster.machines import machine
from blockbuster.simulator.coefficients import REACHED
from tests.simulator.kernels import (
    IDEAL,
    PROGRAMS,
    RAGGED,
    WIDE,
    h200,
    kernel,
    lonely,
    run,
    unshared,
    without_latency,
)

names = st.sampled_from(sorted(PROGRAMS))
all_kernels = pytest.mark.parametrize("name", PROGRAMS)
both_sizes = pytest.mark.parametrize("sizes", [WIDE, RAGGED], ids=["even", "ragged"])


def works(made):
    return work_of(made.tile_program, made.sizes, made.target)


def totals(made, on, coefficients):
    """Seconds of all units of a machine that the closed form counts."""
    found = Counter()
    for work in works(made):
        rates = Rates(work, on, coefficients, {})
        for phase in work.phases:
            if phase.runs:
                for unit, seconds in rates.computing(phase).items():
                    found[unit] += seconds / on.processors
            moved = (phase.copied + phase.fetched) * work.crowded
            found["shared"] += moved / on.tier("shared").bandwidth
    return {unit: seconds for unit, seconds in found.items() if seconds}


@all_kernels
@both_sizes
def test_bytes_are_those_that_programs_move(name, sizes):
    made = kernel(name, sizes)
    report = run(made)
    loaded = sum(sum(work.loaded.values()) for work in works(made))
    stored = sum(sum(work.stored.values()) for work in works(made))

    assert report.bytes["l2"] == loaded + stored
    assert stored <= report.bytes["hbm"] <= loaded + stored


@all_kernels
def test_memory_is_read_once_where_the_cache_holds_everything(name):
    made = kernel(name, dict(RAGGED, M=333))  # causal: every key is seen by some row
    seen, expected = set(), 0
    for work in works(made):
        expected += sum(work.stored.values())
        expected += sum(work.unique[array] for array in work.loaded if array not in seen)
        seen |= {*work.loaded, *work.stored}

    assert run(made).bytes["hbm"] == expected
    assert run(made, warm=True).bytes["hbm"] == 0


@all_kernels
@both_sizes
def test_busy_time_is_the_work_over_the_rate(name, sizes):
    made, on = kernel(name, sizes), machine("h200")
    report = run(made, on)
    seconds = report.time_us / 1e6
    memory, cache = on.tiers[:2]

    for unit, expected in totals(made, on, REACHED).items():
        assert report.busy[unit] * seconds == pytest.approx(expected)
    stored = sum(sum(work.stored.values()) for work in works(made))  # stays in the cache
    loaded = (report.bytes["hbm"] - stored) / (memory.bandwidth * REACHED.memory)
    assert report.busy["hbm"] * seconds == pytest.approx(loaded)
    moved = report.bytes["l2"] / (cache.bandwidth * REACHED.cache)
    assert report.busy["l2"] * seconds >= moved * (1 - 1e-9)  # whole sectors
    assert all(0 <= part <= 1 + 1e-9 for part in report.busy.values())


@all_kernels
def test_use_over_time_adds_up_to_busy(name):
    report = run(kernel(name))

    for resource, parts in report.use.items():
        assert sum(parts) / len(parts) == pytest.approx(report.busy[resource])


def test_the_cache_never_gives_more_than_it_has():
    """What waits for its turn at a port takes nothing yet."""
    report = run(kernel("matmul", dict(M=512, K=1024, N=1024)))
    assert 0.5 < max(report.use["l2"]) <= 1 + 1e-9


@given(name=names, sizes=st.sampled_from([WIDE, RAGGED]), processors=st.integers(1, 40))
@settings(max_examples=20, deadline=None)
def test_time_lies_between_its_bounds(name, sizes, processors):
    made, on = kernel(name, sizes), without_latency(h200(processors=processors))
    report = run(made, on, launch="graph", coefficients=IDEAL)
    kernels = len(works(made))
    running = report.time_us / 1e6 - kernels * on.launch.graph
    units = totals(made, on, IDEAL)
    memory, cache = (report.busy[t.name] * report.time_us / 1e6 for t in on.tiers[:2])

    assert running >= max(memory, cache, *units.values()) * (1 - 1e-9)
    together = memory + (cache + sum(units.values())) * processors
    assert running <= together * (1 + 1e-9)


@all_kernels
def test_the_same_again_is_the_same_report(name):
    assert run(kernel(name, RAGGED)) == run(kernel(name, RAGGED))


GRAINS = {
    "matmul": dict(M=1024, N=2048, K=1024),
    "attention": dict(WIDE, H=2, M=2048, N=2048),
    "causal": dict(WIDE, H=4, M=2048, N=2048),
    "softmax": dict(M=500, N=8192),
}


@pytest.mark.parametrize("name", GRAINS)
def test_groups_of_iterations_move_and_compute_the_same(name):
    """The error of coarse grain, against the finest: under 15% where loops have four groups."""
    made = kernel(name, GRAINS[name])
    fine, *coarse = (run(made, group=group, launch="graph") for group in (1, 2, 4))

    for report in coarse:
        assert {**report.bytes, "hbm": 0} == {**fine.bytes, "hbm": 0}
        # which blocks the cache still holds depends on the order in which groups come
        assert report.bytes["hbm"] == pytest.approx(fine.bytes["hbm"], rel=0.02)
        assert report.time_us == pytest.approx(fine.time_us, rel=0.15)


# one thing more, or less ------------------------------------------------------------

faster = {
    "memory": h200(tiers={"hbm": {"bandwidth": 8.6e12}}),
    "cache": h200(tiers={"l2": {"bandwidth": 2e13}}),
    "latency": without_latency(h200()),
    "special": h200(special=1e15),
    "issue": h200(issue=1e15),
}  # fmt: skip


@all_kernels
@pytest.mark.parametrize("what", faster)
def test_a_faster_machine_is_not_slower(name, what):
    made = kernel(name)

    assert run(made, faster[what]).time_us <= run(made, h200()).time_us * (1 + 1e-9)


@pytest.mark.parametrize("name", ["matmul", "gelu", "attention", "softmax"])
def test_more_programs_are_not_faster(name):
    on, tiles = h200(processors=8), {"M": 16}  # else each number of rows has blocks of its own
    made = [kernel(name, dict(WIDE, M=rows), tiles=tiles) for rows in (64, 256, 1024)]
    times = [run(one, on).time_us for one in made]

    # what one program has asked for is there for others at once: some wait for less than alone
    assert times[0] <= times[1] * 1.15
    assert times[1] <= times[2]


def test_a_smaller_cache_reads_memory_again():
    made = kernel("attention", dict(WIDE, H=1, M=2048, N=2048))
    small, usual = (
        lonely(h200(processors=4, tiers={"l2": {"bytes": size}})) for size in (1 << 17, 1 << 22)
    )

    assert run(made, small).bytes["hbm"] > 2 * run(made, usual).bytes["hbm"]
    assert run(made, small).bytes["l2"] == run(made, usual).bytes["l2"]


def test_data_that_all_read_needs_room_in_each_part_of_the_cache():
    made = kernel("attention", dict(WIDE, H=1, M=2048, N=2048))
    room = int(1.3 * 2 * 2048 * 64 * 2)  # the keys and values of the head, and some more
    whole, halves = (
        lonely(h200(processors=2, tiers={"l2": {"bytes": room, "parts": parts}}))
        for parts in (1, 2)
    )

    assert run(made, whole).bytes["hbm"] < run(made, halves).bytes["hbm"]


# schedules of programs --------------------------------------------------------------


def makespan(lengths, slots):
    """When all are done, if each in turn takes the slot that is free first."""
    free = [0.0] * slots
    for length in lengths:
        at = free.index(min(free))
        free[at] += length
    return max(free)


def alone(made, on, **options):
    """The durations of the programs of a kernel, where nothing is shared."""
    report = run(made, on, **options)
    spans = {}
    for event in report.timeline:
        if event.program >= 0:
            start, end = spans.get(event.program, (event.start, event.end))
            spans[event.program] = min(start, event.start), max(end, event.end)
    return [spans[program][1] - spans[program][0] for program in sorted(spans)]


@pytest.mark.parametrize("processors", [1, 2, 3, 7])
@pytest.mark.parametrize("name", ["causal", "window", "matmul"])
def test_programs_are_list_scheduled(name, processors):
    made = kernel(name, dict(WIDE, H=2, M=512, N=512))
    lengths = alone(made, unshared(1000), coefficients=IDEAL)
    report = run(made, unshared(processors), launch="graph", coefficients=IDEAL)

    assert len(lengths) == works(made)[0].programs
    expected = makespan(lengths, processors) + machine("h200").launch.graph * 1e6
    assert report.time_us == pytest.approx(expected, rel=1e-6)


def test_processors_take_programs_in_the_order_of_the_grid():
    report = run(kernel("causal", dict(WIDE, M=2048, N=2048)), h200(processors=4))
    starts = {}
    for event in report.timeline:
        if event.program >= 0:
            starts.setdefault(event.program, event.start)

    assert [starts[p] for p in sorted(starts)] == sorted(starts.values())
