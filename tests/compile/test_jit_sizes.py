"""One jitted function called with arrays of many sizes: each call is as if it were the first."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blockbuster as bb
from tests.parameters import one_in

EXTENTS = (1, 2, 3, 5)


def masked(x, y):
    rows = bb.arange(x.shape[0])[:, None]
    return bb.where(rows < bb.arange(x.shape[1]), x, -1.0) + y


def normed(x, y):
    return bb.softmax(x, axis=-1) * y + bb.mean(x, axis=0, keepdims=True)


FUNCTIONS = {
    "tail": lambda x, y: x[1:] + y,
    "head": lambda x, y: x[:-1] * y,
    "inner": lambda x, y: x[:, 1:-1] + y,
    "both tails": lambda x, y: x[1:] * y[:-1],
    "one row": lambda x, y: x[0] + y,
    "last column": lambda x, y: x[:, -1:] * y,
    "sum": lambda x, y: x + y,
    "outer": lambda x, y: x[:, None] * y[None],
    "transposed": lambda x, y: x.T + y,
    "product": lambda x, y: x @ y,
    "product of halves": lambda x, y: x[:, 1:] @ y[1:],
    "gram": lambda x, y: (x @ y.T) * x.shape[-1] ** -0.5,
    "joined rows": lambda x, y: bb.concat([x, y], axis=0),
    "joined columns": lambda x, y: bb.exp(bb.concat([x, y], axis=1)),
    "joined then cut": lambda x, y: bb.concat([x, y], axis=0)[1:] * 2.0,
    "joined and added": lambda x, y: bb.concat([x, x], axis=0) + y,
    "masked": masked,
    "normed": normed,
    "reduced": lambda x, y: bb.sum(x, axis=0, keepdims=True) * y - bb.max(y, axis=-1)[:, None],
    "halves": lambda x, y: x[: x.shape[0] // 2] + y,
    "same twice": lambda x, y: x + x.T * y,
    "sized by the other": lambda x, y: x[: y.shape[0]] * 2.0 + y,
    "size": lambda x, y: x * y.shape[0] + x.shape[-1],
    "several": lambda x, y: (x[1:], x + y, {"a": 1}["a"] * y),
}


def outcome(function, arrays):
    """What a call gives: its arrays, or the words of its refusal."""
    try:
        made = function(*arrays)
    except (bb.TraceError, bb.LaunchError, ValueError, IndexError) as error:
        return type(error), ()
    return None, made if isinstance(made, tuple) else (made,)


def drawn(data, seed):
    shapes = data.draw(st.tuples(*[st.tuples(*[st.sampled_from(EXTENTS)] * 2)] * 2))
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape) for shape in shapes]


@pytest.mark.parametrize("name", one_in(3, FUNCTIONS))
@given(data=st.data(), calls=st.integers(2, 6))
@settings(max_examples=3, deadline=None)
def test_every_call_is_as_if_it_were_the_first(name, data, calls):
    function = FUNCTIONS[name]
    jitted = bb.jit(function)
    for seed in range(calls):
        arrays = drawn(data, seed)
        refusal, made = outcome(jitted, arrays)
        fresh_refusal, fresh = outcome(bb.jit(function), arrays)
        plain_refusal, plain = outcome(function, arrays)

        assert refusal == fresh_refusal
        if plain_refusal is None and refusal is None:
            assert [m.shape for m in made] == [p.shape for p in plain]
            for result, again, wanted in zip(made, fresh, plain, strict=True):
                np.testing.assert_allclose(result, wanted, rtol=1e-12, atol=1e-12)
                np.testing.assert_allclose(result, again, rtol=1e-12, atol=1e-12)
        if plain_refusal is not None and name != "sized by the other":
            assert refusal is not None, [a.shape for a in arrays]


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("tail", ((2, 3), (1, 3)), ((5, 3), (1, 3))),
        ("tail", ((5, 3), (1, 3)), ((2, 3), (1, 3))),
        ("sum", ((1, 3), (1, 3)), ((4, 3), (1, 3))),
        ("head", ((2, 3), (1, 3)), ((4, 3), (3, 3))),
        ("joined and added", ((1, 3), (2, 3)), ((2, 3), (1, 3))),
        ("halves", ((2, 3), (1, 3)), ((4, 3), (2, 3))),
        ("both tails", ((2, 3), (2, 3)), ((2, 3), (5, 3))),
    ],
)
def test_sizes_that_meet_by_chance_in_the_first_call(name, first, second):
    function = FUNCTIONS[name]
    jitted = bb.jit(function)
    for shapes in (first, second, first):
        arrays = [np.random.default_rng(0).standard_normal(shape) for shape in shapes]
        np.testing.assert_allclose(jitted(*arrays), function(*arrays), rtol=1e-12)


@pytest.mark.parametrize("name", one_in(3, FUNCTIONS, first=1))
def test_most_sizes_are_not_refused(name):
    """What is compared above are results, not only refusals."""
    function = FUNCTIONS[name]
    plain = served = 0
    for rows in (1, 3):
        for columns in (1, 3):
            for shape in ((rows, columns), (1, columns), (columns, rows)):
                arrays = [np.ones((rows, columns)), np.ones(shape)]
                refusal, wanted = outcome(function, arrays)
                if refusal is None and all(array.size for array in wanted):
                    plain += 1
                    served += outcome(bb.jit(function), arrays)[0] is None
    assert served >= (0.3 if name == "halves" else 0.6) * plain > 0  # halves have to come out even
