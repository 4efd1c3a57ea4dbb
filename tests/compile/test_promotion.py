"""Dtypes and values of NumPy's and torch's functions, for arrays of every dtype and shape.

The dtype of a result is the library's, but for what the pages say: floats have the dtype in which
the floats among the inputs meet, or float64 (NumPy) and float32 (torch) if there are none; sums of
unsigned integers are int64. What a library refuses for its shape is refused here, too.
"""

import warnings
import zlib

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.errors import TraceError

torch = pytest.importorskip("torch")

from tests.compile.library_calls import CALLS  # noqa: E402 - it imports torch
from tests.parameters import one_in  # noqa: E402

DTYPES = ("bool", "uint8", "int8", "int32", "int64", "float16", "float32", "float64")
DEFAULTS = {"numpy": "float64", "torch": "float32"}
TOLERANCE = {"float16": 4e-3, "float32": 2e-5, "float64": 1e-9}
NOT_OF_THIS_DTYPE = (TypeError, NotImplementedError)
"""What a library raises for a dtype alone: a trace may take more."""

EXACT = ("float_power", "full_like of a dtype")
"""Calls that name the dtype of their result."""


def arrays_for(call, shapes, dtype):
    """Arrays of small numbers, the same in every run."""
    rng = np.random.default_rng(zlib.crc32(f"{call} {shapes} {dtype}".encode()))
    made = []
    for shape in shapes:
        x = np.round(rng.normal(size=shape) * 16) / 8
        if call.positive or dtype == "uint8":
            x = np.abs(x) + 0.25
        if np.dtype(dtype).kind in "iu":
            x = np.rint(x) + call.positive
        made.append(np.asarray(x > 0 if dtype == "bool" else x).astype(dtype))
    return [torch.tensor(a) for a in made] if call.library == "torch" else made


def outcome(function, arrays):
    """The result of a call, or its error."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(*arrays)
        except Exception as error:
            return error


def wanted_dtype(eager, given, library):
    """The dtype that the pages promise for a result which has the dtype ``eager`` there."""
    if "float" not in eager:
        return {"uint64": "int64"}.get(eager, eager)
    if eager == "float64" and given == "float64":
        return eager
    if "float" in given:
        return given
    return DEFAULTS[library] if library == "torch" else eager


def check(call, shapes, dtype, refused):
    """``refused``: the library takes no array of this dtype, whatever its shape."""
    arrays = arrays_for(call, shapes, dtype)
    right, found = outcome(call.function, arrays), outcome(bb.jit(call.function), arrays)
    where = f"{call} of {dtype} {shapes}: {found!r}, {call.library} gives {right!r}"
    if isinstance(right, Exception):
        taken = refused or isinstance(right, NOT_OF_THIS_DTYPE)
        assert taken or isinstance(found, TraceError | type(right)), where
        return
    assert not isinstance(found, Exception), where
    eager, ours = (str(np.asarray(x).dtype) for x in (right, found))
    wanted = eager if call.name in EXACT else wanted_dtype(eager, dtype, call.library)
    assert ours == wanted, where
    right, found = np.asarray(right), np.asarray(found)
    assert found.shape == right.shape, where
    tolerance = max(TOLERANCE.get(eager, 0), TOLERANCE.get(ours, 0))
    np.testing.assert_allclose(
        found.astype(float), right.astype(float), rtol=tolerance, atol=tolerance * 10,
        err_msg=where, equal_nan=True,
    )  # fmt: skip


@pytest.mark.parametrize("call", one_in(6, CALLS), ids=str)
def test_results_have_the_librarys_dtype_and_value(call):
    for dtype in DTYPES:
        eager = [outcome(call.function, arrays_for(call, s, dtype)) for s in call.shapes]
        refused = all(isinstance(found, Exception) for found in eager)
        for shapes in call.shapes:
            check(call, shapes, dtype, refused)
