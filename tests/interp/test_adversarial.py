"""Pairs that try to be called equal and are not, or are equal where one might doubt it."""

import functools

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.interp.borders import borders, crossings
from blockbuster.interp.equal import prove_equal
from blockbuster.interp.setting import Setting
from blockbuster.ir.parse import parse
from tests.interp.test_exact import on_blocks

TINY = Setting({"M": 1, "K": 1}, {"M": 1, "K": 1})


@pytest.mark.parametrize(
    ("left", "right"),
    [
        # 1/x and 0 at 0 is no inverse
        ("z = recip0(b) * b", "z = b * 0 + 1"),
        ("z = recip0(b > 0) * (b > 0)", "z = b * 0 + 1"),
        ("z = recip0(relu(b)) * relu(b)", "z = b * 0 + 1"),
        # branches that few inputs take
        ("z = where(b * b > 4000, b, 2)", "z = where(b * b > 4001, b, 2)"),
        ("z = where(b + b > 401, b, 2)", "z = where(b + b > 402, b, 2)"),
        ("z = where(b * b == 9, 1, 0)", "z = b * 0"),
        ("z = where(b * b + b == 4032, 1, 0)", "z = b * 0"),
        ("z = where(b == 3.7, 1, 0)", "z = b * 0"),
        ("z = where(b * b < 4000, b, 1)", "z = where(b * b < 4000, b, b)"),
        ("z = relu(b * b - 2500)", "z = 2 * relu(b * b - 2500)"),
        ("z = tanh(b) + relu(b * b - 500)", "z = tanh(b)"),
        ("z = minimum(maximum(b, 300), 4000)", "z = minimum(maximum(b, 301), 4000)"),
        ("z = where(b >= 1, b, 2)", "z = where(b > 1, b, 2)"),
        # sizes, infinities, roots
        ("z = b * |M|", "z = b * |K|"),
        ("z = b * 0", "z = b * 0 * inf"),
        ("z = exp(log(b))", "z = b * 1"),
        ("z = sqrt(b) * sqrt(b)", "z = abs(b)"),
        ("z = log(b * b)", "z = 2 * log(b)"),
        ("z = maximum(b, 0 - b)", "z = b * 1"),
        ("z = exp(b) * 1e-30", "z = b * 0"),
        ("z = b * 9007199254740993", "z = b * 9007199254740994"),
        # rounding
        ("z = cast float16(b)", "z = b * 1"),
        ("z = cast float16(b)", "z = cast bfloat16(b)"),
        ("d = cast float16(b)  z = d * 3", "d = b * 3  z = cast float16(d)"),
    ],
)
def test_different(left, right):
    assert not prove_equal(on_blocks(left), on_blocks(right)).equal


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("z = where(exp(b) > 4000, b, 2)", "z = where(exp(b) > 4001, b, 2)"),
        ("z = where(exp(b) == 4, b, 2)", "z = b * 0 + 2"),
        ("z = relu(exp(b) - 1000)", "z = b * 0"),
    ],
)
def test_what_cannot_be_told_is_not_called_equal(left, right):
    assert prove_equal(on_blocks(left), on_blocks(right)).equal is None


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("z = where(b > 0, b, b)", "z = b * 1"),
        ("z = where(b > 0, 1, 0)", "z = (b > 0) * 1"),
        ("z = (b > 0) * (b <= 0)", "z = b * 0"),
        ("z = maximum(b, 2)", "z = where(b > 2, b, 2)"),
        ("z = where(b > 0, b, neg(b))", "z = abs(b)"),
        ("z = where(b * 3 > 400, b, 2)", "z = where(b + b + b > 400, b, 2)"),
        ("z = where(exp(b) * exp(b) > 3, b, 2)", "z = where(exp(2 * b) > 3, b, 2)"),
        ("z = sqrt(b * b)", "z = maximum(b, neg(b))"),
        ("z = maximum(b, 4 - b)", "z = (4 + abs(2 * b - 4)) / 2"),
        ("d = cast float16(b)  z = d * 3", "d = cast float16(b)  z = d + d + d"),
        ("z = cast float16(b)", "d = b * 2 - b  z = cast float16(d)"),
    ],
)
def test_equal(left, right):
    assert prove_equal(on_blocks(left), on_blocks(right)).equal is True


def test_a_zero_that_is_masked_is_no_accident():
    """recip0 of a masked row is 0 in tier A too."""
    zero = prove_equal(on_blocks("z = recip0(exp(b * 0 - inf))"), on_blocks("z = b * 0"))
    half = prove_equal(on_blocks("z = recip0(b * 0 + 2)"), on_blocks("z = b * 0 + 0.5"))

    assert (half.equal, half.tier) == (True, "A")
    assert (zero.equal, zero.tier) == (True, "A")


def masked(condition):
    def program(s):
        i, j = bb.arange(s.shape[0]), bb.arange(s.shape[1])
        return np.where(condition(i[:, None], j[None, :]), s, 0.0)

    return bb.lower(bb.trace(program, s="M N"))


def test_masks_of_index_vectors():
    causal = masked(lambda i, j: i >= j)

    assert prove_equal(causal, masked(lambda i, j: i - j >= 0)).equal is True
    assert prove_equal(causal, masked(lambda i, j: i + 1 > j)).equal is True
    assert prove_equal(causal, masked(lambda i, j: i > j)).equal is False
    assert prove_equal(causal, masked(lambda i, j: i >= j + 1)).equal is False
    assert prove_equal(causal, masked(lambda i, j: j >= i)).equal is False


def test_dims_of_inputs_must_agree():
    one = parse("graph(X: M,K[M,K]) { return X }")
    for other in ("graph(X: K,M[K,M]) { return X }", "graph(X: M[M]) { return X }"):
        with pytest.raises(ValueError, match=r"read X with different dims, .* name them alike"):
            prove_equal(one, parse(other))


def test_a_name_stands_for_one_function():
    def calling(values):
        def f(x):
            return values(x)

        return bb.lower(bb.trace(lambda x: bb.custom(f, x, shape=x.shape), x="M"))

    with pytest.raises(ValueError, match="two functions by the name f"):
        prove_equal(calling(np.sin), calling(np.cos))


def test_borders_are_found_by_bisection():
    graph = on_blocks("z = where(b * b > 30, b, where(b > 100, 1, 2))")
    near, far = ({"X": np.full((1, 1), x), "V": np.ones(1)} for x in (0.0, 10.0))

    assert borders(graph, TINY, near, far) == pytest.approx([30**0.5 / 10])


def test_the_lines_of_exponentials_stay_short():
    graph = on_blocks("z = where(b > 1, b, 2)")
    for literal, largest in ((True, 2**20), (False, 4)):
        tried = crossings((graph,), TINY, np.random.default_rng(0), literal=literal)
        assert max(np.abs(inputs["X"]).max() for inputs, _ in tried) == largest


def test_a_long_chain_of_functions_is_evaluated():
    program = bb.lower(bb.trace(lambda x: functools.reduce(add_half, range(400), x), x="M"))
    fused = bb.fuse(program).final

    assert bb.evaluate(fused, {"x": np.zeros(2)})["out"].tolist() == [200.0, 200.0]
    assert prove_equal(program, fused, trials=1).equal


def add_half(x, _):
    return x + 0.5
