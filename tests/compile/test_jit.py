"""bb.jit on NumPy arrays: values, dtypes, structure, reuse, errors."""

import re
from collections import namedtuple
from functools import partial

import numpy as np
import pytest

import blockbuster as bb
from tests.compile.functions import (
    attention,
    close,
    doubled,
    failing,
    normal,
    plain_attention,
    plain_several,
    several,
    with_custom,
)


def traced_count(jitted):
    return len(jitted._traced)


@pytest.mark.parametrize("sizes", [(4, 6, 8, 5), (1, 1, 1, 1), (70, 300, 64, 33), (700, 900, 3, 2)])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_attention(sizes, dtype):
    m, n, d, width = sizes
    q, k, v = normal((m, d), (n, d), (n, width), dtype=dtype)

    out = bb.jit(attention)(q, k, v)

    assert out.dtype == dtype
    close(
        out,
        plain_attention(*(a.astype(float) for a in (q, k, v))),
        2e-3 if dtype == "float16" else 1e-5,
    )


def test_blocks_are_cut_where_tiles_are_large():
    q, k, v = normal((1500, 16), (1300, 16), (1300, 24))
    jitted = bb.jit(attention)

    close(jitted(q, k, v), plain_attention(q, k, v))
    (file,) = jitted.plan_for(q, k, v).files
    assert file.blocks
    assert all(count < 1500 for count in file.blocks.values())


def test_several_results_with_a_function_between_kernels():
    x, w = normal((6, 8), (8, 5))

    results = bb.jit(several)(x, w)

    expected = plain_several(x.astype(float), w.astype(float))
    assert list(results) == list(expected)
    for name, right in expected.items():
        close(results[name], right)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: x[:, 2:6] + y,
        lambda x, y: bb.concat([x + 1, y * 2], axis=-1),
        lambda x, y: bb.concat([np.sort(x, axis=-1), y * 2], axis=-1),
        lambda x, y: bb.concat([x + 1, np.sort(y, axis=-1)], axis=-1) * 2,
        lambda x, y: np.sort(x[:, 2:6], axis=-1) + y,
        lambda x, y: np.sort(x + 1, axis=-1)[:, 2:6] + y,
        lambda x, y: bb.merge_heads(bb.split_heads(x, 2) * 3)[:, :4] - y,
    ],
)
def test_views_of_arrays(function):
    x, y = normal((6, 8), (6, 4))

    close(bb.jit(function)(x, y), function(x, y))


@pytest.mark.parametrize("rank", [2, 3, 4])
def test_batch_dims_and_strides(rank):
    (x,) = normal((3, 2, 6, 8)[4 - rank :])
    x = np.swapaxes(x, -1, -2)[..., ::-1, :]

    out = bb.jit(lambda x: bb.softmax(x @ x.mT))(x)

    s = x @ np.swapaxes(x, -1, -2)
    e = np.exp(s - s.max(-1, keepdims=True))
    close(out, e / e.sum(-1, keepdims=True))


def test_empty_arrays():
    x, w = np.ones((0, 3), np.float32), np.ones((3, 4), np.float32)
    product = bb.jit(lambda x, w: x @ w)

    assert product(x, w).shape == (0, 4)
    np.testing.assert_array_equal(product(w, x.T[:, :0].T.reshape(4, 0)[:4, :0]).shape, (3, 0))
    np.testing.assert_array_equal(product(x.T, x), np.zeros((3, 3)))


def test_a_scalar_result():
    (x,) = normal((5, 7))

    close(bb.jit(lambda x: x.sum())(x), x.sum())


def test_results_keep_their_structure():
    (x,) = normal((4, 4))
    Pair = namedtuple("Pair", "a b")

    assert isinstance(bb.jit(lambda x: x + 1)(x), np.ndarray)
    assert isinstance(bb.jit(lambda x: (x + 1,))(x), tuple)
    assert isinstance(bb.jit(lambda x: [x + 1, x])(x), list)
    pair = bb.jit(lambda x: Pair(x + 1, x * 2))(x)
    assert isinstance(pair, Pair)
    np.testing.assert_array_equal(pair.b, x * 2)
    assert list(bb.jit(lambda x: {"out": x + 1})(x)) == ["out"]


