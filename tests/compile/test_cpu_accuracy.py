"""Errors on the CPU are no larger than eager's: every documented function, on rows of every kind.

Eager is torch on the CPU in the same dtype, right is torch in float64, the judge is that of
kernels.
"""

import math
from itertools import product

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.check.judge import GROUPS, ratio, sampled, verdict
from tests.parameters import rest_slow

ROWS = {
    "normal": lambda random, shape: random.normal(size=shape),
    "tiny": lambda random, shape: 1e-3 * random.normal(size=shape),
    "scaled": lambda random, shape: 30 * random.normal(size=shape),
    "large": lambda random, shape: 1e3 * random.normal(size=shape),
    "shifted by 30": lambda random, shape: random.normal(size=shape) + 30,
    "shifted by 1e3": lambda random, shape: random.normal(size=shape) + 1e3,
    "shifted by 1e4": lambda random, shape: random.normal(size=shape) + 1e4,
    "shifted by -1e4": lambda random, shape: random.normal(size=shape) - 1e4,
    "each shifted": lambda random, shape: (
        random.normal(size=shape) + 1e3 * random.normal(size=(*shape[:-1], 1))
    ),
    "outliers": lambda random, shape: (
        np.where(random.random(shape) < 2 / shape[-1], 1e3, 1) * random.normal(size=shape)
    ),
}
POSITIVE = ("log", "sqrt", "rsqrt", "power", "inverse power")
"""Functions that are NaN elsewhere: their rows are made positive."""


def turned(x):
    return bb.transpose(x, (1, 0))


def lse_beside(x):
    """Two results of one sum: neither may spoil the other."""
    return bb.log_softmax(x), bb.logsumexp(x)


def entropy(x):
    return -bb.sum(bb.softmax(x) * bb.log_softmax(x), axis=-1)


def cross_entropy(x):
    return -bb.mean(bb.log_softmax(x) * bb.softmax(x[:, ::1] * 0.5), axis=-1)


def variance(x):
    return bb.mean(bb.square(x - bb.mean(x, axis=-1, keepdims=True)), axis=-1)


def variance_of_all(x):
    return bb.mean(bb.square(x - bb.mean(x)))


def variance_of_columns(x):
    return bb.mean(bb.square(x - bb.mean(x, axis=0, keepdims=True)), axis=0)


def along(name):
    """A reduction or normalization over rows, over columns, and over a slice."""
    function = getattr(bb, name)
    return {
        name: lambda x: function(x, axis=-1),
        f"{name} of columns": lambda x: function(x, axis=0),
        f"{name} of a slice": lambda x: function(x[:, 3:], axis=-1),
    }


FUNCTIONS = {
    **{
        name: getattr(bb, name)
        for name in (
            "exp", "log", "sqrt", "rsqrt", "tanh", "sigmoid", "silu", "gelu", "relu", "erf",
            "abs", "square", "reciprocal",
        )
    },
    **along("sum"), **along("max"), **along("min"), **along("mean"),
    **along("softmax"), **along("log_softmax"), **along("logsumexp"),
    "layer_norm": lambda x: bb.layer_norm(x, x[0], x[1]),
    "rms_norm": lambda x: bb.rms_norm(x, x[0]),
    "matmul": lambda x: bb.matmul(x, turned(x)),
    "maximum": lambda x: bb.maximum(x, x * 2),
    "minimum": lambda x: bb.minimum(x, x * 2),
    "where": lambda x: bb.where(x > 0, x * 3, x / 3),
    "transpose": turned,
    "concat": lambda x: bb.concat([x * 3, bb.exp(-bb.abs(x))], axis=-1),
    "split_heads": lambda x: bb.merge_heads(bb.split_heads(x, 2) / 3),
    "lse beside": lse_beside, "entropy": entropy, "cross entropy": cross_entropy,
    "variance": variance,
    "softmax, safe": lambda x: bb.softmax(x, safe=True),
    "attention": lambda x: bb.softmax(bb.matmul(bb.tanh(x), turned(bb.tanh(x)))) @ x,
    "power": lambda x: x**0.3, "inverse power": lambda x: x**-1.7,
    "shifted exp": lambda x: bb.exp(x - bb.max(x, axis=-1, keepdims=True)),
}  # fmt: skip
OF_ALL = {
    **{
        f"{name} of all": getattr(bb, name) for name in ("sum", "mean", "max", "min")
    },
    "variance of all": variance_of_all,
    "deviation of all": lambda x: bb.sqrt(variance_of_all(x)),
    "mean of the variances": lambda x: bb.mean(variance(x)),
    "variance": variance, "variance of columns": variance_of_columns,
    "mean of columns": lambda x: bb.mean(x, axis=0),
    "mean of means": lambda x: bb.mean(bb.mean(x, axis=-1)),
    "entropy": entropy, "loss": lambda x: -bb.mean(bb.log_softmax(x) * bb.softmax(x)),
}  # fmt: skip
"""Reductions over all axes, which are sums of sums, and what is composed of sums."""
FUNCTIONS |= OF_ALL
ELSEWHERE = {
    "arange": "an index vector", "astype": "test_result_dtypes.py", "custom": "the user's function",
    "merge_heads": "split_heads",
}  # fmt: skip


def test_every_documented_function_is_in_the_table():
    start = bb.__all__.index("matmul")
    documented = bb.__all__[start : bb.__all__.index("Graph")]

    assert [n for n in documented if n not in FUNCTIONS and n not in ELSEWHERE] == []


def results(found):
    return found if isinstance(found, tuple) else (found,)


