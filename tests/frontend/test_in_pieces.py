"""Programs a piece at a time: as all at once, in any piece, and in little memory."""

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.frontend.in_pieces import FOLDS, foldable, run_in_pieces
from blockbuster.frontend.on_tensors import Way, run
from blockbuster.frontend.separable import LOOKED_INTO, looked_into, separable_dims
from blockbuster.testing.arrays import random_array_function
from tests.frontend.programs import OPAQUE, PROGRAMS, inputs_for

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")

WAYS = {"exact": Way(exact=True), "eager": Way(exact=False)}


def check(program, seed=0):
    """Every dim that is called foldable, in pieces of 1, 2 and 3; how many dims these are."""
    random = Random(seed)
    named = inputs_for(program, {dim: random.randint(1, 7) for dim in program.dims}, seed)
    sizes = program.bind(named)
    tensors = [torch.from_numpy(array) for array in named.values()]
    tensors = [t.float() if t.is_floating_point() else t for t in tensors]
    dims = [dim for dim in program.dims if foldable(program, dim)]
    apart = separable_dims(program)
    for name, way in WAYS.items():
        near = 1e-9 if name == "exact" else 3e-3
        for step, dim in enumerate(dims):
            rows = {d: torch.tensor([0]) for d in apart if step % 2 and d != dim}
            whole = run(program, tensors, sizes, way=way, rows=rows)
            step, options = step % 3 + 1, dict(dim=dim, way=way, rows=rows)
            pieces = run_in_pieces(program, tensors, sizes, step=step, **options)
            for made, right in zip(pieces, whole, strict=True):
                assert made.dtype == right.dtype
                torch.testing.assert_close(made, right, rtol=near, atol=near, equal_nan=True)
    return len(dims)


def test_programs_in_pieces():
    checked = [
        check(bb.trace(*PROGRAMS[name][:1], **PROGRAMS[name][1]))
        for name in PROGRAMS
        if name not in OPAQUE
    ]
    assert sum(map(bool, checked)) > len(checked) / 2


@given(seed=st.integers(0, 2**32))
def test_random_programs_in_pieces(seed):
    function = random_array_function(Random(seed))
    check(bb.trace(function, **function.inputs), seed)


def frobenius(x):
    return x / np.linalg.norm(x)


@pytest.mark.parametrize(
    ("function", "inputs"),
    [
        (frobenius, dict(x="M N")),
        (lambda x: np.var(x), dict(x="M N")),
        (lambda x: (x - x.min()) / (x.max() - x.min()), dict(x="M N")),
        (lambda x, y: bb.sum((x - y) ** 2), dict(x="M N", y="M N")),
        (lambda x: bb.softmax(x, axis=0) + bb.log_softmax(x, axis=0), dict(x="M N")),
        (lambda x: bb.logsumexp(bb.logsumexp(x, axis=-1), axis=-1), dict(x="M N")),
        (lambda x, w: (x @ w) / bb.sum(x @ w), dict(x="M K", w="K N")),
        (lambda x: np.argmax(x), dict(x="M")),
        (lambda x: bb.sum(bb.arange(x.shape[0]) * x), dict(x="M")),
        (lambda x: bb.max(x, axis=0, keepdims=True) >= x, dict(x="int32: M N")),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_folds_of_whole_arrays(function, inputs, seed):
    assert check(bb.trace(function, **inputs), seed)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x[1:] / bb.sum(x),
        lambda x: bb.softmax(x.reshape(-1)),
        lambda x: np.sort(x, axis=0),
        lambda x: bb.concat([x, x], axis=0),
    ],
)
def test_what_is_not_only_folded_is_not_cut(function):
    assert not foldable(bb.trace(function, x="M N"), "M")


def test_rows_of_minus_infinity():
    x = torch.full((4, 3), -np.inf)
    x[2, 1] = 5.0
    program = bb.trace(lambda x: (bb.logsumexp(x, axis=0), bb.softmax(x, axis=0)), x="M N")
    options = dict(dim="M", step=1, way=Way(exact=True), rows={})
    for made, right in zip(
        run_in_pieces(program, [x], {"M": 4, "N": 3}, **options),
        run(program, [x], {"M": 4, "N": 3}, way=Way(exact=True), rows={}),
        strict=True,
    ):
        torch.testing.assert_close(made, right, equal_nan=True)


def test_each_fold_looks_into_one_axis():
    assert all(op in LOOKED_INTO for op in FOLDS)
    product = bb.trace(lambda x, y: x @ y, x="M K", y="K N")
    assert {*looked_into(product, product.equations[0])} == {"K"}
