"""Masks and integers beside each other and beside floats: what NumPy gives, in NumPy's dtypes."""

import operator
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.runtime.run_plan import run_in_interpreter
from tests.parameters import one_in

DTYPES = ("bool", "int8", "uint8", "int32", "int64", "float64")
ARITHMETIC = (operator.add, operator.sub, operator.mul, np.maximum, np.minimum)
COMPARISONS = (operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge)
DIVISIONS = (operator.floordiv, operator.mod)


def drawn(dtype, shape, seed=0):
    """Numbers whose sums and products no dtype has to wrap; none is 0 where one divides."""
    rng = np.random.default_rng(seed)
    low, high = {"bool": (0, 2), "uint8": (6, 11)}.get(dtype, (1, 6))
    return rng.integers(low, high, shape).astype(dtype)


def of_two(x, y):
    """All that NumPy defines for the dtypes of ``x`` and ``y``, under names."""
    found = {}
    for function in (*ARITHMETIC, *COMPARISONS, *DIVISIONS):
        masks = is_mask(x) and is_mask(y)
        floats = is_float(x) or is_float(y)
        if function in DIVISIONS and (floats or masks or is_mask(y)):
            continue  # of floats they are refused; there are no 0 among masks to divide by
        if function is operator.sub and masks:
            continue
        found[function.__name__] = function(x, y)
    found["div"] = x / (y + 0.5)
    found["where"] = bb.where(x > 2, x, y)
    found["power"] = x * x * 3
    return found


def kind(x):
    """The letter of NumPy's dtype for masks, floats and unsigned numbers."""
    if isinstance(x, np.ndarray):
        return x.dtype.kind
    return {"mask": "b", "float": "f", "uint8": "u"}.get(x.kind, "i")


def is_mask(x):
    return kind(x) == "b"


def is_float(x):
    return kind(x) == "f"


def of_one(x):
    """Reductions and functions of one array."""
    found = {
        "sum": x.sum(-1), "all": x.sum(), "max": x.max(-1), "min": x.min(-1), "mean": x.mean(-1),
        "abs": np.abs(x), "plus": x + 1, "times": x * 2, "half": x * 0.5, "root": np.sqrt(x + 1.0),
    }  # fmt: skip
    if not is_mask(x):
        found["square"] = np.square(x)  # of masks NumPy makes int8
    if kind(x) not in ("b", "u"):
        found["neg"] = -x
    if not is_mask(x) and not is_float(x):
        found |= {"quotient": x // 2, "rest": x % 3}
    return found


def expect(found, right):
    assert list(found) == list(right)
    for name, made in found.items():
        assert made.dtype == right[name].dtype, name
        np.testing.assert_allclose(made, right[name], rtol=1e-12, err_msg=name)


@pytest.mark.parametrize("dtypes", one_in(5, product(DTYPES, DTYPES)), ids="-".join)
def test_functions_of_two_arrays_are_numpys(dtypes):
    x, y = dtypes
    a, b = drawn(x, (3, 4)), drawn(y, (4,), seed=1)
    right = {name: np.asarray(made) for name, made in of_two(a, b).items()}
    expect(bb.trace(of_two, x=a, y=b).numpy({"x": a, "y": b}), right)
    expect(bb.jit(of_two)(a, b), right)


@pytest.mark.parametrize("dtype", DTYPES)
def test_functions_of_one_array_are_numpys(dtype):
    a = drawn(dtype, (3, 4))
    right = {name: np.asarray(made) for name, made in of_one(a).items()}
    if dtype == "uint8":  # NumPy sums into uint64, which torch and we have as int64
        right |= {name: right[name].astype(np.int64) for name in ("sum", "all")}
    expect(bb.trace(of_one, x=a).numpy({"x": a}), right)
    expect(bb.jit(of_one)(a), right)


def large(labels, x):
    """What float32 and float64 round away."""
    i = bb.arange(x.shape[0])
    return {
        "same": labels[:, None] == labels[None] + 1,
        "sum": labels.sum(),
        "max": labels.max(),
        "place": i * 2**40 + 1,
        "rest": labels % 1000,
        "count": (x > 0).sum() + labels,
        "positive": bb.where(x > 0, labels, -labels),
    }


def test_integers_are_exact():
    labels = np.array([2**53 + 1, 2**53, -(2**40) - 1, 3], np.int64)
    x = np.array([1.0, -1.0, 2.0, 0.5], np.float32)
    right = {
        "same": labels[:, None] == labels[None] + 1, "sum": labels.sum(), "max": labels.max(),
        "place": np.arange(4) * 2**40 + 1, "rest": labels % 1000,
        "count": (x > 0).sum() + labels, "positive": np.where(x > 0, labels, -labels),
    }  # fmt: skip
    program = bb.trace(large, labels=labels, x=x)
    plan = bb.compile(program, dict.fromkeys(program.dims, 4), "float32", "h200").plan
    kernels = run_in_interpreter(plan, {"labels": labels, "x": x})
    for found in (bb.jit(large)(labels, x), dict(zip(right, kernels, strict=True))):
        for name, made in found.items():
            assert made.dtype == np.asarray(right[name]).dtype
            np.testing.assert_array_equal(made, right[name], err_msg=name)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(-(2**62), 2**62), min_size=2, max_size=5), st.integers(1, 2**40))
def test_quotients_are_rounded_down(numbers, divisor):
    x, d = np.array(numbers), np.array([divisor, -divisor])
    quotient, rest = bb.jit(lambda x, d: (x[:, None] // d, x[:, None] % d))(x, d)
    np.testing.assert_array_equal(quotient, x[:, None] // d)
    np.testing.assert_array_equal(rest, x[:, None] % d)


def test_counts_of_many_are_exact():
    """More than float32 counts in steps of one."""
    many = np.ones((3, 2**23), bool)
    assert bb.jit(lambda x: x.sum())(many) == 3 * 2**23


def test_a_saved_program_has_its_dtypes(tmp_path):
    def counted(x, mask, labels):
        return (mask * x).sum(-1), labels + mask.sum(-1)

    program = bb.trace(counted, x="M N", mask="bool: M N", labels="int32: M")
    compiled = bb.compile(program, {"M": 3, "N": 4}, "float32", "cpu")
    again = bb.load(compiled.save(tmp_path / "counted.bb"))
    given = drawn("float64", (3, 4)).astype("float32"), drawn("bool", (3, 4)), drawn("int32", (3,))
    for made, right in zip(again(*given), counted(*given), strict=True):
        np.testing.assert_allclose(made, right)
        assert made.dtype == right.dtype
    with pytest.raises(bb.LaunchError, match="labels holds int64, expected int32"):
        again(given[0], given[1], given[2].astype(np.int64))