def eagers(torch, name, x):
    """What the function gives of a tensor without us.

    Of a float32 matmul, NumPy's product: CPU kernels multiply with it, and how many partial sums it
    and torch's have depends on the processor.
    """
    if name == "matmul" and x.dtype == torch.float32:
        return torch.from_numpy(x.numpy() @ x.numpy().T)
    return FUNCTIONS[name](x)


def judged(torch, name, kind, *, dtype, shape):
    """A verdict for each result of a function."""
    function = FUNCTIONS[name]
    jitted, random = bb.jit(function), np.random.default_rng(0)
    groups = []
    for _ in range(GROUPS):
        rows = ROWS[kind](random, shape)
        x = torch.tensor(np.abs(rows) if name in POSITIVE else rows).to(getattr(torch, dtype))
        found = jitted(x), eagers(torch, name, x), function(x.double())
        ours, theirs, exact = map(results, found)
        triples = zip(ours, theirs, exact, strict=True)
        groups.append([sampled(a.double(), b.double(), c, dtype) for a, b, c in triples])
    return [verdict(samples, dtype) for samples in zip(*groups, strict=True)]


def by_turns(others, turns):
    """Each function with one in ``turns`` of the others; with the rest it is slow."""
    for at, name in enumerate(FUNCTIONS):
        for turn, other in enumerate(others):
            marks = () if (at + turn) % turns == 0 else pytest.mark.slow
            yield pytest.param(name, other, marks=marks)


@pytest.mark.parametrize(("name", "kind"), [*by_turns(ROWS, len(ROWS))])
def test_errors_are_no_larger_than_eagers(torch, name, kind):
    for found in judged(torch, name, kind, dtype="float32", shape=(8, 160)):
        assert found.passed, found


NARROW = [*product(("float16", "bfloat16"), ("normal", "shifted by 30", "outliers"))]


@pytest.mark.parametrize(("name", "narrow"), [*by_turns(NARROW, len(NARROW))])
def test_in_narrow_dtypes(torch, name, narrow):
    dtype, kind = narrow
    for found in judged(torch, name, kind, dtype=dtype, shape=(8, 130)):
        assert found.passed, found


@pytest.mark.parametrize("name", ["sum of columns", "matmul", "log_softmax", "layer_norm", "exp"])
def test_of_long_rows(torch, name):
    for kind in ("normal", "shifted by 30"):
        for found in judged(torch, name, kind, dtype="float32", shape=(12, 3000)):
            assert found.passed, (kind, found)


SHAPES = rest_slow([(64, 300), (7, 1000), (2048, 64)], quick=[(7, 1000)])


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", OF_ALL)
def test_sums_of_sums(torch, name, shape):
    for kind in ("normal", "outliers", "shifted by 1e4"):
        for found in judged(torch, name, kind, dtype="float32", shape=shape):
            assert found.passed, (kind, found)


@pytest.mark.parametrize("name", OF_ALL)
def test_few_results_err_no_more_than_eagers_over_many_draws(torch, name):
    """Root mean squares: a judge of one result in each draw allows for more luck."""
    function, random = FUNCTIONS[name], np.random.default_rng(1)
    jitted = bb.jit(function)
    for kind in ("normal", "tiny", "outliers", "shifted by 1e4"):
        ours = theirs = 0.0
        for _ in range(24):
            x = torch.tensor(ROWS[kind](random, (7, 1000))).float()
            exact = function(x.double())
            ours += float(((jitted(x).double() - exact) ** 2).mean())
            theirs += float(((function(x).double() - exact) ** 2).mean())

        assert ours <= 1.2**2 * theirs, (kind, (ours / theirs) ** 0.5)


@pytest.mark.parametrize("shift", [0.0, 30.0, 1e4])
@pytest.mark.parametrize(
    "shape", [(64, 300), (7, 1000), (2048, 64), (5, 6, 7), (1500, 1100)], ids=str
)
@pytest.mark.parametrize("name", ["sum", "mean"])
def test_a_sum_over_all_axes_is_rounded_once(name, shape, shift):
    """In units of the last place: one result says little beside eager's, which may be lucky."""
    x = (np.random.default_rng(0).normal(size=shape) + shift).astype(np.float32)
    exact = getattr(np, name)(x.astype(np.float64))
    found = bb.jit(lambda x: getattr(bb, name)(x))(x)

    assert abs(float(found) - exact) <= 0.51 * np.spacing(np.float32(abs(exact)))


@pytest.mark.parametrize("name", ["sigmoid", "silu", "gelu"])
def test_activations_are_rounded_once(torch, name):
    """The largest error in units of the last place, which few elements have."""
    x = np.random.default_rng(0).normal(size=(300, 300)).astype(np.float32)
    exact = np.asarray(getattr(bb, name)(x.astype(np.float64)))
    unit = np.spacing(np.abs(exact).astype(np.float32)).astype(np.float64)

    assert (np.abs(bb.jit(getattr(bb, name))(x) - exact) / unit).max() < 0.51


@pytest.mark.parametrize("shift", [30.0, 1e3, 1e4])
def test_eager_functions_of_numpy_arrays_keep_the_digits_too(torch, shift):
    x = (np.random.default_rng(0).normal(size=(64, 300)) + shift).astype(np.float32)
    exact = bb.log_softmax(x.astype(np.float64))

    ours = np.abs(bb.log_softmax(x) - exact).max()
    theirs = np.abs(torch.log_softmax(torch.tensor(x), -1).numpy() - exact).max()

    assert math.isfinite(ratio(ours, theirs))
    assert ratio(ours, theirs) <= 1.5
