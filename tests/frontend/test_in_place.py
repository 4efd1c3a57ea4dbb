"""Changes in place: seen through names and views as in NumPy and torch, or refused in words."""

import copy
import operator
from types import SimpleNamespace

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.errors import TraceError

torch = pytest.importorskip("torch")

from torch.nn import functional as F  # noqa: E402

X = np.arange(1.0, 13.0).reshape(3, 4)
WHOLE = np.arange(12).reshape(3, 4)
W = np.arange(4.0)
TENSOR = torch.arange(4.0, dtype=torch.float64)


def listed(result):
    return [np.asarray(one) for one in (result if isinstance(result, tuple | list) else [result])]


def assert_as_eager(function, x, dims=None):
    """The traced function gives what it gives for a copy of ``x``, in the same dtypes."""
    given = x.clone() if isinstance(x, torch.Tensor) else x.copy()
    expected = listed(function(given))
    assert np.array_equal(np.asarray(given), np.asarray(x)), "the argument changes"
    program = bb.trace(function, x=x if dims is None else dims)
    outputs = program.numpy({"x": np.asarray(x)})
    for output, wanted in zip(program.outputs, expected, strict=True):
        np.testing.assert_allclose(outputs[output.name], wanted, rtol=1e-6)
        assert outputs[output.name].shape == wanted.shape
        if wanted.dtype.kind in "iub":
            assert outputs[output.name].dtype == wanted.dtype


def refused(function, words, x=X, hint=""):
    with pytest.raises(TraceError, match=words) as caught:
        bb.trace(function, x=x)
    assert "test_in_place.py:" in str(caught.value)
    assert hint in str(caught.value)


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


@pytest.mark.parametrize(("function", "words"), [
    (lambda x: operator.iadd((x > 3) + 0, 0.5), "of int64 changes in place to floats: it keeps"),
    (lambda x: operator.itruediv((x > 3) + 0, 2), "an array of int64 changes in place to floats"),
    (lambda x: operator.iadd(x > 3, 1), "an array of bool changes in place to int64"),
    (lambda x: np.add(x, 1, out=(x > 3) + 0), "an array of int64 changes in place to float64"),
    (lambda x: operator.iadd(x[:1] * 1, x), r"\(1, 4\) changes in place to \(3, 4\)"),
    (lambda x: operator.iadd(x[0] * 1, x), r"\(4\,?\) changes in place to \(3, 4\)"),
    (lambda x: (x * 1).__setitem__(0, x), r"an array \(3, 4\) for elements \(4"),
    (lambda x: (x * 1).__setitem__(0, [1.0, 2.0]), "2 and 4 differ"),
    (lambda x: ((x > 3) + 0).astype(np.int8).__setitem__(0, 300), "300 is no int8"),
    (lambda x: (x * 1).__setitem__([0, 2], 1), r"x\[\.\.\.\] = value: a list as an index"),
    (lambda x: (x * 1).__setitem__(np.array([0, 2]), 1), "the key has an array of positions"),
    (lambda x: (x * 1).__setitem__(x > 3, x), "the value is one number"),
    (lambda x: operator.iadd(np.broadcast_to(x * 1, (2, 3, 4)), 1), "what broadcast_to, expand"),
    (lambda x: operator.ixor(x > 3, x > 4), r"no \^ << >>"),
    (lambda x: operator.ilshift((x > 3) + 0, 1), r"no \^ << >>"),
    (lambda x: setattr(x * 1, "shape", (4, 3)), r"a traced array takes no x\.shape = value"),
    (lambda x: setattr(x, "data", x + 1), r"a traced array takes no x\.data = value"),
    (lambda x: (x[0, 0] * 1).fill(3), "NumPy fills an array, and leaves a number as it is"),
    (lambda x: np.put(x * 1, [0], 5), "changes elements at positions that are values"),
    (lambda x: np.multiply(x, 2, out=x * 1, where=x > 3), "with where cannot be traced"),
])  # fmt: skip
def test_what_numpy_refuses_and_what_no_program_expresses(function, words):
    refused(function, words)


ARGUMENTS = [
    lambda x: operator.iadd(x, 1), lambda x: operator.imul(x[1:], 2), lambda x: x.fill(0),
    lambda x: x.T.__setitem__(0, 1), lambda x: np.exp(x, out=x), lambda x: np.copyto(x, 1 + x),
    lambda x: operator.iadd(x.astype(np.float64, copy=False), 1),
    lambda x: x.reshape(2, 2, 3).__setitem__(0, 1), lambda x: operator.iadd(x.ravel(), 1),
]  # fmt: skip


