"""Which shifts may leave a product: minus the mean of a row whose squares are summed, too."""

import pytest

import blockbuster as bb
from blockbuster.rules.array_terms import Terms
from blockbuster.rules.mean_shifts import digits_would_cancel, not_centered

DIMS = {"x": "M K", "y": "M K", "v": "M"}


def reason(function, dim="K"):
    """Why the second value may not leave sums of the first along ``dim``, or ""."""
    graph = bb.lower(bb.trace(function, **DIMS))
    elements, shift, *_ = (output.value for output in graph.outputs)
    terms = Terms()
    known = terms.values(graph)
    found = digits_would_cancel(graph, elements, shift, dim)

    assert not_centered(terms, known[elements], known[shift], dim) == found
    return found


def mean(x, axis=1):
    return bb.mean(x, axis=axis)


def total(x, axis=1):
    return bb.sum(x, axis=axis)


def squares(x, axis=1):
    return bb.sum(bb.square(x), axis=axis)


def size(x):
    return x.shape[1]


CENTERED = {
    "minus the mean": lambda x, y, v: (x, -mean(x), squares(x)),
    "the mean square": lambda x, y, v: (x, -mean(x), mean(bb.square(x))),
    "squares as products": lambda x, y, v: (x, -mean(x), total(x * x)),
    "a variance": lambda x, y, v: (x, -mean(x), mean(x * x) - mean(x) * mean(x)),
    "written as a quotient": lambda x, y, v: (x, total(x) / -size(x), squares(x)),
    "written as a product": lambda x, y, v: (x, -1.0 * total(x) * (1 / size(x)), squares(x)),
    "twice its half": lambda x, y, v: (x, -2 * (mean(x) / 2), squares(x)),
    "zero less the mean": lambda x, y, v: (x, 0 - mean(x), squares(x)),
    "two means less three": lambda x, y, v: (x, 2 * mean(x) - 3 * mean(x), squares(x)),
    "of a sum": lambda x, y, v: (x + y, -mean(x + y), squares(x + y)),
    "of a sum, either way round": lambda x, y, v: (x + y, -mean(y + x), squares(y + x)),
    "of columns": lambda x, y, v: (x, -mean(x, 0), squares(x, 0)),
}


@pytest.mark.parametrize("name", CENTERED)
def test_minus_the_mean_may_leave_however_it_is_written(name):
    assert reason(CENTERED[name], "M" if "columns" in name else "K") == ""


def test_the_sums_may_stand_in_other_loops():
    form = bb.fuse(bb.lower(bb.trace(CENTERED["a variance"], **DIMS))).final
    terms = Terms()
    known = terms.values(form)
    elements, shift, _ = (known[output.value] for output in form.outputs)

    assert not_centered(terms, elements, shift, "K") == ""


CANCEL = {
    "no variance": lambda x, y, v: (x, -mean(x)),
    "the variance of another": lambda x, y, v: (x, -mean(x), squares(y)),
    "the variance of twice": lambda x, y, v: (x, -mean(x), squares(2 * x)),
    "the variance along columns": lambda x, y, v: (x, -mean(x), squares(x, 0)),
    "a sum of cubes": lambda x, y, v: (x, -mean(x), total(x * x * x)),
    "a largest square": lambda x, y, v: (x, -mean(x), bb.max(x * x, axis=1)),
    "a vector": lambda x, y, v: (x, v, squares(x)),
    "the mean and a vector": lambda x, y, v: (x, v - mean(x), squares(x)),
    "the mean of another": lambda x, y, v: (x, -mean(y), squares(x), total(x)),
    "the mean of columns": lambda x, y, v: (x, -mean(x, 0), squares(x)),
    "plus the mean": lambda x, y, v: (x, mean(x), squares(x)),
    "twice the mean": lambda x, y, v: (x, -2 * mean(x), squares(x)),
    "the mean and a number": lambda x, y, v: (x, 1 - mean(x), squares(x)),
    "the sum": lambda x, y, v: (x, -total(x), squares(x)),
    "the sum over another size": lambda x, y, v: (x, total(x) / -x.shape[0], squares(x)),
    "the sum over a number": lambda x, y, v: (x, total(x) / -64, squares(x)),
    "the maximum": lambda x, y, v: (x, -bb.max(x, axis=1), squares(x)),
    "a rounded mean": lambda x, y, v: (x, -bb.abs(mean(x)), squares(x)),
    "the mean if it is positive": lambda x, y, v: (x, -bb.maximum(mean(x), 0), squares(x)),
    "the mean of a part of a sum": lambda x, y, v: (x + y, -mean(x), squares(x + y)),
}


@pytest.mark.parametrize("name", CANCEL)
def test_any_other_shift_stays_and_the_reason_is_said(name):
    assert "digits would cancel where the shift is large" in reason(CANCEL[name])


@pytest.mark.parametrize("name", ["minus the mean", "a variance"])
def test_a_mean_along_one_dim_may_not_leave_sums_along_another(name):
    assert reason(CENTERED[name], "M")


def norm(x, w):
    return bb.layer_norm(x) @ w


def shifted(x, w):
    return (x + -bb.mean(x, axis=1, keepdims=True)) @ w


def without_mean(x, w):
    return (x - bb.max(x, axis=1, keepdims=True)) @ w, bb.sum(x * x, axis=1)


@pytest.mark.parametrize("function", [norm, shifted, without_mean])
def test_only_the_shift_of_a_norm_leaves_its_product(function):
    derivation = bb.fuse(bb.lower(bb.trace(function, x="M K", w="K N")))
    left = any(step.rule == "swap-mean-dot" for step in derivation.steps)

    assert "row_shift(" in str(derivation.start)
    assert left == (function is norm)
