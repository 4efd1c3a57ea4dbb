"""A jitted function keeps nothing alive that the function reads by weak references alone."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
import torch
from torch import nn

import blockbuster as bb
from tests.compile.changes import Frozen, Plain

X = np.array([[1.0, -2.0, 3.0], [0.5, 0.25, -4.0]])
AGAIN = "traced again at each call"


def scaled(held):
    return lambda x: x * (held().scale if held() is not None else 0.0)


def is_equal(jitted, function, x=X):
    """Twice: the second call is not traced if what the function reads can be watched."""
    for _ in range(2):
        found, wanted = jitted(x), function(x)
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("value", [2.0, (2.0, 1), Frozen(2.0), [2.0], np.full(3, 2.0)])
def test_the_referent_may_change_and_die(value):
    settings = Plain(value)
    held = weakref.ref(settings)

    def function(x):
        found = held()
        if found is None:
            return x * 0.5
        scale = found.scale.scale if isinstance(found.scale, Frozen) else found.scale
        return x * (scale[0] if isinstance(scale, tuple | list) else scale)

    jitted = bb.jit(function)
    is_equal(jitted, function)
    watched = not isinstance(value, list | np.ndarray)
    assert (AGAIN not in str(jitted.report_for(X))) == watched
    settings.scale = 3.0
    is_equal(jitted, function)
    settings.scale = 3
    is_equal(jitted, function)
    settings = None
    gc.collect()
    assert held() is None
    is_equal(jitted, function)
    assert AGAIN not in str(jitted.report_for(X))


def test_the_class_of_a_referent_may_change():
    class Doubled(Plain):
        scale = property(lambda self: 4.0)

    settings = Plain(2.0)
    held = weakref.ref(settings)
    function = scaled(held)
    jitted = bb.jit(function)
    is_equal(jitted, function)
    settings.__class__ = Doubled
    is_equal(jitted, function)
    Doubled.scale = property(lambda self: 5.0)
    is_equal(jitted, function)


@pytest.mark.parametrize("rows", [1, 2])
def test_a_referent_that_was_held_dies_when_it_is_no_longer(rows):
    """All earlier calls let go of it, those of other layouts, too."""
    parts = [Plain(2.0)]
    held = weakref.ref(parts[0])

    def function(x):
        return x * (held().scale if held() is not None else 0.0) + len(parts)

    jitted = bb.jit(function)
    for x in (X, X[:1], X.T, X.astype(np.float32)):
        is_equal(jitted, function, x)
    assert AGAIN not in str(jitted.report_for(X))
    parts.clear()
    is_equal(jitted, function, X[:rows])
    assert held() is None


def test_a_tensor_that_only_a_weak_reference_leads_to():
    weight = torch.full((3,), 2.0, dtype=torch.float64)
    held, x = weakref.ref(weight), torch.from_numpy(X)

    def function(x):
        return x * (held() if held() is not None else 0.5)

    jitted = bb.jit(function)
    is_equal(jitted, function, x)
    weight.mul_(3.0)
    is_equal(jitted, function, x)
    weight = None
    is_equal(jitted, function, x)


class Child(nn.Module):
    def forward(self, x):
        parent = self.parent()
        return x * (1.0 if parent is None else parent.scale)


class Parent(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale, self.child = 2.0, Child()

    def forward(self, x):
        return self.child(x) + 1.0


def test_a_module_of_which_a_part_is_jitted_may_die():
    parent, x = Parent(), torch.from_numpy(X)
    child, whole = parent.child, bb.jit(parent)
    child.parent = weakref.ref(parent)
    is_equal(whole, parent, x)
    assert AGAIN not in str(whole.report_for(x))
    part = bb.jit(child)
    for parent.scale in (2.0, 3.0):
        is_equal(part, child, x)
        is_equal(whole, parent, x)
    whole = parent = None
    gc.collect()
    assert child.parent() is None
    is_equal(part, child, x)


def test_classes_on_top_of_weak_references_are_traced_at_each_call():
    class Named(weakref.ref):
        pass

    settings = Plain(2.0)
    held = Named(settings)
    held.factor = 3.0

    def function(x):
        return x * held.factor * held().scale

    jitted = bb.jit(function)
    is_equal(jitted, function)
    held.factor = 5.0
    is_equal(jitted, function)
    assert f"{AGAIN}, because it can read a Named" in str(jitted.report_for(X))


@pytest.mark.parametrize("layer", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_layers_are_watched(layer):
    """They hold their weights, which they reach in another way, too, by weak references."""
    module = layer(3, 4, batch_first=True).eval().requires_grad_(False)
    jitted, x = bb.jit(module), torch.randn(2, 5, 3)
    for _ in range(3):
        torch.testing.assert_close(jitted(x)[0], module(x)[0])
    assert AGAIN not in str(jitted.report_for(x))
    module.weight_hh_l0.zero_()
    torch.testing.assert_close(jitted(x)[0], module(x)[0])
