"""The dtypes of arrays: mixed inputs, casts, and what has no form in a kernel."""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.emit.target.compiler import compile_kernel
from blockbuster.errors import LaunchError
from blockbuster.runtime.launch import run_batch

MIXED = [
    ({"x": "float16", "w": "float16", "g": "float32"}, "float32"),
    ({"x": "float16", "w": "float32", "g": "float32"}, "float32"),
    ({"x": "float32", "w": "float16", "g": "float16"}, "float32"),
    ({"x": "float16", "w": "float16", "g": "float16"}, "float16"),
]


def normed_product(x, g, w):
    return bb.rms_norm(x, g) @ w


def graph_of(function, **inputs):
    return bb.fuse(bb.lower(bb.trace(function, **inputs))).final


def mixed_job(dtypes):
    sizes = dict(M=20, K=35, N=18)
    kernel = bb.emit(graph_of(normed_product, x="M K", g="K", w="K N"), sizes, dtypes)
    rng = np.random.default_rng(0)
    shapes = {"x": (20, 35), "g": (35,), "w": (35, 18)}
    return kernel, {n: rng.normal(size=s).astype(dtypes[n]) for n, s in shapes.items()}


@pytest.mark.interpreter
@pytest.mark.parametrize("at", range(len(MIXED)))
def test_inputs_of_several_dtypes(at, results):
    _, common = MIXED[at]
    kernel, arrays = mixed_job(MIXED[at][0])
    out = results[at]

    assert kernel.dtype == common
    assert out.dtype == common
    right = normed_product(**{n: a.astype(float) for n, a in arrays.items()})
    tolerance = 1e-2 if common == "float16" else 1e-5
    np.testing.assert_allclose(out, right, rtol=0, atol=tolerance * np.abs(right).max())


CASTS = [
    (lambda x: bb.astype(bb.tanh(x), "float16"), "float32", "float16"),
    (lambda x: bb.astype(bb.tanh(x), "float32"), "float16", "float32"),
    (lambda x: bb.astype(x, "float16") * 2, "float32", "float16"),
    (lambda x: bb.astype(x, "float32") * 2, "float16", "float32"),
    (lambda x: bb.astype(bb.softmax(x), "float32"), "float16", "float32"),
    (lambda x: bb.astype(bb.tanh(x), "float16").T, "float32", "float16"),
]


def cast_job(function, given):
    graph = graph_of(function, x="M N")
    x = np.random.default_rng(0).normal(size=(9, 21)).astype(given)
    return bb.emit(graph, dict(M=9, N=21), given), {"x": x}


@pytest.fixture(scope="module")
def results():
    """What all kernels of this module give, from one process: each would import Triton anew."""
    jobs = [mixed_job(dtypes) for dtypes, _ in MIXED]
    jobs += [cast_job(function, given) for function, given, _ in CASTS]
    found = run_batch(jobs)
    assert [result for result in found if isinstance(result, LaunchError)] == []
    return [result["out"] for result in found]


@pytest.mark.interpreter
@pytest.mark.parametrize("at", range(len(CASTS)))
def test_a_cast_at_the_end_is_the_dtype_of_the_output(at, results):
    function, given, made = CASTS[at]
    x = cast_job(function, given)[1]["x"]
    out = results[len(MIXED) + at]

    assert out.dtype == made
    np.testing.assert_allclose(out, function(x.astype(float)), rtol=0, atol=2e-3)


def test_an_output_of_a_chosen_dtype():
    graph = graph_of(lambda x, y: x @ y, x="M K", y="K N")
    dtypes = {"x": "float16", "y": "float16", "out": "float32"}

    kernel = bb.emit(graph, dict(M=64, K=64, N=64), dtypes)

    assert '"out": "float32"' in kernel.source
    assert compile_kernel(kernel)


@pytest.mark.parametrize("narrow", ["float16", "bfloat16"])
def test_mixed_dtypes_compile(narrow):
    graph = graph_of(normed_product, x="M K", g="K", w="K N")
    dtypes = {"x": narrow, "g": "float32", "w": "bfloat16"}

    assert compile_kernel(bb.emit(graph, dict(M=64, K=64, N=64), dtypes))


def test_refusals():
    graph = graph_of(lambda x: bb.astype(x, "float64") * 2, x="M N")
    with pytest.raises(bb.EmitError, match="a cast to float64: kernels compute in float32"):
        bb.emit(graph, dict(M=4, N=4), "float32")
    plain = graph_of(lambda x: x * 2, x="M N")
    with pytest.raises(ValueError, match="no kernel is written for dtype 'float64'"):
        bb.emit(plain, dict(M=4, N=4), "float64")
    with pytest.raises(ValueError, match="unknown array 'z' in dtype\n  hint: known: x, out"):
        bb.emit(plain, dict(M=4, N=4), {"z": "float16"})