def test_results_are_new_arrays():
    (x,) = normal((4, 4))
    for function in (lambda x: x, lambda x: x.T, with_custom(lambda a: a), np.transpose):
        assert not np.shares_memory(bb.jit(function)(x), x)


def test_dtypes_meet_and_casts_hold():
    x, y = normal((4, 4), dtype="float16")[0], normal((4, 4))[0]
    added = bb.jit(lambda x, y: x + y)

    assert added(x, y).dtype == np.float32
    assert added(x, y.astype(float)).dtype == np.float64
    assert bb.jit(lambda x: (x * 2).astype("float32"))(x).dtype == np.float32
    assert bb.jit(lambda x: bb.astype(x * 2, "float16").T)(y).dtype == np.float16
    assert bb.jit(lambda x, y: x > y)(y, y.T).dtype == np.bool_


def test_other_arguments_are_fixed():
    (x,) = normal((4, 4))

    @bb.jit
    def function(x, scale=2.0, *, bias=None, flag=False):
        y = x * scale
        return y if bias is None else y + bias if flag else y - bias

    np.testing.assert_array_equal(function(x), x * 2)
    np.testing.assert_array_equal(function(x, 3), x * 3)
    np.testing.assert_array_equal(function(x, scale=3.0), x * 3)
    np.testing.assert_array_equal(function(x=x, bias=1, flag=True), x * 2 + 1)
    np.testing.assert_array_equal(function(x, bias=x), x * 2 - x)
    np.testing.assert_array_equal(function(x, bias=True), x * 2 - 1)
    np.testing.assert_array_equal(function(x, bias=1), x * 2 - 1)


def test_fixed_arguments_that_are_equal_and_not_alike():
    (x,) = normal((3, 4))
    zero = bb.jit(lambda x, y: 1 / (x * y))
    pairs = bb.jit(lambda x, given: x + (10 if given[0] is True else 0))

    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(zero(np.abs(x), 0.0), np.inf)
        np.testing.assert_array_equal(zero(np.abs(x), -0.0), -np.inf)
    np.testing.assert_array_equal(pairs(x, (1, 2)), x)
    np.testing.assert_array_equal(pairs(x, (True, 2)), x + 10)


def test_reports_name_what_can_overflow():
    (x,) = normal((3, 4))
    jitted = bb.jit(lambda x: bb.log(1 + bb.exp(x)))

    (note,) = jitted.report_for(x).notes
    assert re.match(r"exp \(test_jit.py:\d+\) can overflow: log \(test_jit.py:\d+\) takes it", note)
    assert bb.jit(lambda x: bb.softmax(bb.softmax(x, axis=0), axis=1)).report_for(x).notes == ()


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_softmax_along_any_axis_of_large_values(axis):
    (x,) = normal((5, 6, 7))
    x = (200 + 50 * x).astype(np.float32)
    e = np.exp(x.astype(float) - x.max(axis, keepdims=True))

    close(bb.jit(lambda x: bb.softmax(x, axis=axis))(x), e / e.sum(axis, keepdims=True), 1e-4)


def test_all_kinds_of_parameters():
    x, y, z = normal((4, 4), (4, 4), (4, 4))

    @bb.jit
    def function(first, /, second, *rest, last, **more):
        total = first - second
        for array in (*rest, *more.values()):
            total = total + array
        return total * last

    np.testing.assert_allclose(
        function(x, y, z, z, last=2.0, a=x), (x - y + z + z + x) * 2, rtol=1e-5
    )
    np.testing.assert_allclose(function(x, second=y, last=z), (x - y) * z, rtol=1e-5)


