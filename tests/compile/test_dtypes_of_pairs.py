"""The dtype of every operator of every pair of kinds: the library's, or the operator is refused.

All dtypes meet all dtypes and Python's numbers, with axes and without. NumPy's own exceptions are
those of docs/use_jit.md.
"""

import operator
import warnings
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.emit.tile.value_dtypes import output_dtypes
from blockbuster.errors import TraceError
from blockbuster.ir.dtypes import met

torch = pytest.importorskip("torch")

DTYPES = ("bool", "int8", "uint8", "int16", "int32", "int64", "float16", "bfloat16", "float32")
SHAPES = ((), (3,))
REFUSALS = (TypeError, RuntimeError, ValueError, OverflowError, IndexError)
ARRAYS = tuple(product(DTYPES, SHAPES))
NUMBERS = ((True, None), (2, None), (2.5, None))
BINARY = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
    "//": operator.floordiv, "%": operator.mod, "**": operator.pow, "&": operator.and_,
    "<": operator.lt, "==": operator.eq, ">>": operator.rshift,
    "a mask times": lambda x, y: (x > 0) * y,
    "a scaled mask times": lambda x, y: (x > 0) * 0.5 * y,
    "half a mask and": lambda x, y: (x > 0) / 2 + y,
    "masks": lambda x, y: (x > 0) + (y > 0),
}  # fmt: skip
TORCHS = {
    "where": lambda x, y: torch.where(x > 0, x, y),
    "a choice of numbers times": lambda x, y: torch.where(x > 0, 1.0, -0.5) * y,
    "a choice of integers times": lambda x, y: torch.where(x > 0, 1, 0) * y,
    "minimum": lambda x, y: torch.minimum(x, y), "clamp": lambda x, y: torch.clamp(x, y),
    "cat": lambda x, y: torch.cat([x, y]), "stack": lambda x, y: torch.stack([x, y]),
    "einsum": lambda x, y: torch.einsum("i,i->", x, y), "matmul": lambda x, y: x[None] @ y[:, None],
    "masked_fill": lambda x, y: x.masked_fill(x > 0, y), "hypot": lambda x, y: torch.hypot(x, y),
    "addcmul": lambda x, y: torch.addcmul(x, x, y), "xlogy": lambda x, y: torch.xlogy(x, y),
    "logaddexp": lambda x, y: torch.logaddexp(x, y),
    "logaddexp2": lambda x, y: torch.logaddexp2(x, y),
    "heaviside": lambda x, y: torch.heaviside(x, y),
}  # fmt: skip
NUMPYS = {
    "where": lambda x, y: np.where(x > 0, x, y), "minimum": lambda x, y: np.minimum(x, y),
    "clip": lambda x, y: np.clip(x, y, y), "concatenate": lambda x, y: np.concatenate([x, y]),
    "stack": lambda x, y: np.stack([x, y]), "matmul": lambda x, y: x[None] @ y[:, None],
    "einsum": lambda x, y: np.einsum("i,i->", x, y), "hypot": lambda x, y: np.hypot(x, y),
    "logaddexp": lambda x, y: np.logaddexp(x, y), "logaddexp2": lambda x, y: np.logaddexp2(x, y),
    "heaviside": lambda x, y: np.heaviside(x, y),
}  # fmt: skip
ONE = {
    "exp": lambda x, lib: lib.exp(x), "mean": lambda x, _: x.mean(), "sum": lambda x, _: x.sum(),
    "prod": lambda x, _: x.prod(), "negative": lambda x, _: -x, "absolute": lambda x, _: abs(x),
    "sqrt": lambda x, lib: lib.sqrt(x), "floor": lambda x, lib: lib.floor(x),
    "cumsum": lambda x, _: x.cumsum(0), "max": lambda x, _: x.max(), "any": lambda x, _: x.any(),
    "a mask's mean": lambda x, _: (x > 0).sum() / 2, "square": lambda x, lib: lib.square(x),
    "reciprocal": lambda x, lib: lib.reciprocal(x), "x ** 0.5": lambda x, _: x**0.5,
}  # fmt: skip


def made(dtype, shape):
    """A tensor of small numbers; a number of Python's as it is."""
    if shape is None:
        return dtype
    return (torch.tensor([1.0, 2.0, 3.0]) if shape else torch.tensor(2.0)).to(getattr(torch, dtype))


def as_array(x):
    return x.numpy() if isinstance(x, torch.Tensor) else x


