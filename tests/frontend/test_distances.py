"""Tables of distances are recognized, computed from positions, and nothing else is."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.frontend.distances import distance_of

torch = pytest.importorskip("torch")

FORMS = {
    "plain": lambda x: x,
    "abs": np.abs,
    "-abs": lambda x: -np.abs(x),
    "at least 0": lambda x: np.maximum(x, 0),
    "at most 0": lambda x: np.minimum(x, 0),
}
SIZES = st.integers(4, 9)


def table(rows, columns, row, column, offset):
    return row * np.arange(rows)[:, None] + column * np.arange(columns) + offset


def is_right(found, made):
    rows, columns = made.shape
    at = found.at(np.arange(rows)[:, None], np.arange(columns))
    return np.array_equal(np.broadcast_to(at, made.shape), made)


@settings(max_examples=60)
@given(SIZES, SIZES, *[st.integers(-2, 2)] * 3, st.sampled_from(sorted(FORMS)), st.data())
def test_a_distance_equals_its_table(rows, columns, row, column, offset, form, data):
    """Also where one element of a table is another."""
    made = FORMS[form](table(rows, columns, row, column, offset))
    assert not (found := distance_of(made)) or is_right(found, made)

    made[data.draw(st.integers(0, rows - 1)), data.draw(st.integers(0, columns - 1))] += 3
    assert not (found := distance_of(made)) or is_right(found, made)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("row", "column", "offset"), [(1, -1, 0), (-1, 1, 2), (0, 2, -3)])
def test_each_form_is_found(form, row, column, offset):
    assert distance_of(FORMS[form](table(7, 8, row, column, offset))) is not None


@pytest.mark.parametrize("other", [
    np.zeros((4, 4)), np.ones((1, 9)), np.arange(16.0).reshape(4, 4) / 2, np.full((5, 5), np.inf),
    -abs(np.arange(5.0)[:, None] - np.arange(5)),  # it holds -0.0
    np.arange(16).reshape(4, 4) % 5, np.arange(16).reshape(4, 4) * 2**22,
])  # fmt: skip
def test_other_tables_are_none(other):
    assert distance_of(other) is None


def test_the_words_of_distances():
    terms = (1, -1, 0), (-2, 0, 3), (0, 1, -1)
    words = [str(distance_of(table(5, 5, *each))) for each in terms]
    assert words == ["i - j", "-2 i + 3", "j - 1"]


def falling(x, slope):
    i = torch.arange(6)
    return x - slope[:, None, None] * (i[:, None] - i).abs()


def test_a_bias_of_distances_reads_no_table():
    x, slope = torch.rand(2, 6, 6).half(), torch.rand(2).half()
    program = bb.trace(falling, x=x, slope=slope)
    assert [one.name for one in program.inputs] == ["x", "slope"]
    assert program.masks == ("a table that the function makes, 6 x 6, is computed: |i - j|, at row"
                             " i and column j",)  # fmt: skip

    found = bb.jit(falling)(x, slope)
    assert found.dtype == falling(x, slope).dtype
    torch.testing.assert_close(found, falling(x, slope), rtol=1e-2, atol=1e-2)


def test_a_table_keeps_its_dtype():
    """Integers meet floats in torch's default dtype, as those in memory do."""
    steps = torch.arange(6)[:, None] - torch.arange(6)
    x = torch.rand(6, 6).half()
    for fn in (lambda x: x + steps * 0.5, lambda x: x * steps.half(), lambda x: x + steps):
        assert bb.jit(fn)(x).dtype == fn(x).dtype


def test_a_table_that_changes_is_looked_at_again():
    steps = np.arange(6)[:, None] - np.arange(6)
    jitted = bb.jit(lambda x: x * steps)
    x = np.ones((6, 6))
    assert np.array_equal(jitted(x), x * steps)
    steps[2, 3] = 55
    assert np.array_equal(jitted(x), x * steps)


@pytest.mark.parametrize(("dtype", "inputs"), [
    (torch.float32, ["x"]), (torch.float16, ["x", "constant"]),
])  # fmt: skip
def test_zeros_that_are_joined_are_a_number_around_the_array(dtype, inputs):
    """In the array's own dtype."""

    def function(x):
        zeros = torch.zeros(2, 1, 3)
        return torch.cat((zeros, x, zeros), 1)[:, :4] * 2

    x = torch.rand(2, 4, 3).to(dtype)
    assert [one.name for one in bb.trace(function, x=x).inputs] == inputs
    assert torch.equal(bb.jit(function)(x), function(x))


def test_an_array_with_a_name_stays_an_input():
    """A cache of zeros is written to before the next call."""
    cache = torch.zeros(2, 4)
    jitted = bb.jit(lambda x: torch.cat((cache, x)))
    assert [one.name for one in bb.trace(lambda x: torch.cat((cache, x)), x=cache).inputs] == [
        "x", "cache"
    ]  # fmt: skip
    jitted(torch.ones(1, 4))
    cache += 1
    assert torch.equal(jitted(torch.ones(1, 4)), torch.ones(3, 4))


@pytest.mark.parametrize("bias", [
    lambda i, a: (i - i[:, None]).abs() * a[:, None, None],
    lambda i, a: a[:, None, None] * (i - i[:, None]).abs(),
    lambda i, a: torch.mul((i - i[:, None]).abs(), a[:, None, None]),
    lambda i, a: torch.multiply((i - i[:, None]).abs(), a.view(-1, 1, 1)),
    lambda i, a: (i - i[:, None]).abs() - a[:, None, None],
])  # fmt: skip
def test_a_table_on_either_side_is_computed(bias):
    """torch calls its own function where a tensor stands in front."""

    def f(a):
        return bias(torch.arange(8), a) * 1

    a = torch.randn(3, dtype=torch.float64)
    assert [one.name for one in bb.trace(f, a=a).inputs] == ["a"]
    torch.testing.assert_close(bb.jit(f)(a), f(a))