def test_default_arrays():
    (x,) = normal((4, 4))
    jitted = bb.jit(lambda x, w=TWOS: x * w)

    np.testing.assert_array_equal(jitted(x), x * 2)
    np.testing.assert_array_equal(jitted(x, x), x * x)


def test_one_trace_and_one_text_serve_many_sizes():
    jitted = bb.jit(attention, machine="h200")
    plans = [
        jitted.plan_for(*normal((n, 64), (n, 64), (n, 64), dtype="float16"))
        for n in (6400, 8192, 16384, 8010, 5, 2048, 1920)
    ]

    assert traced_count(jitted) == 1
    assert plans[0] is plans[1]
    assert plans[2] is not plans[1]  # without chunks of the keys, which fill the device before
    assert plans[3] is not plans[0]
    assert plans[4] not in plans[:4]
    assert plans[5] is plans[6]  # as many chunks of the keys
    assert plans[5] not in plans[:5]


def test_a_plan_does_not_depend_on_what_came_before():
    def text(*sizes):
        jitted = bb.jit(attention, machine="h200")
        for n in sizes:
            source = jitted.source_for(*normal((n, 64), (n, 64), (n, 64), dtype="float16"))
        return re.sub(r"\d+", "", source)

    assert text(512) == text(1000, 5, 512)


def test_extents_of_one_are_other_programs():
    x, row = normal((4, 6), (1, 6))
    jitted = bb.jit(lambda x, y: x + y)

    np.testing.assert_array_equal(jitted(x, row), x + row)
    np.testing.assert_array_equal(jitted(x, x), x + x)
    assert traced_count(jitted) == 2


def test_reports():
    x, w = normal((6, 8), (8, 5))
    report = bb.jit(several).report_for(x, w)

    assert report.misc == ("np.sort[-1]",)
    assert report.kernels == sum(file.kernels for file in bb.jit(several).plan_for(x, w).files)
    assert "np.sort[-1] (functions.py:" in str(report)
    reported = bb.jit(attention).report_for(x, x, x)
    assert "snapshot 2 (least time predicted for NumPy" in reported.details
    assert "snapshot" not in str(reported)


def test_one_kernel():
    q, k, v = normal((64, 16), (64, 16), (64, 16))

    close(bb.jit(attention, one_kernel=True)(q, k, v), plain_attention(q, k, v))
    with pytest.raises(bb.FusionError, match=r"(?s)kernels for cpu, not one.*np\.sort"):
        bb.jit(several, one_kernel=True)(q, k.T)
    both = bb.jit(one_kernel=True, machine="h200")(lambda x: bb.softmax(bb.softmax(x, axis=0)))
    with pytest.raises(bb.FusionError, match=r"4 kernels(?s:.*)did not fuse: writes 40000 x"):
        both.plan_for(np.broadcast_to(np.float32(1), (40_000, 40_000)))  # longer than a block


def test_decorator_forms():
    @bb.jit(tune="model")
    def function(x):
        """Doc."""
        return x + 1

    assert function.__doc__ == "Doc."
    assert function.__name__ == "function"
    assert callable(bb.jit(tune="measure"))
    with pytest.raises(ValueError, match="unknown way to tune: 'fast'"):
        bb.jit(tune="fast")
    with pytest.raises(ValueError, match="unknown machine 'abacus'"):
        bb.jit(machine="abacus")
    with pytest.raises(TypeError, match="machine is None, which is no name of a machine"):
        bb.jit(machine=None)


