"""Programs whose maps take in ancestors alone: what extending over whole graphs leaves out."""

from functools import cache

import pytest

import blockbuster as bb
from bench.programs import OURS, WORKLOADS
from blockbuster.rules import ExtendMap
from blockbuster.selection.candidates.over_ancestors import over_ancestors
from blockbuster.selection.choice import Fused
from tests.parameters import rest_slow

FOUND = ("residual-block", "rmsnorm-swiglu")


@cache
def fused(name):
    workload = WORKLOADS[name]
    return Fused(bb.lower(bb.trace(workload.fn, **workload.inputs)))


def test_programs_that_extending_over_whole_graphs_leaves_out():
    found = {w.name for w in OURS if over_ancestors(fused(w.name).derivation)}

    assert found == {*FOUND}
    by_rule_6 = (fused(w.name).derivation.steps for w in OURS if w.name not in FOUND)
    assert any(step.rule == ExtendMap.name for steps in by_rule_6 for step in steps)


@pytest.mark.parametrize("name", FOUND)
def test_they_compute_the_same_with_the_norm_in_the_first_product_alone(name):
    derivation = fused(name).derivation
    (made,) = over_ancestors(derivation)

    assert made.name == "snapshot 1 extended once over ancestors alone"
    assert made.derivation.start == derivation.start
    assert made.derivation.replay() == made.graph
    assert made.graph not in derivation.snapshots
    assert bb.prove_equal(derivation.snapshots[0], made.graph).equal
    after = made.derivation.steps[derivation.snapshots_after[0] :]
    assert "extend-map" not in {step.rule for step in after}


EXTENDED = "snapshot 1 extended once over ancestors alone"


@pytest.mark.parametrize("dtype", rest_slow(["float16", "float32"], ["float16"]))
def test_a_residual_block_is_two_kernels(dtype):
    """Beside it: three kernels without the extension, and products that are computed again.

    In float32, too, since products of few rows combine their chunks in one tile.
    """
    workload = WORKLOADS["residual-block"]
    considered = fused("residual-block").consider(workload.sizes, dtype, "sm_90")
    found = (considered.best, *considered.others)
    (extended,) = (choice for choice in found if choice.name == EXTENDED)

    assert extended.kernels == 2
    assert len(extended.graph.buffered_edges()) == 1  # between the two products
    assert considered.best is extended


def test_a_repeated_product_is_taken_where_it_costs_less():
    """In a single kernel nothing is stored between the products."""
    workload = WORKLOADS["residual-block"]
    considered = fused("residual-block").consider(
        workload.sizes, "float32", "sm_90", one_kernel=True
    )

    assert considered.best.name == "snapshot 3"
