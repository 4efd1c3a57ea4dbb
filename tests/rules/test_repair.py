"""``bb.repair``: what it solves, what it refuses and why, and what it says."""

import subprocess
import sys

import pytest
import sympy as sp

import blockbuster as bb
from tests.rules.dependent import Dependent, rolled

c, c1, c2, c3, r, r1, r2, alpha, beta = sp.symbols("c c1 c2 c3 r r1 r2 alpha beta")
eps, R = sp.symbols("eps R", positive=True)
least = sp.Symbol("r", nonnegative=True)

SOLVED = {
    "softmax": (sp.exp(c - r), [r], [c], "+", "t*exp(r - r')"),
    "norm": ((c / r) ** 2, [r], [c], "+", "r**2*t/r'**2"),
    "a power and its quotient": (c**3 / r, [r], [c], "+", "r*t/r'"),
    "RMSNorm, then its maximum": (
        c / sp.sqrt(least + eps), [least], [c], "max", "t*sqrt(eps + r)/sqrt(eps + r')",
    ),
    "Performer's features": (
        sp.exp(c1 - r1 - beta * c2), [r1], [c1, c2], "+", "t*exp(r1 - r1')",
    ),
    "Performer's product": (
        alpha * c3 * sp.exp(c1 - r1 - beta * c2), [r1], [c1, c2, c3], "+", "t*exp(r1 - r1')",
    ),
    "Performer's quotient": (
        alpha * sp.exp(c1 - r1 - beta * c2 * c3) / r2, [r1, r2], [c1, c2, c3], "+",
        "r2*t*exp(r1 - r1')/r2'",
    ),
    "attention": (c2 * sp.exp(c - r) / R, [r, R], [c, c2], "+", "R*t*exp(r - r')/R'"),
    "by a change of variables": (
        sp.exp(r - sp.Max(c, 0) ** 2), [r], [c], "+", "t*exp(-r + r')",
    ),
    "a sum, then a quotient": (c / r, [r], [c], "+", "r*t/r'"),
    "a masked sum": (
        sp.Piecewise((sp.exp(c - r), c2 < 3), (0, True)), [r], [c, c2], "+", "t*exp(r - r')",
    ),
    "a temperature per row": (sp.exp((c - r) / beta), [r], [c], "+", "t*exp(r/beta - r'/beta)"),
    "terms that share an element": (c * r + c, [r], [c], "+", "t*(r' + 1)/(r + 1)"),
    "a rising function": (sp.tanh(c - r), [r], [c], "max", "tanh(r - r' + atanh(t))"),
    "an exponential": (sp.exp(c * least), [least], [c], "max", "exp(r'*log(t)/r)"),
    "a shift": (c + r, [r], [c], "max", "-r + r' + t"),
    "a cube": ((c - r) ** 3, [r], [c], "min", "(r - r' + Abs(t)**(1/3)*sign(t))**3"),
}  # fmt: skip
COUNT, FACTOR, ORDER = "their number, which h is not given", "only a factor distributes", "order"
REFUSED = {
    "exp(c r)": (sp.exp(c * r), [r], [c], "+", FACTOR),
    "Welford's squares": ((c - r) ** 2, [r], [c], "+", FACTOR),
    "tanh": (sp.tanh(c - r), [r], [c], "+", FACTOR),
    "a count": (c + r, [r], [c], "+", COUNT),
    "a weighted count": (sp.exp(c) - 2 * r, [r], [c], "+", COUNT),
    "another element remains": (sp.exp(c - c2 * r), [r], [c, c2], "+", FACTOR),
    "one of two producers": (c2 * sp.exp(c1 - r1) + r2, [r1, r2], [c1, c2], "+", FACTOR),
    "a sign that is not known": (c * r, [r], [c], "max", ORDER),
    "distances": (sp.Abs(c - r), [r], [c], "max", ORDER),
    "an order that changes": (c1 * least + c2, [least], [c1, c2], "min", ORDER),
    "what a maximum hides": (sp.Max(c, r), [r], [c], "max", ORDER),
}


@pytest.mark.parametrize("name", SOLVED)
def test_solved(name):
    g, producers, elements, f, h = SOLVED[name]
    found = bb.repair(g, producers=producers, elements=elements, f=f)

    assert (found.ok, str(found.h)) == (True, h)
    case = Dependent("", g, tuple(producers), tuple(elements), f)
    total, expected = rolled(case, found)
    assert abs(total - expected) < 1e-20


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    g, producers, elements, f, reason = REFUSED[name]
    found = bb.repair(g, producers=producers, elements=elements, f=f)

    assert (found.ok, found.answer, found.h) == (False, "no", None)
    assert reason in found.reason
    first, second = found.points
    assert first != second
    assert {*first} == {*producers, *found.changed, *elements}