def eager(function, args):
    """The dtype of the result without us, "" if the library refuses."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            result = function(*args)
        except (*REFUSALS, AttributeError):
            return ""
    return str(getattr(result, "dtype", "")).removeprefix("torch.")


def ours(functions, args):
    """The dtypes of the results of functions of ``args``; "" for those that are refused."""
    given = [x for x in args if hasattr(x, "dtype")]

    def all_of(*traced):
        left = iter(traced)
        full = [next(left) if hasattr(x, "dtype") else x for x in args]
        return tuple(function(*full) for function in functions)

    try:
        program = bb.trace(eval_named(all_of, len(given)), **dict(zip("xy", given, strict=False)))
        known = {one.name: one.dtype for one in program.inputs}
        floats = [dtype for dtype in known.values() if "float" in dtype]
        default = "float32" if isinstance(given[0], torch.Tensor) else "float64"
        return list(output_dtypes(bb.lower(program), met(floats or [default]), known).values())
    except TraceError:
        if len(functions) == 1:
            return [""]
        return [dtype for function in functions for dtype in ours([function], args)]


def eval_named(function, count):
    """``function`` of ``count`` arguments with names."""
    return (lambda x: function(x)) if count == 1 else (lambda x, y: function(x, y))


def in_numpy(dtype, given):
    """The dtype promised for a result that NumPy gives, of arrays of the dtypes ``given``."""
    floats = [one for one in given if "float" in one]
    if dtype == "uint64":
        return "int64"  # sums of unsigned integers
    if "float" not in dtype:
        return dtype
    return np.result_type(*floats).name if floats else "float64"


def check(named, args, promised=lambda dtype: dtype):
    if not hasattr(args[0], "dtype"):  # of a number between arrays NumPy makes an array first
        named = {name: function for name, function in named.items() if name != "clip"}
    wanted = {name: eager(function, args) for name, function in named.items()}
    taken = [name for name, dtype in wanted.items() if dtype]
    found = ours([named[name] for name in taken], args)
    where = [str(getattr(x, "dtype", x)) for x in args]
    wrong = {
        name: (dtype, wanted[name])
        for name, dtype in zip(taken, found, strict=True)
        if dtype and dtype not in (wanted[name], promised(wanted[name]))
    }
    assert not wrong, f"{where}: {wrong} (ours, the library's)"


PAIRS = [
    pair for pair in product((*ARRAYS, *NUMBERS), repeat=2) if any(one in ARRAYS for one in pair)
]


@given(st.sampled_from(PAIRS))
def test_tensors(pair):
    check(BINARY | TORCHS, [made(*one) for one in pair])


@given(st.sampled_from([p for p in PAIRS if "bfloat16" not in (p[0][0], p[1][0])]))
def test_arrays(pair):
    args = [as_array(made(*one)) for one in pair]
    given_dtypes = [str(x.dtype) for x in args if hasattr(x, "dtype")]
    check(BINARY | NUMPYS, args, lambda dtype: in_numpy(dtype, given_dtypes))


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_operand(dtype):
    for shape in SHAPES:
        x = made(dtype, shape)
        check({name: _of(function, torch) for name, function in ONE.items()}, [x])
        if dtype != "bfloat16":
            named = {name: _of(function, np) for name, function in ONE.items()}
            check(named, [x.numpy()], lambda found: in_numpy(found, [dtype]))


BESIDE_MASKS = {
    "torch": (torch.xlogy, torch.logaddexp, torch.logaddexp2, torch.hypot),
    "numpy": (np.logaddexp, np.logaddexp2, np.heaviside, np.hypot),
}


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("library", BESIDE_MASKS)
def test_floats_beside_masks_and_bytes_keep_their_dtype(library, dtype):
    x = np.array([[0.0, 0.5, 2.0], [-1.5, 3.0, 0.0]]).astype(dtype)
    mask, whole = x > 0.25, np.array([[1, 2, 3], [0, 1, 2]], np.int8)
    to = torch.from_numpy if library == "torch" else np.asarray
    close = 4e-3 if dtype == "float16" else 1e-6
    for function in BESIDE_MASKS[library]:
        for other in (mask, whole):
            for pair in ((x, other), (other, abs(x) + x.dtype.type(0.5))):
                expected = np.asarray(function(*map(to, pair)))
                found = np.asarray(bb.jit(lambda x, y, f=function: f(x, y))(*map(to, pair)))
                assert found.dtype == expected.dtype == dtype, (function, other.dtype)
                np.testing.assert_allclose(found, expected, close, close)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("number", [2.5, 0, -1.0, True, np.nan])
def test_numbers_leave_floats_their_dtype(dtype, number):
    x = np.array([[0.0, 0.5, 2.0], [-1.5, 3.0, 0.0]]).astype(dtype)
    close = 4e-3 if dtype == "float16" else 1e-6
    for function in BESIDE_MASKS["numpy"]:
        for pair in (lambda x: (x, number)), (lambda x: (number, x)):
            found = bb.jit(lambda x, f=function, pair=pair: f(*pair(x)))(x)
            with np.errstate(invalid="ignore"):
                expected = function(*pair(x))
            assert found.dtype == expected.dtype == dtype
            np.testing.assert_allclose(found, expected, close, close)


def _of(function, library):
    return lambda x: function(x, library)
