"""Largest absolute values of normed rows: one pass, as good in floats, and what the limits are for.

Golden cases hold the reasons of factor-out. Here its mutants show what each would cost.
"""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.frontend.lower import lower
from blockbuster.frontend.trace import trace
from blockbuster.interp.evaluate import evaluate
from blockbuster.interp.semantics import Float32, Float64
from blockbuster.ir.ops import Map
from blockbuster.ir.parse import parse
from blockbuster.rules import ROLLING_RULES, RULES, FactorOut, fuse, overflowing, safe
from tests.mutants.of_factors import scaled_magnitudes
from tests.rules.golden import GOLDEN, read_case
from tests.rules.plain_driver import plain_fuse

CASES = GOLDEN / "factor_out"
XW = {"x": "M N", "w": "N"}
BLOCKS = {"M": 2, "N": 3}


def squares(x):
    return bb.mean(x * x, axis=-1, keepdims=True) + 1e-6


def rms(x, w):
    return bb.max(bb.abs(bb.rms_norm(x) * w), axis=-1) / 448


def a_divisor(x, w):
    return bb.max(bb.abs(x / bb.sqrt(squares(x)) * w), axis=-1)


def a_power(x, w):
    return bb.max(bb.abs(squares(x) ** -0.5 * (x * w)), axis=-1)


def of_exponentials(x, w):
    total = bb.sum(bb.exp(2 * x), axis=-1, keepdims=True)
    return bb.max(bb.abs(bb.exp(x) * bb.rsqrt(total) * w), axis=-1)


def centered(x, w):
    return bb.max(bb.abs(bb.layer_norm(x) * w), axis=-1)


def share(x, w):
    return bb.max(bb.abs(bb.softmax(x) * w), axis=-1)


def of_the_largest(x, w):
    return bb.max(bb.abs(x / bb.max(bb.abs(x), axis=-1, keepdims=True) * w), axis=-1)


def passes(graph):
    """How many loops over N there are."""
    return sum(op.dim == "N" for _, level in graph.walk() for _, op in level.of_type(Map))


def fused(fn):
    return fuse(lower(trace(fn, **XW)))


def given(x_scale, w_scale, seed=0):
    random = np.random.default_rng(seed)
    x, w = x_scale * random.standard_normal((5, 7)), w_scale * random.standard_normal(7)
    return {"x": x.astype(np.float32).astype(float), "w": w.astype(np.float32).astype(float)}


def results(graph, arrays, semantics=Float32, steps=BLOCKS):
    with np.errstate(all="ignore"):
        (found,) = evaluate(graph, arrays, semantics=semantics, block_sizes=steps).values()
    return found


@pytest.mark.parametrize("fn", [rms, a_divisor, a_power, of_exponentials])
def test_one_pass(fn):
    derivation = fused(fn)

    assert FactorOut.name in [step.rule for step in derivation.steps]
    assert passes(derivation.final) == 1
    assert plain_fuse(derivation.start, RULES).applications == derivation.applications


def test_other_factors_are_moved_or_repaired():
    derivation = fused(of_the_largest)
    assert FactorOut.name not in [step.rule for step in derivation.steps]
    assert passes(derivation.final) == 2

    assert passes(fuse(derivation.start, ROLLING_RULES).final) == 1


@pytest.mark.parametrize("fn", [centered, share])
def test_what_stays(fn):
    """A mean that stays, and factors that are no roots."""
    derivation = fused(fn)

    assert FactorOut.name not in [step.rule for step in derivation.steps]
    assert passes(derivation.final) == 2


@pytest.mark.slow
def test_every_step_is_proved():
    derivation = fused(rms)

    assert derivation.prove().equal
    assert bb.prove_equal(derivation.start, derivation.final).equal


@pytest.mark.parametrize("x_scale", [1e-18, 1e-9, 1.0, 1e9, 1e18])
@pytest.mark.parametrize("w_scale", [1e-18, 1.0, 1e18])
@pytest.mark.parametrize("fn", [rms, a_divisor, a_power])
def test_float32_is_as_good_wherever_the_squares_are_floats(fn, x_scale, w_scale):
    """Products of x and w reach 1e-36 and 1e36, far from what is stored."""
    derivation, arrays = fused(fn), given(x_scale, w_scale)
    expected = results(derivation.start, arrays, Float64)
    without = fuse(derivation.start, [r for r in RULES if r != FactorOut()])

    for graph in (derivation.final, without.final):
        np.testing.assert_allclose(results(safe(graph), arrays), expected, rtol=1e-6)


