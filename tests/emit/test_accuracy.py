"""What float32 results are computed with, and that lanes which add up a row agree on its sum."""

import math
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.emit.print.triton.functions import ACCURATE, CALL, HELPERS
from blockbuster.emit.target.compiler import compiled_entry
from blockbuster.emit.target.load import load_module
from blockbuster.emit.target.targets import TARGETS
from blockbuster.runtime.launch import run_interpreted
from tests.parameters import rest_slow

SIZES = {"M": 64, "K": 64, "N": 64}
X = {"x": "M K"}


def emitted(function, inputs, dtype="float32", sizes=SIZES, **tiles):
    graph = bb.fuse(bb.lower(bb.trace(function, **inputs))).final
    return bb.emit(graph, {d: sizes[d] for s in inputs.values() for d in s.split()}, dtype, **tiles)


def kernels(source: str) -> str:
    """The jitted functions of a file."""
    return source[source.index("@triton.jit") : source.index("# for compiling without a GPU")]


# accurate functions -----------------------------------------------------------------------


def scalar(x):
    return bb.exp(x) / (1 + bb.sqrt(x))


def test_float32_results_are_made_by_exact_division_and_roots():
    wide, narrow = (kernels(emitted(scalar, X, dtype).source) for dtype in ("float32", "float16"))

    for name in ("tl.div_rn(", "tl.sqrt_rn(", "_exp("):
        assert name in wide
        assert name not in narrow
    assert "tl.exp(" in narrow
    assert "tl.sqrt(" in narrow
    assert " / " in narrow.split("def ")[-1]


def test_a_float32_output_of_narrow_inputs_is_accurate_too():
    def cast(x):
        return bb.astype(bb.exp(x), "float32")

    assert "_exp(" in kernels(emitted(cast, X, "float16").source)


def test_beside_a_dot_exp_is_the_fast_one():
    def attention(x, k, v):
        return bb.softmax(x @ k.T) @ v

    text = kernels(emitted(attention, {"x": "M K", "k": "N K", "v": "N K"}).source)

    assert "tl.exp(" in text
    assert "_exp(" not in text.replace("tl.exp(", "")
    assert "tl.div_rn(" in text  # once per row, after the loop


def fma(a, b, c):
    """One rounding: a product of two float32 is exact in float64."""
    exact = np.asarray(a, np.float64) * np.asarray(b, np.float32) + np.asarray(c, np.float64)
    return exact.astype(np.float32)


def called(name, table):
    """A function of a table on float32 arrays; exp2 and roots are more exact than on a GPU."""
    language = SimpleNamespace(
        fma=fma,
        where=np.where,
        abs=np.abs,
        exp2=lambda t: np.exp2(t.astype(np.float64)).astype(np.float32),
        rsqrt=lambda t: np.float32(1) / np.sqrt(t),
        div_rn=lambda a, b: np.float32(a) / b,
    )
    space = {"tl": language}
    for source in table.values():
        exec(source, space)

    def call(x):
        with np.errstate(all="ignore"):
            return space[name](x)

    return call


def accurate(name):
    return called(name, ACCURATE)


erfc = np.vectorize(math.erfc, [float])
EXACT = {
    "_exp": np.exp,
    "_expm1": np.expm1,
    "_sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "_silu": lambda x: x / (1 + np.exp(-x)),
    "_tanh": np.tanh,
    "_gelu": lambda x: x * erfc(x * -math.sqrt(0.5)) / 2,
    "_recip0": lambda x: np.where(x == 0, 0, np.where(np.isinf(x), np.nan, 1 / x)),
}


@pytest.mark.parametrize("name", [name for name in ACCURATE if name != "_gelu"])  # erf is Triton's
@pytest.mark.parametrize("most", [1.0, 20.0, 85.0])
def test_accurate_functions_are_off_by_few_units(name, most):
    x = np.random.default_rng(0).uniform(-most, most, 20000).astype(np.float32)
    exact = EXACT[name](x.astype(np.float64))
    unit = np.spacing(np.abs(exact).astype(np.float32)).astype(np.float64)

    assert np.max(np.abs(accurate(name)(x) - exact) / unit) < 4


FLOAT16 = np.arange(2**16, dtype=np.uint16).view(np.float16).astype(np.float32)


def off_by(name, change=lambda text: text):
    """The largest error of a helper over all numbers of float16, in units of the last place there,
    its result rounded to float16. ``change``: of its text.
    """
    x = FLOAT16[np.abs(FLOAT16) < 60000]
    made = called(name, {**HELPERS, name: change(HELPERS[name])})(x).astype(np.float16)
    with np.errstate(over="ignore"):
        exact = EXACT[name](x.astype(np.float64))
    unit = np.spacing(np.abs(exact).astype(np.float16)).astype(np.float64)
    return np.max(np.abs(made - exact) / unit)


@pytest.mark.parametrize("name", ["_sigmoid", "_silu", "_tanh", "_gelu"])
def test_results_of_float16_are_rounded_as_exact_ones_are(name):
    assert off_by(name) < 0.51


def test_one_polynomial_less_exact_shows_in_float16():
    assert off_by("_gelu", lambda text: text.replace("-0.458", "-0.457")) > 0.51
    assert off_by("_tanh", lambda text: text.replace("0.1287", "0.1187")) > 0.51
    assert off_by("_tanh", lambda text: text.replace("< 0.25", "< 0.002")) > 0.51


