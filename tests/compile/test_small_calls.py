"""A call for small NumPy arrays: nothing but its own result changes, whoever else calls."""

import sys
import threading
import warnings

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.frontend.reads import Reads


def arrays(*shapes):
    random = np.random.default_rng(0)
    return [random.normal(size=shape).astype(np.float32) for shape in shapes]


def test_errors_of_numbers_are_not_told_and_the_users_settings_stay():
    jitted = bb.jit(lambda x: bb.log(x) / x)
    x = np.zeros((3, 3), np.float32)
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        for _ in range(3):
            assert np.isnan(jitted(x)).all() or np.isinf(jitted(x)).all()
            assert {*np.geterr().values()} == {"raise"}
        with pytest.raises(FloatingPointError):
            np.log(x)


def test_threads_may_call_one_function_at_once():
    jitted = bb.jit(lambda x, y: bb.softmax(x @ y) @ y)
    given = [arrays((6, 6), (6, 6)), arrays((4, 5), (5, 5))]
    wanted = [jitted(*one) for one in given]
    wrong = []

    def work(number):
        for _ in range(200):
            if not np.array_equal(jitted(*given[number]), wanted[number]):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(n % 2,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_every_call_has_arrays_of_its_own():
    jitted = bb.jit(lambda x: (x * 2, x + 1))
    (x,) = arrays((4, 4))
    first, second = jitted(x), jitted(x)

    made = [*first, *second, x]
    assert not any(np.may_share_memory(a, b) for i, a in enumerate(made) for b in made[:i])
    first[0][...] = 0
    np.testing.assert_array_equal(jitted(x)[0], x * 2)


@pytest.mark.parametrize(
    "other",
    [
        lambda x: x.astype(">f4"),
        lambda x: x.astype(np.float64),
        lambda x: np.asfortranarray(x),
        lambda x: np.repeat(x, 2, axis=0)[::2],
        lambda x: x[::-1][::-1],
        lambda x: x.copy().view(Own),
    ],
)
def test_arrays_of_one_shape_that_differ_otherwise(other):
    jitted = bb.jit(lambda x: bb.softmax(x) * 2)
    (x,) = arrays((5, 7))
    usual = jitted(x), jitted(x)
    if isinstance(other(x), Own):
        with pytest.raises(bb.LaunchError, match="plain arrays"):
            jitted(other(x))
    else:
        np.testing.assert_allclose(jitted(other(x)), usual[0], rtol=1e-6)
    np.testing.assert_array_equal(jitted(x), usual[1])


class Own(np.ndarray):
    """A class of arrays with rules of its own."""


def test_a_name_of_ours_that_is_loaded_late_is_no_change(monkeypatch):
    monkeypatch.delitem(vars(bb), "softmax", raising=False)
    module, traces = sys.modules[bb.Jitted.__module__], []
    trace = module.trace_call

    def counted(*given, **named):
        traces.append(1)
        return trace(*given, **named)

    monkeypatch.setattr(module, "trace_call", counted)
    jitted = bb.jit(lambda x: bb.softmax(x))
    for _ in range(3):
        jitted(*arrays((3, 4)))
    assert len(traces) == 1


@pytest.mark.parametrize("count", [0, 1, 300])
def test_a_change_of_any_of_many_values_is_seen(count):
    held = {f"k{n}": object() for n in range(count)}
    reads = Reads([(held.get, name, value) for name, value in held.items()], "")

    assert reads.unchanged()
    for name in [*held][:: max(1, count // 3)]:
        kept, held[name] = held[name], object()
        assert not reads.unchanged()
        held[name] = kept
    assert reads.unchanged()
    assert not Reads([], "a reason").unchanged()
