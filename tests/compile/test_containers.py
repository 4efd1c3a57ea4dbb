"""`jit` of functions that take and return containers of arrays."""

import sys
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import blockbuster as bb


class Pair(NamedTuple):
    w: Any
    b: Any


@dataclass
class Layer:
    w: Any
    scale: float = 2.0

    @bb.jit
    def run(self, x):
        return x @ self.w * self.scale


def arrays(*shapes):
    drawn = np.random.default_rng(3)
    return [drawn.standard_normal(shape).astype(np.float32) for shape in shapes]


def same(found, wanted):
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_all_containers_at_once_and_a_nested_result():
    w, b, x, u, v = arrays((3, 4), 4, (5, 3), 6, 6)

    @bb.jit
    def function(params, x, *more, last, **others):
        y = x @ params["w"] + params["b"][0]
        return {"y": y, "parts": (more[0] * others["u"], [last.w * last.b])}

    for rows in (5, 7, 5):
        x = np.resize(x, (rows, 3))
        found = function({"w": w, "b": [b]}, x, u, last=Pair(u, v), u=v)
        same(found["y"], x @ w + b)
        same(found["parts"][0], u * v)
        same(found["parts"][1][0], u * v)
        assert type(found["parts"]) is tuple
        assert type(found["parts"][1]) is list


def test_results_keep_their_classes():
    w, b = arrays(4, 4)

    found = bb.jit(lambda p: Layer(p.w * 2.0, p.b))(Pair(w, b))
    assert type(found) is Layer
    same(found.w, w * 2.0)
    named = bb.jit(lambda p: Pair(p.b, p.w))(Pair(w, b))
    assert type(named) is Pair
    same(named.w, b)


@pytest.fixture
def traces(monkeypatch):
    """The functions that are traced, in order."""
    found = []
    module = sys.modules[bb.Jitted.__module__]
    trace_call = module.trace_call

    def counted(fn, leaves, **named):
        found.append(fn)
        return trace_call(fn, leaves, **named)

    monkeypatch.setattr(module, "trace_call", counted)
    return found


def test_a_known_call_is_not_traced_again_and_another_structure_is(traces):
    def function(params, x):
        return x * sum(params.values())

    jitted = bb.jit(function)
    x, w = arrays((2, 3), 3)
    counts = []
    for params in ({"a": w, "s": 2.0}, {"a": w + 1, "s": 2.0}, {"a": w, "s": 3.0}, {"a": w}):
        same(jitted(params, x), function(params, x))
        counts.append(len(traces))
    assert counts == [1, 1, 2, 3]  # a fixed number is a part of the program
    same(jitted({"a": w, "s": 3.0}, x), x * (w + 3.0))
    assert len(traces) == 3


def test_new_sizes_of_arrays_in_containers_are_not_traced_again(traces):
    jitted = bb.jit(lambda pair: pair.w @ pair.b)
    for rows, inner in ((3, 4), (5, 6), (2, 7)):
        a, b = arrays((rows, inner), (inner, 3))
        same(jitted(Pair(a, b)), a @ b)
    assert len(traces) == 1


def test_methods_of_dataclasses():
    w, x = arrays((3, 4), (2, 3))
    layer = Layer(w)

    same(layer.run(x), x @ w * 2.0)
    layer.scale = 3.0
    same(layer.run(x), x @ w * 3.0)
    layer.w = w + 1.0
    same(layer.run(x), x @ (w + 1.0) * 3.0)
    assert "self_w" in layer.run.__func__.plan_for(layer, x).inputs


def test_lists_of_numbers_are_fixed_arguments():
    x = arrays(4)[0]

    jitted = bb.jit(lambda x, scales: x * scales[0] + scales[1]["more"])
    for scales in ([2.0, {"more": 1.0}], [3.0, {"more": 1.0}], [2, {"more": True}]):
        same(jitted(x, scales), x * scales[0] + scales[1]["more"])


@pytest.mark.parametrize("form", [lambda x: {"p": [x]}, lambda x: Pair(x, (x,)), Layer])
def test_errors_show_the_path(form):
    bad = np.ones(3, complex)

    with pytest.raises(bb.LaunchError, match=r"^p(\['p'\]\[0\]|\.w) holds complex128"):
        bb.jit(lambda p: p)(form(bad))


def test_a_nested_result_is_saved_flat(tmp_path):
    x = arrays(4)[0]
    compiled = bb.jit(lambda x: {"a": (x * 2.0, x + 1.0)}).compiled_for(x)

    found = bb.load(compiled.save(tmp_path / "nested.bbz"))(x)
    assert [*found] == ["a_0", "a_1"]
    same(found["a_1"], x + 1.0)


def test_containers_inside_another_jitted_function():
    x, w = arrays((2, 3), 3)
    inner = bb.jit(lambda params, x: x * params["w"])

    same(bb.jit(lambda x, w: inner({"w": w}, x) + 1.0)(x, w), x * w + 1.0)
