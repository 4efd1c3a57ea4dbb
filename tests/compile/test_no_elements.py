"""A maximum of no elements is refused, as in NumPy and torch; other reductions have values."""

import warnings

import numpy as np
import pytest

import blockbuster as bb

torch = pytest.importorskip("torch")

EXTREMA = {
    "max": lambda x: np.max(x, axis=-1), "min": lambda x: x.min(axis=-1),
    "of all": lambda x: np.max(x), "of two axes": lambda x: np.min(x, axis=(0, 1)),
    "argmax": lambda x: np.argmax(x, axis=-1), "argmin of all": lambda x: np.argmin(x),
    "ptp": lambda x: np.ptp(x, axis=-1), "norm": lambda x: np.linalg.norm(x, -np.inf, axis=-1),
    "of products": lambda x: np.max(x * 2 + 1, axis=-1),
}  # fmt: skip
THEIRS = {
    "amax": lambda x: torch.amax(x, -1), "max": lambda x: x.max(-1).values,
    "of all": lambda x: torch.min(x), "argmin": lambda x: x.argmin(-1),
    "topk": lambda x: torch.topk(x, 1).values,
}  # fmt: skip


@pytest.mark.parametrize("name", EXTREMA)
def test_numpys_extrema(name):
    with pytest.raises(bb.TraceError, match="there are no elements"):
        bb.jit(EXTREMA[name])(np.ones((3, 0)))


@pytest.mark.parametrize("name", THEIRS)
def test_torchs_extrema(name):
    with pytest.raises((RuntimeError, IndexError)):
        THEIRS[name](torch.ones(3, 0))
    with pytest.raises(bb.TraceError, match="there are no elements"):
        bb.jit(THEIRS[name])(torch.ones(3, 0))


@pytest.mark.parametrize("name", EXTREMA)
def test_a_function_is_traced_again_for_arrays_without_elements(name):
    jitted = bb.jit(EXTREMA[name])
    x = np.arange(6.0).reshape(2, 3)

    np.testing.assert_allclose(jitted(x), EXTREMA[name](x))
    with pytest.raises(bb.TraceError, match="there are no elements"):
        jitted(x[:, :0])
    np.testing.assert_allclose(jitted(x), EXTREMA[name](x))


@pytest.mark.parametrize("name", EXTREMA)
def test_programs_of_unknown_sizes_check_their_arrays(name):
    program = bb.trace(EXTREMA[name], x="M N")
    compiled = bb.compile(program, {"M": 3, "N": 4}, "float64", machine="cpu")
    with pytest.raises(bb.LaunchError, match=r"N has size 0, but \|N\| is at least 1"):
        compiled(np.ones((3, 0)))
    with pytest.raises(ValueError, match=r"\|N\| is at least 1"):
        bb.compile(program, {"M": 3, "N": 0}, "float64", machine="cpu")


def test_rows_that_are_not_there_have_maxima():
    assert bb.jit(lambda x: np.max(x, axis=-1))(np.ones((0, 3))).shape == (0,)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.sum(x, axis=-1), lambda x: np.any(x, axis=-1), lambda x: np.all(x, axis=-1),
        lambda x: np.prod(x, axis=-1), lambda x: np.linalg.norm(x, np.inf, axis=-1),
        lambda x: np.count_nonzero(x, axis=-1), lambda x: np.cumsum(x, axis=-1),
        lambda x: x[:, ::-1], lambda x: np.flip(x) + x, lambda x: np.sum(x[:, ::-1], axis=-1),
        lambda x: x[:, 4:1:-1] * 2, lambda x: x @ np.flip(x, 1).T,
    ],
)  # fmt: skip
def test_other_reductions_have_values(function):
    x = np.ones((3, 0))

    np.testing.assert_array_equal(bb.jit(function)(x), function(x), strict=True)


@pytest.mark.parametrize("count", [0, 1, 2, 3])
@pytest.mark.parametrize("ddof", [0, 1, 2, 3])
def test_variances_of_too_few_elements(count, ddof):
    x = np.arange(2.0 * count).reshape(2, count)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy says that there are too few
        right = np.var(x, axis=-1, ddof=ddof)

    np.testing.assert_array_equal(bb.jit(lambda x: np.var(x, axis=-1, ddof=ddof))(x), right)
    found = bb.jit(lambda x: torch.var(x, -1, correction=ddof))(torch.tensor(x))
    np.testing.assert_array_equal(found.numpy(), right)
