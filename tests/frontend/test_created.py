"""Arrays made of the sizes of traced arrays, by NumPy's, torch's and our functions."""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.errors import TraceError

X = np.arange(6.0).reshape(2, 3)


def programs(torch):
    return {
        "ones": lambda x: torch.ones((x.shape[0], x.shape[1])) * x,
        "ones of a shape": lambda x: torch.ones(x.shape) + x,
        "ones of a size": lambda x: torch.ones(x.size()) + x,
        "ones beside a number": lambda x: torch.ones((x.shape[0], 1)) + x,
        "ones of one axis": lambda x: torch.ones(x.size(0)) + x[:, 0],
        "zeros": lambda x: torch.zeros(x.shape[1]) + x,
        "a mask": lambda x: torch.where(torch.ones(x.shape, dtype=torch.bool), x, 2.0),
        "full": lambda x: torch.full(x.shape, 3.0) + x,
        "arange": lambda x: torch.arange(x.shape[1]) + x,
        "arange from 1": lambda x: torch.arange(1, x.shape[1] + 1) + x,
        "arange in steps": lambda x: torch.arange(0, 2 * x.shape[1], 2) + x,
        "arange in steps that end early": lambda x: torch.arange(0, 2 * x.shape[1] - 1, 2) + x,
        "arange in float32": lambda x: torch.arange(x.shape[1], dtype=torch.float32) + x,
        "eye": lambda x: torch.eye(x.shape[1]) @ x.T,
        "eye of two sizes": lambda x: torch.eye(x.shape[0], x.shape[1]) + x,
        "linspace": lambda x: torch.linspace(0, 1, x.shape[1]) * x,
        "triangle": lambda x: torch.full((x.shape[1], x.shape[1]), 1.0).tril() @ x.T,
        "product of sizes": lambda x: torch.ones(x.numel()).reshape(x.shape) + x,
        "like": lambda x: torch.ones_like(x) + torch.full_like(x, 2.0)
        + torch.where(x == x, 0.0, torch.empty_like(x)),  # whose memory may hold NaN
        "new": lambda x: x.new_ones(x.shape) + x.new_full(x.shape, 2.0)
        + torch.where(x == x, 0.0, x.new_empty(x.shape)),
        "alone": lambda x: torch.ones(x.shape),
    }


NAMES = tuple(programs(None))


@pytest.mark.parametrize("name", NAMES)
def test_torch_makes_them_of_sizes_that_are_not_known(name):
    torch = pytest.importorskip("torch")
    function = programs(torch)[name]
    expected = function(torch.from_numpy(X).float())

    program = bb.trace(function, x="A B")
    graph = bb.lower(program)
    for found in (program.numpy({"x": X}), bb.evaluate(graph, {"x": X})):
        np.testing.assert_allclose(next(iter(found.values())), expected, rtol=1e-6)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "alone"])
def test_torch_makes_them_of_examples(name):
    torch = pytest.importorskip("torch")
    function, x = programs(torch)[name], torch.from_numpy(X).float()

    torch.testing.assert_close(bb.jit(function)(x), function(x))


REFUSED = {
    "sizes one by one": (
        lambda t: lambda x: t.ones(x.shape[0], x.shape[1]) * x,
        r"torch.ones\(\) takes 1 positional argument[\s\S]*torch.ones\(\(n, m\)\)",
    ),
    "a size as a tensor": (
        lambda t: lambda x: t.tensor(x.shape[0]) * x,
        r"has no value yet: Could not infer dtype of SizeExpr",
    ),
    "random numbers": (lambda t: lambda x: t.rand(x.shape) * x, "torch.rand cannot be traced"),
    "a window": (lambda t: lambda x: t.hann_window(x.shape[1]) * x, "hann_window cannot be"),
    "gradients": (
        lambda t: lambda x: t.ones(x.shape, requires_grad=True) * x,
        "torch.ones with requires_grad cannot be traced",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_torch_cannot_make_is_told_with_the_line(name):
    torch = pytest.importorskip("torch")
    make, message = REFUSED[name]

    with pytest.raises(TraceError, match=message) as caught:
        bb.trace(make(torch), x="A B")
    assert "test_created.py" in str(caught.value)


NUMPY = {
    "ones": lambda x: np.ones(x.shape) + x,
    "zeros": lambda x: np.zeros(x.shape[1]) + x,
    "full": lambda x: np.full((2, x.shape[1]), 3.0) + x,
    "arange": lambda x: np.arange(x.shape[1]) + x,
    "arange from 1": lambda x: np.arange(1, x.shape[1] + 1) + x,
    "eye": lambda x: np.eye(x.shape[1]) @ x.T,
    "tri": lambda x: np.tri(x.shape[0], x.shape[1]) * x,
    "identity": lambda x: np.identity(x.shape[1]) @ x.T,
    "linspace": lambda x: np.linspace(0, 1, x.shape[1]) * x,
    "empty": lambda x: np.empty(x.shape) * 0 + x,
}


@pytest.mark.parametrize("name", NUMPY)
def test_numpy_makes_them_of_known_sizes(name):
    np.testing.assert_allclose(bb.jit(NUMPY[name])(X), NUMPY[name](X))
    first = "A" if name in ("ones", "tri", "empty") else "B"
    message = rf'the size \|{first}\|.* is not known while tracing[\s\S]*is declared: "{first}=8"'
    with pytest.raises(TraceError, match=message) as caught:
        bb.trace(NUMPY[name], x="A B")
    assert "test_created.py" in str(caught.value)
    known = bb.trace(NUMPY[name], x="A=2 B=3").numpy({"x": X})["out"]
    np.testing.assert_allclose(known, NUMPY[name](X))


def test_arrays_like_others_are_of_any_size():
    def function(x):
        return np.ones_like(x) + np.zeros_like(x) + np.full_like(x, 2.0) + np.empty_like(x) * 0

    np.testing.assert_array_equal(bb.trace(function, x="A B").numpy({"x": X})["out"], X * 0 + 3)


def test_an_error_of_the_users_stays_what_it_is():
    def wrong(x):
        return x + len(5)

    with pytest.raises(TypeError, match="has no len"):
        bb.trace(wrong, x="A")
