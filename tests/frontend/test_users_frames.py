"""Tracebacks of a function that fails while it is traced hold its author's frames alone."""

import traceback
from functools import partial

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.frontend.trace import trace_with_facts
from blockbuster.frontend.users_frames import lines_of

X = np.ones((2, 3))


def helper(y):
    return undefined_name + y  # noqa: F821


def nested(x):
    return helper(x * 2)


@bb.jit
def inner(x):
    return helper(x)


def around_another(x):
    return inner(x) + 1


class Method:
    def __call__(self, x):
        return helper(x)


FUNCTIONS = {
    "nested": (nested, ["nested", "helper"]),
    "a partial": (partial(nested), ["nested", "helper"]),
    "an object": (Method(), ["__call__", "helper"]),
}
CALLS = {
    "trace": lambda fn: bb.trace(fn, x="M N"),
    "trace of an example": lambda fn: bb.trace(fn, x=X),
    "jit": lambda fn: bb.jit(fn)(X),
    "report_for": lambda fn: bb.jit(fn).report_for(X),
    "plan_for": lambda fn: bb.jit(fn).plan_for(X),
}


def frames(error):
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_only_the_users_frames_are_left(name, call):
    fn, names = FUNCTIONS[name]
    with pytest.raises(NameError) as info:
        CALLS[call](fn)

    found = frames(info.value)
    assert found[-len(names) :] == names
    ours = found[: -len(names)]
    assert ours[0] == "test_only_the_users_frames_are_left"
    assert ours[1:] in (["<lambda>"], ["<lambda>", call], ["<lambda>", call, "compiled_for"])


def test_the_outermost_traced_function_is_the_first():
    with pytest.raises(NameError) as info:
        bb.trace(around_another, x="M N")

    found = frames(info.value)
    assert found[1] == "around_another"
    assert found[-2:] == ["inner", "helper"]


def test_other_errors_keep_their_tracebacks():
    with pytest.raises(bb.TraceError) as info:
        bb.trace(nested, y="M N")

    assert "trace" in frames(info.value)
    assert lines_of(info.value) == []


def test_lines_of_an_error_are_the_users():
    with pytest.raises(NameError) as info:
        trace_with_facts(nested, x="M N")

    first, second = lines_of(info.value)
    assert first.endswith(": return helper(x * 2)")
    assert second.endswith("return undefined_name + y  # noqa: F821")
