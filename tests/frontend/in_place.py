"""What tests of changes in place have in common."""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.errors import TraceError

torch = pytest.importorskip("torch")

X = np.arange(1.0, 13.0).reshape(3, 4)
WHOLE = np.arange(12).reshape(3, 4)


def listed(result):
    """The arrays of a result, as NumPy's."""
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
    """The function is refused with these words, a line of the tests, and the hint."""
    with pytest.raises(TraceError, match=words) as caught:
        bb.trace(function, x=x)
    assert "test_in_place" in str(caught.value)
    assert hint in str(caught.value)
