"""Softplus by torch, by ``logaddexp`` with a number and by hand: one program, and its values."""

import numpy as np
import pytest

import blockbuster as bb

torch = pytest.importorskip("torch")

F = torch.nn.functional
SPECIAL = [0.0, -0.0, 1e-30, 14.9, 15.0, 16.1, 19.9, 20.0, 20.1, 88.0, 1e30, float("inf")]
POINTS = torch.tensor([*SPECIAL, *(-x for x in SPECIAL), float("nan"), *np.linspace(-30, 30, 200)])


def ops(fn, dtype):
    return sorted(e.op for e in bb.trace(fn, x=torch.zeros(3, dtype=dtype)).equations)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_one_program(dtype):
    wanted = ["abs", "add", "exp", "log1p", "maximum", "neg"]
    assert ops(lambda x: F.softplus(x), dtype) == wanted
    assert ops(lambda x: torch.clamp(x, min=0) + torch.log1p(torch.exp(-x.abs())), dtype) == wanted
    assert ops(lambda x: np.logaddexp(x, 0), dtype) == wanted
    assert ops(lambda x: np.logaddexp(0.0, x), dtype) == wanted


@pytest.mark.parametrize("more", [{"beta": 2.0}, {"threshold": 14.0}])
def test_others_choose(more):
    assert "where" in ops(lambda x: F.softplus(x, **more), torch.float32)


def test_float64_chooses():
    """exp(-20) counts there, and torch leaves it out."""
    assert "where" in ops(lambda x: F.softplus(x), torch.float64)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("threshold", [15.0, 20.0, 3.0])
def test_values_are_torchs(dtype, threshold):
    x = POINTS.to(dtype)
    found = bb.jit(lambda x: F.softplus(x, threshold=threshold))(x)
    eps = torch.finfo(dtype).eps
    torch.testing.assert_close(
        found, F.softplus(x, threshold=threshold), rtol=2 * eps, atol=0, equal_nan=True
    )


@pytest.mark.parametrize("number", [0, 0.0, -2, 3.5, np.float64(1.0), np.inf, -np.inf, np.nan])
def test_logaddexp_with_a_number(number):
    x = POINTS.double().numpy()
    for fn in (lambda x: np.logaddexp(x, number), lambda x: np.logaddexp(number, x)):
        with np.errstate(all="ignore"):
            wanted = fn(x)
        np.testing.assert_allclose(bb.jit(fn)(x), wanted, rtol=1e-15)