X = np.ones((4, 4), np.float32)
TWOS = np.full((4, 4), 2.0, np.float32)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ((X, X.astype(complex)), bb.LaunchError, "y holds complex128; known are float8_e4m3fn"),
        ((X, X.astype(np.uint64)), bb.LaunchError, r"(?s)y holds uint64.*astype\(np.int64\), wh"),
        ((X, X.astype(np.uint16)), bb.LaunchError, r"y holds uint16[\s\S]*astype\(np.int32\)"),
        ((X, {1.0}), TypeError, "the argument y is a set, which has no hash"),
        ((X, [X]), bb.TraceError, "a list is neither an array nor a number"),
        ((X, {"a": X.astype(complex)}), bb.LaunchError, r"y\['a'\] holds complex128"),
        ((X,), TypeError, "missing a required argument: 'y'"),
        ((1.0, 2.0), bb.LaunchError, "the call has no array"),
        ((X, X[:3]), bb.TraceError, r"(?s)4 and 3 differ.*test_jit.py:\d+: "),
    ],
)
def test_errors_name_the_argument(arguments, error, text):
    with pytest.raises(error, match=text):
        bb.jit(lambda x, y: x + y)(*arguments)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.add.reduce(x),
        lambda x: np.maximum.reduce(x, axis=1),
        lambda x: np.cumsum(x, 0),
        lambda x: np.cumsum(x[0]),
        lambda x: np.cumprod(x, axis=1),
        lambda x: np.sort(x),
        lambda x: np.concatenate([x, x]),
        lambda x: +x,
    ],
)
def test_defaults_of_numpys_functions(function):
    x = np.random.default_rng(0).standard_normal((4, 3))

    np.testing.assert_allclose(bb.jit(function)(x), function(x))


@pytest.mark.parametrize("function", [lambda x: x[:3] * 2, lambda x: x[-3:] * 2])
def test_a_slice_means_the_same_whatever_came_first(function):
    short = bb.jit(function)

    for rows in (2, 3, 5, 1, 4, 2):
        x = np.arange(rows * 4.0).reshape(rows, 4)
        np.testing.assert_array_equal(short(x), function(x))


def test_arrays_with_rules_of_their_own_are_refused(tmp_path):
    masked = np.ma.masked_array(X, mask=X > 0)
    jitted = bb.jit(lambda x: x.sum(0))

    jitted(X)
    with pytest.raises(bb.LaunchError, match=r"(?s)x is a MaskedArray.*x\.filled\(value\)"):
        jitted(masked)
    mapped = np.memmap(tmp_path / "x", np.float32, "w+", shape=(4, 4))
    np.testing.assert_array_equal(jitted(mapped), np.zeros(4))


def test_sizes_that_disagree_after_a_trace_name_the_line():
    jitted = bb.jit(lambda x, y: x + y)
    jitted(X, X)

    with pytest.raises(bb.TraceError, match=r"(?s)4 and 3 differ.*test_jit.py:\d+: "):
        jitted(X, X[:3])


def test_what_is_not_an_array_is_refused_at_the_users_line():
    with pytest.raises(bb.TraceError, match=r"(?s)returned an int for out.*test_jit.py:\d+: "):
        bb.jit(lambda x: 3)(X)


def test_cpu_arrays_for_a_gpu_are_refused():
    with pytest.raises(bb.LaunchError, match="compiled for sm_90, the arrays are on the CPU"):
        bb.jit(attention, machine="h200")(X, X, X)


def test_functions_of_whole_arrays():
    np.testing.assert_array_equal(bb.jit(with_custom(doubled))(X), X * 3)
    np.testing.assert_array_equal(
        bb.jit(lambda x: np.cumsum(x, axis=0)[:, None])(X)[:, 0], X.cumsum(0)
    )
    with pytest.raises(KeyError, match="no such row") as caught:
        bb.jit(with_custom(failing))(X)
    assert re.match(
        r"in failing \(functions.py:\d+\), which runs between", caught.value.__notes__[0]
    )
    with pytest.raises(bb.LaunchError, match=r"gave an array of shape \(4,\), expected \(4, 4\)"):
        bb.jit(with_custom(partial(np.sum, axis=0)))(X)
    with pytest.raises(ValueError, match="read-only"):
        bb.jit(with_custom(lambda a: a.sort()))(X)
