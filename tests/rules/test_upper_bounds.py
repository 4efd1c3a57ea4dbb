"""Bounds of terms: which arguments of exp show to be small, which do not, and how long it takes."""

from functools import reduce

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.rules.array_terms import Term, Terms
from blockbuster.rules.upper_bounds import LARGEST, LONGEST, MOST_SUMS, Bounds, _Search


def is_bounded(function):
    """Whether the value of a function of two matrices and a column shows to be bounded."""
    graph, terms = bb.lower(bb.trace(function, x="M N", y="M N", c="M 1")), Terms()
    made = terms.values(graph)
    (output,) = graph.outputs
    return Bounds(terms).is_bounded(made[output.value])


def top(x, axis=1):
    return bb.max(x, axis=axis, keepdims=True)


def low(x, axis=1):
    return bb.min(x, axis=axis, keepdims=True)


def lse(x, axis=1):
    return bb.logsumexp(x, axis=axis, keepdims=True)


def share(x, axis=1):
    return x / bb.sum(x, axis=axis, keepdims=True)


def centered(x):
    return x - top(x)


@np.errstate(all="ignore")
def values(function):
    """The values of a function for inputs of several sizes and signs."""
    random, sizes, found = np.random.default_rng(0), (1e-3, 1.0, 1e4), []
    for by_x, by_y, by_c, offset in np.ndindex(3, 3, 3, 3):
        x, y = random.standard_normal((2, 30, 3))
        shift = (offset - 1) * 1e4
        x, y = x * sizes[by_x] + shift, y * sizes[by_y]
        found.append(function(x, y, random.standard_normal((30, 1)) * sizes[by_c]))
    return found


BOUNDED = {
    "along rows": lambda x, y, c: x - top(x),
    "along columns": lambda x, y, c: x - top(x, 0),
    "along both": lambda x, y, c: x - bb.max(x),
    "a maximum of maxima": lambda x, y, c: x - bb.maximum(top(y), top(x)),
    "a maximum of the maximum and a number": lambda x, y, c: x - bb.maximum(top(x), 0.0),
    "the larger element": lambda x, y, c: x - bb.maximum(y, x),
    "the maximum of larger elements": lambda x, y, c: x - top(bb.maximum(y, x)),
    "of a product, either way round": lambda x, y, c: x * y - top(y * x),
    "the minimum, of what is taken off": lambda x, y, c: low(x) - x,
    "scaled": lambda x, y, c: 2 * x - top(2 * x),
    "scaled outside": lambda x, y, c: 2 * x - 2 * top(x),
    "negated": lambda x, y, c: -x / 4 - top(-x) / 4,
    "of a sum": lambda x, y, c: x + y - top(y + x),
    "two": lambda x, y, c: x + y - top(x) - top(y, 0),
    "with a bias that is taken off": lambda x, y, c: x + c - top(x) - c,
    "times what is not negative": lambda x, y, c: centered(x) * bb.abs(y),
    "times what rows share and is not negative": lambda x, y, c: x * c * c - top(x * c * c),
    "less what is not negative": lambda x, y, c: centered(x) - bb.abs(y) - y * y,
    "logsumexp": lambda x, y, c: x - lse(x),
    "logsumexp along columns": lambda x, y, c: x - lse(x, 0),
    "log_softmax twice": lambda x, y, c: bb.log_softmax(bb.log_softmax(x), axis=0),
    "-abs": lambda x, y, c: -bb.abs(x),
    "-square": lambda x, y, c: -(x * x) / 3,
    "-relu": lambda x, y, c: -bb.relu(x),
    "minus a sum of absolute values": lambda x, y, c: -bb.sum(bb.abs(x), axis=1),
    "the smaller one": lambda x, y, c: bb.minimum(y, centered(x)),
    "the least": lambda x, y, c: low(centered(x), 0),
    "the larger of two": lambda x, y, c: bb.maximum(centered(x), -bb.abs(y)),
    "the larger of one twice": lambda x, y, c: bb.maximum(centered(x), centered(x)),
    "the largest": lambda x, y, c: top(centered(x), 0),
    "minus the least": lambda x, y, c: -low(bb.abs(x) - 5.0),
    "the largest times what is not negative": lambda x, y, c: top(centered(x), 0) * bb.abs(y),
    "one or the other": lambda x, y, c: bb.where(y > 0, centered(x), -bb.abs(y)),
    "one and again one": lambda x, y, c: bb.where(
        x > 0, centered(x), bb.where(y > 0, -bb.abs(y), centered(x))
    ),
    "masked": lambda x, y, c: bb.where(y > 0, centered(x), -np.inf),
    "masked before": lambda x, y, c: centered(bb.where(y > 0, x, -1e9)),
    "with a number": lambda x, y, c: centered(x) + LARGEST,
    "with what lies between -1 and 1": lambda x, y, c: centered(x) + 70 * bb.tanh(y) - bb.sin(x),
    "a share": lambda x, y, c: share(bb.abs(x)) + share(bb.abs(x), 0),
    "a softmax": lambda x, y, c: bb.softmax(x) + bb.softmax(-x, axis=0),
    "a share of one and it": lambda x, y, c: y * y / (1 + y * y),
}


