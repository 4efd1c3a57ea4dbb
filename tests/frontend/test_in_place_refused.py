"""Changes in place that are refused: in words, with the user's line."""

import operator

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.errors import TraceError

torch = pytest.importorskip("torch")

from torch.nn import functional as F  # noqa: E402

from tests.frontend.in_place import X, assert_as_eager, refused  # noqa: E402

W = np.arange(4.0)
TENSOR = torch.arange(4.0, dtype=torch.float64)


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
    (lambda x: (x * 1).__setitem__(([0, 2], [1, 1]), 1), "an array beside other positions"),
    (lambda x: (x * 1).__setitem__(np.array([0.5, 2]), 1), "positions are integers in a row"),
    (lambda x: (x * 1).__setitem__(x > 3, x), "the value is one number"),
    (lambda x: operator.iadd(np.broadcast_to(x * 1, (2, 3, 4)), 1), "what broadcast_to, expand"),
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


@pytest.mark.parametrize("name", ["t_", "transpose_", "unsqueeze_", "swapaxes_"])
def test_axes_do_not_change_in_place(name):
    def function(x):
        y = x[:3, :3] * 1
        getattr(y, name)(*{"t_": (), "unsqueeze_": (0,)}.get(name, (0, 1)))
        return y

    words = rf"\.{name} changes the axes of an array in place"
    refused(function, words, torch.from_numpy(X), f"go on with the result of .{name[:-1]}")


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


