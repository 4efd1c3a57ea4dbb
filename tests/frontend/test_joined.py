"""Joins that are one view: axes that are rolled, and axes with a number around them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.frontend.trace import trace_with_facts
from blockbuster.interp.evaluate import evaluate
from blockbuster.runtime.launch import run_batch

SHIFTED = {
    "rolled": lambda x, k: np.roll(x, k, 1),
    "rolled back": lambda x, k: np.roll(x, -k, 0),
    "rolled by slices": lambda x, k: np.concatenate([x[:, k:], x[:, :k]], 1),
    "of a function": lambda x, k: np.concatenate([(y := x * 3)[k:], y[:k]]),
    "of both axes": lambda x, k: np.roll(x, (k, 1), (0, 1)),
    "of truth": lambda x, k: np.roll(x > 1, k, 1) * x,
    "of integers": lambda x, k: np.roll(x.astype(np.int32), k, 1) + 1,
    "zeros in front": lambda x, k: np.concatenate([np.zeros_like(x[:k]), x]),
    "shifted": lambda x, k: np.concatenate([np.zeros_like(x[:, :k]), x[:, :-k]], 1),
    "ones around": lambda x, k: np.concatenate([np.ones_like(x[:k]), x * 2, np.ones_like(x)]),
    "masked scores": lambda x, k: np.concatenate([np.full_like(x[:, :k], -np.inf), x], 1),
    "a cast": lambda x, k: np.concatenate([np.zeros_like(x[:k]), x]).astype(np.float32),
}


@pytest.mark.parametrize("name", SHIFTED)
@settings(max_examples=4, deadline=None)
@given(shift=st.integers(1, 3), spare=st.tuples(*[st.integers(0, 4)] * 2))
def test_joins_that_are_views(name, shift, spare):
    """They are what NumPy says, also where a part is empty, and one array is stored."""
    x = np.random.default_rng(0).integers(-4, 5, [shift + n for n in spare]).astype(float)
    program = bb.trace(lambda x: SHIFTED[name](x, shift) + 1, x="M N")
    graph = bb.lower(program)

    assert len(graph.outputs) == 1
    assert not program.notes
    found = evaluate(graph, {"x": x})["out"]
    np.testing.assert_array_equal(found, SHIFTED[name](x, shift) + 1)


OTHERS = {
    "another array": lambda x, y: np.concatenate([x[2:], y[:2]]),
    "too little": lambda x, y: np.concatenate([x[3:], x[:2]]),
    "too much": lambda x, y: np.concatenate([x[2:], x[:3]]),
    "in order": lambda x, y: np.concatenate([x[:2], x[2:]]),
    "along another axis": lambda x, y: np.concatenate([x[:, 2:], x[:, :2]]),
    "in steps": lambda x, y: np.concatenate([x[2::2], x[:2]]),
    "two numbers": lambda x, y: np.concatenate([np.zeros_like(x), x, np.ones_like(y)]),
    "two arrays": lambda x, y: np.concatenate([np.zeros_like(x), x, y]),
}


@pytest.mark.parametrize("name", OTHERS)
def test_joins_that_are_none(name):
    x, y = (np.arange(16.0).reshape(4, 4) + n for n in (0, 100))
    expected = OTHERS[name](x, y) * 2.0
    program, _ = trace_with_facts(lambda x, y: OTHERS[name](x, y) * 2.0, x=x, y=y)
    found = program.numpy({"x": x, "y": y})["out"]

    assert len(bb.lower(program).outputs) > 1 or name == "in order"
    np.testing.assert_array_equal(found, expected)


@pytest.mark.interpreter
def test_kernels_of_joins(tmp_path, monkeypatch):
    """Blocks that are not full, and arrays with NaN around them in memory."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    around = np.full((9, 41), np.nan, np.float32)
    x = around[2:7, 4:37] = np.random.default_rng(0).uniform(-1, 1, (5, 33)).astype(np.float32)
    programs = [
        lambda x: x - np.roll(x, 3, 1),
        lambda x: x + np.concatenate([np.ones_like(x[:, :2]), x[:, :-2]], 1),
    ]
    kernels = [bb.emit(bb.fuse(bb.lower(bb.trace(f, x="M N"))), {"M": 5, "N": 33}, "float32")
               for f in programs]  # fmt: skip
    found = run_batch([(kernel, {"x": around[2:7, 4:37]}) for kernel in kernels])

    for one, f in zip(found, programs, strict=True):
        np.testing.assert_allclose(one["out"], f(x), atol=1e-6)
