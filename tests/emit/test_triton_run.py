"""Emitted kernels in Triton's interpreter have the values of ours, at every edge."""

from functools import cache

import numpy as np
import pytest

from blockbuster.emission import emit
from blockbuster.errors import LaunchError
from blockbuster.interp.evaluate import evaluate
from blockbuster.ir.parse import parse
from blockbuster.ir.types import size_class
from blockbuster.rules.safety import safe
from blockbuster.runtime.launch import run_batch, run_interpreted
from tests.emit.cases import (
    SIZES,
    TEXTS,
    free_sizes,
    graph_of,
    inputs_for,
    list_only,
    sizes_of,
)
from tests.frontend.programs import OPAQUE, PROGRAMS
from tests.parameters import rest_slow

pytestmark = pytest.mark.interpreter

ATTENTION, LAYER_NORM, GATED = "attention safe", "layer norm final", "swiglu final"
TOLERANCE = {"float16": 4e-3, "float32": 5e-6}  # of the largest result
NAMES = [name for name in (*TEXTS, *PROGRAMS) if name not in OPAQUE]
# the interpreter cuts a bfloat16 short where hardware rounds it
BATCHES = [[n for n in NAMES[at::16] if n != "cast"] for at in range(16)]


def rounded(arrays, dtype):
    return {name: array.astype(dtype) for name, array in arrays.items()}


def job(graph, sizes, dtype, tiles=None, arrays=None):
    tuned = {dim: size or 8 for dim, size in sizes.items()}  # a kernel is written for elements
    kernel = emit(graph, tuned, dtype, tiles=tiles)
    given = rounded(inputs_for(graph, sizes), dtype) if arrays is None else arrays
    return kernel, given | free_sizes(safe(graph), sizes)


def check(graph, sizes, dtype, arrays, results):
    assert not isinstance(results, LaunchError), results
    given = {n: a.astype(np.float64) for n, a in arrays.items() if isinstance(a, np.ndarray)}
    expected = evaluate(safe(graph), given, sizes=sizes)
    assert list(results) == list(expected)
    for name, right in expected.items():
        found = results[name].astype(np.float64)
        assert found.shape == np.shape(right)
        largest = np.abs(right).max(initial=1e-3)
        assert np.isfinite(right).all()
        np.testing.assert_allclose(found, right, rtol=0, atol=TOLERANCE[dtype] * largest)


def few_items(graph):
    """Small sizes, at most two blocks of each batch dim: the interpreter takes them one by one."""
    single = {size_class(dim) for dim in list_only(graph)}
    traced = graph.meaning.sizes if graph.meaning is not None else {}
    found = sizes_of(graph, {**SIZES, **dict.fromkeys(single, 2)})
    return found | {dim: size for dim, size in traced.items() if dim in found}


@pytest.mark.parametrize("batch", rest_slow(range(len(BATCHES)), [0]))
def test_every_program(batch):
    graphs = [graph_of(name) for name in BATCHES[batch]]
    cases = [(graph, few_items(graph), dtype) for graph in graphs for dtype in TOLERANCE]
    jobs = [job(*case) for case in cases]

    for case, (_, arrays), results in zip(cases, jobs, run_batch(jobs), strict=True):
        check(*case, arrays, results)


SHAPES = [
    (ATTENTION, {"M": 37, "N": 53, "D": 20, "L": 24}, {"M": 16, "N": 32}),
    (ATTENTION, {"M": 33, "N": 70, "D": 40, "L": 17}, {"M": 32, "N": 16, "D": 16, "L": 16}),
    (ATTENTION, {"M": 32, "N": 64, "D": 16, "L": 16}, {"M": 16, "N": 32}),
    (ATTENTION, {"M": 1, "N": 2, "D": 3, "L": 1}, {}),
    (ATTENTION, {"M": 5, "N": 0, "D": 3, "L": 4}, {}),
    (ATTENTION, {"M": 0, "N": 3, "D": 4, "L": 5}, {}),
    (LAYER_NORM, {"M": 37, "K": 53, "N": 20}, {"M": 16, "K": 16, "N": 16}),
    (LAYER_NORM, {"M": 16, "K": 32, "N": 16}, {"M": 16, "K": 16, "N": 16}),
    (LAYER_NORM, {"M": 3, "K": 2, "N": 1}, {}),
    (GATED, {"M": 19, "D": 37, "K": 40, "N": 33}, {"M": 16, "D": 16, "K": 16, "N": 16}),
    (GATED, {"M": 1, "D": 2, "K": 3, "N": 1}, {}),
    (GATED, {"M": 4, "D": 5, "K": 0, "N": 3}, {}),
]


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_shapes_and_tiles(dtype):
    graphs = [(graph_of(name), sizes, tiles) for name, sizes, tiles in SHAPES]
    jobs = [job(graph, sizes, dtype, tiles) for graph, sizes, tiles in graphs]

    for (graph, sizes, _), (_, arrays), results in zip(graphs, jobs, run_batch(jobs), strict=True):
        check(graph, sizes, dtype, arrays, results)


