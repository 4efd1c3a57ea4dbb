"""Sums of products written by broadcasting, masks that are added, functions written by hand."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import blockbuster as bb

SIZES = dict(B=3, E=4, M=5, K=6, N=7)

Fn = Callable[..., Any]


def ops(program: bb.ArrayProgram) -> list[str]:
    """The operations of a program, without those that only move axes."""
    return [e.op for e in program.equations if e.op not in ("transpose", "expand")]


def check(fn: Fn, expected: list[str], **inputs: str) -> bb.ArrayProgram:
    """``fn`` is recorded as these operations, and computes what NumPy computes of it."""
    program = bb.trace(fn, **inputs)
    rng = np.random.default_rng(0)
    arrays = {
        name: rng.integers(-3, 4, [SIZES[dim] for dim in dims.split()]).astype(float)
        for name, dims in inputs.items()
    }
    assert ops(program) == expected
    np.testing.assert_allclose(program.numpy(arrays)["out"], fn(**arrays), atol=1e-12)
    return program


@pytest.mark.parametrize(
    ("fn", "inputs"),
    [
        (lambda x, w: (x[:, :, None] * w[None]).sum(1), dict(x="M K", w="K N")),
        (lambda x, w: (x[:, :, None] * w[None]).sum(1, keepdims=True), dict(x="M K", w="K N")),
        (lambda x, w: (x[:, None] * w.T[None]).sum(-1), dict(x="M K", w="K N")),
        (lambda x, w: (x.T[:, :, None] * w[:, None]).sum(0), dict(x="M K", w="K N")),
        (lambda x, w: (w.T * x[:, None]).transpose(1, 0, 2).sum(2), dict(x="M K", w="K N")),
        (lambda x, w: (x[..., None] * w[:, None]).sum(2), dict(x="B M K", w="B K N")),
        (lambda x, w: (x[:, None] @ w)[:, 0], dict(x="M K", w="K N")),
        (lambda x, w: (x[:, :, None] @ w)[:, :, 0], dict(x="M B K", w="B K N")),
        (lambda x, w: (x @ w[..., None])[..., 0], dict(x="M K", w="B K")),
    ],
)
def test_a_sum_of_broadcast_products_is_a_product(fn: Fn, inputs: dict[str, str]) -> None:
    program = check(fn, ["matmul"], **inputs)
    (product,) = (e for e in program.equations if e.op == "matmul")
    assert all(
        extent != 1 for operand in product.operands for extent in program.shape_of(operand)[-2:]
    )


@pytest.mark.parametrize(
    ("fn", "expected", "inputs"),
    [
        # no rows: a vector is multiplied, and no matrix unit needed
        (lambda x, w: (x * w).sum(1), ["mul", "sum"], dict(x="M K", w="K")),
        # the axis is in one factor alone
        (lambda x, w: (x[:, :, None] * w[:, None]).sum(1), ["mul", "sum"], dict(x="M K", w="M N")),
        # three factors: the product of two is a computed array
        (
            lambda x, w, g: (x[:, :, None] * w[None] * g).sum(1),
            ["mul", "mul", "sum"],
            dict(x="M K", w="K N", g="M K N"),
        ),
        # single rows of a batch that both have
        (lambda x, w: (x[:, None] @ w)[:, 0], ["matmul"], dict(x="B K", w="B K N")),
        # another fold
        (lambda x, w: (x[:, :, None] * w[None]).max(1), ["mul", "max"], dict(x="M K", w="K N")),
    ],
)
def test_other_sums_stay(fn: Fn, expected: list[str], inputs: dict[str, str]) -> None:
    check(fn, expected, **inputs)


def test_a_weighted_sum_keeps_the_order_of_the_computed_array() -> None:
    """However it is written, so that the array is stored in one order and kernels are the same."""

    def by_einsum(g: Any, h: Any, w: Any) -> Any:
        return np.einsum("me,emd->md", g, np.einsum("emf,efd->emd", h, w))

    def by_hand(g: Any, h: Any, w: Any) -> Any:
        return (g.T[..., None] * (h @ w)).sum(0)

    def turned(g: Any, h: Any, w: Any) -> Any:
        return (g[:, None] * (h @ w).transpose(1, 2, 0)).sum(-1)

    inputs = dict(g="M E", h="E M K", w="E K N")
    shapes = []
    for fn in (by_einsum, by_hand, turned):
        program = check(fn, ["matmul", "mul", "sum"], **inputs)
        shapes.append(next(e.shape for e in program.equations if e.op == "mul"))
    assert shapes == [("E", "M", "N")] * 3


def test_a_product_that_is_read_again_stays_beside_the_sum() -> None:
    def fn(x: Any, w: Any) -> Any:
        t = x[:, :, None] * w[None]
        return t.sum(1) + t.max(1)

    check(fn, ["mul", "matmul", "max", "add"], x="M K", w="K N")


def test_integers_are_not_products_of_floats() -> None:
    program = bb.trace(lambda x, w: (x[:, :, None] * w).sum(1), x="int64: M K", w="int64: K N")
    assert "matmul" not in ops(program)


@pytest.mark.parametrize(
    ("fn", "op"),
    [
        (lambda x: 1 / (1 + np.exp(-x)), "sigmoid"),
        (lambda x: 1.0 / (np.exp(-x) + 1), "sigmoid"),
        (lambda x: x / (1 + np.exp(-x)), "silu"),
        (lambda x: x * (1 / (1 + np.exp(-x))), "silu"),
        (lambda x: 0.5 * x * (1 + bb.erf(x * 0.5**0.5)), "gelu"),
        (lambda x: x * (0.5 * (bb.erf(x / 2**0.5) + 1)), "gelu"),
        (lambda x: x * (1 + bb.erf(x * 0.5**0.5)) / 2, "gelu"),
    ],
)
def test_functions_written_by_hand(fn: Fn, op: str) -> None:
    check(fn, [op], x="M K")


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: np.exp(bb.log_softmax(x, axis=1)),  # whose logarithms something else may read
        lambda x: x * (1 + bb.erf(x * 0.5**0.5)) / 4,
    ],
)
def test_other_functions_stay(fn: Fn) -> None:
    assert not {"softmax", "gelu"} & {*ops(bb.trace(fn, x="M K"))}


def test_an_einsum_of_windows_multiplies_along_the_axis_that_has_none() -> None:
    def fn(x: Any, w: Any) -> Any:
        seen = np.lib.stride_tricks.sliding_window_view(x, 3, axis=1)
        return np.einsum("bsdk,kdo->bso", seen, w)

    program = bb.trace(fn, x="B=2 S=9 D=4", w="T=3 D=4 N=5")
    (product,) = (one for one in program.equations if one.op == "matmul")
    sizes = dict(program.fixed_sizes)
    assert [sizes.get(dim, dim) for dim in program.shape_of(product.operands[0])] == [3, 2, 7, 4]
    rng = np.random.default_rng(0)
    arrays = {"x": rng.standard_normal((2, 9, 4)), "w": rng.standard_normal((3, 4, 5))}
    np.testing.assert_allclose(program.numpy(arrays)["out"], fn(**arrays), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "soft",
    [
        lambda x: np.log(1 + np.exp(x)),
        lambda x: np.log1p(np.exp(x)),
        lambda x: np.log1p(np.exp(-np.abs(x))) + np.maximum(0, x),
        lambda x: np.where(x > 20, x, np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))),
    ],
)
def test_the_tanh_of_a_softplus_is_made_of_one_sigmoid(soft: Fn) -> None:
    made = ["sigmoid", "sub", "mul", "add", "mul", "add", "div", "mul"]
    check(lambda x: x * np.tanh(soft(x)), made, x="M K")


@pytest.mark.parametrize(
    "soft",
    [
        lambda x: np.log(2 + np.exp(x)),
        lambda x: np.log1p(np.exp(-x)) + np.maximum(x, 0),
        lambda x: np.log1p(np.exp(-np.abs(x + 1))) + np.maximum(x, 0),
        lambda x: np.where(x > 2, x, np.log1p(np.exp(x))),  # from 2 on x is not its softplus
        lambda x: np.where(x > 20, 2 * x, np.log1p(np.exp(x))),
    ],
)
def test_other_tanhs_stay(soft: Fn) -> None:
    program = bb.trace(lambda x: np.tanh(soft(x)), x="M K")
    x = 5 * np.random.default_rng(0).standard_normal((5, 6))
    assert ops(program)[-1] == "tanh"
    np.testing.assert_allclose(program.numpy({"x": x})["out"], np.tanh(soft(x)), atol=1e-12)


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: 2 / (1 + np.exp(-x)),
        lambda x: 1 / (2 + np.exp(-x)),
        lambda x: 1 / (1 + np.exp(x)),
        lambda x: (x + 1) / (1 + np.exp(-x)),
        lambda x: 0.5 * x * (1 + bb.erf(x * 0.7071)),
        lambda x: 0.5 * (x + 1) * (1 + bb.erf(x * 0.5**0.5)),
        lambda x: 0.25 * x * (1 + bb.erf(x * 0.5**0.5)),
        lambda x: x * (1 + bb.erf(x * 0.5**0.5)),
    ],
)
def test_what_is_nearly_such_a_function_is_none(fn: Fn) -> None:
    program = bb.trace(fn, x="M K")
    x = np.random.default_rng(0).standard_normal((5, 6))
    assert ops(program)[-1] in ("div", "mul")
    np.testing.assert_allclose(program.numpy({"x": x})["out"], fn(x), atol=1e-12)


POOLS = {
    "sum": lambda x: x[:, 0::2] + x[:, 1::2],
    "mean": lambda x: (x[:, 2::3] + x[:, 0::3] + x[:, 1::3]) / 3,
    "maxima": lambda x: np.maximum(np.maximum(x[:, 0::4], x[:, 1::4]),
                                   np.maximum(x[:, 2::4], x[:, 3::4])),
    "minima of rows": lambda x: np.minimum((y := x.T)[0::2], y[1::2]),
    "by python": lambda x: sum(x[:, n::3] for n in range(3)),
    "of a function": lambda x: (y := x * 2)[:, 0::2] + y[:, 1::2],
}  # fmt: skip
APART = {
    "one alone": lambda x: x[:, 0::2] + 0,
    "one twice": lambda x: x[:, 0::2] + x[:, 0::2],
    "two of three": lambda x: x[:, 0::3] + x[:, 1::3],
    "all of many, and one more": lambda x: (
        sum([x[:, 0::4]] * 14, x[:, 3::4]) + x[:, 0::4] + x[:, 1::4] + x[:, 2::4]
    ),
    "two operators": lambda x: np.maximum(x[:, 0::3] + x[:, 1::3], x[:, 2::3]),
    "of two arrays": lambda x: x[:, 0::2] + (x * 2)[:, 1::2],
    "windows of two axes": lambda x: np.maximum(
        np.maximum((y := x[:2])[::2, ::2], y[::2, 1::2]), np.maximum(y[1::2, ::2], y[1::2, 1::2])
    ),
    "integers": lambda x: (x.astype(int)[:, 0::2] + x.astype(int)[:, 1::2]) * 1.0,
}


@pytest.mark.parametrize("name", [*POOLS, *APART])
def test_chains_over_all_strided_pieces_are_folds(name: str) -> None:
    fn = {**POOLS, **APART}[name]
    program = bb.trace(fn, x="M N")
    x = np.random.default_rng(0).integers(-9, 9, (3, 12)).astype(float)

    is_fold = any(op in ("sum", "max", "min") for op in ops(program))
    assert is_fold == (name in POOLS)
    assert not is_fold or "strided" not in ops(program)
    np.testing.assert_allclose(program.numpy({"x": x})["out"], fn(x), rtol=1e-15)
    np.testing.assert_allclose(bb.jit(fn)(x), fn(x), rtol=1e-15)


def test_pieces_of_an_axis_that_is_no_multiple_are_refused_as_before() -> None:
    with pytest.raises((bb.BlockbusterError, ValueError)):
        bb.jit(POOLS["sum"])(np.ones((2, 5)))


def test_a_mask_that_is_added_is_a_choice() -> None:
    def added(s: Any) -> Any:
        i = bb.arange(s.shape[-1])
        return s + bb.where(i <= i[:, None], 0, -np.inf)

    def chosen(s: Any) -> Any:
        i = bb.arange(s.shape[-1])
        return bb.where(i <= i[:, None], s, -np.inf)

    programs = [bb.trace(fn, s="B M M") for fn in (added, chosen)]
    s = np.random.default_rng(0).standard_normal((3, 5, 5))
    assert [ops(p)[-1] for p in programs] == ["where", "where"]
    assert "add" not in ops(programs[0])
    for program in programs:
        np.testing.assert_array_equal(program.numpy({"s": s})["out"], added(s))


@pytest.mark.parametrize("ends", [(0, 1), (1, -np.inf), (0, -1e9), (-np.inf, -np.inf)])
def test_other_numbers_are_added(ends: tuple[float, float]) -> None:
    def fn(s: Any) -> Any:
        i = bb.arange(s.shape[-1])
        return s + bb.where(i <= i[:, None], *ends)

    assert ops(bb.trace(fn, s="M M"))[-1] == "add"


def test_an_added_mask_widens_what_it_is_added_to() -> None:
    """A mask of float32 beside scores of float16 gives float32, as in torch."""
    torch = pytest.importorskip("torch")
    mask = torch.zeros(8, 8).masked_fill(torch.ones(8, 8).tril() == 0, -torch.inf)
    program = bb.trace(lambda s: s + mask, s=torch.empty(8, 8, dtype=torch.float16))
    assert ops(program)[-2:] == ["where", "cast"]
    assert program.equations[-1].param("dtype") == "float32"
