"""Trials that many programs go through give what fresh ones give; what they remember is right."""

from random import Random

import numpy as np
import pytest

from blockbuster.examples import ALL
from blockbuster.frontend import lower
from blockbuster.interp.apart import close
from blockbuster.interp.binding import bind, dims_of
from blockbuster.interp.equal import prove_equal
from blockbuster.interp.exact import Exact
from blockbuster.interp.remembering import Remembering
from blockbuster.interp.semantics import Float64, Floats
from blockbuster.interp.setting import Setting, settings
from blockbuster.interp.trials import Draw, Trials
from blockbuster.ir.parse import parse
from blockbuster.ir.types import size_class
from blockbuster.rules import RULES, fuse
from blockbuster.testing.generators import GENERATORS
from tests.interp.pairs import some_rules
from tests.interp.test_exact import on_blocks


@pytest.mark.parametrize("kind", GENERATORS)
def test_what_is_remembered_is_what_would_be_computed(kind):
    for seed in range(3):
        derivation = fuse(GENERATORS[kind](Random(f"remember {seed}")), RULES)
        start = derivation.start
        programs = [derivation.graph_after(n) for n in range(len(derivation.steps) + 1)]
        numbers = np.random.default_rng(seed)
        for setting in settings(start, derivation.final, 2, numbers):
            exact = Exact(seed=seed)
            inputs = {n: exact.random(numbers, s) for n, s in setting.shapes(start).items()}
            memory = Remembering(setting.layout, exact, inputs)
            for program in programs:
                found = memory.outputs(program)
                fresh = setting.run(program, inputs, Exact(seed=seed))
                assert found.keys() == fresh.keys()
                for name, array in fresh.items():
                    np.testing.assert_array_equal(found[name], array)


@pytest.mark.parametrize("kind", GENERATORS)
def test_floats_are_remembered_too(kind):
    for seed in range(3):
        derivation = fuse(GENERATORS[kind](Random(f"floats {seed}")), RULES)
        numbers = np.random.default_rng(seed)
        (setting,) = settings(derivation.start, derivation.final, 1, numbers)
        shapes = setting.shapes(derivation.start)
        draw = Draw(setting, Float64, {n: numbers.uniform(-1, 1, s) for n, s in shapes.items()})
        for number in range(len(derivation.steps) + 1):
            program = derivation.graph_after(number)
            found, fresh = draw.run(program), setting.run(program, draw.inputs, Float64)
            assert found.keys() == fresh.keys()
            for name, array in fresh.items():  # sums may be rounded by where their terms lie
                assert close(found[name], array)


def test_floats_are_computed_once(monkeypatch):
    derivation = fuse(lower(ALL[0].program()))
    dots = []
    dot = Floats.dot
    monkeypatch.setattr(Floats, "dot", lambda self, a, b: dots.append(1) or dot(self, a, b))
    numbers = np.random.default_rng(0)
    (setting,) = settings(derivation.start, derivation.final, 1, numbers)
    shapes = setting.shapes(derivation.start)
    draw = Draw(setting, Float64, {n: numbers.uniform(-1, 1, s) for n, s in shapes.items()})

    draw.run(derivation.start)
    first = len(dots)
    draw.run(derivation.graph_after(1))

    assert 0 < len(dots) == first


@pytest.mark.parametrize("kind", GENERATORS)
def test_a_setting_lays_blocks_as_binding_does(kind):
    for seed in range(10):
        graph = GENERATORS[kind](Random(f"layout {seed}"))
        for setting in settings(graph, graph, 2, np.random.default_rng(seed)):
            dims = dims_of(graph)
            bound = bind(
                graph,
                setting.shapes(graph),
                sizes={size_class(d): setting.sizes[size_class(d)] for d in dims},
                block_sizes={size_class(d): setting.block_sizes[size_class(d)] for d in dims},
            )
            for dim in dims:
                assert setting.layout.size(dim) == bound.size(dim)
                assert setting.layout.blocks[dim] == bound.blocks[dim]


def test_what_is_the_same_is_computed_once(monkeypatch):
    derivation = fuse(lower(ALL[0].program()))
    dots = []
    dot = Exact.dot
    monkeypatch.setattr(Exact, "dot", lambda self, a, b: dots.append(1) or dot(self, a, b))
    trials = Trials(1)

    trials.outcome(derivation.start, derivation.graph_after(1))
    first = len(dots)
    for step in derivation.steps:
        trials.outcome(step.before, step.after)

    (draw,) = trials.drawn.values()
    programs = dict.fromkeys(graph for graph, _ in draw.outputs.values())
    assert len(programs) == len(derivation.steps) + 1
    assert first > 0
    assert len(dots) < 3 * first


@pytest.mark.parametrize("seed", range(12))
def test_programs_that_went_before_do_not_change_a_verdict(seed):
    random = Random(f"trials {seed}")
    graph = GENERATORS[random.choice(list(GENERATORS))](random)
    trials = Trials(2, seed)
    trials.outcome(graph, some_rules(graph, random))
    other = some_rules(graph, random)

    told_apart = trials.outcome(graph, other).difference is not None
    assert told_apart == (Trials(2, seed).outcome(graph, other).difference is not None)
    if told_apart:  # a rule that rests on exp, or on what a maximum is
        proof = prove_equal(graph, other)
        assert proof.equal
        assert proof.tier != "A" or "in every case of their comparisons" in str(proof)


def test_a_difference_shows_after_any_programs():
    trials = Trials(2)
    right, same = on_blocks("z = maximum(b, 3)"), on_blocks("z = maximum(3, b)")
    wrong = on_blocks("z = maximum(b, 2)")

    assert trials.outcome(right, same).difference is None
    assert trials.outcome(same, wrong).difference is not None
    assert trials.outcome(wrong, right).difference is not None


def test_the_bound_counts_the_programs_that_went_before():
    one, two = on_blocks("z = maximum(b, 2 * b)"), on_blocks("z = maximum(b + b, b)")
    other = on_blocks("z = maximum(maximum(b, 3 * b), maximum(5 * b, 7 * b))")
    alone, after = Trials(8), Trials(8)
    after.outcome(one, other)
    bounds = []
    for trials in (alone, after):
        outcome = trials.outcome(one, two)
        bounds.append(trials.false_accept_bound(one, two, outcome))

    assert bounds[0] < bounds[1] < 1e-12
    assert bounds[0] == prove_equal(one, two).false_accept_bound


def test_dims_of_different_names_have_different_sizes():
    graph = on_blocks("z = b * |M|")

    for seed in range(20):
        setting = next(settings(graph, graph, 1, np.random.default_rng(seed)))
        assert setting.sizes["M"] != setting.sizes["K"]
    assert Trials(1).outcome(graph, on_blocks("z = b * |K|")).difference is not None


def test_settings_do_not_depend_on_the_order_of_dims():
    one = parse("graph(X: M[M], Y: K[K]) { return X, Y }")
    other = parse("graph(Y: K[K], X: M[M]) { return X, Y }")
    found = [next(settings(g, g, 1, np.random.default_rng(3))) for g in (one, other)]

    assert found[0] == found[1]
    assert isinstance(found[0], Setting)


def test_trials_must_be_positive():
    with pytest.raises(ValueError, match="trials is 0, expected at least 1"):
        Trials(0)
