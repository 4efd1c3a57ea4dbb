"""What exact comparison sees, and what it does not claim."""

import numpy as np
import pytest
from sympy import isprime, primerange

from blockbuster.interp.equal import check_equal_exactly, prove_equal
from blockbuster.interp.exact import Drawn, Exact, is_prime, random_prime
from blockbuster.interp.residues import INFINITY, NEGATIVE_INFINITY, UNDEFINED, ZeroDenominator
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


def test_maximum_is_a_function_of_a_set_and_no_more():
    np.testing.assert_array_equal(EXACT.larger(A, A), A)
    assert not np.isin(EXACT.larger(A, np.int64(0)), [0, *A]).any()
    assert EXACT.larger(np.int64(3), np.int64(EXACT.prime - 3)) == 3
    both = EXACT.larger(EXACT.larger(A, np.int64(2)), np.int64(1))
    np.testing.assert_array_equal(both, EXACT.larger(A, np.int64(2)))


def test_a_drawn_order_gives_zero_no_special_place():
    drawn = Drawn(seed=7)
    picked = drawn.larger(A, np.int64(0))

    assert 300 < (picked == 0).sum() < 700
    np.testing.assert_array_equal(
        drawn.larger(A, drawn.larger(B, C)), drawn.larger(drawn.larger(A, B), C)
    )


def test_products_are_exact():
    p = EXACT.prime
    expected = [x * y % p for x, y in zip(A.tolist(), B.tolist(), strict=True)]

    np.testing.assert_array_equal(EXACT.mul(A, B), expected)
    assert EXACT.mul(np.int64(p - 1), np.int64(p - 1)) == 1
    total = sum(x * y for x, y in zip(A.tolist(), B.tolist(), strict=True)) % p
    np.testing.assert_array_equal(EXACT.dot(A[None], B[None]), [[total]])


def test_primes_are_prime():
    random = np.random.default_rng(0)

    assert [n for n in range(60) if n > 1 and is_prime(n)] == list(primerange(60))
    assert all(isprime(random_prime(random)) for _ in range(50))
    numbers = [int(n) | 1 for n in random.integers(2**49, 2**50, 500)]
    assert list(map(is_prime, numbers)) == list(map(isprime, numbers))
    for pseudoprime in (3215031751, 3474749660383, 341550071728321):  # to bases 2, 3, 5, 7, ...
        assert not is_prime(pseudoprime)


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
    ("left", "right", "equal", "tier"),
    [
        ("z = b * (b + 1)", "z = b * b + b", True, "A"),
        ("z = silu(b)", "z = b * sigmoid(b)", True, "A"),
        ("z = b ** -0.5", "z = rsqrt(b)", True, "A"),
        ("z = relu(b)", "z = maximum(0, b)", True, "A"),
        ("z = b / 3 * 3", "z = b", True, "A"),
        ("z = b / b", "z = b * 0 + 1", True, "A"),
        ("z = relu(b)", "z = neg(neg(b))", False, "A"),
        ("z = exp(b)", "z = b * 1", False, "A"),
        ("z = abs(b)", "z = b * 1", False, "A"),
        ("z = sqrt(b) ** 2", "z = b * 1", False, "A"),
        ("z = sqrt(b ** 2)", "z = b * 1", False, "A"),
        ("z = where(b >= 1, b, 2)", "z = where(b > 1, b, 2)", False, "A"),
        ("z = where(b >= 99, b, 2)", "z = where(b > 99, b, 2)", False, "A"),
        ("z = where(b >= 1, b, 2)", "z = where(not(b < 1), b, 2)", True, "A"),
        ("z = relu(b)", "z = where(b > 0, b, 0)", True, "A"),
        ("z = exp(where(b > 0, b, -inf))", "z = where(b > 0, exp(b), 0)", True, "A"),
        ("d = exp(b)  z = row_scale(d, c)", "d = row_scale(b, c)  z = exp(d)", False, "A"),
        ("d = row_shift(b, c)  z = row_scale(d, c)", "z = row_scale(b, c)", False, "A"),
        ("z = exp(b + b)", "z = exp(b) * exp(b)", True, "B"),
        ("z = exp(sub0(b, 1))", "z = exp(b) * exp(-1)", True, "B"),
        ("z = log(exp(b))", "z = b * 1", True, "B"),
        ("z = sqrt(exp(b))", "z = exp(b / 2)", True, "B"),
        ("z = relu(2 * b)", "z = 2 * relu(b)", True, "A"),
        ("z = sqrt(b * b)", "z = abs(b)", True, "B"),
        ("z = maximum(exp(b), 0)", "z = exp(b)", True, "B"),
        ("z = b * 1000000", "z = b * 1000001", False, "ordered"),
        ("z = erf(b)", "z = neg(erf(neg(b)))", None, "A"),
        ("z = 1 / (b - b)", "z = 2 / (b - b)", None, "A"),
    ],
)
def test_verdicts(left, right, equal, tier):
    proof = prove_equal(on_blocks(left), on_blocks(right))

    assert (proof.equal, proof.tier) == (equal, tier), proof
    assert (proof.counterexample is not None) == (equal is False)
    assert proof.false_accept_bound is None or proof.false_accept_bound < 1e-15
    assert ("no proven bound" in str(proof)) == (equal is True and proof.false_accept_bound is None)


def test_unknown_says_why():
    left, right = on_blocks("z = 1 / (b - b)"), on_blocks("z = 2 / (b - b)")

    assert "denominator was zero" in prove_equal(left, right).reason


def test_an_honest_sentence():
    text = str(prove_equal(on_blocks("z = b / b"), on_blocks("z = b * 0 + 1")))

    assert "wherever denominators are nonzero" in text
    assert "not shown: other sizes, floating point" in text
    assert "false accept bound: " in text


def test_a_counterexample_can_be_replayed():
    left, right = on_blocks("z = relu(b)"), on_blocks("z = b * 1")

    found = prove_equal(left, right).counterexample

    assert found.semantics == "bb.Float64"
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
