"""Programs on tensors: exactly as the oracle, in eager near it, and for rows as for all."""

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.frontend.on_tensors import Way, cost, run
from blockbuster.frontend.separable import separable_dims
from blockbuster.testing.arrays import random_array_function
from tests.frontend.programs import PROGRAMS, inputs_for
from tests.parameters import one_in

EXACTLY, EAGERLY = Way(exact=True), Way(exact=False)

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")


def drawn(program, seed=0):
    """Sizes of all dims, from 2 to 9 unless fixed, and the inputs by name."""
    random = Random(seed)
    named = inputs_for(program, {dim: random.randint(2, 9) for dim in program.dims}, seed)
    return program.bind(named), named


def check_exact(program, seed=0, *, near=1e-9):
    sizes, named = drawn(program, seed)
    wanted = list(program.numpy(named).values())
    tensors = [torch.from_numpy(a) for a in named.values()]

    found = run(program, tensors, sizes, way=EXACTLY, rows={})

    for made, right in zip(found, wanted, strict=True):
        np.testing.assert_allclose(made.numpy(), right, rtol=near, atol=near)
    return sizes, tensors, found


def check_rows(program, sizes, tensors, found):
    """Every dim that is called separable gives, for some rows, those rows of the result."""
    dims = separable_dims(program)
    for taken in [*([dim] for dim in dims), dims]:
        rows = {dim: torch.tensor([sizes[dim] - 1, 0]) for dim in taken}
        some = run(program, tensors, sizes, way=EXACTLY, rows=rows)
        for made, whole, output in zip(some, found, program.outputs, strict=True):
            for axis, dim in enumerate(program.shape_of(output.value)):
                whole = whole.index_select(axis, rows[dim]) if dim in rows else whole
            torch.testing.assert_close(made, whole, rtol=1e-9, atol=1e-9, equal_nan=True)


@pytest.mark.parametrize("name", one_in(4, PROGRAMS))
def test_exact_runs_are_the_oracle(name):
    program = bb.trace(PROGRAMS[name][0], **PROGRAMS[name][1])
    casts = any(equation.op == "cast" for equation in program.equations)  # the oracle rounds there
    check_rows(program, *check_exact(program, near=1e-2 if casts else 1e-9))


@pytest.mark.parametrize("name", one_in(4, PROGRAMS, first=2))
def test_eager_runs_are_near_it_and_of_its_dtype(name):
    program = bb.trace(PROGRAMS[name][0], **PROGRAMS[name][1])
    sizes, named = drawn(program)
    tensors = [torch.from_numpy(a).float() for a in named.values()]
    exact = run(program, tensors, sizes, way=EXACTLY, rows={})

    for made, right in zip(run(program, tensors, sizes, way=EAGERLY, rows={}), exact, strict=True):
        if made.dtype == torch.bool:
            continue
        assert made.dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64)
        allowed = 1e-4 if made.dtype == torch.float32 else 3e-2
        torch.testing.assert_close(made.double(), right, rtol=allowed, atol=allowed, equal_nan=True)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
def test_integers_wrap_as_the_oracles_do(dtype):
    """What a kernel's first result is compared with: the kernel computes with bytes, too."""
    least = np.iinfo(dtype).min if dtype != "int64" else -100
    x = np.array([[0, 1, 2], [100, least, 7]], dtype)
    y = np.array([[3, 100, 0], [1, 99, 9]], dtype)
    program = bb.trace(lambda x, y: (-x, x - y, x + y, (x * y) // 3, bb.abs(x - y[0])), x=x, y=y)
    sizes = program.bind({"x": x, "y": y})

    for way in (EXACTLY, EAGERLY):
        made = run(program, [torch.tensor(x), torch.tensor(y)], sizes, way=way, rows={})
        for found, right in zip(made, program.numpy({"x": x, "y": y}).values(), strict=True):
            np.testing.assert_array_equal(found.numpy(), right)


@pytest.mark.parametrize("way", [EXACTLY, EAGERLY])
@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (lambda x: torch.softmax(x, 0), (0, 3)),
        (lambda x: torch.log_softmax(x, 0), (0, 3)),
        (lambda x: torch.logsumexp(x, 1), (3, 0)),
        (lambda x: (x > 0).all(dim=1), (3, 0)),
        (lambda x: (x > 0).any(dim=1), (3, 0)),
    ],
)
def test_folds_of_no_elements(function, shape, way):
    x = torch.zeros(shape)
    program = bb.trace(function, x=x)

    (made,) = run(program, [x], program.bind({"x": x.numpy()}), way=way, rows={})

    torch.testing.assert_close(made, function(x), check_dtype=False)


@given(seed=st.integers(0, 2**32))
def test_random_programs(seed):
    function = random_array_function(Random(seed))
    program = bb.trace(function, **function.inputs)
    check_rows(program, *check_exact(program, seed))


def test_positions_of_rows_are_those_of_the_whole():
    def causal(q, k):
        mask = bb.arange(q.shape[-2])[:, None] >= bb.arange(k.shape[-2])
        return bb.where(mask, q @ k.T, 0.0)

    program = bb.trace(causal, q="M D", k="N D")
    assert separable_dims(program) == ("M", "N")
    check_rows(program, *check_exact(program))


@pytest.mark.parametrize(
    ("function", "inputs", "wanted"),
    [
        (lambda q, k, v: bb.softmax(q @ k.T) @ v, dict(q="M D", k="N D", v="N L"), ("M", "L")),
        (lambda x: bb.softmax(x, axis=0), dict(x="M N"), ("N",)),
        (lambda x: bb.layer_norm(x), dict(x="B M N"), ("B", "M")),
        (lambda x: x[1:] * 2, dict(x="M N"), ("N",)),
        (lambda x, y: bb.concat([x, y], axis=0), dict(x="M N", y="K N"), ("N",)),
        (lambda x: bb.merge_heads(x), dict(x="B H M E"), ("B", "M")),
        (lambda x: np.sort(x), dict(x="M N"), ()),
        (lambda x: x + bb.sum(x), dict(x="M N"), ()),
        (lambda x: (x, bb.sum(x, axis=0)), dict(x="M N"), ("N",)),
        (lambda x: bb.softmax(x.reshape(*x.shape[:2], -1)), dict(x="B C H W"), ("B", "C")),
        (lambda x: x.reshape(-1, x.shape[-1]) * 2, dict(x="B C N"), ("N",)),
    ],
)
def test_separable_dims(function, inputs, wanted):
    assert separable_dims(bb.trace(function, **inputs)) == wanted


def test_cost_counts_what_is_held_at_once():
    chain = bb.trace(lambda x: bb.exp(bb.exp(bb.exp(x))), x="M N")
    longer = bb.trace(lambda x: bb.exp(bb.exp(bb.exp(bb.exp(bb.exp(x))))), x="M N")
    sizes = {"M": 10, "N": 10}
    assert cost(chain, sizes).held == cost(longer, sizes).held == 8 * 100 * 4
    assert cost(longer, sizes).elements == 5 * 200

    product = bb.trace(lambda x, y: x @ y, x="M K", y="K N")
    assert cost(product, {"M": 3, "K": 5, "N": 7}).products == 3 * 5 * 7