@pytest.mark.parametrize("name", ["_sigmoid", "_silu", "_tanh", "_gelu"])
def test_functions_at_the_ends(name):
    x = np.array([-np.inf, -1000, -90, 90, 1000, np.inf, np.nan], np.float32)
    vanishes = [np.nan, 0, 0, 90, 1000, np.inf, np.nan]  # as eager's, which has 0 times infinity
    ends = {"_sigmoid": [0, 0, 0, 1, 1, 1, np.nan], "_tanh": [-1, -1, -1, 1, 1, 1, np.nan]}

    np.testing.assert_allclose(called(name, HELPERS)(x), ends.get(name, vanishes), atol=1e-30)


def test_sigmoid_is_a_half_at_0_and_never_less_above():
    """Programs compare and round it: 0 is what padding, masks and ReLU leave."""
    x = np.sort(np.concatenate([FLOAT16[FLOAT16 >= 0], np.float32([1e-30, 1e-8, 6e-8, 1e-7])]))
    found = called("_sigmoid", HELPERS)(x)

    assert found[0] == 0.5
    assert np.all(found >= 0.5)


def test_sigmoid_vanishes_as_late_as_float32_does():
    x = np.arange(-100, 0, dtype=np.float32)
    with np.errstate(divide="ignore"):
        found = np.log(called("_sigmoid", HELPERS)(x))

    np.testing.assert_allclose(found, x - np.log1p(np.exp(x)), atol=2e-2)


def test_tanh_keeps_the_sign_of_0():
    assert np.signbit(called("_tanh", HELPERS)(np.float32([-0.0]))).all()


def test_exp_at_the_ends():
    x = np.array([-np.inf, -200, -104, 0, 89, 1000, np.inf, np.nan], np.float32)

    np.testing.assert_array_equal(
        accurate("_exp")(x), np.array([0, 0, 0, 1, np.inf, np.inf, np.inf, np.nan], np.float32)
    )


def test_every_accurate_function_stands_in_for_a_helper_or_is_called_by_one():
    needed = {name for source in ACCURATE.values() for name in CALL.findall(source)}

    assert set(ACCURATE) <= {*HELPERS, *needed}


# sums over lanes --------------------------------------------------------------------------


def mean_square(x):
    return bb.mean(bb.square(x), axis=-1)


def product_sum(x, y):
    return bb.sum(x * y, axis=-1)


def gated_sum(x):
    return bb.sum(bb.silu(x), axis=-1)


def negated_sum(x):
    return bb.sum(-(x * x), axis=-1)


def row_scaled(x, r):
    return bb.sum(bb.sum(x * r, axis=-1), axis=-1)


@pytest.mark.parametrize(
    ("function", "inputs"),
    [
        (mean_square, X),
        (product_sum, {"x": "M K", "y": "M K"}),
        (gated_sum, X),
        (negated_sum, X),
        (row_scaled, {"x": "M K", "r": "K"}),
    ],
)
@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("lanes", rest_slow([32, 64], [32]))
def test_lanes_round_a_product_before_they_add_it(
    function, inputs, ragged, lanes, tmp_path, monkeypatch
):
    """No lane may fuse its product with the sum that it gets from another: see the reproducer.

    A loop over two blocks adds up its lanes behind it; where K is one block they are added at once.
    """
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    sizes = {d: n - 1 for d, n in SIZES.items()} if ragged else SIZES
    kernel = emitted(function, inputs, "float16", sizes, tiles={"K": lanes})

    assert re.search(r"tl\.fma\(.*, 0\.0\)", kernel.source)
    assert fused_with_a_lane(kernel) == []


def test_left_alone_lanes_would_fuse(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    kernel = emitted(
        mean_square, X, "float16", {d: n - 1 for d, n in SIZES.items()}, tiles={"K": 64}
    )
    plain = re.sub(r"tl\.fma\((.*), (.*), 0\.0\)", r"\1 * \2", kernel.source)

    assert plain != kernel.source
    assert fused_with_a_lane(replace(kernel, source=plain))


def fused_with_a_lane(kernel) -> list[str]:
    """The instructions of compiled code that add a product to what another lane holds."""
    found = []
    for entry in load_module(kernel.source).KERNELS:
        compiled, _ = compiled_entry(entry, TARGETS["sm_90"])
        text = compiled.asm["ptx"]
        shuffled = set(re.findall(r"shfl\.sync\S*\s+(%r\d+)", text))
        fused = re.findall(r"fma\.rn\.f32\s+%r\d+, %r\d+, %r\d+, (%r\d+);", text)
        found += [register for register in fused if register in shuffled]
    return found


# logarithms near 1 --------------------------------------------------------------------------


def test_log1p_is_off_by_few_units_everywhere():
    """Near 0, near -1, at powers of two and far away, and at the ends of what has a logarithm."""
    random = np.random.default_rng(0)
    near, ends = np.exp(np.linspace(-80, 88.7, 3000)), [-1, -2, -np.inf, np.inf, np.nan, 0, 3.4e38]
    some = random.uniform(-1, 3, 3000), 2.0 ** np.arange(-9, 60), ends
    x = np.concatenate([near, -near[near < 1], *some]).astype(np.float32)
    kernel = emitted(lambda x: bb.log1p(x), {"x": "M"}, sizes={"M": len(x)})
    (found,) = run_interpreted(kernel, {"x": x}).values()
    with np.errstate(all="ignore"):
        exact = np.log1p(x.astype(np.float64))

    known = np.isfinite(exact)
    unit = np.spacing(np.abs(exact[known]).astype(np.float32)).astype(np.float64)
    assert np.max(np.abs(found[known] - exact[known]) / unit) < 4
    np.testing.assert_array_equal(found[~known], exact[~known].astype(np.float32))
