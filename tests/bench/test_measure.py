"""Judging kernels of the benchmark's programs: draws, groups and joined small results."""

from functools import partial

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")

from bench.gpu.measure import DRAWS, as_tuple, compare, judge, make_inputs  # noqa: E402
from bench.programs import WORKLOADS, eager  # noqa: E402
from blockbuster.check.judge import ENOUGH, GROUPS  # noqa: E402


def draw_of(workload, sizes, kind="random"):
    return partial(make_inputs, workload, sizes, kind, torch.float32, "cpu")


def judged(name, sizes, change=lambda x, seed: x, kind="random"):
    """Eager judged beside itself, with its results changed."""
    workload = WORKLOADS[name]
    draw, seen = draw_of(workload, sizes, kind), []

    def run(inputs):
        seen.append(inputs)
        return tuple(change(x, len(seen)) for x in as_tuple(eager(workload.fn)(**inputs)))

    return *judge(workload, run, lambda seed: draw(seed)), seen


def test_eager_passes_beside_itself():
    found, draws, seen = judged("softmax-rows", {"M": 20, "N": 30})

    assert found.passed
    assert found.ratio_max == found.ratio_rms == 1.0
    assert found.erring >= GROUPS * ENOUGH
    assert draws == len(seen) == GROUPS


def test_small_results_are_joined_and_drawn_until_errors_are_enough():
    found, draws, seen = judged("softmax-rows", {"M": 1, "N": 3})

    assert GROUPS * ENOUGH <= found.erring <= 3 * draws
    assert draws == len(seen) <= DRAWS
    assert len({float(inputs["x"].flatten()[0]) for inputs in seen}) == draws


def test_one_result_takes_as_many_draws_as_there_may_be():
    _, draws, _ = judged("total", {"M": 4, "N": 5})

    assert 0.9 * DRAWS < draws <= DRAWS


def test_few_draws_are_as_many_groups():
    workload, seen = WORKLOADS["total"], []

    def run(inputs):
        seen.append(inputs)
        return eager(workload.fn)(**inputs)

    found, draws = judge(workload, run, draw_of(workload, {"M": 3, "N": 4}), draws=3)

    assert found.passed
    assert draws == len(seen) == 3


def test_a_systematic_excess_fails():
    found, *_ = judged("softmax-rows", {"M": 20, "N": 30}, lambda x, _: x * (1 + 4 * 2**-23))

    assert not found.passed


def test_a_wrong_element_of_one_draw_fails():
    def wrong(x, number):
        return x + (number == 7) * torch.eye(*x.shape) * 1e-4

    found, *_ = judged("softmax-rows", {"M": 20, "N": 30}, wrong)

    assert found.ratio_max < 1.5
    assert not found.passed


def test_rare_errors_decide_nothing_but_wrong_ones():
    """tanh of numbers near 30,000: one of some thousand results is not exactly 1."""
    workload, sizes = WORKLOADS["matrix-vector"], {"M": 40, "K": 181}
    draw = draw_of(workload, sizes, "extreme")

    def backwards(inputs):
        return torch.tanh(inputs["a"].flip(1) @ inputs["x"].flip(0))

    found, draws = judge(workload, backwards, draw)
    assert 0.9 * DRAWS < draws <= DRAWS
    assert 0 < found.erring < ENOUGH
    assert found.passed

    found, _ = judge(workload, lambda inputs: backwards(inputs) * 0.999, draw)
    assert not found.passed


def test_every_output_counts():
    ours, theirs = (torch.ones(3), torch.ones(2)), (torch.ones(3), torch.ones(2))
    exact = (torch.ones(3).double(), torch.ones(2).double())

    assert compare(ours, theirs, exact).passed
    ours[1][0] = 2
    assert not compare(ours, theirs, exact).passed
