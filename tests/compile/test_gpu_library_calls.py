"""On a GPU: plans with calls of torch's library give what torch gives, or more precise numbers."""

import pytest

import blockbuster as bb

SCALED, MATMUL = "torch._scaled_mm", "torch.matmul"


@pytest.fixture
def drawn(torch, cuda):
    generator = torch.Generator(cuda).manual_seed(0)

    def normal(*shape, dtype="float32"):
        made = torch.randn(shape, device=cuda, generator=generator)
        return made.to(getattr(torch, dtype))

    return normal


def scaled(x, w, s, t, b):
    return ((x @ w.T) * s * t + b).to(b.dtype)


def operands(torch, drawn, by_rows, dtype="bfloat16"):
    x, w = (drawn(4096, 4096, dtype="float8_e4m3fn") for _ in range(2))
    shapes = ((4096, 1), (1, 4096)) if by_rows else ((), ())
    return [x, w, *(drawn(*shape).abs() + 0.5 for shape in shapes), drawn(4096, dtype=dtype)]


def calls(fn, *arrays):
    return [call.name for call in fn.plan_for(*arrays).calls]


def near(found, exact, dtype, factor=1.0):
    """Rounded to a dtype, and to 1e-3 of the whole for sums in float8."""
    error = (found.double() - exact).norm() / exact.norm()
    assert error < factor * {"bfloat16": 2.5e-3, "float16": 1e-3, "float32": 1e-6}[dtype]


@pytest.mark.gpu
@pytest.mark.parametrize("by_rows", [False, True])
def test_products_of_float8(torch, drawn, by_rows):
    arrays = operands(torch, drawn, by_rows)
    mine = bb.jit(scaled)
    found = mine(*arrays)
    x, w, s, t, b = (array.double() for array in arrays)
    near(found, x @ w.T * s * t + b, "bfloat16")
    assert calls(mine, *arrays) == [SCALED]
    own = bb.jit(scaled, library=False)(*arrays)
    near(found, own.double(), "bfloat16")


@pytest.mark.gpu
def test_a_layout_that_torch_refuses(torch, drawn):
    """Every second element of rows: the plan without the call takes it."""
    x, *rest = operands(torch, drawn, by_rows=False)
    apart = torch.empty(4096, 8192, device=x.device).to(x.dtype)[:, ::2].copy_(x)
    mine = bb.jit(scaled)
    found = mine(apart, *rest)
    assert torch.allclose(found, mine(x, *rest), rtol=2e-2, atol=2e-2)
    x, w, s, t, b = (array.double() for array in (x, *rest))
    near(found, x @ w.T * s * t + b, "bfloat16")


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_products_one_by_one(torch, drawn, dtype):
    x, w = drawn(4, 4096, 256, dtype=dtype), drawn(4, 256, 4096, dtype=dtype)
    found = bb.jit(lambda x, w: x @ w)(x, w)
    near(found, x.double() @ w.double(), dtype)


@pytest.mark.gpu
def test_products_of_float32_are_exact_whatever_torch_may(torch, drawn):
    x, w = drawn(4096, 4096), drawn(4096, 4096)
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("high")
        mine = bb.jit(lambda x, w: x @ w)
        near(mine(x, w), x.double() @ w.double(), "float32", factor=5.0)
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision(before)


@pytest.mark.gpu
@pytest.mark.parametrize("is_causal", [False, True])
def test_attention_of_float32(torch, drawn, is_causal):
    q, k, v = (drawn(16, 2048, 128) for _ in range(3))

    def attend(q, k, v):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=is_causal)

    found = bb.jit(attend)(q, k, v)
    near(found, attend(q.double(), k.double(), v.double()), "float32", factor=5.0)
