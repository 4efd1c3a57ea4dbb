"""Attention to a cache: joined, chosen or written at a position, it is read and never copied."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import blockbuster as bb
from tests.compile.cached_attention import CASES, arrays, inputs, plain
from tests.interpreted import printed_by

SIZES = dict(B=2, S=4096, D=128)
LENGTHS = (1, 2, 13)


@pytest.mark.parametrize("name", CASES)
def test_no_cache_is_copied_nor_scores_stored(name):
    program = bb.trace(CASES[name][0], **inputs(name, 4, 2))
    graph = bb.lower(program)

    assert not program.notes
    assert "misc" not in str(graph)
    edges = bb.fuse(graph).final.buffered_edges()
    assert len(edges) == (2 if "turned" in name else 0)  # the halves of a turned query


@pytest.mark.parametrize("heads", [8, 32])
@pytest.mark.parametrize("name", CASES)
def test_a_plan_has_two_kernels_at_most_beside_those_that_combine_chunks(name, heads):
    program = bb.trace(CASES[name][0], **inputs(name, heads, 8))
    sizes = {**SIZES, **({"M": 64} if "causal" in name else {})}
    plan = bb.select(program, sizes, machine="h100")

    combining = sum(file.kernels - 1 for file in plan.steps)
    assert plan.kernels - combining <= 2
    large = SIZES["B"] * 8 * SIZES["S"] * SIZES["D"]
    for step in plan.steps[:-1]:  # none is as large as the cache
        for axes in step.axes:
            assert np.prod([plan.sizes[axis] for axis in axes if axis]) < large


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("name", CASES)
def test_values_are_right(name, length):
    rng = np.random.default_rng(length)
    sizes = dict(B=2, H=4, G=2, S=length, D=6, M=3)
    given = arrays(CASES[name][1], rng, **sizes)

    made = bb.jit(CASES[name][0])(**given)
    np.testing.assert_allclose(made, plain(name, given), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", [name for name in CASES if "joined" in name])
def test_an_empty_cache_is_left_out(name):
    given = arrays(CASES[name][1], np.random.default_rng(0), B=2, H=4, G=2, S=0, D=6, M=3)

    made = bb.jit(CASES[name][0])(**given)
    np.testing.assert_allclose(made, plain(name, given), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_a_cache_may_be_a_part_of_a_larger_one(name):
    given = arrays(CASES[name][1], np.random.default_rng(0), B=2, H=4, G=2, S=5, D=6, M=3)
    for cache in ("past_k", "past_v"):
        larger = np.zeros((2, 2, 9, 12))
        larger[:, :, 2:7, ::2] = given[cache]
        given[cache] = larger[:, :, 2:7, ::2]

    made = bb.jit(CASES[name][0])(**given)
    np.testing.assert_allclose(made, plain(name, given), rtol=1e-9, atol=1e-9)


@pytest.mark.interpreter
def test_kernels_in_tritons_interpreter():
    for name, worst in printed_by("tests.compile.interpreted_caches").items():
        assert worst < 2e-5, name


BEHIND = {
    "exp": lambda x, w: np.exp(x),
    "sum": lambda x, w: x.sum(axis=1),
    "softmax": lambda x, w: bb.softmax(x, axis=-1),
    "rows": lambda x, w: x @ w,
    "columns": lambda x, w: w.T @ x.T,
    "keys": lambda x, w: bb.softmax(w.T @ x.T) @ x,
    "slice": lambda x, w: x[1:, :-1] * 2,
}


@given(st.data())
def test_any_parts_along_any_axis(data):
    axis = data.draw(st.integers(0, 1), label="axis")
    lengths = data.draw(st.lists(st.integers(1, 3), min_size=2, max_size=10), label="lengths")
    kinds = data.draw(st.lists(st.integers(0, 3), min_size=10, max_size=10), label="views")
    behind = data.draw(st.sampled_from(sorted(BEHIND)), label="behind")
    total = sum(lengths)
    x = np.random.default_rng(total).standard_normal((total, 4))
    w = np.random.default_rng(0).standard_normal((4 if axis == 0 else total, 3))

    def parts(x):
        start = 0
        for length, kind in zip(lengths, kinds, strict=False):
            part = x[start : start + length]
            yield (part, -part, x[:length], x.T[:, :length].T)[kind]
            start += length

    def fn(x, w):
        shown = [part if axis == 0 else part.T for part in parts(x)]
        return BEHIND[behind](np.concatenate(shown, axis=axis), w)

    program = bb.trace(fn, x=x, w=w)
    (made,) = bb.evaluate(bb.fuse(bb.lower(program)).final, {"x": x, "w": w}).values()
    np.testing.assert_allclose(made, fn(x, w), rtol=1e-9, atol=1e-9)
