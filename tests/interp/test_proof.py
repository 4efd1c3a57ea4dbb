"""Proofs as data and text: bounds, code that shows a difference, reports, the other tiers."""

import json
from fractions import Fraction

import numpy as np
import pytest

from blockbuster.examples import ALL
from blockbuster.frontend import lower
from blockbuster.interp import equal
from blockbuster.interp.characters import Characters
from blockbuster.interp.degree import SAMPLES, VARIABLE, Degree
from blockbuster.interp.equal import prove_equal
from blockbuster.interp.ordered import Ordered
from blockbuster.interp.semantics import Refused
from blockbuster.ir.parse import parse
from blockbuster.rules import PAPER_RULES, fuse, safe
from tests.interp import examples
from tests.interp.test_exact import on_blocks

B = Characters(seed=3)
RANDOM = np.random.default_rng(5)
X, Y = B.random(RANDOM, (50,)), B.random(RANDOM, (50,))


# the bound -----------------------------------------------------------------------------


def run_degree(body, size=2):
    degree = Degree()
    inputs = {"X": np.full((size, size), VARIABLE), "V": np.full(size, VARIABLE)}
    graph = on_blocks(body)
    return degree, evaluate_degree(graph, inputs, degree)["out"]


def evaluate_degree(graph, inputs, degree):
    size = len(inputs["V"])
    setting = equal.Setting({"M": size, "K": size}, {"M": 1, "K": 1})
    return setting.run(graph, inputs, degree)


@pytest.mark.parametrize(
    ("body", "numerator", "denominator"),
    [
        ("z = b * b + 1", 2, 0),
        ("z = 1 / b", 0, 1),
        ("z = 1 / b + 1 / (b + 1)", 1, 2),
        ("z = b ** 3", 3, 0),
        ("z = b ** -2", 0, 2),
        ("z = exp(b * b)", 1, 0),
        ("z = row_scale(b, c)", 2, 0),
        ("z = where(b > 0, b * b, 1)", 3, 0),
    ],
)
def test_degrees(body, numerator, denominator):
    _, out = run_degree(body)

    np.testing.assert_array_equal(out, np.full((2, 2), numerator + denominator * 1j))


def test_arguments_of_oracles_are_counted():
    degree, _ = run_degree("z = exp(b * b) / b")

    assert degree.noted.arguments == {"exp": (4, 8)}
    assert degree.noted.denominators == 4


def test_the_bound_grows_with_the_program_and_shrinks_with_trials():
    polynomial = prove_equal(on_blocks("z = b * (b + 1)"), on_blocks("z = b * b + b"), trials=1)
    oracles = prove_equal(on_blocks("z = exp(b + b)"), on_blocks("z = exp(2 * b)"), trials=1)
    more = prove_equal(on_blocks("z = exp(b + b)"), on_blocks("z = exp(2 * b)"), trials=8)

    assert polynomial.false_accept_bound == 4 / SAMPLES
    assert polynomial.false_accept_bound < oracles.false_accept_bound < 1e-6
    assert more.false_accept_bound < 1e-15


def test_a_vacuous_bound_is_called_so():
    left, right = on_blocks("z = b ** 1e16"), on_blocks("z = b ** 1e16 * 1")

    proof = prove_equal(left, right, trials=1)

    assert proof.equal
    assert proof.false_accept_bound == 1
    assert "vacuous" in str(proof)


@pytest.mark.parametrize("example", ALL, ids=lambda e: e.name)
def test_the_bound_of_the_examples(example):
    derivation = fuse(lower(example.program()))

    assert prove_equal(derivation.start, derivation.final).false_accept_bound < 1e-15


# counterexamples -----------------------------------------------------------------------


