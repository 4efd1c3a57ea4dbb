"""The safety pass where inputs are infinite or huge: what eager gives, or the exact result."""

from functools import cache
from random import Random

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.emission import emit
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.interp.semantics import Float32, Float64
from blockbuster.runtime.launch import run_batch
from tests.emit.numpy_runs import run_numpy

VALUES = (-np.inf, np.inf, 1e4, -1e4, 0.0, 1.0, -2.0, 0.5)
BEFORE_EXP = ("half", "neg", "mul")
AFTER_EXP = ("sum", "max", "column sum", "reciprocal", "neg", "half", "mul", "div", "add")
BINARY = ("mul", "div", "add")
SIZE = 4


def exact_quotient(x, y):
    """x / y as floats have it: mpmath raises where y is 0."""
    if y != 0:
        return mpmath.nan if mpmath.isinf(x) and mpmath.isinf(y) else x / y
    return mpmath.nan if x == 0 or mpmath.isnan(x) else mpmath.sign(x) * mpmath.inf


# numbers whose exponents have no end: exp(1e4) is one
EXACT = {
    "exp": np.frompyfunc(mpmath.exp, 1, 1),
    "div": np.frompyfunc(exact_quotient, 2, 1),
}
EAGER = {"exp": np.exp, "div": np.true_divide}
FUNCTIONS = {
    "sum": lambda x: x.sum(-1, keepdims=True),
    "max": lambda x: x.max(-1, keepdims=True),
    "column sum": lambda x: x.sum(0, keepdims=True),
    "neg": lambda x: -x,
    "half": lambda x: x * 0.5,
    "mul": lambda x, y: x * y,
    "add": lambda x, y: x + y,
}


class Program:
    """A random chain of functions of a matrix x and a column b, with exp in it, never of an exp."""

    def __init__(self, random):
        self.steps, self.axes, self.after = [], [(SIZE, SIZE), (SIZE, 1)], [False, False]
        for _ in range(random.randint(3, 8)):
            self._step(random)
        self._add("exp", [0])
        self._add(random.choice(["mul", "div"]), [len(self.axes) - 2, len(self.axes) - 1])

    def _step(self, random):
        last = len(self.axes) - 1
        operand = random.choice([last, last, random.randint(0, last)])
        names = AFTER_EXP if self.after[operand] else (*BEFORE_EXP, "exp", "exp")
        name = random.choice(names)
        operands = [operand]
        if name in BINARY:
            others = [at for at in range(last + 1) if name == "mul" or self.after[at]]
            operands.append(random.choice(others))
        rows, columns = self.axes[operand]
        if not (columns == 1 and name in ("sum", "max")) and not (rows == 1 and "column" in name):
            self._add(name, operands)

    def _add(self, name, operands):
        rows, columns = np.broadcast_shapes(*(self.axes[at] for at in operands))
        columns = 1 if name in ("sum", "max") else columns
        self.steps.append((name, operands))
        self.axes.append((1 if name == "column sum" else rows, columns))
        self.after.append(name == "exp" or any(self.after[at] for at in operands))

    def __repr__(self):
        return f"Program({self.steps})"

    def __call__(self, x, b, functions=EAGER):
        functions = FUNCTIONS | functions
        functions["reciprocal"] = lambda y: functions["div"](1.0, y)
        values = [x, b]
        for name, operands in self.steps:
            values.append(functions[name](*(values[at] for at in operands)))
        return values[-1]

    def exact(self, x, b):
        """The results in numbers without limits, rounded to float64 at the end."""
        unlimited = np.frompyfunc(mpmath.mpf, 1, 1)
        results = self(unlimited(x), unlimited(b), EXACT)
        return np.vectorize(float, otypes=[float])(results)

    @property
    def forms(self):
        """What the safety pass makes of it, before and after fusion."""
        derivation = bb.fuse(bb.lower(bb.trace(self, x="M N", b="M 1")))
        return [bb.safe(derivation.start), bb.safe(derivation.final)]


@cache
def program(seed):
    made = Program(Random(seed))
    return made, made.forms


