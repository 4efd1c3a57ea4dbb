"""Sums beside their magnitude: one pass, as good in floats as two, on rows of all kinds.

Golden cases hold the reasons of rescale-by-magnitude.
"""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.frontend.lower import lower
from blockbuster.frontend.trace import trace
from blockbuster.interp.evaluate import evaluate
from blockbuster.interp.semantics import Float32, Float64
from blockbuster.ir.ops import Map
from blockbuster.rules import RULES, RescaleByMagnitude, fuse, safe
from blockbuster.testing.mutants_of_magnitudes import MUTANTS_OF_MAGNITUDES
from blockbuster.testing.plain_driver import plain_fuse

BLOCKS = {"M": 2, "N": 4}
TINY = 1e-40  # below the normal numbers of float32


def magnitude(x):
    return bb.max(bb.abs(x), axis=-1, keepdims=True)


def length(x):
    top = magnitude(x)
    return top * bb.sqrt(bb.sum((x / top) ** 2, axis=-1, keepdims=True))


def clamped_length(x):
    top = bb.maximum(magnitude(x), 1e-20)
    return top * bb.sqrt(bb.sum(bb.square(x / top), axis=-1, keepdims=True))


def energy_in_eighths(x):
    """As if in 8 bits: the largest element becomes 448."""
    return bb.sum(bb.square(x * (448 / magnitude(x))), axis=-1, keepdims=True)


def cubes(x):
    return bb.sum(bb.abs(x / magnitude(x)) ** 3, axis=-1, keepdims=True)


def of_what_is_centered(x, w):
    y = x - bb.mean(x, axis=-1, keepdims=True)
    top = magnitude(y)
    return top * bb.sqrt(bb.sum(w * bb.square(y / top), axis=-1, keepdims=True))


PROGRAMS = [length, clamped_length, energy_in_eighths, cubes]


def fused(fn):
    inputs = {"x": "M N", "w": "N"}
    return fuse(lower(trace(fn, **{n: inputs[n] for n in inputs if n in fn.__code__.co_varnames})))


def of_rows(graph, x, semantics=Float32, steps=BLOCKS):
    with np.errstate(all="ignore"):
        arrays = {"x": np.asarray(x, np.float32).astype(float)}
        (found,) = evaluate(graph, arrays, semantics=semantics, block_sizes=steps).values()
    return found


def passes(graph):
    """How many loops over N there are."""
    return sum(op.dim == "N" for _, level in graph.walk() for _, op in level.of_type(Map))


@pytest.mark.parametrize("fn", PROGRAMS)
def test_one_pass(fn):
    derivation = fused(fn)

    assert RescaleByMagnitude.name in [step.rule for step in derivation.steps]
    assert passes(derivation.final) == 1
    assert plain_fuse(derivation.start, RULES).applications == derivation.applications


def test_a_mean_takes_a_pass_and_the_rest_another():
    assert passes(fused(of_what_is_centered).final) == 2


@pytest.mark.parametrize("fn", PROGRAMS)
def test_every_step_is_proved(fn):
    derivation = fused(fn)

    assert derivation.prove().equal
    assert bb.prove_equal(derivation.start, derivation.final).equal


@pytest.mark.parametrize("scale", [1e-30, 1e-15, 1.0, 1e15, 1e30])
@pytest.mark.parametrize("fn", PROGRAMS)
def test_float32_is_as_good_at_every_scale(fn, scale):
    """The scales of the columns differ by 10^6: blocks have magnitudes of their own."""
    random = np.random.default_rng(0)
    x = scale * random.standard_normal((5, 14)) * 10.0 ** random.integers(-3, 4, 14)
    derivation = fused(fn)
    expected = of_rows(derivation.start, x, Float64)

    for graph in (derivation.start, derivation.final, safe(derivation.final)):
        np.testing.assert_allclose(of_rows(graph, x), expected, rtol=2e-6)


def test_blocks_of_zeros_and_of_subnormals_are_as_any_others():
    x = np.array([
        [0, 0, 0, 0, 3, 4, 0, 0, 0, 0, 0, 0],
        [3, 4, 0, 0, 0, 0, 0, 0, TINY, TINY, 0, 0],
        [TINY, TINY, 0, 0, 3, 4, 0, 0, -TINY, 0, 0, 0],
        [3 * TINY, 0, 0, 0, 4 * TINY, 0, 0, 0, 0, 0, 0, 0],
    ])  # fmt: skip

    found = of_rows(fused(clamped_length).final, x)[:3, 0]
    np.testing.assert_allclose(found, [5, 5, 5], rtol=1e-6)
    found = of_rows(fused(length).final, x)[:3, 0]
    np.testing.assert_allclose(found, [5, 5, 5], rtol=1e-6)


@pytest.mark.parametrize("fn", PROGRAMS)
def test_rows_of_zeros_infinities_and_nan_give_what_the_program_gives(fn):
    rows = np.ones((6, 12))
    rows[0], rows[1, 5], rows[2, 5], rows[3, 9] = 0, np.inf, np.nan, -np.inf
    rows[4, 4:8] = 0
    derivation = fused(fn)
    expected = of_rows(derivation.start, rows)

    np.testing.assert_allclose(of_rows(derivation.final, rows), expected, rtol=1e-6)
    assert np.isfinite(expected[4:]).all()
    assert np.isnan(expected[2]).all()


def test_without_the_least_magnitude_a_block_of_zeros_is_lost():
    (mutant,) = (m for m in MUTANTS_OF_MAGNITUDES if m.name == "by magnitude: zero by zero")
    wrong = tuple(mutant.build() if rule == RescaleByMagnitude() else rule for rule in RULES)
    x = np.array([[0.0, 0, 0, 0, 3, 4, 0, 0]])

    assert of_rows(fused(length).final, x) == 5
    assert np.isnan(of_rows(fuse(fused(length).start, wrong).final, x))