@pytest.mark.parametrize("fn", [share, of_exponentials, of_the_largest])
@pytest.mark.parametrize("scale", [1.0, 100.0, 1e4])
def test_what_protects_from_overflow_still_does(fn, scale):
    """Weights of a softmax, and parts of a row's largest element: no intermediate is infinite."""
    made, arrays = safe(fused(fn).final), given(scale, scale**8)
    expected = results(made, arrays, Float64)

    assert overflowing(made) == ()
    assert np.isfinite(expected).all()
    np.testing.assert_allclose(results(made, arrays), expected, rtol=2e-7 * max(10, scale))


# What each limit is for: a mutant without it, on a golden case, in float32 --------------------


def of_rows(**arrays):
    """Arrays for a golden case, whose lists of blocks come first: N before M."""
    return {name: np.array(array).T for name, array in arrays.items()}


def before_and_after(mutant, case):
    """The program of a golden case, and what the rule without a precondition makes of it."""
    (broken,) = (m for m in scaled_magnitudes() if m.name == f"magnitude: {mutant}")
    rule, graph = broken.build(), parse(read_case(CASES / f"magnitude_{case}.bb").before)
    match = rule.match(graph)
    assert match is not None
    return graph, rule.apply(match)


def test_any_factor_would_bring_an_overflow_back():
    before, after = before_and_after("any factor", "no_root")
    arrays = of_rows(X=[[1e30, 2e30], [1.0, 2.0]], W=[2e30, 1e30])

    np.testing.assert_allclose(results(before, arrays), [1e30, 1e30], rtol=1e-6)
    np.testing.assert_array_equal(results(after, arrays) == np.inf, [True, False])


def test_an_exponential_would_bring_an_overflow_back():
    before, after = before_and_after("an exponential", "an_exponential")
    arrays = of_rows(X=[[0.0, 9.0]], W=[1.0, 3e38])

    np.testing.assert_allclose(results(before, arrays), [9 * 3e38 * np.exp(-81.0)], rtol=1e-4)
    np.testing.assert_array_equal(results(after, arrays), [np.inf])


def test_a_root_of_no_elements_would_be_seen_behind_where():
    before, after = before_and_after("hidden by where", "masked")
    arrays = of_rows(X=[[3.0, 4.0], [1.0, 2.0]], B=[[1.0, 1.0], [0.0, 0.0]])

    np.testing.assert_allclose(results(before, arrays), [0.8, 0.0], rtol=1e-6)
    np.testing.assert_array_equal(np.isnan(results(after, arrays)), [False, True])


def test_an_infinite_root_without_where_is_seen_both_ways():
    case = read_case(CASES / "magnitude_masked_before.bb")
    arrays = of_rows(X=[[3.0, 4.0], [1.0, 2.0]], B=[[1.0, 1.0], [0.0, 0.0]])

    for text in (case.before, case.after):
        np.testing.assert_allclose(results(parse(text), arrays), [0.8, np.nan], rtol=1e-6)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_the_largest_shows_what_is_no_number(value):
    """One element of a row is infinite or NaN: its largest is NaN, in two passes and in one."""
    derivation, arrays = fused(rms), given(1.0, 1.0)
    arrays["x"][1, 4] = value

    for graph in (derivation.start, derivation.final):
        np.testing.assert_array_equal(np.isnan(results(graph, arrays)), np.arange(5) == 1)


def test_the_smallest_would_not_show_what_is_no_number():
    before, after = before_and_after("the smallest", "smallest")
    arrays = of_rows(X=[[np.inf, 1.0, 2.0]])

    np.testing.assert_array_equal(results(before, arrays, steps={"N": 1}), np.nan)
    np.testing.assert_array_equal(results(after, arrays, steps={"N": 1}), 0.0)
