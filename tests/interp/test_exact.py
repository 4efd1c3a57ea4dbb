"""What exact comparison sees, and what it does not claim."""

import numpy as np
import pytest

from blockbuster.interp.equal import check_equal_exactly, prove_equal
from blockbuster.interp.exact import INFINITY, NEGATIVE_INFINITY, UNDEFINED, Exact, ZeroDenominator
from blockbuster.ir.parse import parse
from tests.interp import examples

EXACT = Exact(seed=7)
RANDOM = np.random.default_rng(1)
A, B, C = RANDOM.integers(0, EXACT.prime, (3, 1000))


@pytest.mark.parametrize("name", ["add", "mul", "maximum", "minimum"])
def test_folds_are_associative_and_commutative(name):
    f = EXACT.scalars[name]

    np.testing.assert_array_equal(f(f(A, B), C), f(A, f(B, C)))
    np.testing.assert_array_equal(f(A, B), f(B, A))


def test_division_undoes_multiplication():
    np.testing.assert_array_equal(EXACT.scalars["div"](EXACT.mul(A + 1 - A, B + 1), B + 1)[0], 1)
    with pytest.raises(ZeroDenominator):
        EXACT.inverse(np.array([1, 0]))


def test_maximum_gives_zero_no_special_place():
    picked = EXACT.larger(A, np.int64(0))

    assert 300 < (picked == 0).sum() < 700
    np.testing.assert_array_equal(EXACT.larger(A, A), A)


def test_infinities_are_symbols():
    low, high = np.int64(NEGATIVE_INFINITY), np.int64(INFINITY)

    assert EXACT.exp(low) == 0
    assert EXACT.larger(low, A[0]) == A[0] == EXACT.smaller(high, A[0])
    assert EXACT.add(low, A[0]) == low == EXACT.scalars["sub0"](low, low)
    assert EXACT.add(low, high) == UNDEFINED == EXACT.scalars["sub"](low, low)
    assert EXACT.neg(low) == high


def test_small_integers_keep_their_order():
    n = EXACT.item(np.arange(-3.0, 4))

    np.testing.assert_array_equal(EXACT.scalars["ge"](n[:, None], n), np.tri(7))


def on_blocks(body):
    return parse(f"""graph(X: M,K[M,K], V: M[M]) {{
      Y = map M (x in !X, v in !V) {{
        y = map K (b in !x, c = v) {{ {body} yield z }}
        yield y
      }}
      return Y
    }}""")


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        ("z = b * (b + 1)", "z = b * b + b", True),
        ("z = silu(b)", "z = b * sigmoid(b)", True),
        ("z = b ** -0.5", "z = rsqrt(b)", True),
        ("z = relu(b)", "z = maximum(0, b)", True),
        ("z = b / 3 * 3", "z = b", True),
        ("z = relu(b)", "z = neg(neg(b))", False),
        ("z = exp(b)", "z = b * 1", False),
        ("z = abs(b)", "z = b * 1", False),
        ("d = exp(b)  z = row_scale(d, c)", "d = row_scale(b, c)  z = exp(d)", False),
        ("d = row_shift(b, c)  z = row_scale(d, c)", "z = row_scale(b, c)", False),
        ("z = exp(b + b)", "z = exp(b) * exp(b)", None),
        ("z = relu(2 * b)", "z = 2 * relu(b)", None),
        ("z = 1 / (b - b)", "z = 2 / (b - b)", None),
        ("z = exp(sub0(b, 1))", "z = exp(b) * exp(-1)", None),
    ],
)
def test_verdicts(left, right, equal):
    proof = prove_equal(on_blocks(left), on_blocks(right))

    assert proof.equal is equal
    assert (proof.counterexample is not None) == (equal is False)
    assert proof.false_accept_bound is None


def test_unknown_says_why():
    left, right = on_blocks("z = exp(sub0(b, 1))"), on_blocks("z = exp(b) * exp(-1)")
    assert "tier B" in prove_equal(left, right).reason

    left, right = on_blocks("z = 1 / (b - b)"), on_blocks("z = 2 / (b - b)")
    assert "denominator was zero" in prove_equal(left, right).reason


def test_a_counterexample_can_be_replayed():
    left, right = on_blocks("z = relu(b)"), on_blocks("z = b * 1")

    found = prove_equal(left, right).counterexample

    assert found.semantics == "float64"
    np.testing.assert_array_equal(found.left["out"], np.maximum(found.inputs["X"], 0))
    np.testing.assert_array_equal(found.right["out"], found.inputs["X"])


@pytest.mark.parametrize("family", ["ATTENTION", "LAYER_NORM", "SWIGLU"])
def test_the_papers_programs_keep_their_meaning(family):
    start, *later = (
        parse(text) for name, text in vars(examples).items() if name.startswith(family)
    )

    for graph in later:
        proof = prove_equal(start, graph)
        assert proof.equal, proof


def test_a_dropped_term_is_found():
    broken = examples.ATTENTION_FINAL.replace("yield +t", "yield max t")

    assert check_equal_exactly(parse(examples.ATTENTION_START), parse(broken)) is not None
    assert prove_equal(parse(examples.ATTENTION_START), parse(broken)).equal is False


def test_interfaces_must_agree():
    other = parse("graph(Q: M[M]) { return Q }")

    with pytest.raises(ValueError, match="read different arrays"):
        prove_equal(other, on_blocks("z = b * 1"))


def test_the_same_program_needs_no_trial():
    assert prove_equal(on_blocks("z = b * 1"), on_blocks("z = b * 1")).false_accept_bound == 0
