"""Calls with tensors of float8: results and dtypes, as torch computes the same in float64."""

import pytest

import blockbuster as bb
from blockbuster.errors import TraceError
from blockbuster.ir.dtypes import FLOAT8, deciding
from blockbuster.runtime.tensors import common_dtype, is_tensor

torch = pytest.importorskip("torch")
F8 = torch.float8_e4m3fn


@pytest.fixture
def arrays():
    torch.manual_seed(0)
    x, w = torch.randn(20, 48).to(F8), torch.randn(33, 48).to(F8)
    return x, w, torch.rand(20, 1), torch.rand(1, 33)


def near(found, right, tolerance=2e-3):
    assert is_tensor(found)
    assert ((found.double() - right).norm() / right.norm()).item() < tolerance


def scaled(x, w, rows, columns):
    return (x @ w.T) * rows * columns


def with_torch(x, w, rows, columns):
    scales = {"scale_a": rows, "scale_b": columns, "out_dtype": torch.bfloat16}
    return torch._scaled_mm(x, w.T, **scales)


def casted(x, w, rows, columns):
    return (x.to(torch.float16) @ w.to(torch.float16).T) * rows * columns


@pytest.mark.parametrize(
    ("fn", "dtype", "tolerance"),
    [(scaled, "float32", 1e-6), (casted, "float32", 1e-6), (with_torch, "bfloat16", 1e-2)],
)
def test_products_with_scales(arrays, fn, dtype, tolerance):
    x, w, rows, columns = arrays
    found = bb.jit(fn)(*arrays)

    assert str(found.dtype) == f"torch.{dtype}"
    near(found, x.double() @ w.double().T * rows * columns, tolerance)


def test_float8_alone_gives_float16(arrays):
    x, w, *_ = arrays
    product = bb.jit(lambda x, w: x @ w.T)(x, w)
    more = bb.jit(lambda x: x + 1)(x)

    assert (product.dtype, more.dtype) == (torch.float16, torch.float16)
    near(product, x.double() @ w.double().T)
    assert (more == x.to(torch.float16) + 1).all()  # every number of float8 is one of float16


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_float8_beside_others_gives_theirs(arrays, dtype):
    x, w, *_ = arrays
    other = w.to(getattr(torch, dtype))
    found = bb.jit(lambda x, w: x @ w.T)(x, other)

    assert str(found.dtype) == f"torch.{dtype}"
    near(found, x.double() @ w.double().T, 1e-2)


def test_attention(arrays):
    x, w, *_ = arrays
    v = torch.randn(33, 64).to(F8)
    found = bb.jit(lambda q, k, v: bb.softmax(q @ k.T * 0.1, axis=-1) @ v)(x, w, v)

    near(found, torch.softmax(x.double() @ w.double().T * 0.1, -1) @ v.double())


def test_bias_and_scales_of_the_whole(arrays):
    x, w, *_ = arrays
    one, bias = torch.tensor(0.5), torch.randn(33)

    @bb.jit
    def product(x, w, scale, bias):
        return torch._scaled_mm(x, w.T, scale, scale, bias, out_dtype=torch.float32)

    near(product(x, w, one, bias), x.double() @ w.double().T * 0.25 + bias, 1e-6)


def test_results_of_float8_are_refused(arrays):
    x, w, rows, _ = arrays
    with pytest.raises(TraceError, match="a cast to float8_e4m3fn cannot be traced"):
        bb.jit(lambda x: x.to(F8))(rows)
    with pytest.raises(TraceError, match="results in float8_e4m3fn cannot be traced"):
        bb.jit(lambda x, w, s: torch._scaled_mm(x, w.T, s, s))(x, w, torch.tensor(1.0))


def test_casts_that_change_numbers_stay(arrays):
    x, w, *_ = arrays

    @bb.jit
    def whole(x, w):
        return (x.to(torch.int8) @ w.to(torch.int8).T).to(torch.float32)

    right = x.float().to(torch.int8).double() @ w.float().to(torch.int8).double().T
    assert (whole(x, w).double() == right).all()


def test_where_floats_meet():
    assert common_dtype([FLOAT8, "float32", "float16"]) == "float32"
    assert common_dtype([FLOAT8, FLOAT8]) == "float16"
    assert deciding([]) == []


def test_the_dtype_of_a_traced_array(arrays):
    x, w, rows, _ = arrays
    seen = []

    @bb.jit
    def look(x, w, rows):
        seen.extend(str(y.dtype) for y in (x, x.T, x * 2, x * rows))
        return x @ w.T

    look(x, w, rows)
    assert seen == [f"torch.{name}" for name in (FLOAT8, FLOAT8, "float16", "float32")]


def test_a_saved_program_reads_float8_again(arrays, tmp_path):
    compiled = bb.jit(scaled).compiled_for(*arrays)
    loaded = bb.load(compiled.save(tmp_path / "scaled.json"))

    assert loaded.plan == compiled.plan
    assert (loaded(*arrays) == compiled(*arrays)).all()
