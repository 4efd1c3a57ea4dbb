"""Which exponentials `bb.overflowing` names: where infinities meet, and never in the library's."""

import re
import warnings

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.rules.overflow import infinite_between

DIMS = {"x": "M N", "y": "M N"}
exp = bb.exp


def start(function):
    return bb.lower(bb.trace(function, **DIMS))


def takers(graph):
    """The functions in which exponentials are said to meet something."""
    pattern = r"exp \(\S+:\d+\) can overflow: (\w+) \(\S+:\d+\) takes it as it is written"
    found = [re.fullmatch(pattern, sentence) for sentence in bb.overflowing(graph)]
    assert all(found)
    return [match[1] for match in found]


def top(x, axis=1):
    return bb.max(x, axis=axis, keepdims=True)


def total(x, axis=1):
    return bb.sum(x, axis=axis, keepdims=True)


MEET = {
    "inf / inf, a bare softmax": (lambda x, y: exp(x) / total(exp(x)), "mul"),
    "inf * 0, where it is chosen": (
        lambda x, y: exp(x) * bb.where(y > 0, 1 / total(exp(x)), 0.0), "mul",
    ),
    "inf / inf, of another": (lambda x, y: exp(x) / exp(y), "div"),
    "inf / inf, of itself": (lambda x, y: exp(x) / exp(x), "div"),
    "inf / inf, a bare sigmoid": (lambda x, y: exp(x) / (1 + exp(x)), "div"),
    "inf / inf, of a square": (lambda x, y: bb.square(exp(x)) / (1 + exp(x)), "div"),
    "inf / inf, chosen before": (lambda x, y: bb.where(x > 0, exp(x), 1.0) / (1 + exp(x)), "div"),
    "0 / 0": (lambda x, y: (1 / exp(x)) / (1 / exp(y)), "div"),
    "0 / 0, of bells": (lambda x, y: exp(-x * x) / total(exp(-x * x)), "mul"),
    "inf * 0, a reciprocal": (lambda x, y: exp(x) * (1 / (1 + exp(x))), "mul"),
    "inf * 0, opposite exponents": (lambda x, y: exp(x) * exp(-x), "mul"),
    "inf * 0, the maximum taken off after": (lambda x, y: exp(x) * exp(-top(x)), "mul"),
    "inf - inf": (lambda x, y: exp(x) - exp(y), "sub"),
    "inf - inf, of opposite exponents": (lambda x, y: exp(x) - exp(-x), "sub"),
    "log(inf), a bare softplus": (lambda x, y: bb.log(1 + exp(x)), "log"),
    "log(inf), log1p": (lambda x, y: bb.log1p(exp(x)), "log1p"),
    "log(inf), of a matmul": (lambda x, y: bb.log(exp(x) @ exp(y).T + 1), "log"),
    "log(0)": (lambda x, y: bb.log(1 / exp(x)), "log"),
    "the root of inf": (lambda x, y: bb.sqrt(exp(x)), "sqrt"),
    "less the maximum of another": (lambda x, y: exp(x - top(y)) / (1 + exp(x - top(y))), "div"),
    "less the minimum": (
        lambda x, y: bb.log1p(exp(x - bb.min(x, axis=1, keepdims=True))), "log1p"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MEET)
def test_where_infinities_meet_the_exponential_and_its_taker_are_named(name):
    function, taker = MEET[name]

    assert takers(start(function)) == [taker]


@pytest.mark.parametrize("name", MEET)
def test_what_is_named_is_not_finite_in_float32_for_some_input(name):
    function, _ = MEET[name]
    values = []
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for x, y in np.ndindex(5, 5):
            spread = np.linspace(0.1, 1.0, 6, dtype=np.float32).reshape(2, 3)
            values.append(function(spread * (x - 2) * 200, spread * (y - 2) * 200))

    assert not all(np.isfinite(value).all() for value in values)


GROW = {
    "an exponential": lambda x, y: exp(x),
    "a sum": lambda x, y: total(exp(x)),
    "a sum of two": lambda x, y: exp(x) + exp(-x),
    "a product of two": lambda x, y: exp(x) * exp(y),
    "a matmul": lambda x, y: exp(x) @ exp(y).T,
    "a scale": lambda x, y: exp(x) * y / 3,
    "a sigmoid by hand": lambda x, y: 1 / (1 + exp(-x)),
    "a silu by hand": lambda x, y: x / (1 + exp(-x)),
    "a reciprocal root": lambda x, y: bb.rsqrt(1 + exp(x)),
    "what is bounded after all": lambda x, y: bb.log1p(bb.tanh(exp(x))),
    "a logarithm of what does not vanish": lambda x, y: bb.log(1 / exp(x) + bb.abs(y)),
}  # fmt: skip


@pytest.mark.parametrize("name", GROW)
def test_what_only_grows_or_vanishes_is_not_named(name):
    assert takers(start(GROW[name])) == []


SMALL = {
    "less the maximum": lambda x: x - top(x),
    "less the maximum of columns": lambda x: x - top(x, 0),
    "less the logarithm of sums": lambda x: x - bb.logsumexp(x, axis=1, keepdims=True),
    "minus a square": lambda x: -(x * x),
    "50 tanh": lambda x: 50 * bb.tanh(x),
    "at most 0": lambda x: bb.minimum(x, 0.0),
}


@pytest.mark.parametrize("name", SMALL)
def test_exponentials_of_what_is_bounded_from_above_are_not_named_where_infinities_meet(name):
    def program(x, y):
        e = exp(SMALL[name](x))
        return bb.log(1 + e) * e / (1 + e) - e

    found = takers(start(program))

    assert found == ["log"] * (name == "less the logarithm of sums")  # the one inside of it


def test_100_tanh_is_too_large_for_an_exponential():
    assert takers(start(lambda x, y: bb.log(1 + exp(100 * bb.tanh(x))))) == ["log"]


LIBRARY = {
    "softmax": lambda x, axis: bb.softmax(x, axis=axis),
    "softmax, safe": lambda x, axis: bb.softmax(x, axis=axis, safe=True),
    "softmin": lambda x, axis: bb.softmax(-x, axis=axis),
    "log_softmax": lambda x, axis: bb.log_softmax(x, axis=axis),
    "logsumexp": lambda x, axis: bb.logsumexp(x, axis=axis),
    "x - logsumexp": lambda x, axis: exp(x - bb.logsumexp(x, axis=axis, keepdims=True)),
    "logaddexp": lambda x, axis: np.logaddexp(x, -x),
    "sigmoid": lambda x, axis: bb.sigmoid(x) * bb.softmax(x, axis=axis),
    "silu": lambda x, axis: bb.silu(bb.softmax(x, axis=axis)),
    "gelu": lambda x, axis: bb.gelu(x),
    "tanh": lambda x, axis: bb.tanh(bb.log_softmax(x, axis=axis)),
    "softmax of a softmax": lambda x, axis: bb.softmax(bb.softmax(x, axis=0), axis=axis),
    "layer norm": lambda x, axis: bb.softmax(bb.layer_norm(x), axis=axis),
}


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", LIBRARY)
def test_in_the_librarys_functions_nothing_is_left_when_safe_is_done(name, axis):
    derivation = bb.fuse(start(lambda x, y: LIBRARY[name](x, axis)))

    for form in (derivation.start, *derivation.snapshots):
        assert takers(bb.safe(form)) == []


REMOVED = [name for name in MEET if name.startswith(("inf / inf, a bare softmax", "inf / inf, of",
                                                     "0 / 0", "inf * 0, opp", "inf * 0, the"))
           and "square" not in name]  # fmt: skip


@pytest.mark.parametrize("name", REMOVED)
def test_products_and_quotients_of_exponentials_are_taken_apart_by_safe(name):
    assert takers(bb.safe(start(MEET[name][0]))) == []


@pytest.mark.parametrize("name", [name for name in MEET if "1 + " in name or "softplus" in name])
def test_sums_with_other_things_stay_and_stay_named(name):
    assert takers(bb.safe(start(MEET[name][0]))) == [MEET[name][1]]


def test_values_that_are_infinite_where_the_whole_is_not():
    """Whoever stores the exponentials of a bare softmax, or their sum, stores infinity."""

    def softmax(x, y):
        e = exp(x)
        return {"e": e, "s": total(e), "p": e / total(e), "grows": exp(y * 2) @ x.T}

    assert infinite_between(start(softmax)) == ("e", "s")


def test_each_exponential_is_named_once_for_each_taker():
    def program(x, y):
        e = exp(x)
        return bb.log(1 + e) + bb.log(2 + e) + bb.log1p(exp(y))

    assert takers(start(program)) == ["log", "log1p"]