def test_several_blocks_of_every_dim():
    name = "grouped query"
    graph = graph_of(name)
    single = list_only(graph)
    sizes = {d: 2 if d in single else 20 for d in sizes_of(graph)} | {"N": 35}
    tiles = {d: 16 for d in sizes if d not in single}
    kernel, arrays = job(graph, sizes, "float32", tiles)

    check(graph, sizes, "float32", arrays, run_interpreted(kernel, arrays))


def strided(array):
    """The same values in an array with a gap behind each element, rows in reverse."""
    wide = np.full([2 * n + 1 for n in array.shape], np.nan, array.dtype)
    view = wide[tuple(slice(2 * n - 1, None, -2) if n else slice(0, 0) for n in array.shape)]
    view[...] = array
    return view


@pytest.mark.parametrize("layout", [strided, np.asfortranarray])
def test_any_strides(layout):
    graph, sizes = graph_of(ATTENTION), {"M": 21, "N": 18, "D": 5, "L": 7}
    kernel, arrays = job(graph, sizes, "float32", {"M": 16, "N": 16})
    moved = {name: layout(array) for name, array in arrays.items()}
    out = layout(np.zeros((21, 7), np.float32))

    returned = kernel(**moved, out=out)

    assert returned is out
    check(graph, sizes, "float32", arrays, {"out": out})


def test_other_sizes_than_it_was_written_for():
    graph, written = graph_of(ATTENTION), {"M": 50, "N": 50, "D": 16, "L": 10}
    kernel = emit(graph, written, "float32", tiles={"M": 16, "N": 16})
    sizes = {"M": 70, "N": 3, "D": 16, "L": 16}
    arrays = rounded(inputs_for(graph, sizes), "float32")

    check(graph, sizes, "float32", arrays, run_interpreted(kernel, arrays))


MASKED = """
graph(S: M,N[M,N], B: M,N[M,N]) {
  P = map M (s in !S, b in !B) {
    e, l = map N (x in !s, c in !b) {
      y = exp(where(c > 0, x, -inf)) over [M,N]
      r = row_sum(y)
      yield y
      yield +r
    }
    i = recip0(l)
    p = map N (y in !e, j = i) { q = row_scale(y, j)  yield q }
    yield p
  }
  return P
}
"""


@pytest.mark.parametrize("size", [16, 37])
def test_fully_masked_rows_are_zero(size):
    graph = parse(MASKED)
    sizes = {"M": size, "N": size}
    arrays = rounded(inputs_for(graph, sizes), "float32")
    arrays["B"][::2] = -1
    kernel = emit(graph, sizes, "float32", tiles={"M": 16, "N": 16})

    results = run_interpreted(kernel, arrays)

    assert (results["P"] if "P" in results else results["out"])[::2].max() == 0
    check(graph, sizes, "float32", arrays, results)


def test_nan_goes_through():
    graph, sizes = graph_of(ATTENTION), {"M": 4, "N": 20, "D": 3, "L": 2}
    kernel, arrays = job(graph, sizes, "float32", {"N": 16})
    arrays["Q"][1, 2] = np.nan

    out = run_interpreted(kernel, arrays)["out"]

    assert np.isnan(out[1]).all()
    assert np.isfinite(np.delete(out, 1, axis=0)).all()


@cache
def scalar_kernel(text):
    graph = parse(
        f"graph(X: M[M], Z: M[M]) {{ Y = map M (x in !X, z in !Z) {{ {text} yield y }} return Y }}"
    )
    return graph, emit(graph, {"M": 400}, "float32")


