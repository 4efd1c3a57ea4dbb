"""Columns hold the items that they were made of; equal columns are one object."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from blockbuster.interp.columns import Around, Columns, Stacked

SHAPES = st.sampled_from([(), (2,), (3,), (2, 3), (1, 3)])
LISTS = st.lists(st.tuples(SHAPES, st.integers(0, 3)), max_size=8)


def items_of(drawn):
    return [np.full(shape, number) for shape, number in drawn]


def assert_items(column, wanted):
    found = column.items()
    assert len(column) == len(found) == len(wanted)
    for item, array in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(item, array)
        assert item.shape == np.shape(array)


@given(LISTS)
def test_a_column_holds_its_items(drawn):
    columns, items = Columns(), items_of(drawn)

    column = columns.of_items(items)

    assert_items(column, items)
    assert columns.of_items(items_of(drawn)) is column


@given(LISTS, LISTS)
def test_columns_are_one_object_only_if_they_are_equal(one, other):
    columns = Columns()

    alike = columns.of_items(items_of(one)) is columns.of_items(items_of(other))

    assert alike == (one == other)


@given(LISTS, st.data())
def test_items_are_taken_and_joined(drawn, data):
    columns, items = Columns(), items_of(drawn)
    column = columns.of_items(items)
    chosen = st.lists(st.integers(0, len(items) - 1), max_size=6) if items else st.just([])
    places = np.array(data.draw(chosen), np.intp)

    assert_items(columns.taken(column, places), [items[at] for at in places])
    assert_items(columns.joined([column, column]), items + items)


@given(st.lists(st.tuples(SHAPES, st.integers(0, 3), st.integers(0, 3)), max_size=8))
def test_functions_of_items_are_computed_shape_by_shape(drawn):
    columns = Columns()
    left = items_of([(shape, x) for shape, x, _ in drawn])
    right = items_of([(() if x == y else shape, y) for shape, x, y in drawn])
    calls = []

    def added(items, stack):
        calls.append(stack)
        a, b = (x.reshape(*x.shape, *(1,) * (2 - x[0].ndim)) for x in items)
        return a + b

    made = columns.mapped([columns.of_items(left), columns.of_items(right)], added)

    shapes = {(x.shape, y.shape) for x, y in zip(left, right, strict=True)}
    assert len(calls) == len(shapes)
    for item, x, y in zip(made.items(), left, right, strict=True):
        assert item.ravel()[0] == x.ravel()[0] + y.ravel()[0]


def test_parts_become_one_column_in_any_order():
    columns, items = Columns(), [np.array([n, n]) for n in range(4)]
    parts = [Stacked(np.array(at), np.array([items[n] for n in at])) for at in ([3, 1], [0, 2])]

    assert columns.of_parts(4, parts) is columns.of_items(items)


def test_iterations_inside_iterations():
    inside = Around(1, {}).inside("M", range(2)).inside("N", range(1, 4))

    assert len(inside) == 6
    assert inside.numbers["M"].tolist() == [0, 0, 0, 1, 1, 1]
    assert inside.numbers["N"].tolist() == [1, 2, 3, 1, 2, 3]


def test_no_iterations_are_numbered_by_integers():
    inside = Around(2, {}).inside("M", range(1, 1))  # the rest of a map of one peeled iteration

    assert len(inside) == 0
    assert inside.numbers["M"].dtype == np.intp