@pytest.mark.parametrize("name", BOUNDED)
def test_it_shows_to_be_bounded_and_it_is(name):
    assert is_bounded(BOUNDED[name])
    for value in values(BOUNDED[name]):
        assert np.nanmax(value) <= LARGEST + 1e-6


LARGE = {
    "itself": lambda x, y, c: x,
    "itself negated": lambda x, y, c: -x,
    "less the maximum of another": lambda x, y, c: x - top(y),
    "less half the maximum": lambda x, y, c: x - top(x) / 2,
    "twice, less one maximum": lambda x, y, c: 2 * x - top(x),
    "less two maxima": lambda x, y, c: x - 2 * top(x),
    "and the maximum": lambda x, y, c: x + top(x),
    "the maximum less it": lambda x, y, c: top(x) - x,
    "less the minimum": lambda x, y, c: x - low(x),
    "less the smaller maximum": lambda x, y, c: x - bb.minimum(top(x), top(y)),
    "less the mean": lambda x, y, c: x - bb.mean(x, axis=1, keepdims=True),
    "less the sum": lambda x, y, c: x - bb.sum(x, axis=1, keepdims=True),
    "the maximum of columns less that of rows": lambda x, y, c: top(x, 0) - top(x),
    "less the maximum of absolute values of another": lambda x, y, c: x - top(bb.abs(y)),
    "less the maximum without its bias": lambda x, y, c: x + y - top(x),
    "masked after the maximum": lambda x, y, c: bb.where(y > 0, x, -1.0) - top(x),
    "times what has any sign": lambda x, y, c: centered(x) * y,
    "times what may be negative": lambda x, y, c: centered(x) * bb.tanh(y),
    "less the maximum, both times what has any sign": lambda x, y, c: x * c - top(x) * c,
    "a number times what is not negative": lambda x, y, c: bb.tanh(y) * bb.abs(x),
    "a largest one times what is not negative": lambda x, y, c: top(centered(x) + 70.0) * bb.abs(y),
    "minus a largest one": lambda x, y, c: -top(centered(x) - bb.abs(c)),
    "minus a choice": lambda x, y, c: -bb.where(y > 0, x, bb.abs(x)),
    "little of what is very large": lambda x, y, c: bb.where(y > 0, 1e-13 * (x * x * x * x), -1.0),
    "negated after": lambda x, y, c: -centered(x),
    "with what is not negative": lambda x, y, c: centered(x) + bb.abs(y),
    "less what may be negative": lambda x, y, c: centered(x) - y,
    "minus a product": lambda x, y, c: -(x * y),
    "less the logsumexp of another": lambda x, y, c: x - lse(y),
    "less the logsumexp of half": lambda x, y, c: x - lse(x / 2),
    "the larger of it and another": lambda x, y, c: bb.maximum(x, -bb.abs(y)),
    "the smaller of two": lambda x, y, c: bb.minimum(x, y),
    "chosen": lambda x, y, c: bb.where(y > 0, x, -1.0),
    "chosen otherwise": lambda x, y, c: bb.where(y > 0, -1.0, x),
    "a share of numbers of any sign": lambda x, y, c: share(x),
    "a share of another": lambda x, y, c: bb.abs(x) / bb.sum(bb.abs(y), axis=1, keepdims=True),
    "a share of a difference": lambda x, y, c: bb.abs(x) / (bb.abs(x) + y),
    "a softmax times a number": lambda x, y, c: 100 * bb.softmax(x),
    "a tanh times a number": lambda x, y, c: 100 * bb.tanh(x),
    "too large a number": lambda x, y, c: centered(x) + (LARGEST + 1),
    "numbers that are too large together": lambda x, y, c: centered(x) + 50.0 + 40.0,
    "largest ones that are so together": lambda x, y, c: (
        top(centered(x) + 60.0) + top(centered(y) + 70.0)
    ),
    "a largest one, scaled": lambda x, y, c: 3 * top(centered(x) + 50.0),
    "an exponential": lambda x, y, c: bb.exp(x),
    "a square": lambda x, y, c: x * x,
}