@pytest.mark.parametrize("exactly", [False, True])
def test_a_counterexample_is_code_that_shows_the_difference(capsys, exactly):
    left, right = on_blocks("z = relu(b)"), on_blocks("z = b * 1")
    if exactly:
        found = equal.check_equal_exactly(left, right)
    else:
        found = prove_equal(left, right).counterexample

    exec(str(found), {})

    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == 2
    assert shown[0] != shown[1]


def test_a_difference_below_rounding_is_code_too(capsys):
    found = prove_equal(on_blocks("z = b * 1000000"), on_blocks("z = b * 1000001")).counterexample

    exec(str(found), {})

    shown = capsys.readouterr().out.splitlines()
    assert shown[0] != shown[1]


def test_a_counterexample_is_small():
    found = prove_equal(on_blocks("z = relu(b)"), on_blocks("z = b * 1")).counterexample

    assert set(found.sizes.values()) <= {1, 2}


def test_a_dropped_term_and_an_early_max():
    start = parse(examples.ATTENTION_START)
    wrong = parse(examples.ATTENTION_FINAL.replace("yield +t", "yield max t"))

    data = json.loads(prove_equal(start, wrong).to_json())

    assert data["equal"] is False
    assert data["counterexample"]["differing"] == ["out"]
    assert "bb.evaluate" in data["counterexample"]["code"]


# reports -------------------------------------------------------------------------------


def test_every_step_is_proved():
    derivation = fuse(lower(ALL[0].program()), PAPER_RULES)
    told = []

    report = derivation.prove(trials=2, progress=told.append)

    assert report.equal is True
    assert len(report.entries) == len(told) == 18
    assert report.first_not_equal is None
    assert "swap-scale-dot at /M" in str(report)
    assert "not shown: other sizes, floating point" in str(report)
    assert json.loads(report.to_json())["equal"] is True
    assert derivation.bisect(lambda g: prove_equal(derivation.start, g, trials=1).equal) is None


# tier B and ordered arithmetic ---------------------------------------------------------


def test_exp_is_a_character():
    f = B.scalars
    total, product = f["exp"](f["add"](X, Y)), f["mul"](f["exp"](X), f["exp"](Y))

    assert B.compared(total, product) == (False, False)
    assert B.compared(f["log"](f["exp"](X)), X) == (False, False)
    assert B.compared(f["sqrt"](f["exp"](f["add"](X, X))), f["exp"](X)) == (False, False)
    assert B.compared(f["exp"](X), f["exp"](Y))[0]


def test_exponentials_nest_as_deep_as_the_chain():
    x = X
    for _ in range(3):
        x = B.scalars["exp"](x)
        assert B.compared(x, x) == (False, False)

    assert B.compared(B.scalars["exp"](x), x) == (False, True)


def test_safe_forms_are_equal_in_tier_b():
    start = fuse(lower(ALL[0].program())).final
    proof = prove_equal(start, safe(start))

    assert (proof.equal, proof.tier, proof.false_accept_bound) == (True, "B", None)
    assert "randomized check, no proven bound" in str(proof)


def test_a_safe_form_without_its_rescaling_is_wrong():
    start = fuse(lower(ALL[0].program())).final
    wrong = parse(safe(start).show().replace("x * exp(sub0(r, r2))", "x * exp(sub0(r2, r))"))

    assert wrong != safe(start)
    assert prove_equal(start, wrong).equal is False


def test_ordered_arithmetic():
    f = Ordered().scalars
    n = Ordered().item(np.array([-2.0, 0, 3]))

    assert f["exp"](n).tolist() == [Fraction(1, 4), 1, 8]
    assert f["log"](f["exp"](n)).tolist() == n.tolist()
    assert f["sqrt"](f["square"](n)).tolist() == [2, 0, 3]
    with pytest.raises(Refused, match="perfect square"):
        f["sqrt"](n + 2)


def test_trials_must_be_positive():
    with pytest.raises(ValueError, match="at least 1"):
        prove_equal(on_blocks("z = b * 1"), on_blocks("z = b * 2"), trials=0)
