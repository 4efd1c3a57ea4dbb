"""Times of the closed form: bounds, order, and what each mechanism does."""

import json
import math
from dataclasses import dataclass, replace
from functools import cache

import pytest

import blockbuster as bb
from bench.schedules.measure import emitted
from bench.schedules.programs import BY_NAME
from blockbuster.costs import cost, time_of, work_of
from blockbuster.costs.coefficients import FITTED
from blockbuster.costs.footprint import Footprint
from blockbuster.costs.report import LATENCY
from blockbuster.costs.steps import Rates, Step
from blockbuster.costs.tiered import passed
from blockbuster.machines import machine

H200 = machine("h200")
NAMES = ("attention", "causal-attention.narrow", "matmul", "few-rows-matmul", "layer-norm-matmul",
         "decode", "chain-one-kernel", "row-softmax")  # fmt: skip
ORDER = 1.02
"""How many times longer unequal programs may take in another order, each of them being shorter."""


@cache
def kernel(name, schedule=None):
    case, _, word = name.partition(".")
    text = schedule or (BY_NAME[case].alternatives()[word] if word else BY_NAME[case].text)
    return emitted(BY_NAME[case], text, BY_NAME[case].sizes)


@cache
def works(name, schedule=None):
    made = kernel(name, schedule)
    return work_of(made.tile_program, made.sizes, made.target)


def seconds(name, on=H200, schedule=None):
    return sum(time_of(one, on).seconds for one in works(name, schedule))


def faster(tier, times=2.0):
    tiers = (
        replace(t, bandwidth=t.bandwidth * (times if t.name == tier else 1)) for t in H200.tiers
    )
    return replace(H200, tiers=tuple(tiers))


@pytest.mark.parametrize("name", NAMES)
def test_no_resource_works_longer_than_the_kernel_takes(name):
    for one in works(name):
        found = time_of(one, H200)
        assert max(found.busy.values()) <= found.seconds


@pytest.mark.parametrize("name", NAMES)
def test_a_faster_machine_is_never_slower(name):
    before = seconds(name)
    quick = {u: {d: 2 * rate for d, rate in rates.items()} for u, rates in H200.compute.items()}
    better = (
        *(faster(tier.name) for tier in H200.tiers[:3]),
        replace(H200, compute=quick),
        replace(H200, special=2 * H200.special),
        replace(H200, issue=2 * H200.issue),
    )
    assert all(seconds(name, on=on) <= ORDER * before for on in better)
    assert seconds(name, on=replace(H200, issue=H200.issue / 50)) > before


@pytest.mark.parametrize("name", NAMES)
def test_the_bytes_are_those_of_the_work(name):
    for one in works(name):
        found = time_of(one, H200)
        assert found.bytes["l2"] == one.moved
        stored, touched = sum(one.stored.values()), sum(one.unique.values())
        assert touched <= found.bytes["hbm"] <= one.moved
        assert sum(one.loaded.values()) + stored == one.moved


def test_more_programs_are_never_faster():
    times = []
    for rows in (512, 1024, 2048, 4096, 8192):
        made = bb.emit(BY_NAME["matmul"].graph(), {"M": rows, "K": 1024, "N": 1024}, chunks={})
        times.append(made.cost().time_us)
    assert times == sorted(times)


def test_loads_that_wait_cost_their_latency():
    staged = kernel("attention").schedule
    text = "\n".join(line for line in staged.splitlines() if not line.startswith("stage"))
    assert seconds("attention", schedule=text) > seconds("attention")


def test_a_narrowed_loop_takes_about_half():
    whole, narrow = seconds("causal-attention"), seconds("causal-attention.narrow")
    assert 0.4 * whole < narrow < 0.75 * whole


def test_long_programs_first_leave_a_shorter_tail():
    first = seconds("causal-attention.longest-first")
    assert first < seconds("causal-attention.narrow")


@dataclass(frozen=True)
class OneStep:
    """Steps of a second each, which programs on a processor share, or pass side by side."""

    each: tuple[int, ...]
    shared: bool
    resources = ("matrix",)

    def moved(self):
        return {}

    def total(self, name):
        return 0.0

    def steps(self, active):
        parts = {"matrix": float(self.shared)}
        return (Step(1.0, parts, float(not self.shared), self.each),)