@pytest.mark.parametrize("function", ARGUMENTS, ids=range(len(ARGUMENTS)))
def test_callers_arrays_stay_as_they_are(function):
    refused(function, r"this (may )?changes? the argument x in place: callers' arrays stay as", X)
    refused(function, r"this (may )?changes? the argument x in place", "M=3 N=4", "y = x.copy()")


OF_TENSORS = [
    lambda x: x.add_(1), lambda x: F.relu(x, inplace=True), lambda x: torch.relu_(x),
    lambda x: x.float().double().T[0].zero_() if x.dtype == torch.float32 else x.T[0].zero_(),
    lambda x: torch.exp(x, out=x), lambda x: torch.nn.ReLU(inplace=True)(x),
    lambda x: x.double().mul_(2), lambda x: x[0, 0].add_(1), lambda x: x.contiguous().add_(1),
    lambda x: x.detach().copy_(x + 1), lambda x: F.dropout(x, 0.5, False).add_(1),
]  # fmt: skip


@pytest.mark.parametrize("function", OF_TENSORS, ids=range(len(OF_TENSORS)))
def test_callers_tensors_stay_as_they_are(function):
    words = r"this (may )?changes? the argument x in place: callers' arrays stay as they are"
    refused(function, words, torch.from_numpy(X))


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


@pytest.mark.parametrize("name", ["t_", "transpose_", "unsqueeze_", "swapaxes_"])
def test_axes_do_not_change_in_place(name):
    def function(x):
        y = x[:3, :3] * 1
        getattr(y, name)(*{"t_": (), "unsqueeze_": (0,)}.get(name, (0, 1)))
        return y

    words = rf"\.{name} changes the axes of an array in place"
    refused(function, words, torch.from_numpy(X), f"go on with the result of .{name[:-1]}")


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


def test_arrays_that_are_not_traced_stay_as_they_are():
    def added(x):
        w = W
        w += x[0]
        return w

    refused(added, r"np\.add with out= of a ndarray that is not traced", hint="bb.zeros_like(x)")
    refused(lambda x: np.exp(x[0], out=W), r"np\.exp with out= of a ndarray that is not traced")
    for change in (
        lambda x: TENSOR.add_(x[0]), lambda x: operator.iadd(TENSOR, x[0]),
        lambda x: torch.exp(x[0], out=TENSOR),
    ):  # fmt: skip
        refused(change, "changes TENSOR, which the function reads, in place", torch.from_numpy(X))
    words = "a tensor that is not traced takes no traced values"
    refused(lambda x: TENSOR.__setitem__(0, x[0, 0]), words, torch.from_numpy(X))
    np.testing.assert_array_equal(W, np.arange(4.0))
    np.testing.assert_array_equal(TENSOR, np.arange(4.0))


@pytest.mark.parametrize("mask", [np.zeros(4), torch.zeros(4, dtype=torch.float64)])
def test_an_array_that_changes_after_it_was_read_is_refused(mask):
    def once(x):
        y = x * mask
        mask.__imul__(2)
        return y

    def in_a_loop(x):
        y = x * 0
        for i in range(3):
            mask[i] = i
            y = y + x * mask
        return y

    def in_copies(x):
        y = x * 0
        mask[:] = 0
        for i in range(3):
            mask[i] = i
            y = y + x * (mask.copy() if isinstance(mask, np.ndarray) else mask.clone())
        return y

    mask[:] = 1
    x = X if isinstance(mask, np.ndarray) else torch.from_numpy(X)
    for function in (once, in_a_loop):
        refused(function, "mask, which the function reads, changes in place after it was read", x)
    assert_as_eager(in_copies, x)


def test_containers_of_callers_stay_as_they_are():
    def replaced(x):
        x[0] = x[0] * 2
        return x[0]

    def appended(x):
        x.append(x[0])
        return x[0]

    def removed(x):
        return x.pop("w") * 2

    words = "the function changes a list, a dict or an object that it is given"
    for function, given in ((replaced, [X]), (appended, [X]), (removed, {"w": X})):
        refused(function, words, given, "items = [*items]")
        with pytest.raises(TraceError, match=words):
            bb.jit(function)(given)
    assert len(given) == 1


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