SCALARS = [
    *(f"y = {fn}(x) + 0 * z" for fn in ("tanh", "sigmoid", "silu", "gelu", "relu", "erf", "abs")),
    *(f"y = {fn}(x) + 0 * z" for fn in ("floor", "round", "sin", "cos", "expm1", "atan")),
    "y = log1p(abs(x)) * z",
    *(f"y = x ** {p} + 0 * z" for p in ("2", "3", "4", "5", "0", "1", "-1", "-3")),
    *(f"y = abs(x) ** {p} + 0 * z" for p in ("0.5", "-0.5", "1.7")),
    "y = abs(x) ** z", "y = maximum(x, z)", "y = minimum(x, -1) * z", "y = exp(-x) * log(abs(z))",
    "y = where(x > 0 and not z < 1 or x == z, x, 2)", "y = sub0(x, z)", "y = recip0(x) - z",
    "y = sqrt(square(x)) - rsqrt(abs(z)) * |M|", "y = 1 - (x - (2 - z)) / (3 / z)",
    "y = -(-x) * -z",
    "y = reciprocal(x + 100) + z", "y = (x < z) + (x >= 0)", "y = exp(2) * x + z ** 2",
]  # fmt: skip


def test_scalar_functions():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=200) * 3, rng.normal(size=200) * 1e-4]).astype(np.float32)
    z = rng.normal(size=400).astype(np.float32)
    kernels = [scalar_kernel(text) for text in SCALARS]
    results = run_batch([(kernel, {"X": x, "Z": z}) for _, kernel in kernels])

    for text, (graph, _), found in zip(SCALARS, kernels, results, strict=True):
        assert not isinstance(found, LaunchError), found
        right = evaluate(graph, {"X": x.astype(float), "Z": z.astype(float)})["out"]
        scale = np.abs(z) + np.abs(right)
        np.testing.assert_allclose(
            found["out"] / scale, right / scale, rtol=0, atol=4e-6, err_msg=text
        )


def test_tanh_is_accurate_near_zero():
    graph = parse("graph(X: M[M]) { Y = map M (x in !X) { y = tanh(x) yield y } return Y }")
    x = np.concatenate([np.geomspace(1e-6, 20, 300), [0.6249, 0.625, 0.6251]]).astype(np.float32)

    found = run_interpreted(emit(graph, {"M": x.size}, "float32"), {"X": x})["out"]

    np.testing.assert_allclose(found, np.tanh(x.astype(np.float64)), rtol=1e-6)


def test_refuses_what_it_was_not_written_for():
    graph, sizes = graph_of(ATTENTION), {"M": 16, "N": 32, "D": 16, "L": 16}
    kernel, arrays = job(graph, sizes, "float32", {"M": 16, "N": 16})
    q = arrays["Q"]
    wrong = [
        (q[0], r"ValueError: Q has shape \(16,\), expected the axes"),
        (q.astype(np.float16), "Q has dtype float16, expected float32"),
        (q[:, :3], r"Q has shape \(16, 3\): D is 16|KT has shape \(32, 16\): D is 3"),
        (q[:7], "M is 7: it has to be a multiple of 16"),
    ]
    results = run_batch([(kernel, arrays | {"Q": value}) for value, _ in wrong])

    for (_, expected), error in zip(wrong, results, strict=True):
        with pytest.raises(LaunchError, match=expected):
            raise error
    with pytest.raises(TypeError, match="lacks Q"):
        kernel(KT=arrays["KT"], VT=arrays["VT"])
    with pytest.raises(TypeError, match="takes 3 arrays, got 4"):
        kernel(q, q, q, q)


def test_an_access_out_of_bounds_ends_one_job():
    graph, sizes = graph_of("layer norm final"), {"M": 16, "K": 16, "N": 16}
    kernel, arrays = job(graph, sizes, "float32")
    broken = type(kernel)(
        **{**vars(kernel), "source": kernel.source.replace("tl.load(", "tl.load((1 << 45) + ", 1)}
    )

    failed, good = run_batch([(broken, arrays), (kernel, arrays)])

    with pytest.raises(LaunchError, match="killed its process with SIGSEGV"):
        raise failed
    check(graph, sizes, "float32", arrays, good)
