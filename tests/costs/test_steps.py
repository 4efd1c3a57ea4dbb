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
