"""Cost models by name, and how a search is shown."""

import io
import pickle

import pytest
from rich.console import Console

import blockbuster as bb
from blockbuster import examples
from blockbuster.tiling import candidate, estimate, gemm_chain, parse_expression, pruned
from blockbuster.tiling.measurement import Measurement
from blockbuster.tiling.measures import model_of
from blockbuster.tiling.progress import watched
from blockbuster.tiling.realization import not_expressible, schedule_of
from tests.tiling.chains import SMALL

G1 = examples.GEMM_CHAINS[0]
CHAIN = gemm_chain(512, 256, 64, 64)
SPACE = [one for one in pruned(CHAIN, 65536).candidates if not not_expressible(CHAIN, one)]
FUSED = bb.fuse(bb.lower(G1.program())).final


def test_mcfuser_is_the_source_s_equations():
    model = model_of("mcfuser", CHAIN, SMALL)
    assert model(SPACE[7]) == estimate(CHAIN, SPACE[7], SMALL).seconds


def test_tiered_is_the_closed_form_of_the_kernel():
    h200 = bb.machine("h200")
    one = SPACE[7]
    model = model_of("tiered", CHAIN, h200, graph=FUSED, sizes=G1.sizes)
    kernel = bb.emit(FUSED, G1.sizes, schedule=schedule_of(CHAIN, one, stages=2))
    expected = kernel.cost(h200, launch="graph", warm=True).time_us / 1e6

    assert model(one) == pytest.approx(expected)
    assert pickle.loads(pickle.dumps(model))(one) == model(one)


def test_the_simulator_is_asked_about_the_same_kernel():
    h200 = bb.machine("h200")
    given = dict(graph=FUSED, sizes=G1.sizes)
    closed, simulated = (model_of(n, CHAIN, h200, **given) for n in ("tiered", "simulator"))
    one = candidate(CHAIN, parse_expression("mhnk"), (64, 64, 64, 64))

    assert simulated(one) == pytest.approx(closed(one), rel=0.5)
    assert simulated(one) == simulated(one)


def test_models_that_are_not_there():
    with pytest.raises(ValueError, match="unknown cost model 'ansor'"):
        model_of("ansor", CHAIN, SMALL)
    with pytest.raises(ValueError, match="give the fused graph and sizes"):
        model_of("tiered", CHAIN, SMALL)


@pytest.mark.parametrize(
    ("sizes", "reason"),
    [
        ({}, "dim M has the size none, and the chain's loop m 512"),
        (dict(G1.sizes) | {"N": 64}, "dim N has the size 64, and the chain's loop n 256"),
    ],
)
def test_sizes_that_are_not_the_chain_s(sizes, reason):
    with pytest.raises(ValueError, match=reason):
        model_of("tiered", CHAIN, SMALL, graph=FUSED, sizes=sizes)


def test_progress_counts_what_is_done_and_lost():
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=100)
    with watched("searching", 3, console=console) as note:
        note(Measurement("a", None, "too large"))
        note(Measurement("b", 5e-6))
        note(Measurement("c", 7e-6))
    assert "3/3" in screen.getvalue()
    assert "best 5.00 us, 1 lost" in screen.getvalue()
