"""One run of a loop's body: what waits for what."""

import pytest

import blockbuster as bb
from blockbuster.costs import work_of
from blockbuster.costs.coefficients import FITTED
from blockbuster.costs.steps import Rates
from blockbuster.machines import machine

H200 = machine("h200")


@pytest.mark.parametrize(
    ("columns", "together"), [(1024, 1.0), (2048, 2.0), (65536, FITTED.unrolled)]
)
def test_no_more_iterations_wait_together_than_there_are(columns, together):
    text = "block M 1, N 1024; warps 4"
    (work,) = work_of(*_rows(columns, text))
    phases = [phase for phase in work.phases if phase.dims and phase.waits]
    rates = Rates(work, H200, FITTED, dict(work.loaded))
    assert phases
    assert [rates.together(phase) for phase in phases] == [together] * len(phases)


def _rows(columns, text):
    graph = bb.fuse(bb.lower(bb.trace(lambda x: bb.softmax(x), x="M N"))).final
    made = bb.emit(graph, dict(M=64, N=columns), "float16", schedule=text)
    return made.tile_program, made.sizes, made.target


@pytest.mark.parametrize(
    ("block", "warps", "measured"), [("C 64", 2, 36.3), ("C 128", 4, 79.0), ("C 128", 8, 151.9)]
)
def test_lanes_that_ask_for_one_bank_of_shared_memory_wait_in_turn(block, warps, measured):
    """Softmax over 21 channels of 65536 places, in microseconds on an H100: warps share channels,
    and what they have of neighbouring places lies as many words apart as there are warps.
    """
    graph = bb.fuse(bb.lower(bb.trace(lambda x: bb.softmax(x, 1), x="A B C"))).snapshots[0]
    text = f"block B 32 whole, {block}; warps {warps}; overlap nest 1"
    kernel = bb.emit(graph, dict(A=16, B=21, C=65536), "float16", "sm_90", schedule=text)
    assert kernel.cost("h100", launch="graph").time_us == pytest.approx(measured, rel=0.25)


def test_elements_that_are_loaded_alone_take_registers():
    """A sum over the middle axis of 32 x 4096 x 4095 took an H100 410 microseconds with 16 elements
    to a thread and 508 with 64. Wide loads of even rows put twice as much into a register.
    """
    graph = bb.fuse(bb.lower(bb.trace(lambda x: bb.sum(x, 1), x="A B C"))).final

    def microseconds(columns, block):
        sizes, text = dict(A=32, B=4096, C=columns), f"block B 64, {block}; warps 4"
        kernel = bb.emit(graph, sizes, "float16", "sm_90", schedule=text)
        return kernel.cost("h100", launch="graph").time_us

    assert microseconds(4095, "C 128") > 1.15 * microseconds(4095, "C 32")
    assert microseconds(4096, "C 128") < 1.05 * microseconds(4096, "C 32")
