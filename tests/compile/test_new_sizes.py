"""A jitted function at one new size after the other: traced once, right, and within bounds."""

import gc
import sys

import numpy as np
import pytest

import blockbuster as bb
from blockbuster import jitted as jitted_module
from blockbuster.runtime import compiled as compiled_module
from tests.compile.functions import attention, close, normal, plain_attention


@pytest.fixture
def decoding():
    """A jitted attention of one query to n keys, and what it is called with for n."""
    q, k, v = normal((1, 32), (600, 32), (600, 32))
    return bb.jit(attention, machine="cpu"), lambda n: (q, k[:n], v[:n])


def test_each_size_is_right_and_few_are_traced_or_compiled(decoding, monkeypatch):
    function, arrays = decoding
    traced = []
    trace_call = jitted_module.trace_call

    def counted(fn, found, **named):
        traced.append(fn)
        return trace_call(fn, found, **named)

    monkeypatch.setattr(jitted_module, "trace_call", counted)
    for n in range(1, 600):
        close(function(*arrays(n)), plain_attention(*arrays(n)))

    assert len(traced) == 1
    (found,) = function._traced.values()
    assert len(found.compiled) == 2  # small arrays have a text of their own


def test_a_size_that_makes_another_program_is_traced():
    def tail(x, y):
        return x[2:] + y

    function = bb.jit(tail)
    ones = np.ones((7, 3))
    for rows, others in ((7, 5), (6, 4), (7, 1), (3, 1), (2, 1), (5, 3), (3, 1)):
        x, y = np.ones((rows, 3)), ones[:others]
        np.testing.assert_array_equal(function(x, y), tail(x, y))
    for rows, others in ((7, 4), (2, 2)):
        with pytest.raises(bb.TraceError):
            function(np.ones((rows, 3)), ones[:others])


def test_what_the_function_reads_is_looked_at_for_new_sizes_too():
    scale = {"by": 2.0}

    def scaled(x):
        return x * scale["by"]

    function = bb.jit(scaled)
    assert function(np.ones(5))[0] == 2.0
    scale["by"] = 3.0
    assert function(np.ones(6))[0] == 3.0
    assert function(np.ones(5))[0] == 3.0


def test_arrays_of_other_kinds_are_checked():
    function = bb.jit(lambda x: x + 1.0)
    function(np.ones(5))

    with pytest.raises(bb.LaunchError, match="holds complex128"):
        function(np.ones(6, dtype=complex))
    with pytest.raises(bb.LaunchError, match="plain arrays"):
        function(np.ma.masked_array(np.ones(7), np.zeros(7)))
    assert function(np.ones((2, 3))).shape == (2, 3)


def test_defaults_and_keywords_find_their_places_at_new_sizes():
    one = np.ones(1)

    def mixed(x, *more, scale=2.0, bias=one):
        return (x + more[0]) * scale + bias

    function = bb.jit(mixed)
    for n in (4, 5, 6):
        ones = np.ones(n)
        np.testing.assert_array_equal(function(ones, ones), mixed(ones, ones))
        np.testing.assert_array_equal(
            function(ones, ones, bias=ones, scale=3.0), mixed(ones, ones, bias=ones, scale=3.0)
        )


def test_one_kernel_is_asked_for_at_every_size():
    function = bb.jit(attention, one_kernel=True, machine="h100")
    plans = [function.plan_for(*normal((64, 32), (n, 32), (n, 32))) for n in (100, 1000, 101)]

    assert [plan.kernels for plan in plans] == [1, 1, 1]


def test_memory_is_bounded(decoding, monkeypatch):
    function, arrays = decoding
    monkeypatch.setattr(compiled_module, "KEPT", 16)
    for n in range(2, 200):
        function(*arrays(n))

    assert len(function._ready) <= 16
    found = [one for traced in function._traced.values() for one in traced.compiled]
    assert sum(len(one._runs) for one in found) <= 16 * len(found) <= 64


def test_a_new_size_does_little_more_than_a_known_layout(decoding):
    """As a count of calls, which no other process disturbs: 50 us are some 300 of them."""
    function, arrays = decoding
    for n in (400, 401):
        function(*arrays(n))
    given = arrays(402)
    gc.disable()
    events = []
    sys.setprofile(lambda frame, event, argument: events.append(event))
    try:
        function(*given)
        new = len(events)
        function(*given)
    finally:
        sys.setprofile(None)
        gc.enable()
    known = len(events) - new
    assert sum(event in ("call", "c_call") for event in events[: new - known]) <= 200
