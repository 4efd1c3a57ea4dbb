"""A jitted function gives what the function gives, whatever changed since the last call."""

from __future__ import annotations

import math
import random
import sys
import types

import numpy as np
import pytest

import blockbuster as bb
from tests.compile import changes as read
from tests.compile.changes import (
    Alike,
    Frozen,
    Mode,
    Plain,
    calls_reader,
    cases,
)

X = np.array([[1.0, -2.0, 3.0], [0.5, 0.25, -4.0]])
SCALE = 2.0


@pytest.mark.parametrize(("function", "changes"), [pytest.param(*c[1:], id=c[0]) for c in cases()])
def test_what_a_function_reads_may_change(function, changes, monkeypatch):
    for place in (vars(read), read.TABLE, vars(read.MODULE), vars(read.OTHER), sys.modules):
        for name, value in tuple(place.items()):
            if name in ("SCALE", "reads_global", "scale", "settings_of_tests"):
                monkeypatch.setitem(place, name, value)
    monkeypatch.setattr(math, "pi", math.pi)
    jitted = bb.jit(function)
    for change in (lambda: None, *changes):
        change()
        for _ in range(2):
            np.testing.assert_array_equal(jitted(X), function(X))
            signs = np.signbit(jitted(X))
            np.testing.assert_array_equal(signs, np.signbit(function(X)))


def test_the_signs_of_zeros_are_other_constants():
    for zero in (0.0, -0.0):
        x, scale = np.ones((2, 2)), zero
        assert np.signbit(bb.jit(lambda x, scale=scale: x * scale)(x)).all() == np.signbit(zero)


@pytest.mark.parametrize(
    ("function", "values"),
    [
        (lambda x, s: x * s, [0.0, -0.0, 0, False, True, 1, 1.0, np.float32(-0.0), np.float32(0)]),
        (lambda x, s: x * s.scale, [Plain(2.0), Plain(3.0), Frozen(2.0), Frozen(3.0), Alike(2.0)]),
        (lambda x, s: x * s.scale, [Alike(2.0), Alike(3.0), Frozen(-0.0), Frozen(0.0)]),
        (lambda x, s: x * s.start, [range(0), range(5, 5), range(7, 7)]),
        (lambda x, s: x * s[0], [(0.0,), (-0.0,), (True,), (Frozen(1.0).scale, 2)]),
        (lambda x, s: x * s.value, [Mode.SMALL, Mode.LARGE]),
        (lambda x, s: x * s(2.0), [lambda y: y, lambda y: y * 3.0, math.sqrt]),
        (lambda x, s: x * next(iter(s)), [frozenset({0.0}), frozenset({-0.0})]),
    ],
)
def test_fixed_arguments_are_told_apart(function, values):
    jitted = bb.jit(function)
    for value in (*values, *reversed(values)):
        made = jitted(X, value)
        np.testing.assert_array_equal(made, function(X, value))
        np.testing.assert_array_equal(np.signbit(made), np.signbit(function(X, value)))
        np.testing.assert_array_equal(jitted(X, s=value), function(X, value))


def test_a_fixed_argument_may_change_inside():
    jitted = bb.jit(lambda x, s: x * s.scale)
    for argument in (Plain(2.0), Alike(2.0), types.SimpleNamespace(scale=2.0)):
        for scale in (2.0, 3.0, 3):
            argument.scale = scale
            np.testing.assert_array_equal(jitted(X, argument), X * scale)


def test_methods():
    class Model:
        def __init__(self, scale):
            self.scale = scale

        @bb.jit
        def forward(self, x, bias=0.0):
            return x * self.scale + bias

    first, second = Model(2.0), Model(3.0)
    for model in (first, second, first):
        np.testing.assert_array_equal(model.forward(X), X * model.scale)
        model.scale += 1.0
        np.testing.assert_array_equal(model.forward(X, bias=1.0), X * model.scale + 1.0)
    assert "kernel" in str(Model.forward.report_for(first, X))


def test_a_jitted_function_inside_another_is_a_part_of_it():
    inner = bb.jit(lambda x: x * SCALE)
    outer = bb.jit(lambda x: inner(x) + 1.0)
    for scale in (2.0, 3.0):
        globals()["SCALE"] = scale
        np.testing.assert_array_equal(outer(X), X * scale + 1.0)


def test_a_default_array_is_an_input_of_its_present_form():
    weight = np.arange(6.0)

    def function(x, w=weight):
        return x * w

    jitted = bb.jit(function)
    weight.shape = (2, 3)
    np.testing.assert_array_equal(jitted(X), X * weight)
    weight *= 2.0
    np.testing.assert_array_equal(jitted(X), X * weight)
    weight.shape = (2, 3, 1)
    np.testing.assert_array_equal(jitted(X[:, :, None]), X[:, :, None] * weight)


def test_what_cannot_be_watched_is_traced_at_each_call_and_said():
    source = random.Random(3)
    again = random.Random(3)
    jitted = bb.jit(lambda x: x * source.random())

    for _ in range(3):
        np.testing.assert_array_equal(jitted(X), X * again.random())
    assert "note: traced again at each call, because it can read a Random" in str(
        jitted.report_for(X)
    )


def test_a_large_array_that_is_read_while_tracing():
    large = np.ones(10_000)
    jitted = bb.jit(lambda x: x * float(large.sum()))
    np.testing.assert_array_equal(jitted(X), X * 10_000.0)
    large[7] = 5.0
    np.testing.assert_array_equal(jitted(X), X * 10_004.0)


def test_equal_traces_are_compiled_once():
    """Functions made anew by every trace are the same if all that they close over is."""
    jitted = bb.jit(lambda x: bb.custom(lambda a: np.sort(a) * SCALE, x, shape=x.shape) * 2.0)
    for rows in (2, 3, 4):
        x = np.ones((rows, 3))
        np.testing.assert_array_equal(jitted(x), x * SCALE * 2.0)
    assert len(jitted._traced) == 1


def test_what_did_not_change_is_not_traced_again():
    jitted = bb.jit(calls_reader)
    jitted(X)
    jitted._compiled = None  # what a call asks that is not like an earlier one
    np.testing.assert_array_equal(jitted(X), calls_reader(X))
    np.testing.assert_array_equal(jitted(X + 1.0), calls_reader(X + 1.0))
