"""Softmax-like functions in random contexts: every form, made safe, is as good as eager NumPy."""

import warnings
from functools import cache

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.interp.semantics import Float32
from tests.random_programs.softmax_contexts import (
    ALONG,
    POINTWISE,
    READERS,
    SHAPES,
    VIEWS,
    context,
)

FAST = range(40)
SLOW = [range(first, first + 20) for first in range(40, 600, 20)]
TIMES = 4
DIGITS = 1e-5  # of the largest value: sums of rows of some ten elements in another order

ROUNDED = (164, 447)
"""Contexts in which scores of 1e4, of which float32 has digits of 1e-3, are taken from each other.

What is left is as large as those digits: eager's error is next to none in one, by luck (a mean over
an axis of one element is taken off), and in the other ours is smaller for other scores.
"""


@cache
def made(seed):
    """The context of a seed, and every form of its program made safe."""
    drawn = context(seed)
    arrays = {name: a.astype(np.float32) for name, a in drawn.drawn(1.0, seed).items()}
    derivation = bb.fuse(bb.lower(bb.trace(drawn, **arrays)))
    return drawn, [bb.safe(form) for form in (derivation.start, *derivation.snapshots)]


def inputs(drawn, seed):
    """Scores near 1 and near 1e4, and scores near 1 that are all moved by 1e4 or by -1e4."""
    for scale, shift in ((1.0, 0.0), (1e4, 0.0), (1.0, 1e4), (1.0, -1e4)):
        arrays = drawn.drawn(scale, seed)
        arrays["x"] = arrays["x"] + shift
        yield {name: array.astype(np.float32) for name, array in arrays.items()}


def assert_as_good_as_eager(seed):
    drawn, forms = made(seed)
    digits = 1e-3 if seed in ROUNDED else DIGITS
    for single in inputs(drawn, seed):
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exact = np.asarray(drawn(**{n: a.astype(np.float64) for n, a in single.items()}))
            eager = np.asarray(drawn(**single))
            found = [bb.evaluate(form, single, semantics=Float32)["out"] for form in forms]
        finite = np.isfinite(eager) & np.isfinite(exact)
        right = exact[finite]
        size = max(1.0, float(np.max(np.abs(right), initial=0.0)))
        error = float(np.max(np.abs(eager[finite] - right), initial=0.0))
        for form, value in enumerate(found):
            ours = np.asarray(value)[finite]
            assert np.isfinite(ours).all(), f"form {form} of {seed}: {drawn}"
            worst = float(np.max(np.abs(ours - right), initial=0.0))
            assert worst <= TIMES * error + digits * size, f"form {form} of {seed}: {drawn}"


def assert_nothing_is_named(seed):
    drawn, forms = made(seed)
    for form in forms:
        assert bb.overflowing(form) == (), f"{seed}: {drawn}"


@pytest.mark.parametrize("seed", FAST)
def test_each_form_made_safe_is_finite_and_right_where_eager_is(seed):
    assert_as_good_as_eager(seed)


@pytest.mark.parametrize("seed", FAST)
def test_nothing_is_named_in_a_form_made_safe(seed):
    assert_nothing_is_named(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seeds", SLOW)
def test_more_forms_made_safe_are_finite_and_right_where_eager_is(seeds):
    for seed in seeds:
        assert_as_good_as_eager(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seeds", SLOW)
def test_nothing_is_named_in_more_forms_made_safe(seeds):
    for seed in seeds:
        assert_nothing_is_named(seed)


# how various they are ---------------------------------------------------------------

MANY = range(300)
SCORES = ("_scaled", "_biased", "_masked", "_multiplied")
PICKED = ("_read_otherwise",)  # it picks a view, whose name the step has


def test_each_kind_of_scores_view_and_reader_appears():
    steps = [step for seed in MANY for step in context(seed).steps]
    found = {step.__qualname__.split(".")[0] for step in steps}

    assert found == {*SCORES, *(fn.__name__ for fn in (*READERS, *VIEWS))} - {*PICKED}


@pytest.mark.parametrize("name", [*ALONG, *POINTWISE])
def test_each_function_appears_alone_and_behind_another(name):
    def places(words):
        functions = [word.split(", axis")[0] for word in words]
        functions = [word for word in functions if word in ALONG or word in POINTWISE]
        return [at for at, word in enumerate(functions) if word == name]

    found = [at for seed in MANY for at in places(context(seed).words)]

    assert 0 in found
    assert max(found) > 0


def test_axes_count_from_both_ends_and_every_shape_appears():
    axes = {int(w.split(", axis ")[1]) for s in MANY for w in context(s).words if ", axis " in w}

    assert axes >= {-3, -2, -1, 0, 1, 2}
    assert {context(seed).inputs["x"] for seed in MANY} == {*SHAPES}


def test_a_seed_always_gives_the_same_context():
    for seed in FAST:
        first, again = context(seed), context(seed)

        assert (str(first), first.inputs) == (str(again), again.inputs)
        arrays = first.drawn(1.0, seed)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            np.testing.assert_array_equal(first(**arrays), again(**arrays))


def test_contexts_have_bare_exponentials_that_safe_removes():
    """Else nothing would be tested: before safe, most forms have one that can overflow."""
    drawn = [bb.fuse(bb.lower(bb.trace(c, **c.drawn(1.0, 0)))).start for c in map(context, FAST)]

    assert sum(bool(bb.overflowing(form)) for form in drawn) >= len(FAST) // 4