@st.composite
def programs_and_inputs(draw):
    made, forms = program(draw(st.integers(0, 299)))
    few = draw(st.lists(st.sampled_from(VALUES), min_size=1, max_size=4))
    rows = st.lists(st.sampled_from(few), min_size=SIZE, max_size=SIZE)
    x = draw(st.lists(rows, min_size=SIZE, max_size=SIZE))
    return made, forms, {"x": np.array(x), "b": np.array(draw(rows))[:, None]}


@np.errstate(all="ignore")
def assert_exact_or_eager(found, made, arrays, dtype):
    """Each element is near the exact one, or near what floats of the dtype or float64 give."""
    exact = made.exact(**arrays)
    limits = np.finfo(dtype)
    relative = 1e4 * 8 * limits.eps  # exponents of 1e4 are rounded
    right = (np.abs(exact) > limits.max) & np.isinf(found) & (found * exact > 0)
    for kind in (dtype, np.float64):
        wanted = made(**{name: array.astype(kind) for name, array in arrays.items()})
        right |= near(found, np.broadcast_to(wanted, exact.shape), relative, limits)
    right |= near(found, exact, relative, limits)
    assert right.all(), f"{made}\n{arrays}\nfound {found}\nexact {exact}"


def near(found, wanted, relative, limits):
    same = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
    return same | (np.abs(found - wanted) <= relative * np.abs(wanted) + limits.smallest_normal)


@given(programs_and_inputs())
def test_exponentials_are_exact_or_what_eager_gives(case):
    made, forms, arrays = case
    for graph in forms:
        for semantics, dtype in ((Float64, np.float64), (Float32, np.float32)):
            for blocks in (None, {"N": 2}):
                found = bb.evaluate(graph, arrays, blocks=blocks, semantics=semantics)["out"]
                found = np.asarray(found, np.float64).reshape(made.axes[-1])
                assert_exact_or_eager(found, made, arrays, dtype)


def test_the_random_programs_have_something_to_make_safe():
    assert sum("sub0(" in str(program(at)[1][1]) for at in range(60)) >= 20


def safe_of(function, **inputs):
    return bb.safe(bb.fuse(bb.lower(bb.trace(function, **inputs))).final)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: bb.exp(x) / bb.exp(x).sum(-1, keepdims=True),
        lambda x: bb.exp(x).sum(-1, keepdims=True) / bb.exp(x),
        lambda x: bb.exp(x * 0.5) / bb.exp(x),
        lambda x: bb.exp(x) * (1 / bb.exp(x).sum(-1, keepdims=True)),
        lambda x: bb.exp(x) / bb.exp(x.max(-1, keepdims=True)) / bb.exp(x),
        lambda x: bb.exp(x).sum(-1, keepdims=True) / bb.exp(x) * bb.exp(x),
    ],
)
@np.errstate(all="ignore")
def test_rows_of_only_minus_infinity_are_what_eager_gives(function):
    x = np.array([[-np.inf] * 3, [0.0, 1.0, 2.0], [1.0, 0.0, 0.0]])
    found = bb.evaluate(safe_of(function, x="M N"), {"x": x})["out"]

    assert np.isnan(found[0]).all()
    np.testing.assert_allclose(found, function(x), rtol=1e-12)


def biased_softmax(x, b):
    e = bb.exp(x) * bb.exp(b)
    return e / e.sum(-1, keepdims=True)


@pytest.mark.parametrize("blocks", [None, {"N": 4}])
def test_an_exponent_that_a_row_shares_costs_no_digits(blocks):
    """x + b would be rounded to 80 * 2**-24, and so would the results."""
    random = np.random.default_rng(0)
    x = random.normal(size=(8, 16)).astype(np.float32)
    b = (80 + random.normal(size=(8, 1))).astype(np.float32)
    graph = safe_of(biased_softmax, x="M N", b="M 1")

    found = bb.evaluate(graph, {"x": x, "b": b}, blocks=blocks, semantics=Float32)["out"]

    exact = biased_softmax(x.astype(float), b.astype(float))
    np.testing.assert_allclose(found, exact, rtol=4e-7)


