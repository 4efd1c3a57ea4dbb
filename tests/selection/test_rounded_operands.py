"""The dtype in which products take their operands, and casts that products do by themselves."""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.ir.graph import Value
from blockbuster.selection.plans.plan_dtypes import stored_by_eager, taken_by_products
from blockbuster.selection.plans.rounded_operands import without_casts_of_softmaxes

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")

HALF = "float16"


def ops(program):
    return [one.op for one in program.equations]


def cast_softmax(s, v):
    return bb.softmax(s, axis=-1).astype(HALF) @ v


def through_views(s, v):
    p = bb.softmax(s, axis=-1).astype(HALF)
    return bb.transpose(p[None], (0, 2, 1)) @ v


@pytest.mark.parametrize("function", [cast_softmax, through_views])
def test_the_cast_moves_behind_the_product(function):
    program = bb.trace(function, s="N=5 N=5", v="N D=3")
    moved = without_casts_of_softmaxes(program, HALF)
    rng = np.random.default_rng(0)
    given = {"s": 4 * rng.standard_normal((5, 5)), "v": rng.standard_normal((5, 3))}
    (product,) = (at for at, op in enumerate(ops(moved)) if op == "matmul")
    assert ops(moved)[product + 1] == "cast"
    (before,), (after,) = (one.numpy(given).values() for one in (program, moved))
    np.testing.assert_allclose(after, before, rtol=2**-10, atol=2**-12)


@pytest.mark.parametrize("function", [
    lambda s, v: (s * 1e6).astype(HALF) @ v,  # its factor may come behind the product, too late
    lambda s, v: bb.softmax(s, axis=-1).astype("bfloat16") @ v,
    lambda s, v: (p := bb.softmax(s, axis=-1).astype(HALF), p @ v),
    lambda s, v: (p := bb.softmax(s, axis=-1).astype(HALF)).sum(1) + (p @ v).sum(1),
])  # fmt: skip
def test_other_casts_stay(function):
    program = bb.trace(function, s="M=5 N=5", v="N D=3")
    moved = without_casts_of_softmaxes(program, HALF)
    assert ops(moved).count("cast") == ops(program).count("cast")
    assert [o for one in moved.equations for o in one.operands if o is not None]
    casts = [at for at, op in enumerate(ops(moved)) if op == "cast"]
    read = [o.node for one in moved.equations for o in one.operands if hasattr(o, "node")]
    stored = [output.value.node for output in moved.outputs]
    assert all(at in (*read, *stored) for at in casts)


def rotated(x, c, s):
    first, second = x.chunk(2, -1)
    return x * c + torch.cat([-second, first], -1) * s


def attention(q, k, v, c, s):
    q, k = (rotated(x, c, s).to(v.dtype) for x in (q, k))
    scores = torch.softmax((q @ k.mT).float() * 0.125, -1, dtype=torch.float32)
    return scores.to(v.dtype) @ v


def test_a_table_of_float32_beside_halves_makes_no_product_of_float32():
    q, k, v = (torch.empty(2, 64, 32, dtype=torch.float16) for _ in range(3))
    c, s = torch.empty(64, 32), torch.empty(64, 32)
    plan = bb.jit(attention, machine="h100", library=False).plan_for(q, k, v, c, s)
    text = "\n".join(file.text for file in plan.files)
    assert "tl.dot" in text
    assert "input_precision" not in text
    assert plan.result_dtypes == (HALF,)


def test_products_of_float32_stay_so():
    program = bb.trace(lambda a, b, c: a @ b @ c, a="M K", b="K N", c="N D")
    assert taken_by_products(program, {"c": HALF}, "float32") == "float32"
    halves = dict.fromkeys("abc", HALF)
    assert taken_by_products(program, halves, "float32") == HALF
    assert taken_by_products(program, {**halves, "c": "bfloat16"}, "float32") == "float32"


@pytest.mark.parametrize(("function", "is_stored"), [
    (lambda x, w: bb.exp(x) @ w, True),
    (lambda x, w: bb.transpose(bb.exp(x), (1, 0)) @ w, True),
    (lambda x, w: (t := bb.exp(x)) @ w + t, False),  # the sum would read it rounded
    (lambda x, w: (t := bb.exp(x)) @ w + bb.transpose(t, (1, 0)), False),
])  # fmt: skip
def test_what_products_alone_read_is_stored_as_they_take_it(function, is_stored):
    program = bb.trace(function, x="N=4 N=4", w="N=4 N=4")
    at = ops(program).index("exp")
    assert (Value(at) in stored_by_eager(program)) is is_stored
