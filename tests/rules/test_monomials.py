"""Products of powers: q in place of c makes such a function (q / c)^p times what it was."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from blockbuster.interp.semantics import Float64
from blockbuster.ir.expr import Arg, Const, Size, call
from blockbuster.rules.element_formulas import Formulas
from blockbuster.rules.monomials import Monomial, NotProductError, Products

X, C, W = Arg(0), Arg(1), Arg(2)
ONE = ["square", "abs", "neg", "reciprocal", "sqrt", "exp"]
TWO = ["mul", "div", "add", "sub"]


def of(expr):
    return Products(C, Formulas().reads).of(expr)


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
    try:
        found = of(expr)
    except NotProductError:
        return
    before, after = value(expr, 1.5, c, -0.75), value(expr, 1.5, q, -0.75)
    if np.isfinite(before) and np.isfinite(after):
        factor = (q / c) ** found.signed * abs(q / c) ** found.unsigned
        np.testing.assert_allclose(after, before * factor, rtol=1e-9)


@pytest.mark.parametrize(("expr", "expected"), [
    (call("mul", call("square", call("mul", X, C)), W), Monomial({X: 2, W: 1}, 2)),
    (call("abs", call("div", X, C)), Monomial({X: 1}, 0, -1)),
    (call("sqrt", call("square", C)), Monomial({}, 0, 1)),
    (call("pow", call("rsqrt", call("abs", C)), 4.0), Monomial({}, 0, -2)),
    (call("add", call("mul", X, C), call("mul", C, call("mul", 3.0, X))), Monomial({X: 1}, 1)),
    (call("mul", C, call("exp", X)), Monomial({call("exp", X): 1}, 1)),
])  # fmt: skip
def test_powers(expr, expected):
    assert of(expr) == expected


@pytest.mark.parametrize(("expr", "reason"), [
    (call("add", call("mul", X, C), 1.0), "adds terms that do not grow with it alike"),
    (call("exp", C), "takes exp of it"),
    (call("sqrt", call("mul", X, C)), "takes a root of what has its sign"),
    (call("where", X, C, 0.0), "hides it in where, and it may be infinite"),
    (call("pow", C, X), "takes pow of it"),
    (call("pow", C, float("inf")), "takes pow of it"),
])  # fmt: skip
def test_what_is_no_product(expr, reason):
    with pytest.raises(NotProductError, match=reason):
        of(expr)