@pytest.mark.parametrize(("long", "short"), [(64, 64), (64, 16), (64, 0), (40, 39)])
def test_a_program_that_others_have_left_alone_has_its_processor_for_itself(long, short):
    """132 long programs and 132 short ones, two to a processor."""
    (one,) = works("causal-attention.narrow")
    each = (long,) * 132 + (short,) * 132
    two = replace(one, programs=264, phases=(replace(one.phases[0], each=each),))
    times = [passed(two, H200, OneStep(each, shared), 2, 0.0).seconds for shared in (True, False)]
    assert times == [long + short, long]


def test_warps_that_share_rows_do_the_same_work():
    text = BY_NAME["attention"].text.replace("warps 4", "warps 8")
    (crowded,), (usual,) = works("attention", text), works("attention")
    assert (crowded.crowded, usual.crowded) == (2, 1)
    assert seconds("attention", schedule=text) > 1.15 * seconds("attention")


def test_a_last_round_of_few_programs_takes_as_long_as_a_full_one():
    """133 programs on 132 processors, one to each at a time."""
    (one,) = works("matmul")
    even, odd = (
        replace(
            one, programs=count, grid=(("M", count),), varying=dict.fromkeys(one.varying, ("M",))
        )
        for count in (132, 133)
    )
    scale = [replace(p, runs=p.runs * 133 // 132) for p in one.phases]
    assert (
        time_of(replace(odd, phases=tuple(scale)), H200).seconds > 1.3 * time_of(even, H200).seconds
    )


# reports ------------------------------------------------------------------------------------


def test_a_report_says_what_decides():
    found = kernel("row-softmax").cost()
    assert found.machine == "h200"
    assert found.timeline == ()
    assert found.critical in (*found.busy, LATENCY)
    assert all(0 <= fraction <= 1 for fraction in found.busy.values())
    assert found.assumed == ("inputs come from global memory",)


def test_it_is_json():
    found = kernel("decode").cost("h100", launch="graph")
    read = json.loads(found.to_json())
    assert (read["machine"], read["critical"]) == ("h100", found.critical)
    assert read["bytes"] == dict(found.bytes)


def test_it_prints_a_line_for_each_resource():
    lines = str(kernel("matmul").cost()).splitlines()
    limit = kernel("matmul").cost().critical
    assert lines[0].endswith(f"us on h200 (closed form, cold cache), limited by {limit}")
    warm = str(kernel("matmul").cost(warm=True)).splitlines()[0]
    assert warm.endswith(f"us on h200 (closed form, warm cache), limited by {limit}")
    assert [line.split()[0] for line in lines[2:-2]] == [*kernel("matmul").cost().busy]
    assert lines[-2].startswith("  kernel 1: 1.9 waves, tail ")


def test_launches_in_a_graph_cost_less():
    plain, graph = (kernel("decode").cost(launch=way).time_us for way in ("plain", "graph"))
    first = time_of(works("decode")[0], H200).seconds
    between = max(H200.launch.graph, H200.launch.plain - first)
    saved = H200.launch.plain + between - 2 * H200.launch.graph
    assert plain - graph == pytest.approx(1e6 * saved)


def test_a_kernel_that_overlaps_the_one_before_begins_sooner():
    text = BY_NAME["decode"].text
    late, early = (works("decode", made) for made in (text, text + "overlap\n"))
    assert [work.overlaps for work in early] == [False, True]
    times = [cost(kernels, H200, launch="graph").time_us for kernels in (late, early)]
    saved = H200.launch.graph - H200.launch.dependent
    assert times[0] - times[1] == pytest.approx(1e6 * saved)


def test_dependent_launches_are_those_of_kernels_that_overlap():
    text = BY_NAME["decode"].text
    ways = [(text, "dependent"), (text + "overlap\n", "dependent"), (text + "overlap\n", "graph")]
    times = {cost(works("decode", made), H200, launch=way).time_us for made, way in ways}
    assert len(times) == 1


def test_a_kernel_without_room_beside_the_one_before_begins_when_that_has_ended():
    """With 3 stages of each a processor holds programs of both kernels, with 6 it does not."""
    text = BY_NAME["chain-two-kernels"].alternatives()["overlap"]
    deep = text.replace("nest 1 K 3", "nest 1 K 6").replace("nest 2 N 3", "nest 2 N 6")

    def launched(schedule):
        kernels = works("chain-two-kernels", schedule)
        early = (kernels[0], replace(kernels[1], overlaps=False))
        times = [cost(made, H200, launch="graph").time_us for made in (early, kernels)]
        return times[0] - times[1]

    saved = H200.launch.graph - H200.launch.dependent
    assert launched(text) == pytest.approx(1e6 * saved)
    assert launched(deep) == 0.0


def test_programs_fit_beside_as_many_as_shared_memory_and_threads_allow():
    small = Footprint(shared=40_000, registers=64, warps=4)
    large = Footprint(shared=150_000, registers=64, warps=4)
    wide = Footprint(shared=1_000, registers=16, warps=32)

    assert small.fits_beside(large, 1, H200)
    assert small.fits_beside(large, 9, H200)  # of which a processor runs one
    assert not large.fits_beside(large, 1, H200)
    assert not small.fits_beside(small, 5, H200)
    assert small.fits_beside(wide, 1, H200)
    assert not wide.fits_beside(wide, 2, H200)


def test_a_warm_cache_saves_what_it_holds():
    cold, warm = kernel("row-softmax").cost(), kernel("row-softmax").cost(warm=True)
    assert warm.bytes["hbm"] < cold.bytes["hbm"]
    assert warm.time_us < cold.time_us


def test_a_workspace_that_fits_is_not_read_from_memory():
    first, second = works("decode")
    together = cost((first, second), H200).bytes["hbm"]
    assert together < cost((first,), H200).bytes["hbm"] + cost((second,), H200).bytes["hbm"]


@pytest.mark.parametrize("name", ["a100", "h100", "rtx3080", "rtx6000ada", "mi300x"])
def test_other_machines_have_what_it_takes(name):
    blocks = {"M": 64, "K": 64, "N": 64}
    small = bb.emit(BY_NAME["matmul"].graph(), {"M": 256, "K": 256, "N": 256}, tiles=blocks)
    assert small.cost(name).time_us > 0


# what is refused ----------------------------------------------------------------------------


def test_bad_input_is_refused_in_words():
    made = kernel("matmul")
    with pytest.raises(ValueError, match="unknown machine 'h20'"):
        made.cost("h20")
    with pytest.raises(ValueError, match="cpu runs no kernels"):
        made.cost("cpu")
    with pytest.raises(ValueError, match="unknown launch 'fast'"):
        made.cost(launch="fast")
    bare = replace(H200, compute={"vector": {"float32": 6e13}})
    with pytest.raises(ValueError, match="h200 has no rate of matrix units for float16"):
        made.cost(bare)
    deep = kernel("matmul", made.schedule.replace("stage nest 1 K 3", "stage nest 1 K 4"))
    with pytest.raises(ValueError, match="needs 196,608 bytes of shared memory, a100 has 166,912"):
        deep.cost("a100")


def test_sizes_are_checked():
    program, target = kernel("matmul").tile_program, "sm_90"
    with pytest.raises(ValueError, match="no size given for N"):
        work_of(program, {"M": 2048, "K": 4096}, target)
    with pytest.raises(ValueError, match="K has size 0: a kernel without elements does nothing"):
        work_of(program, {"M": 2048, "K": 0, "N": 4096}, target)
    with pytest.raises(ValueError, match="M has size 100, and the kernel has no masks"):
        work_of(program, {"M": 100, "K": 4096, "N": 4096}, target)
    with pytest.raises(ValueError, match="unknown dim 'Q'"):
        work_of(program, {"M": 2048, "K": 4096, "N": 4096, "Q": 1}, target)
    for wrong in ("2048", 2048.0, True):
        with pytest.raises(TypeError, match="the size of M is a whole number"):
            work_of(program, {"M": wrong, "K": 4096, "N": 4096}, target)
    whole = kernel("row-softmax").tile_program
    with pytest.raises(ValueError, match="holds it in one block of 16384"):
        work_of(whole, {"M": 256, "N": 20000}, target)


def test_a_nest_without_warps_is_not_decided():
    program = kernel("matmul").tile_program
    bare = replace(program, nests=tuple(replace(nest, warps=0) for nest in program.nests))
    with pytest.raises(ValueError, match="nest 1 has no warps"):
        work_of(bare, kernel("matmul").sizes, "sm_90")


def test_a_plan_for_the_cpu_has_no_kernels():
    program = bb.trace(lambda x: bb.softmax(x), x="M N")
    sizes = {"M": 64, "N": 64}
    with pytest.raises(ValueError, match="a plan for the CPU has no kernels"):
        bb.compile(program, sizes, "float32", "cpu").plan.cost()
    gpu = bb.compile(program, sizes, "float32", "sm_90", check=False).plan
    assert gpu.cost().time_us > 0
    with pytest.raises(ValueError, match="has forgotten how its kernels were chosen"):
        replace(gpu, divided=None).cost()


def test_the_coefficients_are_fractions_and_waits():
    assert all(fraction <= 1 for fraction in (FITTED.apart, FITTED.memory, FITTED.issue))
    assert min(vars(FITTED).values()) > 0
    assert min(FITTED.burst, FITTED.overlap, FITTED.queue, FITTED.unrolled) >= 1


def test_parts_take_between_the_longest_and_their_sum():
    parts = {"hbm": 3.0, "issue": 4.0}
    times = [Step(1.0, parts, 2.0, overlap=p).seconds(1) for p in (1.0, 2.0, 50.0, math.inf)]
    assert times[0] == 9.0
    assert times[1] == pytest.approx(29**0.5)
    assert 4.0 <= times[2] < 4.01
    assert times[3] == 4.0


def test_what_streams_is_not_delayed_by_its_chain():
    parts = {"hbm": 3.0, "matrix": 4.0}
    times = [Step(1.0, parts, chain, overlap=2.0, streams=True).seconds(1) for chain in (4.0, 6.0)]
    assert times == [5.0, 6.0]


def test_loads_one_ahead_of_a_softmax_wait_for_their_latency():
    """They begin where an iteration ends; those two ahead come while the next one computes."""
    texts = [BY_NAME["attention"].text.replace("N 3", f"N {stages}") for stages in (2, 3, 4)]
    quick = replace(H200, tiers=tuple(replace(t, latency=0.0) for t in H200.tiers))

    def chain(text, on):
        (one,) = works("attention", text)
        return Rates(one, on, FITTED, dict.fromkeys(one.loaded, 0)).steps(132)[1].chain

    one, two, three = (chain(text, H200) for text in texts)
    assert one > two + H200.tiers[1].latency
    assert two == pytest.approx(three, rel=0.05)
    assert chain(texts[0], quick) < one - H200.tiers[1].latency


def test_iterations_whose_loads_began_before_the_loop_wait_no_second_time():
    """Of few iterations with as many stages all loads are under way at once."""

    def waits(stages, depth):
        text = f"block M 64, K {depth}, N 64; warps 4; stage nest 1 K {stages}"
        sizes = {"M": 512, "K": 256, "N": 512}
        made = emit_product(text, sizes)
        (one,) = work_of(made.tile_program, made.sizes, made.target)
        step = Rates(one, H200, FITTED, dict.fromkeys(one.loaded, 0)).steps(64)[1]
        return step.chain * step.runs

    latency = FITTED.queue * H200.tiers[1].latency
    assert waits(2, 128) > waits(3, 128) + 0.5 * latency
    assert waits(4, 128) == pytest.approx(waits(3, 128))
    assert waits(3, 64) > waits(5, 64) + 0.5 * latency


def emit_product(text, sizes):
    return bb.emit(BY_NAME["matmul"].graph(), sizes, schedule=text)


def test_warps_that_multiply_alone_wait_for_each_instruction():
    """Tiles of 64 rows are multiplied by four warps together, tiles of 32 by each alone."""

    def turns(rows, depth):
        text = f"block M {rows}, K {depth}, N 32; warps 4; stage nest 1 K 3"
        made = emit_product(text, {"M": 512, "K": 512, "N": 512})
        (one,) = work_of(made.tile_program, made.sizes, made.target)
        step = Rates(one, H200, FITTED, dict.fromkeys(one.loaded, 0)).steps(132)[1]
        assert step.chain * H200.clock >= FITTED.turn * one.phases[1].turns
        return one.phases[1].turns

    assert [turns(64, 128), turns(32, 128), turns(16, 64)] == [0, 8, 4]


def test_a_kernel_that_wants_more_registers_than_there_are_is_slower():
    (one,) = works("matmul")
    held, wide = (
        replace(one, footprint=replace(one.footprint, registers=count)) for count in (200, 400)
    )
    assert time_of(wide, H200).seconds > 2 * time_of(held, H200).seconds


def test_no_kernel_at_all_costs_nothing_that_could_be_told():
    with pytest.raises(ValueError, match="there is no kernel whose cost"):
        cost((), "h200")
