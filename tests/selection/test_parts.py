"""Parts of programs: their units, the plans of them, and that every plan computes the program."""

from __future__ import annotations

import random
from functools import partial

import numpy as np
import pytest
import torch
from numpy.lib.stride_tricks import sliding_window_view
from torch.nn.functional import leaky_relu, max_pool2d, max_pool3d

import blockbuster as bb
from blockbuster.frontend.kinds import MOVES
from blockbuster.runtime.given import family_of
from blockbuster.runtime.run_plan import OnHost, run_in_interpreter
from blockbuster.selection.parts.overlapping import best_way, makings
from blockbuster.selection.parts.partition import Steps
from blockbuster.selection.parts.units import units_of
from tests.parameters import rest_slow
from tests.selection.given_parts import plan_of_parts


def group_norm(x, w):
    y = (x @ w).reshape(x.shape[0], 4, w.shape[1] // 4)
    centred = y - y.mean(-1, keepdims=True)
    spread = (centred * centred).mean(-1, keepdims=True)
    return (centred * bb.rsqrt(spread + 1e-5)).reshape(x.shape[0], w.shape[1])


def attention(q, k, v):
    s = (q @ k.T) * q.shape[-1] ** -0.5
    seen = bb.arange(q.shape[0])[:, None] >= bb.arange(k.shape[0])[None, :]
    return bb.softmax(bb.where(seen, s, -np.inf)) @ v


def gated(x, w, u, d):
    h = bb.rms_norm(x)
    return x + (bb.silu(h @ w) * (h @ u)) @ d


def several(x, w):
    y = bb.tanh(x @ w)
    z = y[:, ::2] + y[:, 1::2]
    return {"y": y.T, "z": z, "s": z.sum(0), "m": (y > 0.5)}


def halves(x, w):
    y = x @ w
    n = y.shape[1] // 2
    turned = bb.concat([-y[:, n:], y[:, :n]], axis=1)
    return turned.max(-1), (turned * y).sum(-1)


def counted(x, n):
    big = x > x.mean(-1, keepdims=True)
    return (big * n).sum(-1), bb.where(big, x, 0.0).sum(0)


def shared(x, w):
    a = bb.exp(x)
    b = a @ w
    return a.sum(-1), (b / a.sum(-1)[:, None]).max(0), b


def sorted_between(x, w):
    y = np.sort(x @ w, axis=-1)
    return bb.softmax(y + 1.0), y.sum(-1)


def counting_others(x, w):
    y = (x @ w).max(-1) * w.shape[0] ** -0.5
    return bb.softmax(y, axis=0) / x.shape[1]


def merged_heads(y):
    d = y.shape[-1] // 3
    q, k, v = (y[:, i * d : (i + 1) * d].reshape(y.shape[0], 2, d // 2) for i in range(3))
    s = np.transpose(q, (1, 0, 2)) @ np.transpose(k, (1, 2, 0))
    a = bb.softmax(s) @ np.transpose(v, (1, 0, 2))
    return np.transpose(a, (1, 0, 2)).reshape(y.shape[0], d)


def pooled(x):
    rows = x.reshape(x.shape[0], x.shape[1] // 2, 2, x.shape[2]).max(2)
    return rows.reshape(x.shape[0], x.shape[1] // 2, x.shape[2] // 3, 3).max(-1)


def normed_twice(x, g):
    for pieces in (2, 6):
        apart = x.reshape(x.shape[0], pieces, x.shape[1] // pieces)
        apart = apart - apart.mean(-1, keepdims=True)
        x = apart.reshape(x.shape[0], x.shape[1]) * g
    return x


def named_as_an_input(x, w):
    h = x @ w
    g = bb.softmax(h.reshape(x.shape[0], 2, w.shape[1] // 2)).reshape(x.shape[0], w.shape[1])
    return {"x": h, "o": g + x, "w": bb.tanh(w).sum(0)}


def names_that_meet(x, w):
    y = bb.softmax(np.sort(x @ w, axis=-1) + 1.0)
    return {"t0_y": (y @ y.T).max(-1), "t0": np.sort(bb.exp(y), axis=-1).sum(-1), "t": y.sum(0)}


def masked_twice(x, w):
    keep = bb.abs(x).sum(-1, keepdims=True) > 0
    y = bb.where(keep, x, 1.0) @ w
    y = y.reshape(x.shape[0], 2, w.shape[1] // 2)
    y = (y - y.mean(-1, keepdims=True)).reshape(x.shape[0], w.shape[1])
    return bb.where(keep, y, 0.0)


def convolved_twice(x, w, u):
    y = bb.maximum(bb.einsum("nc(h+r), kcr -> nkh", x, w, pad={"h": (1, 1)}), 0.0)
    return bb.einsum("nc(2*h+r), kcr -> nkh", bb.exp(-y), u, pad={"h": (1, 0)}) + x.mean()


def inputs_returned(x, w):
    y = bb.softmax((x @ w).reshape(x.shape[0], 2, w.shape[1] // 2))
    return {"y": y, "x": x, "turned": w.T, "s": y.sum(0), "piece": x[:, 1:3], "place": w[0]}


def positions_returned(x, w):
    return {"n": bb.arange(x.shape[0]) * 2.0, "y": bb.softmax(x @ w), "s": bb.exp(x).sum(0)}


CASES = {
    "convolved_twice": (convolved_twice, dict(x=(2, 3, 7), w=(4, 3, 3), u=(2, 4, 3))),
    "inputs_returned": (inputs_returned, dict(x=(5, 4), w=(4, 6))),
    "positions_returned": (positions_returned, dict(x=(5, 4), w=(4, 6))),
    "named_as_an_input": (named_as_an_input, dict(x=(6, 6), w=(6, 6))),
    "names_that_meet": (names_that_meet, dict(x=(5, 4), w=(4, 5))),
    "masked_twice": (masked_twice, dict(x=(5, 4), w=(4, 6))),
    "normed_twice": (normed_twice, dict(x=(3, 12), g=(12,))),
    "counting_others": (counting_others, dict(x=(5, 4), w=(4, 6))),
    "merged_heads": (merged_heads, dict(y=(5, 12))),
    "pooled": (pooled, dict(x=(3, 4, 6))),
    "group_norm": (group_norm, dict(x=(6, 8), w=(8, 12))),
    "attention": (attention, dict(q=(7, 4), k=(9, 4), v=(9, 5))),
    "gated": (gated, dict(x=(5, 8), w=(8, 6), u=(8, 6), d=(6, 8))),
    "several": (several, dict(x=(5, 4), w=(4, 6))),
    "halves": (halves, dict(x=(5, 4), w=(4, 6))),
    "counted": (counted, dict(x=(5, 7), n=(7,))),
    "shared": (shared, dict(x=(5, 4), w=(4, 6))),
    "sorted_between": (sorted_between, dict(x=(5, 4), w=(4, 6))),
}


def traced(name, dtype="float64"):
    fn, shapes = CASES[name]
    rng = np.random.default_rng(0)
    inputs = {key: rng.normal(size=shape).astype(dtype) for key, shape in shapes.items()}
    if "n" in inputs:
        inputs["n"] = rng.integers(1, 9, shapes["n"])
    return bb.trace(fn, **inputs), inputs


def random_plan(units, rng):
    """A random way from no units to all."""
    steps = Steps(units.before, units.beside)
    state, parts = 0, []
    while state != steps.all:
        parts.append(rng.choice(steps.steps[state]))
        state |= parts[-1]
    return parts


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_every_plan_computes_the_program(name, seed, dtype):
    program, inputs = traced(name, dtype)
    others = {"n": "int64"} if "n" in inputs else {}
    family = family_of(program, dtype, "cpu", others=others)
    sizes = program.bind(inputs)
    rng = random.Random(f"{name} {seed}")

    plan = plan_of_parts(family, sizes, lambda units: random_plan(units, rng))

    results = OnHost(plan, plan.sizes)(list(inputs.values()))
    expected = program.numpy(inputs)
    close = dict(rtol=1e-9, atol=1e-9) if dtype == "float64" else dict(rtol=2e-2, atol=2e-2)
    for name_, result in zip(plan.names, results, strict=True):
        np.testing.assert_allclose(
            result.astype(float), expected[name_].astype(float), **close, err_msg=name_
        )


def random_cover(values, beside, *, bound, price, rng):
    """A plan whose parts may overlap: the best by random lengths, but for one part."""
    lengths = {}

    def length(one):
        whole = one.units.bit_count() == len(beside)
        return lengths.setdefault(one, rng.uniform(1.0, 2.0) + 9.0 * whole)

    _, way = best_way(values, makings(values, beside), length)
    return way, {one: price(one) for one in way}


@pytest.mark.parametrize("name", rest_slow([*CASES], ["shared", "several"]))
def test_plans_whose_parts_overlap_compute_the_program(name, monkeypatch):
    program, inputs = traced(name)
    others = {"n": "int64"} if "n" in inputs else {}
    expected = program.numpy(inputs)
    if name == "positions_returned":
        with pytest.raises(ValueError, match="n is made of positions alone"):
            bb.select(program, program.bind(inputs), "cpu", "float64", effort="overlapping")
        return
    overlapped = 0
    for seed in range(3):
        cover = partial(random_cover, rng=random.Random(f"{name} {seed}"))
        monkeypatch.setattr("blockbuster.selection.plans.divided.best_cover", cover)
        family = family_of(program, "float64", "cpu", others=others, effort="overlapping")

        plan = family.at(program.bind(inputs))

        written = [array for step in plan.steps for array in step.writes]
        assert len(written) == len({*written})
        overlapped += "computed by several parts" in plan.explain()
        results = OnHost(plan, plan.sizes)([*inputs.values()])
        for shown, result in zip(plan.names, results, strict=True):
            np.testing.assert_allclose(
                result.astype(float), expected[shown].astype(float), rtol=1e-9, atol=1e-9
            )
    assert overlapped or name not in ("shared", "several")


def singles(units):
    return [1 << number for number in range(len(units))]


@pytest.mark.interpreter
@pytest.mark.parametrize("name", ["masked_twice", "counted", "named_as_an_input"])
def test_masks_and_integers_cross_in_kernels(name):
    program, inputs = traced(name, "float16")
    others = {"n": "int64"} if "n" in inputs else {}
    family = family_of(program, "float16", "sm_90", others=others)

    plan = plan_of_parts(family, program.bind(inputs), singles)

    results = run_in_interpreter(plan, inputs)
    for shown, result in zip(plan.names, results, strict=True):
        expected = program.numpy(inputs)[shown].astype(float)
        np.testing.assert_allclose(result.astype(float), expected, rtol=2e-2, atol=2e-2)


def test_a_program_that_returns_an_input_is_divided():
    def block(x, w, cache):
        pieces = (x @ w).reshape(x.shape[0], 12, w.shape[1] // 12)
        return bb.softmax(pieces), cache, cache.T

    program = bb.trace(block, x="M=1024 K=4096", w="K N=4092", cache="S=512 E=128")

    plan = bb.select(program, {}, "h100", "float16")

    product, softmax = plan.divided.parts
    assert [one.name for one in product.program.inputs] == ["x", "w", "cache"]
    assert [one.name for one in product.program.outputs] == ["t0", "out1", "out2"]
    assert [one.name for one in softmax.program.outputs] == ["out0"]
    assert "the operators are 2 groups" in plan.explain()


def test_a_program_of_views_has_no_parts():
    program = bb.trace(lambda x: (x.T, x), x="M N")

    plan = bb.select(program, {"M": 4096, "N": 4096}, "h100", "float16")

    assert "it computes nothing: its outputs are inputs" in plan.explain()


def test_what_one_line_computes_is_not_rounded_between_parts():
    """Eager torch rounds ``addmm`` once: its product is larger than float16 holds."""
    program = bb.trace(lambda b, x, w: b * 2.0 + x @ w, b="N", x="M K", w="K N")
    inputs = {
        "b": np.full(5, -20000.0, np.float16),
        "x": np.full((4, 8), 100.0, np.float16),
        "w": np.full((8, 5), 90.0, np.float16),
    }
    family = family_of(program, "float16", "cpu")

    plan = plan_of_parts(family, program.bind(inputs), singles)

    (result,) = OnHost(plan, plan.sizes)(list(inputs.values()))
    np.testing.assert_array_equal(result, np.full((4, 5), 32000.0))


@pytest.mark.parametrize(
    ("function", "dtype"),
    [
        (lambda x, w, u: np.tanh(x @ w) @ u, "float16"),
        (lambda x, w, u: (x @ w * 2.0) @ u, "float16"),
        (lambda x, w, u: (x @ w).reshape(4, 2, 4).swapaxes(0, 1)[0] @ u[:4], "float16"),
        (lambda x, w, u: np.reshape(x @ w * 2.0, (4, 2, 4))[:, 0] @ u[:4], "float16"),
    ],
    ids=["result", "operators", "view of a product", "argument"],
)
def test_what_eager_execution_stores_keeps_its_dtype_between_parts(function, dtype):
    """Of one line, that is what functions of libraries take and return, products seen anew, and
    what products alone read, which take it as float16.
    """
    program = bb.trace(function, x="M=4 K=8", w="K N=8", u="N L=8")
    family = family_of(program, "float16", "h100")

    plan = plan_of_parts(family, program.sizes, singles)

    (between,) = [name for step in plan.steps for name in step.writes if name != "out"]
    assert plan.kept[between] == dtype


def test_a_part_knows_sizes_that_follow_from_one_that_it_does_not_show():
    """Heads of a third of the columns of ``x``, joined again: |F| = 2 |I|, whatever |D| is."""

    def heads(x, w):
        own = x[:, :, : x.shape[2] // 3]
        split = own.reshape(x.shape[0], x.shape[1], 2, x.shape[2] // 6).transpose(0, 2, 1, 3)
        normed = bb.softmax(split)
        return normed.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[1], -1) @ w

    program = bb.trace(heads, x="A B D", w="F E")
    x, w = (np.random.default_rng(0).standard_normal(shape) for shape in ((2, 3, 24), (8, 5)))
    inputs = {"x": x, "w": w}

    plan = plan_of_parts(family_of(program, "float64", "cpu"), program.bind(inputs), singles)

    (result,) = OnHost(plan, plan.sizes)([x, w])
    np.testing.assert_allclose(result, program.numpy(inputs)["out"], rtol=1e-12)


@pytest.mark.parametrize(
    ("pool", "units"),
    [
        (lambda x: max_pool2d(x, 3, 1), 2),
        (lambda x: max_pool2d(x, 3, 2), 2),
        (lambda x: np.max(sliding_window_view(x, 17, axis=3), axis=-1), 2),
        (lambda x: max_pool2d(x, 2, 2), 1),
    ],
)
def test_a_function_is_stored_where_windows_of_it_overlap(pool, units):
    """Nine windows of 31 x 31 read 2.25 times as many elements as there are, four no more, and a
    fold of 17 windows 12 times as many.
    """

    def pooled(x):
        return pool(leaky_relu(x * 2.0))

    program = bb.trace(pooled, x="B C H W")

    found = units_of(program, program.bind({"x": np.empty((2, 8, 64, 64))}))

    assert len(found) == units
    assert found.own((1 << units) - 1) == [
        at for at, one in enumerate(program.equations) if one.op not in MOVES
    ]


@pytest.mark.parametrize("pools", [1, 2])
def test_pools_of_pools_are_stored_and_not_multiplied_out(pools):
    def fn(x):
        y = torch.softmax(x, 1)
        for _ in range(pools):
            y = max_pool3d(y, 2)
        return y

    plan = bb.jit(fn, machine="h100").plan_for(torch.ones(8, 16, 16, 32, 32).half())
    said = " ".join(plan.explain().split())

    assert ("computed one by one: 319 nodes of 15 operations" in said) == (pools > 1)
