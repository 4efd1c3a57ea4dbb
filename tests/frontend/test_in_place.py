"""Changes in place are seen through names and views, as in NumPy and torch."""

import copy
import operator
from types import SimpleNamespace

import numpy as np
import pytest

import blockbuster as bb

torch = pytest.importorskip("torch")

from torch.nn import functional as F  # noqa: E402

from tests.frontend.in_place import WHOLE, X, assert_as_eager, refused  # noqa: E402


def all_names(x):
    y = x * 2
    z = y
    z *= 3
    return y


def list_items(x):
    held = [x * 1, {"h": x * 2}, SimpleNamespace(h=x * 3)]
    names = held[0], held[1]["h"], held[2].h
    held[0] += 1
    held[1]["h"] -= held[0]
    held[2].h *= 2
    return names


def inner_function(x):
    def change(array):
        array += 1

    y = x * 1
    change(y[1:])
    return y


def a_view_of_a_view(x):
    y = x * 1
    z = y.T[1:]
    z[:, ::2] *= 5
    y[0] = 7
    z[0] += y[2, :3]
    return y, z


def overlapping(x):
    y = x * 1
    y[1:] += y[:-1] * 2
    y[:, 1:] = y[:, :-1] + 0
    return y


def positions(x):
    y = x * 1
    y[0, 0] += 1
    y[-1, -1] = 9
    y[1] = y[0]
    y[:, 1] = y[:, 2] * 2
    y[..., 0] = 3
    y[None, 2] = x[0]
    y[y > 5] = -1
    y[y.sum(1) > 3] = 2
    return y


def broadcasts(x):
    y = x * 1
    y += x[0]
    y -= x[:, :1]
    y[1:] = x[0]
    y[:2, 1:] = x[:2, :1]
    return y


def an_accumulator(x):
    total = 0
    for i in range(3):
        total += x[i]
    return total


def copies(x):
    y = x * 1
    held = copy.copy(y) * 1, copy.deepcopy(y), +y * 1, y[...], y
    y += 1
    return held


def heads(x):
    y = bb.split_heads(x * 1, 2)
    z = y[0]
    z += 1
    y[1, 0] = 0
    return y, z


BOTH = (
    all_names, list_items, inner_function, a_view_of_a_view, positions, broadcasts,
    an_accumulator, copies, heads,
)  # fmt: skip


@pytest.mark.parametrize("function", BOTH)
def test_a_change_is_seen_through_names_and_views(function):
    assert_as_eager(function, X)
    assert_as_eager(function, torch.from_numpy(X))
    if function is not copies:
        assert_as_eager(function, X, "M=3 N=4")


def test_overlapping_slices_are_read_before_they_change():
    assert_as_eager(overlapping, X)


@pytest.mark.parametrize("op", ["iadd", "isub", "imul", "itruediv", "ipow"])
@pytest.mark.parametrize("library", [np.asarray, torch.from_numpy])
def test_operators_of_floats(op, library):
    def function(x):
        y = x * 1
        return y, getattr(operator, op)(y, 2)

    assert_as_eager(function, library(X))


@pytest.mark.parametrize("op", ["iadd", "isub", "imul", "ifloordiv", "imod", "ipow"])
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8])
@pytest.mark.parametrize("library", [np.asarray, torch.from_numpy])
def test_operators_of_integers_keep_the_dtype(op, dtype, library):
    def function(x):
        y = x * 1
        return y, getattr(operator, op)(y, 2)

    assert_as_eager(function, library(WHOLE.astype(dtype)))


@pytest.mark.parametrize("op", ["iand", "ior"])
def test_operators_of_masks(op):
    def function(x):
        y = x > 3
        return y, getattr(operator, op)(y, x > 6)

    assert_as_eager(function, X)
    assert_as_eager(function, torch.from_numpy(X))


def test_a_matrix_changes_in_numpy_and_is_made_anew_in_torch():
    def function(x):
        y = x @ x.mT
        z = y
        y @= y
        return y, z

    assert_as_eager(function, X)
    assert_as_eager(function, torch.from_numpy(X))
    refused(function, "may have changed: @= changes an array of NumPy's", "M N")


def test_numbers_of_numpy_do_not_change():
    def total(x):
        s = x.sum()
        t = s
        s += 1
        return s, t

    def taken(x):
        y = x * 1
        s = y[0, 0]
        t = y[1, 1, ...]
        s += 1
        t += 2
        y[2, 2] += 3
        return y, s

    for function in (total, taken):
        assert_as_eager(function, X)
        assert_as_eager(function, torch.from_numpy(X))
        refused(function, "may have changed", "M=3 N=4", "read it before that line")