@pytest.mark.parametrize("name", LARGE)
def test_it_does_not_show_to_be_bounded_and_it_is_not(name):
    assert not is_bounded(LARGE[name])
    assert max(np.nanmax(value) for value in values(LARGE[name])) > LARGEST


def test_logarithms_count_as_moderate_for_their_exponentials_are_as_large_as_they():
    assert is_bounded(lambda x, y, c: lse(x) + bb.log(y))


# how long it takes ------------------------------------------------------------------


class Made(Terms):
    """Terms made one by one."""

    def of(self, fn, *args, leaf=None):
        return self.number(Term(fn, args, leaf))

    def input(self, name):
        return self.of("input", leaf=name)

    def centered(self, name):
        x = self.input(name)
        return self.of("sub", x, self.of("fold max", x, leaf="N"))

    def sums(self, number):
        """Whether the term shows to be bounded, and how many sums are looked at to say so."""
        search, bounds = _Search(Bounds(self)), Bounds(self)
        bound = search.most(bounds.sum_of(number), 8)
        assert (bound <= LARGEST) == bounds.is_bounded(number)
        return bound <= LARGEST, len(search.found)


def long_sum(terms, count):
    return reduce(lambda a, b: terms.of("add", a, b), map(terms.centered, range(count)))


def maxima_in_maxima(terms, count):
    chain = reduce(lambda a, i: terms.of("maximum", a, terms.input(i)), range(count), 0)
    return terms.of("sub", terms.input(0), chain)


def choices(terms, count):
    """Each is a choice of one that was chosen before, and of the same again."""
    condition = terms.of("gt", terms.input("a"), terms.input("b"))
    return reduce(
        lambda a, i: terms.of("where", condition, a, terms.of("add", a, terms.centered(i))),
        range(count),
        terms.centered("x"),
    )


@pytest.mark.parametrize(
    ("made", "few", "many"), [(long_sum, 8, 2 * LONGEST), (long_sum, 8, 1000),
                              (maxima_in_maxima, 8, 1000), (choices, 2, 1000)]
)  # fmt: skip
def test_a_search_ends_soon_and_what_is_too_long_is_not_bounded(made, few, many):
    short, long = Made(), Made()
    long.input(0)
    short.input(0)

    assert short.sums(made(short, few))[0]
    shown, sums = long.sums(made(long, many))
    assert not shown
    assert sums <= MOST_SUMS


def test_no_more_terms_are_parted_than_a_sum_may_have():
    terms = Made()

    assert len(Bounds(terms).sum_of(long_sum(terms, 1000))) <= LONGEST + 1
