"""How programs begin: handed out one after the other, and so out of step."""

from dataclasses import replace

import pytest

import blockbuster as bb
from blockbuster.costs import time_of, work
from blockbuster.costs.coefficients import FITTED
from blockbuster.costs.steps import Step
from blockbuster.costs.tiered import begun_at_once
from blockbuster.machines import machine

H200 = machine("h200")


def test_a_gpu_hands_out_programs_one_after_the_other():
    graph = bb.fuse(bb.lower(bb.trace(lambda x: bb.mean(x, axis=-1), x="M N"))).final
    kernel = bb.emit(graph, dict(M=64, N=64), schedule="block M 1, N 64 whole\nwarps 4\n")
    (one,) = work(kernel.derivation.final)
    short = replace(one, phases=tuple(replace(phase, runs=0, each=()) for phase in one.phases))
    few, many = (time_of(replace(short, programs=n), H200).seconds for n in (1, 1 << 20))
    assert many - few == pytest.approx((1 << 20) * FITTED.handed / H200.clock, rel=1e-3)
    fixed = time_of(replace(short, programs=1 << 20, fixed=132), H200).seconds
    assert fixed < many / 1000


@pytest.mark.parametrize(
    ("loop", "runs", "seconds"), [("M", 12.0, 120.0), ("M", 1.0, 20.0), ("", 12.0, 240.0)]
)
def test_programs_are_out_of_step_in_a_loop_with_loops_inside(loop, runs, seconds):
    """Ten programs that compute for a second, and then wait for ten, over and over."""
    outer = Step(runs, {"issue": 1.0}, 0.0, loop=loop)
    inner = Step(runs, {"issue": 0.0}, 10.0, loop=loop)
    assert begun_at_once((outer, inner), 10) == seconds