def test_a_row_of_which_an_exponent_cancels_is_still_none_where_it_is_zero():
    """exp(x) exp(b) over its sum is 0 / 0 where b is -inf, though b cancels."""
    x, b = np.ones((3, 4)), np.array([[0.0], [-np.inf], [1e4]])
    graph = safe_of(biased_softmax, x="M N", b="M 1")

    found = bb.evaluate(graph, {"x": x, "b": b})["out"]

    np.testing.assert_allclose(found, [[0.25] * 4, [np.nan] * 4, [0.25] * 4])


def extreme(seed):
    random = np.random.default_rng(seed)
    return {"x": random.choice(VALUES, (SIZE, SIZE)), "b": random.choice(VALUES, (SIZE, 1))}


@pytest.mark.parametrize("seed", range(20))
def test_their_numpy_text_does_the_same(seed):
    made, forms = program(seed)
    arrays = extreme(seed)
    text = run_numpy(lower_to_tiles(forms[1]), arrays, block_sizes={"N": 2})["out"]

    assert_exact_or_eager(text.reshape(made.axes[-1]), made, arrays, np.float64)


@pytest.mark.interpreter
def test_their_kernels_do_the_same():
    arrays = {
        seed: {n: a.astype(np.float32) for n, a in extreme(seed).items()} for seed in range(8)
    }
    sizes = {"M": SIZE, "N": SIZE}
    jobs = [(emit(program(at)[1][1], sizes, "float32"), arrays[at]) for at in arrays]

    for at, results in zip(arrays, run_batch(jobs), strict=True):
        made, _ = program(at)
        found = results["out"].astype(np.float64).reshape(made.axes[-1])
        assert_exact_or_eager(found, made, arrays[at], np.float32)


def chosen(x, t):
    """The logarithm of the probability of one element in each row."""
    here = t[:, None] == bb.arange(x.shape[1])
    return bb.sum(bb.where(here, bb.log_softmax(x, axis=-1), 0), axis=-1)


def weighed(x, t):
    """The same, with a weight behind the choice, and a sign."""
    here = t[:, None] == bb.arange(x.shape[1])
    return bb.sum(-bb.where(here, bb.log_softmax(x, axis=-1), 0) * 3 / 7, axis=-1)


@cache
def traced_and_safe(fn):
    program = bb.trace(fn, x="M N", t="int64: M")
    return program, bb.safe(bb.fuse(bb.lower(program)).final)


@pytest.mark.parametrize("fn", [chosen, weighed])
@settings(max_examples=15)
@given(seed=st.integers(0, 2**32 - 1))
def test_elements_that_are_not_chosen_may_be_infinite(fn, seed):
    """-inf masks elements of a softmax: 0 times their logarithm would be NaN."""
    random = np.random.default_rng(seed)
    x = np.where(random.random((5, 6)) < 0.5, -np.inf, random.standard_normal((5, 6)))
    t = random.integers(0, 6, 5)
    x[np.arange(5), t] = 1.0  # the chosen one is there
    program, fused = traced_and_safe(fn)

    found = bb.evaluate(fused, {"x": x, "t": t}, block_sizes={"N": 4})["out"]

    np.testing.assert_allclose(found, program.numpy({"x": x, "t": t})["out"], rtol=1e-12)


@pytest.mark.parametrize("seed", [177, 232, 283])
def test_extremes_of_negated_exponentials_and_products_that_cancel(seed):
    made, forms = program(seed)
    random = np.random.default_rng(seed)
    for _ in range(20):
        few = random.choice(VALUES, random.integers(1, 5))
        arrays = {"x": random.choice(few, (SIZE, SIZE)), "b": random.choice(few, (SIZE, 1))}
        for graph in forms:
            found = bb.evaluate(graph, arrays, blocks={"N": 2}, semantics=Float64)["out"]
            found = np.asarray(found, np.float64).reshape(made.axes[-1])
            assert_exact_or_eager(found, made, arrays, np.float64)
