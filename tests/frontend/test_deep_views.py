"""Joins and slices in long rows: no function nests its calls as deep as they nest.

What joins in joins of a thousand levels cost is that of a few of them, a thousand times.
"""

from __future__ import annotations

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.frontend.deep import done
from tests.parameters import one_in

DEEP = 1000
FEWER = 400  # for what nests several calls for each join
X = np.arange(12.0).reshape(4, 3)


def nested(x, y, deep=DEEP):
    for _ in range(deep):
        x = bb.concat([x, y], axis=0)
    return x


def nested_by_turns(x, y):
    """Rows and columns by turns: a piece of the one goes through the other."""
    for count in range(DEEP):
        x = bb.concat([x, x[:1]], axis=0) if count % 2 else bb.concat([x, x[:, :1]], axis=1)
        x = x[-4:, -3:]
    return x * y[:, :3]


def merged(x, y):
    for _ in range(DEEP // 4):
        x = bb.merge_heads(bb.split_heads(bb.concat([x, y], axis=0), 2))
    return x


READERS = {
    "whole": lambda x, y: nested(x, y),
    "first": lambda x, y: nested(x, y)[:1],
    "within a part": lambda x, y: nested(x, y)[1:3],
    "across parts": lambda x, y: nested(x, y)[2:6],
    "last": lambda x, y: nested(x, y)[-1:],
    "elementwise": lambda x, y: bb.relu(nested(x, y, FEWER)) * 2.0,
    "two": lambda x, y: nested(x, y, FEWER) + nested(y, x, FEWER),
    "sum along": lambda x, y: bb.sum(nested(x, y, FEWER), axis=0),
    "max across": lambda x, y: bb.max(nested(x, y, FEWER), axis=1),
    "cast": lambda x, y: nested(x, y, FEWER).astype("float32"),
    "product": lambda x, y: nested(x, y, FEWER).T @ nested(y, x, FEWER),
    "copied": lambda x, y: nested(x, y) @ y.T,
    "by turns": nested_by_turns,
}


@pytest.mark.parametrize("name", one_in(6, READERS))
def test_joins_in_joins(name):
    program = bb.trace(READERS[name], x="4 N=4", y="4 N=4")
    graph = bb.lower(program)
    inputs = {"x": np.ones((4, 4)), "y": np.arange(16.0).reshape(4, 4)}
    np.testing.assert_array_equal(bb.evaluate(graph, inputs)["out"], program.numpy(inputs)["out"])


def test_merges_in_a_row():
    program = bb.trace(merged, x="4 N=4", y="4 N=4")
    inputs = {"x": np.ones((4, 4)), "y": np.arange(16.0).reshape(4, 4)}
    found = bb.evaluate(bb.lower(program), inputs)["out"]
    np.testing.assert_array_equal(found, program.numpy(inputs)["out"])


def test_slices_in_a_row():
    def function(x):
        for _ in range(DEEP):
            x = x[1:]
        return x

    program = bb.trace(function, x=f"M={DEEP + 2} N")
    x = np.arange(3.0 * (DEEP + 2)).reshape(-1, 3)
    np.testing.assert_array_equal(bb.evaluate(bb.lower(program), {"x": x})["out"], x[-2:])


def test_a_join_that_is_read_twice_at_each_step_does_not_double_the_work():
    def function(x, y):
        for _ in range(40):
            x = bb.concat([x, y], axis=0)[1:-3] + bb.concat([x, y], axis=0)[1:-3]
        return x

    program = bb.trace(function, x="4 N", y="4 N")
    bb.lower(program)
    np.testing.assert_array_equal(program.numpy({"x": X, "y": X})["out"].shape, (4, 3))


def test_a_join_of_many_parts():
    def function(x, y):
        return bb.relu(bb.concat([x, y] * FEWER, axis=0))

    program = bb.trace(function, x="4 N", y="4 N")
    found = bb.evaluate(bb.lower(program), {"x": X, "y": -X})["out"]
    np.testing.assert_array_equal(found, np.maximum(np.concatenate([X, -X] * FEWER), 0.0))


def test_tasks_run_as_the_calls_that_they_stand_for():
    def count(depth):
        if not depth:
            return 0
        below = yield count(depth - 1)
        return below + 1

    assert done(count(10_000)) == 10_000


def test_an_error_in_a_task_comes_out():
    def fail(depth):
        yield fail(depth - 1) if depth else 1 // depth

    with pytest.raises(ZeroDivisionError):
        done(fail(10_000))
