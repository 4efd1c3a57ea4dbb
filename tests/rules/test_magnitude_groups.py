"""Powers of a scale in a product: q in place of c makes the function (q / c)^p times as large."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from blockbuster.interp.semantics import Float64
from blockbuster.ir.expr import Arg, Const, Size, call
from blockbuster.rules.element_formulas import Formulas
from blockbuster.rules.magnitude_groups import Degree, degree_of, powers_in

X, C, W = Arg(0), Arg(1), Arg(2)
ONE = ["square", "abs", "neg", "reciprocal", "sqrt", "exp"]
TWO = ["mul", "div", "add", "sub"]


def of(expr):
    return degree_of(expr, C, Formulas().reads)


def value(expr, *numbers):
    with np.errstate(all="ignore"):
        return Float64.expression(expr, tuple(map(np.float64, numbers)), {"N": 5}.__getitem__)


formulas = some.recursive(
    some.sampled_from([X, C, C, W, Const(2.0), Const(-0.5), Size("N")]),
    lambda inner: some.one_of(
        some.builds(call, some.sampled_from(ONE), inner),
        some.builds(call, some.sampled_from(TWO), inner, inner),
        some.builds(lambda e, p: call("pow", e, p), inner, some.sampled_from([-1.0, 2.0, 3.0])),
    ),
    max_leaves=6,
)


@given(formulas, some.sampled_from([-2.0, -0.5, 0.25, 3.0]), some.sampled_from([0.5, 2.0]))
def test_another_scale_is_a_power_of_the_ratio(expr, c, q):
    found = of(expr)
    if isinstance(found, str):
        return
    before, after = value(expr, 1.5, c, -0.75), value(expr, 1.5, q, -0.75)
    if np.isfinite(before) and np.isfinite(after):
        factor = (q / c) ** found.signed * abs(q / c) ** found.unsigned
        np.testing.assert_allclose(after, before * factor, rtol=1e-9)


@pytest.mark.parametrize(("expr", "others", "expected"), [
    (call("mul", call("square", call("mul", X, C)), W), {X: 2, W: 1}, Degree(2, 0)),
    (call("abs", call("div", X, C)), {call("abs", X): 1}, Degree(0, -1)),
    (call("sqrt", call("square", C)), {}, Degree(0, 1)),
    (call("pow", call("rsqrt", call("abs", C)), 4.0), {}, Degree(0, -2)),
    (call("add", call("mul", X, C), call("mul", C, call("mul", 3.0, X))), {X: 1}, Degree(1, 0)),
    (call("mul", C, call("exp", X)), {call("exp", X): 1}, Degree(1, 0)),
])  # fmt: skip
def test_powers(expr, others, expected):
    assert of(expr) == expected
    assert {
        base: p for base, p in powers_in(expr).items() if base not in (C, call("abs", C))
    } == others


@pytest.mark.parametrize(("expr", "reason"), [
    (call("add", call("mul", X, C), 1.0), "adds terms that do not grow with it alike"),
    (call("exp", C), "takes exp of it"),
    (call("sqrt", call("mul", X, C)), "takes a root of what has its sign"),
    (call("where", X, C, 0.0), "hides it in where, and it may be infinite"),
    (call("pow", C, X), "takes pow of it"),
    (call("pow", C, float("inf")), "takes pow of it"),
])  # fmt: skip
def test_what_is_no_product(expr, reason):
    assert of(expr) == reason
