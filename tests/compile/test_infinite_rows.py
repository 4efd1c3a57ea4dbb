"""Infinities in rows: NaN shows where NumPy and torch show it, and nowhere else."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.runtime.launch import run_interpreted

torch = pytest.importorskip("torch")

INF, NAN = np.inf, np.nan
VALUES = np.arange(12.0).reshape(3, 4)
FORMS = {
    "softmax": lambda x, v: bb.softmax(x),
    "safe": lambda x, v: bb.softmax(x, safe=True),
    "columns": lambda x, v: bb.softmax(x.T, axis=0).T,
    "product": lambda x, v: bb.softmax(x) @ v,
    "read across": lambda x, v: bb.softmax(x).sum(axis=-1),
    "twice": lambda x, v: bb.softmax(x) - bb.softmax(2 * x),
}
ROWS = np.array([
    [1, INF, 2], [-INF, -INF, -INF], [-INF, INF, 0], [INF, INF, 1], [1, 2, NAN], [1, 2, 3],
    [-INF, 1, -INF],
])  # fmt: skip


def rightly(name, x):
    """What torch gives, but zeros on rows of -inf alone."""

    def softmax(x):
        absent = torch.isneginf(x).all(-1, keepdim=True)
        return torch.softmax(x, -1).masked_fill(absent, 0.0)

    rows = torch.tensor(x, dtype=torch.float64)
    made = softmax(rows)
    given = {
        "product": lambda: made @ torch.tensor(VALUES), "read across": lambda: made.sum(-1),
        "twice": lambda: made - softmax(2 * rows),
    }  # fmt: skip
    return given.get(name, lambda: made)().numpy()


@pytest.mark.parametrize("library", [np.asarray, torch.tensor], ids=["numpy", "torch"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", FORMS)
def test_softmax_is_nan_throughout_a_row_with_infinity(name, dtype, library):
    x, v = ROWS.astype(dtype), VALUES.astype(dtype)

    found = bb.jit(lambda x, v: (FORMS[name](x, v), v + 1))(library(x), library(v))[0]

    np.testing.assert_allclose(np.asarray(found), rightly(name, x), rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("name", FORMS)
def test_every_form_of_the_program_says_so(name):
    program = bb.trace(lambda x, v: FORMS[name](x, v), x="M N", v="N D")
    given = {"x": ROWS, "v": VALUES}
    right = rightly(name, ROWS)
    graph = bb.lower(program)
    fused = bb.fuse(graph).final

    np.testing.assert_allclose(program.numpy(given)["out"], right)
    for form in (graph, fused, bb.safe(fused)):
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(bb.evaluate(form, given)["out"], right, atol=1e-12)


@pytest.mark.interpreter
@pytest.mark.parametrize("name", ["softmax", "product"])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_kernels_say_so(name, dtype):
    """Rows are divided by their sum for float32 results, else multiplied by one over it."""
    derivation = bb.fuse(bb.lower(bb.trace(lambda x, v: FORMS[name](x, v), x="M N", v="N D")))
    sizes = {"M": 7, "N": 3, "D": 4}
    given = {"x": ROWS.astype(dtype), "v": VALUES.astype(dtype)}
    kernel = bb.emit(derivation, sizes, dtype)

    (found,) = run_interpreted(kernel, {n: given[n] for n in kernel.inputs}).values()

    np.testing.assert_allclose(found, rightly(name, ROWS), rtol=2e-3, atol=2e-3)


@given(
    rows=st.lists(
        st.lists(st.sampled_from([INF, -INF, NAN, 0.0, 1.0, -2.0, 500.0]), min_size=5, max_size=5),
        min_size=1, max_size=4,
    ),
    block=st.sampled_from([1, 2, 5]),
)  # fmt: skip
def test_softmax_of_any_rows_in_any_blocks(rows, block):
    """A running maximum meets infinities in a later block, or in an earlier one."""
    x = np.array(rows)
    graph = bb.safe(bb.fuse(bb.lower(bb.trace(FORMS["product"], x="M N", v="N D"))).final)
    v = np.arange(10.0).reshape(5, 2)
    right = torch.softmax(torch.tensor(x), -1).numpy()
    right[np.isneginf(x).all(-1)] = 0

    with np.errstate(all="ignore"):
        found = bb.evaluate(graph, {"x": x, "v": v}, block_sizes={"N": block})["out"]

        np.testing.assert_allclose(found, right @ v, rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("keepdims", [False, True])
def test_an_average_of_infinity_is_infinite(axis, keepdims):
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(3, 4)), rng.random((3, 4))
    x[1, 2] = INF
    weights = [w] if axis is None else [w, w[:, 0] if axis == 0 else w[0]]

    for one in weights:
        found = bb.jit(lambda x, w: np.average(x, axis, w, keepdims=keepdims))(x, one)
        np.testing.assert_allclose(found, np.average(x, axis, one, keepdims=keepdims))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint8"])
def test_hypot_of_numbers_whose_squares_overflow(dtype):
    large = [100, 127, 3, 0] if dtype.endswith("8") else [3.0, 0.0, INF, NAN, INF, -INF]
    largest = [] if dtype.endswith("8") else [np.finfo(dtype).max / 4, np.finfo(dtype).tiny * 8]
    x = np.array([*large, *largest], dtype)
    y = np.roll(x, 1) * 0 + x[::-1] if dtype.endswith("8") else x[::-1].copy()
    right = np.hypot(x.astype(float), y.astype(float))

    for mine, other in ((x, y), (x, x), (y, x)):
        found = bb.jit(lambda x, y: np.hypot(x, y))(mine, other)
        right = np.hypot(mine.astype(float), other.astype(float))
        np.testing.assert_allclose(found.astype(float), right, rtol=2e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_zero_alone_times_nan_is_nan(dtype):
    x, zero = np.array([[1, NAN, INF, 2]], dtype), np.zeros((1, 1), dtype)

    for function in (lambda x, zero: x.T @ zero, lambda x, zero: zero @ x):
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(bb.jit(function)(x, zero), function(x, zero))