def test_unknown_is_refused():
    x, s = sp.symbols("x s", positive=True)
    found = bb.repair(x / (1 + x * s), [s], [x], "max")

    assert (found.ok, found.answer) == (False, "unknown")
    assert found.reason == "elements enter g in several places, and their part does not come apart"


def test_what_is_no_function_of_sympys_is_unknown():
    found = bb.repair(sp.Function("f")(c - r), [r], [c])

    assert (found.answer, found.reason) == (
        "unknown", "g is no number at any of the points of its domain that were tried",
    )  # fmt: skip


def test_domains():
    even = sp.Symbol("n", even=True)
    least = sp.Symbol("r", positive=True)

    assert bb.repair((-1) ** even * c * least, [least], [c, even], "max").ok
    assert bb.repair(c * sp.Symbol("i", imaginary=True), [c], [], "+").answer == "unknown"


def test_facts_of_order():
    distance = sp.Abs(c - r)

    assert not bb.repair(distance, [r], [c], "max").ok
    assert str(bb.repair(distance, [r], [c], "max", facts=[sp.Le(c, r)]).h) == "-r + r' + t"
    assert COUNT in bb.repair(distance, [r], [c], "+", facts=[sp.Ge(r, c)]).reason
    assert str(bb.repair(sp.Max(c, r) * c2, [r], [c, c2], facts=[sp.Le(c, r)]).h) == "r'*t/r"
    assert str(bb.repair(sp.Min(c, r) * c2, [r], [c, c2], facts=[sp.Ge(c, r)]).h) == "r'*t/r"


def test_facts_hold_in_the_points_of_a_refusal():
    found = bb.repair((c - r) ** 2 * c2, [r], [c, c2], facts=[sp.Le(c, r)])

    assert found.answer == "no"
    assert all(p[c] <= min(p[r], p[found.changed[0]]) for p in found.points)


def test_where_it_divides():
    positive = sp.Symbol("r", positive=True)

    assert bb.repair(c * r, [r], [c]).needs == (sp.Ne(r, 0),)
    assert bb.repair(c * positive, [positive], [c]).needs == ()
    assert [str(need) for need in bb.repair(c / r, [r], [c]).needs] == ["Ne(r', 0)"]
    assert bb.repair(c * r + c, [r], [c]).needs == (sp.Ne(r + 1, 0),)


def test_names_that_are_taken():
    t, prime = sp.symbols("t t'")
    found = bb.repair(sp.exp(c - t) * prime, [t], [c])

    assert str(found) == "h(t_, t, t'_) = t_*exp(t - t'_)"


def test_the_same_form_is_answered_once():
    from blockbuster.rules.answer import answered

    x, y = sp.symbols("x y")
    bb.repair(sp.sinh(c) * r + sp.sinh(c), [r], [c])
    before = answered.cache_info()
    found = bb.repair(sp.sinh(x) * y + sp.sinh(x), [y], [x])
    after = answered.cache_info()

    assert (after.hits, after.misses) == (before.hits + 1, before.misses)
    assert str(found.h) == "t*(y' + 1)/(y + 1)"


def test_notebooks_show_a_formula():
    assert bb.repair(c / r, [r], [c])._repr_latex_() == (
        r"$\displaystyle h(t, r, r') = \frac{r t}{r'},\quad r' \neq 0$"
    )
    assert r"\text{no: " in bb.repair(sp.exp(c * r), [r], [c])._repr_latex_()


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (("exp(c - r)", [r], [c]), TypeError, r"g has to be an expression of SymPy"),
        ((c - r, ["r"], [c]), TypeError, r"producers have to be symbols"),
        ((c - r, [r], [c + 1]), TypeError, r"elements have to be symbols"),
        ((c - r, [r], [c, r]), ValueError, r"a symbol is a producer or an element, not both"),
        ((c - r, [r], [c], "mean"), ValueError, r"f has to be one of '\+', 'max', 'min'"),
    ],
)
def test_wrong_arguments(arguments, error, words):
    with pytest.raises(error, match=words):
        bb.repair(*arguments)


@pytest.mark.parametrize("fact", [sp.Lt(c, r), sp.Le(r, 3), sp.Le(c, c + r), sp.Le(2 * c, r), c])
def test_wrong_facts(fact):
    with pytest.raises(ValueError, match="a fact compares one element with what bounds it"):
        bb.repair(c - r, [r], [c], facts=[fact])


def test_the_name_alone_loads_no_sympy():
    code = "import sys, blockbuster as bb; bb.repair, bb.Repair; print('sympy' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert said.stdout == "False\n"