def test_dtypes_are_kept():
    def narrow(x):
        y = x.astype(np.float32)
        y += x
        i = (x > 2) + 0
        i[0] = 2.7
        i[1] = x[0]
        f = x * 1
        f += i
        f[0] = i[1]
        return y, i, f

    program = bb.trace(narrow, x=X)
    found = program.numpy({"x": X})
    for name, wanted in zip(found, narrow(X), strict=True):
        np.testing.assert_array_equal(found[name], wanted)
    assert bb.jit(narrow)(X)[0].dtype == np.float32
    assert bb.jit(narrow)(X)[1].dtype == np.int64


def test_a_reshape_that_may_copy_is_read_no_more():
    def old(x):
        y = x * 1
        z = y.reshape(-1)
        z += 1
        return y

    def new(x):
        y = x * 1
        z = y.reshape(-1)
        z += 1
        return z

    def split(x):
        y = x * 1
        z = y.reshape(3, 2, 2)
        z += 1
        return y

    for x in (X, torch.from_numpy(X), "M=3 N=4"):
        refused(old, r"test_in_place\.py:\d+ may have changed: a reshape that merges axes", x)
    for function in (new, split):
        assert_as_eager(function, X)
        assert_as_eager(function, torch.from_numpy(X))


def test_out_takes_the_result():
    def function(x):
        y = x * 1
        names = y, y[0]
        np.exp(x * 0.1, out=y)
        np.add(y, 1, y)
        np.clip(y, 0, 2, out=y)
        x.sum(axis=0, out=y[1])
        np.copyto(y[2], x[0])
        zeros = np.zeros_like(x)
        found = np.multiply(x, 2, out=zeros)
        found += 1
        return (*names, zeros)

    assert_as_eager(function, X)


def test_torchs_methods_and_functions():
    def chain(x):
        y = x * 1
        names = y, y[1:]
        y.add_(1).mul_(2).clamp_(3, 20).masked_fill_(y > 10, -1).sub_(x, alpha=2).relu_()
        y[1].zero_()
        y[:, 1].fill_(4).neg_()
        y.T[2].copy_(x[:, 0])
        y.tril_(1).detach_().pow_(2)
        return names

    def functions(x):
        y = x - 5
        names = y, y.view(-1)
        torch.relu_(y)
        F.leaky_relu_(y)
        F.elu(y, inplace=True)
        F.hardtanh(y, -1, 1, inplace=True)
        F.dropout(y, 0.5, training=False, inplace=True)
        torch.add(y, x, out=y)
        torch.clamp(y, 0, 9, out=y[...])
        return names

    def residual(x):
        h = x * 2 - 9
        r = h
        h = F.relu(h, inplace=True)
        return h + r

    for function in (chain, functions, residual):
        assert_as_eager(function, torch.from_numpy(X))


def test_modules_that_work_in_place():
    layers = torch.nn
    torch.manual_seed(0)
    model = layers.Sequential(
        layers.Linear(4, 5), layers.ReLU(inplace=True), layers.Dropout(0.5, inplace=True),
        layers.Linear(5, 4), layers.LeakyReLU(inplace=True), layers.Hardswish(inplace=True),
    ).double().eval()  # fmt: skip
    with torch.no_grad():
        found = bb.jit(model)(torch.from_numpy(X))
        np.testing.assert_allclose(found, model(torch.from_numpy(X)), rtol=1e-6)


def test_a_change_that_nothing_reads_records_nothing():
    def function(x):
        y = x * 2
        z = y[1:]
        z += 1
        return z

    assert [e.op for e in bb.trace(function, x="M").equations] == ["mul", "slice", "add"]


def test_names_of_variables_that_change():
    def function(x):
        y = x * 2
        y += 1
        return y

    assert [e.hint for e in bb.trace(function, x="M").equations] == ["y", "y"]


@pytest.mark.parametrize(("key", "kind"), [
    (slice(1, None, 2), "f"), (slice(2, 9, 3), "i"), (slice(0, None, 5), "?"), (slice(7, 8, 4), ""),
])  # fmt: skip
def test_elements_at_steps_are_set(key, kind):
    """Columns of whole rows, of a slice, and of rows that end behind the array."""

    def function(x):
        y = x > 9 if kind == "?" else x + 0
        y[:, key] = x[:, key] > 30 if kind == "?" else -x[:, key]
        y[::3] = y[:1]
        return y

    x = np.arange(60).reshape(5, 12)
    assert_as_eager(function, x.astype(float) if kind == "f" else x)
    assert "custom" not in {e.op for e in bb.trace(function, x="5 12").equations}, "views"


def test_elements_at_steps_of_sizes_that_are_not_known():
    def function(x):
        y = x * 2
        y[::3] += 1
        return y

    program = bb.trace(function, x="M")
    for size in range(1, 8):
        x = np.arange(float(size))
        (found,) = program.numpy({"x": x}).values()
        np.testing.assert_array_equal(found, function(x))
