"""Cost models of candidates."""

import pickle

import pytest

import blockbuster as bb
from blockbuster import examples
from blockbuster.tiling import candidate, estimate, gemm_chain, parse_expression, pruned
from blockbuster.tiling.measures import ByEquations, BySchedule, event_by_event
from blockbuster.tiling.realization import not_expressible, schedule_of
from tests.tiling.chains import SMALL

G1 = examples.GEMM_CHAINS[0]
CHAIN = gemm_chain(512, 256, 64, 64)
SPACE = [one for one in pruned(CHAIN, 65536).candidates if not not_expressible(CHAIN, one)]
FUSED = bb.fuse(bb.lower(G1.program())).final


def test_mcfuser_is_the_source_s_equations():
    model = ByEquations(CHAIN, SMALL)
    assert model(SPACE[7]) == estimate(CHAIN, SPACE[7], SMALL).seconds


def test_tiered_is_the_closed_form_of_the_kernel():
    h200 = bb.machine("h200")
    one = SPACE[7]
    model = BySchedule(CHAIN, h200, FUSED, G1.sizes)
    kernel = bb.emit(FUSED, G1.sizes, schedule=schedule_of(CHAIN, one, stages=2))
    expected = kernel.cost(h200, launch="graph", warm=True).time_us / 1e6

    assert model(one) == pytest.approx(expected)
    assert pickle.loads(pickle.dumps(model))(one) == model(one)


def test_the_simulator_is_asked_about_the_same_kernel():
    h200 = bb.machine("h200")
    closed = BySchedule(CHAIN, h200, FUSED, G1.sizes)
    simulated = BySchedule(CHAIN, h200, FUSED, G1.sizes, event_by_event)
    one = candidate(CHAIN, parse_expression("mhnk"), (64, 64, 64, 64))

    assert simulated(one) == pytest.approx(closed(one), rel=0.5)
    assert simulated(one) == simulated(one)


@pytest.mark.parametrize(
    ("sizes", "reason"),
    [
        ({}, "dim M has the size none, and the chain's loop m 512"),
        (dict(G1.sizes) | {"N": 64}, "dim N has the size 64, and the chain's loop n 256"),
    ],
)
def test_sizes_that_are_not_the_chain_s(sizes, reason):
    with pytest.raises(ValueError, match=reason):
        BySchedule(CHAIN, SMALL, FUSED, sizes)
