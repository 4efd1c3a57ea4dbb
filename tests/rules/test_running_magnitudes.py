"""Sums beside their magnitude: one pass, as good in floats as two, on rows of all kinds.

Golden cases hold the reasons of repair-by-law.
"""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.frontend.lower import lower
from blockbuster.frontend.trace import trace
from blockbuster.interp.evaluate import evaluate
from blockbuster.interp.semantics import Float32, Float64
from blockbuster.ir.ops import Map
from blockbuster.rules import RULES, RepairByLaw, fuse, safe
from blockbuster.testing.cases import read_cases
from tests.mutants.mutate import Mutant, judge
from tests.mutants.of_magnitudes import MUTANTS_OF_MAGNITUDES
from tests.rules.golden import GOLDEN
from tests.rules.plain_driver import plain_fuse

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


def shares(x):
    """How unevenly a row is shared out: the squares of what each element takes of the sum."""
    total = bb.sum(bb.abs(x), axis=-1, keepdims=True)
    return bb.sum((x / total) ** 2, axis=-1, keepdims=True)


def of_what_is_centered(x, w):
    y = x - bb.mean(x, axis=-1, keepdims=True)
    top = magnitude(y)
    return top * bb.sqrt(bb.sum(w * bb.square(y / top), axis=-1, keepdims=True))


def attention(x, k, v):
    """Scores are squared to become weights."""
    scores = x @ k.T
    weights = bb.square(scores / magnitude(scores))
    return (weights @ v) / bb.sum(weights, axis=-1, keepdims=True)


PROGRAMS = [length, clamped_length, energy_in_eighths, cubes, shares]


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

    assert RepairByLaw.name in [step.rule for step in derivation.steps]
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
    wrong = tuple(mutant.build() if rule == RepairByLaw() else rule for rule in RULES)
    x = np.array([[0.0, 0, 0, 0, 3, 4, 0, 0]])

    assert of_rows(fused(length).final, x) == 5
    assert np.isnan(of_rows(fuse(fused(length).start, wrong).final, x))


def attention_fused():
    return fuse(lower(trace(attention, x="M D", k="N D", v="N L")))


def test_attention_with_squares_for_weights_is_one_pass():
    derivation = attention_fused()

    assert passes(derivation.final) == 1
    assert derivation.final.buffered_edges() == ()
    assert derivation.prove().equal


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_attention_is_right_at_every_scale(scale):
    random = np.random.default_rng(0)
    x, k, v = (random.standard_normal(shape) for shape in ((5, 3), (14, 3), (14, 6)))
    weights = (x @ k.T) ** 2
    expected = weights @ v / weights.sum(axis=1, keepdims=True)

    arrays = {"x": scale * x, "k": k, "v": v}
    found = evaluate(attention_fused().final, arrays, semantics=Float32, block_sizes=BLOCKS)
    np.testing.assert_allclose(found["out"], expected, atol=3e-6)


def test_attention_in_tritons_interpreter():
    random = np.random.default_rng(0)
    x, k, v = (random.standard_normal((n, 16)).astype(np.float32) for n in (20, 40, 40))
    kernel = bb.emit(
        attention_fused(), {"M": 20, "N": 40, "D": 16, "L": 16}, dtype="float32", target="sm_90"
    )
    weights = (x @ k.T).astype(float) ** 2

    expected = weights @ v / weights.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(kernel(x, k, v), expected, atol=1e-5)


MUTANTS = (
    Mutant("by magnitude: both operands of a dot", "RepairByLaw", "element_formulas",
           "if len(waiting) == 1 else expr", "if waiting else expr", "cases"),
    Mutant("by magnitude: the first operand of a dot", "RepairByLaw", "element_formulas",
           "return waiting[0]", "return self._operands(expr)[0]", "cases"),
    Mutant("by magnitude: of any operator", "RepairByLaw", "element_formulas",
           '!= Functional("dot"):', '== "":', "cases"),
)  # fmt: skip


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_mutants_of_dots_and_leads_die(mutant):
    assert judge(mutant, read_cases(GOLDEN / mutant.rule_module)).dead
