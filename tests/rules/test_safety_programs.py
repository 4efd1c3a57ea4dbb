"""The safety pass on single programs: each keeps its values, at moderate and at extreme inputs."""

import re
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.interp.evaluate import evaluate
from blockbuster.interp.semantics import Float32, Float64
from blockbuster.ir.list_only import list_only
from blockbuster.ir.parse import parse
from blockbuster.ir.verify import verify
from blockbuster.rules import overflowing, safe
from blockbuster.testing.matrices import MatrixPrograms
from tests.rules.numbers import assert_same_numbers
from tests.rules.test_safety import (
    EXP,
    ROWS,
    SUM,
    forms,
    out,
    row_program,
    softmax,
)

PROGRAMS = {
    "logsumexp": f"""{EXP} {SUM}
        L = map M (t in !T) {{ l = log(t) yield l }} return L""",
    "log_softmax": f"""{EXP} {SUM}
        L = map M (t in !T) {{ l = -log(t) yield l }}
        Y = map M (x in !X, l in !L) {{
          y = map N (b in !x, c = l) {{ z = row_shift(b, c) yield z }}
          yield y
        }} return Y""",
    "exp_over_sum_of_another_exp": f"""{EXP} {SUM}
        F = map M (x in !X) {{ y = map N (b in !x) {{ c = exp(b * 0.5) yield c }} yield y }}
        R = map M (t in !T) {{ r = 1 / t yield r }}
        Y = map M (f in !F, r in !R) {{
          y = map N (b in !f, c = r) {{ z = row_scale(b, c) yield z }}
          yield y
        }} return Y""",
    "powers_of_a_sum": f"""{EXP} {SUM}
        L = map M (t in !T) {{ l = sqrt(t) * square(rsqrt(t)) * 3 - reciprocal(t) * t yield l }}
        return L""",
    "masked_before_the_sum": f"""
        E = map M (x in !X) {{
          y = map N (b in !x) {{ c = where(b > 0, exp(b), 0) yield c }} yield y
        }}
        {SUM}
        R = map M (t in !T) {{ r = recip0(t) yield r }}
        Y = map M (e in !E, r in !R) {{
          y = map N (b in !e, c = r) {{ z = row_scale(b, c) yield z }}
          yield y
        }} return Y""",
    "choice_of_two_exps": f"""
        E = map M (x in !X) {{
          y = map N (b in !x) {{ c = where(b > 0, exp(b), exp(b * 2)) yield c }} yield y
        }}
        {SUM}
        L = map M (t in !T) {{ l = log(t) yield l }} return L""",
    "sum_of_two_exps": f"""
        E = map M (x in !X) {{ y = map N (b in !x) {{ c = exp(b) + exp(-b) yield c }} yield y }}
        {SUM}
        R = map M (t in !T) {{ r = 1 / t yield r }}
        Y = map M (e in !E, r in !R) {{
          y = map N (b in !e, c = r) {{ z = row_scale(b, c) yield z }}
          yield y
        }} return Y""",
    "maximum_of_exps": """
        E = map M (x in !X) {
          y = map N (b in !x) { c = exp(b) d = row_max(c) yield max d }
          yield y
        }
        Y = map M (e in !E) { y = log(e) yield y } return Y""",
    "cast_in_between": f"""
        E = map M (x in !X) {{
          y = map N (b in !x) {{ c = exp(b) d = cast float32 (c) yield d }} yield y
        }}
        {SUM}
        L = map M (t in !T) {{ l = log(t) yield l }} return L""",
    "relabeled_list": f"""{EXP}
        F = relabel M -> M' (!E)
        T = map M' (e in !F) {{
          z = map N (b in !e) {{ c = row_sum(b) yield +c }}
          yield z
        }}
        L = map M' (t in !T) {{ l = log(t) yield l }} return L""",
    "list_order": f"""{EXP}
        F = transpose N,M[M,N] (!E)
        G = transpose M,N[M,N] (!F)
        T = map M (e in !G) {{
          z = map N (b in !e) {{ c = row_sum(b) yield +c }}
          yield z
        }}
        L = map M (t in !T) {{ l = log(t) yield l }} return L""",
}
EXTREME = (
    "logsumexp", "log_softmax", "masked_before_the_sum", "choice_of_two_exps", "list_order",
    "relabeled_list",
)  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_safe_forms_compute_the_same_at_moderate_inputs(name):
    graph = row_program(PROGRAMS[name])
    for form in forms(graph):
        made = safe(form)
        verify(made)
        assert parse(made.show()) == made
        assert_same_numbers(graph, made, rtol=1e-6 if "cast" in name else 1e-9)


def oracle(name: str, x: np.ndarray) -> np.ndarray:
    """What the programs compute, stably."""
    top = x.max(axis=1, keepdims=True)
    total = np.log(np.exp(x - top).sum(axis=1, keepdims=True)) + top
    match name:
        case "log_softmax":
            return x - total
        case "masked_before_the_sum":
            return softmax(np.where(x > 0, x, -np.inf))
        case "choice_of_two_exps":
            return oracle("logsumexp", np.where(x > 0, x, 2 * x))
        case _:
            return total[:, 0]


@pytest.mark.parametrize("offset", [0.0, 1e4, -1e4])
@pytest.mark.parametrize("name", EXTREME)
def test_safe_forms_are_right_at_extreme_inputs(name, offset):
    random = np.random.default_rng(7)
    x = random.uniform(-3, 3, (4, 5)) + offset
    for form in forms(row_program(PROGRAMS[name])):
        found = out(safe(form), {"X": x}, Float64, {"M": 2, "N": 3})
        np.testing.assert_allclose(found, oracle(name, x), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("bound", [1.0, 30.0, 1e3])
def test_a_sigmoid_in_terms_of_exp_stays_right(bound):
    graph = row_program(
        "Y = map M (x in !X) { y = map N (b in !x) { c = 1 / (1 + exp(-b)) yield c } yield y } "
        "return Y"
    )
    x = np.linspace(-bound, bound, 12).reshape(3, 4)
    expected = np.where(
        x > 0, 1 / (1 + np.exp(-np.abs(x))), np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x)))
    )

    np.testing.assert_allclose(out(safe(graph), {"X": x}), expected, rtol=1e-9, atol=1e-300)


def test_softmax_over_a_vector():
    graph = parse("""graph(X: N[N]) {
      E = map N (x in !X) { e = exp(x) yield e }
      S = map N (e in !E) { s = row_sum(e) yield +s }
      Y = map N (e in !E, s = S) { y = e / s over [N] yield y }
      return Y
    }""")
    for offset in (0.0, 1e4, -1e4):
        x = np.array([1.0, 2.0, 0.5, -3.0, 2.5]) + offset
        for form in forms(graph):
            found = out(safe(form), {"X": x}, Float64, {"N": 2})
            np.testing.assert_allclose(found, softmax(x), rtol=1e-9)


def test_batch_dims():
    graph = parse("""graph(X: B,M,N[M,N]) {
      Y = map B (xb in !X) {
        E = map M (x in !xb) { y = map N (b in !x) { c = exp(b) yield c } yield y }
        T = map M (e in !E) { z = map N (b in !e) { c = row_sum(b) yield +c } yield z }
        R = map M (t in !T) { r = 1 / t yield r }
        P = map M (e in !E, r in !R) {
          y = map N (b in !e, c = r) { z = row_scale(b, c) yield z }
          yield y
        }
        yield P
      }
      return Y
    }""")
    x = np.random.default_rng(0).uniform(-2, 2, (3, 4, 5)) + np.array([0, 1e4, -1e4])[:, None, None]
    for form in forms(graph):
        found = out(safe(form), {"X": x}, Float64, {"M": 2, "N": 3})
        np.testing.assert_allclose(found, softmax(x), rtol=1e-9)


def test_softmax_of_columns_is_right_at_extreme_inputs():
    """The exponents of elements cross the transpose; those of rows could not."""
    graph = parse("""graph(X: M,N[M,N]) {
      E = map M (x in !X) { y = map N (b in !x) { c = exp(b) yield c } yield y }
      F = transpose N,M[N,M] (!E)
      T = map N (e in !F) { z = map M (b in !e) { c = row_sum(b) yield +c } yield z }
      R = map N (t in !T) { r = 1 / t yield r }
      P = map N (e in !F, r in !R) {
        y = map M (b in !e, c = r) { z = row_scale(b, c) yield z }
        yield y
      }
      return P
    }""")
    x = np.random.default_rng(1).uniform(-5, 5, (4, 5)) + np.array([0, 1e4, -1e4, 5e3, 1e4])
    x[2, 1] = -np.inf
    for form in forms(graph):
        assert overflowing(form)
        assert not overflowing(safe(form))
        found = out(safe(form), {"X": x}, Float32, {"M": 2, "N": 3})
        np.testing.assert_allclose(found, softmax(x.T), rtol=2e-3)


def test_an_exp_that_is_also_a_result_is_returned_as_written():
    graph = parse(f"""{ROWS} {EXP} {SUM}
      R = map M (t in !T) {{ r = 1 / t yield r }}
      P = map M (e in !E, r in !R) {{
        y = map N (b in !e, c = r) {{ z = row_scale(b, c) yield z }}
        yield y
      }}
      return p = P, e = E, t = T
    }}""")
    x = np.array([[1.0, 2.0, 3.0], [1e3, 1001.0, 999.0]])
    for form in forms(graph):
        found = evaluate(safe(form), {"X": x}, blocks={"M": 2, "N": 3})
        np.testing.assert_allclose(found["p"], softmax(x), rtol=1e-9)
        np.testing.assert_array_equal(found["e"], [np.exp(x[0]), [np.inf] * 3])
        np.testing.assert_allclose(found["t"], [np.exp(x[0]).sum(), np.inf], rtol=1e-12)


def test_a_softmax_of_a_softmax():
    once = """{E} = map M (x in !{X}) {{ y = map N (b in !x) {{ c = exp(b) yield c }} yield y }}
      {T} = map M (e in !{E}) {{ z = map N (b in !e) {{ c = row_sum(b) yield +c }} yield z }}
      {P} = map M (e in !{E}, t in !{T}) {{
        r = 1 / t
        y = map N (b in !e, c = r) {{ z = row_scale(b, c) yield z }}
        yield y
      }}
    """
    first = once.format(X="X", E="E", T="T", P="P")
    graph = parse(f"{ROWS} {first} {once.format(X='P', E='F', T='U', P='W')} return W }}")
    x = np.random.default_rng(3).uniform(-3, 3, (4, 5)) + 1e4
    for form in forms(graph):
        assert safe(safe(form)) == safe(form)
        found = out(safe(form), {"X": x}, Float64, {"M": 2, "N": 3})
        np.testing.assert_allclose(found, softmax(softmax(x)), rtol=1e-9)


# random programs --------------------------------------------------------------------------


@settings(max_examples=30)
@given(random=st.randoms(use_true_random=False))
def test_safe_computes_the_same_on_random_programs(random):
    graph = MatrixPrograms(random, whole=False, exponentials=True).graph()
    for form in forms(graph):
        made = safe(form)
        verify(made)
        assert parse(made.show()) == made
        assert safe(made) == made
        assert_same_numbers(form, made, rtol=1e-9)


@pytest.mark.parametrize("seed", [6, 42, 58])
def test_safe_changes_nothing_the_second_time_in_random_programs(seed):
    """Sums made twice become one (6), and roots of joined exponentials stay (42, 58)."""
    for form in forms(MatrixPrograms(Random(seed), whole=False, exponentials=True).graph()):
        made = safe(form)
        assert safe(made) == made


@pytest.mark.parametrize(
    "function",
    [
        lambda x: bb.max(bb.exp(-x), axis=1) * bb.max(bb.exp(-x), axis=1),
        lambda x: bb.min(bb.exp(x), axis=0) * bb.min(bb.exp(x), axis=0),
        lambda x: 1 / bb.square(bb.exp(bb.sum(x, axis=1, keepdims=True))) / bb.exp(x),
    ],
)
def test_safe_changes_no_product_of_exponentials_of_rows_the_second_time(function):
    for form in forms(bb.lower(bb.trace(function, x="M N"))):
        made = safe(form)
        assert safe(made) == made


def test_random_programs_do_have_something_to_make_safe():
    graphs = [MatrixPrograms(Random(s), whole=False, exponentials=True).graph() for s in range(40)]

    assert sum(safe(graph) != graph for graph in graphs) >= 10


# array programs whose exponentials are added up along every kind of axis ------------------------


def gated(x):
    e = bb.exp(x)
    return e * e / (e * e).sum(1)[:, None]


def tanh_in_terms_of_exp(x):
    return (bb.exp(x) - bb.exp(-x)) / (bb.exp(x) + bb.exp(-x))


EVERY_AXIS = {
    "leading axis": (lambda x: bb.softmax(x, axis=0), "B M N"),
    "leading axis, logarithm": (lambda x: bb.logsumexp(x, axis=0), "B M N"),
    "leading axis, both": (lambda x: bb.log_softmax(x, axis=0), "B M N"),
    "middle axis": (lambda x: bb.softmax(x, axis=1), "B M N"),
    "columns": (lambda x: bb.softmax(x, axis=0), "M N"),
    "columns, then rows": (lambda x: bb.softmax(bb.softmax(x, axis=0), axis=1), "M N"),
    "rows and columns": (lambda x: (bb.logsumexp(x, axis=0), bb.logsumexp(x, axis=1)), "M N"),
    "sum of sums": (lambda x: bb.exp(x).sum(1) / bb.exp(x).sum(1).sum(0), "B M N"),
    "squares": (gated, "M N"),
    "tanh": (tanh_in_terms_of_exp, "M N"),
}


@pytest.mark.parametrize("name", EVERY_AXIS)
def test_exponentials_along_any_axis_are_right_in_float32_at_extreme_inputs(name):
    function, dims = EVERY_AXIS[name]
    program = bb.trace(function, x=dims)
    random = np.random.default_rng(5)
    shape = {"B M N": (3, 4, 5), "M N": (4, 5)}[dims]
    x = 150.0 + 20.0 * random.standard_normal(shape)  # exp(150) is infinite in float32 only
    wanted = program.numpy({"x": x})
    for form in forms(bb.lower(program)):
        stable = safe(form)
        verify(stable)
        assert overflowing(stable) == ()
        assert safe(stable) == stable
        found = evaluate(stable, {"x": x}, semantics=Float32, blocks={"M": 2, "N": 3})
        for got, right in zip(found.values(), wanted.values(), strict=True):
            np.testing.assert_allclose(got, right, rtol=2e-3, atol=1e-4)


@pytest.mark.parametrize("name", EVERY_AXIS)
def test_without_the_pass_those_programs_overflow(name):
    function, dims = EVERY_AXIS[name]
    graph = bb.lower(bb.trace(function, x=dims))
    x = np.full((3, 4, 5)[-len(dims.split()) :], 150.0)

    assert overflowing(graph)
    with np.errstate(all="ignore"):
        found = evaluate(graph, {"x": x}, semantics=Float32)
    assert not all(np.isfinite(array).all() for array in found.values())


@pytest.mark.parametrize(
    ("function", "taker"),
    [
        (lambda x: bb.log(1 + bb.exp(x)), "log"),
        (lambda x: bb.exp(x) / (1 + bb.exp(x)), "div"),
        (lambda x: bb.tanh(x) * bb.exp(x) - bb.exp(x), "sub"),
    ],
)
def test_what_stays_unsafe_is_named_with_its_line(function, taker):
    stable = safe(bb.lower(bb.trace(function, x="M N")))

    (sentence,) = overflowing(stable)
    assert re.fullmatch(
        rf"exp \(\S+:\d+\) can overflow: {taker} \(\S+:\d+\) takes it as it is written", sentence
    )


@pytest.mark.parametrize(
    "function",
    [
        lambda x: bb.exp(x),
        lambda x: bb.exp(x).sum(0),
        lambda x: 1 / (1 + bb.exp(-x)),
        lambda x: bb.tanh(bb.exp(x)),
        lambda x: bb.exp(x) @ bb.exp(x).T,
        lambda x: bb.where(x > 0, bb.exp(x), 0.0) * 2 + bb.exp(1.0),
    ],
)
def test_what_only_grows_into_a_result_is_not_named(function):
    assert overflowing(safe(bb.lower(bb.trace(function, x="M N")))) == ()


def test_a_logarithm_of_all_of_a_vector_stays_a_number():
    """As a vector it would say that blocks of A have one element, and kernels would read one."""

    def potentials(c, a):
        f = bb.log_softmax(a) - bb.sum(c, axis=1)
        return f[:, None] * bb.softmax(c - f[:, None], axis=0)

    program = bb.trace(potentials, c="A B", a="A")
    fused = bb.fuse(bb.lower(program), whole=("A",)).final
    given = {"c": np.linspace(-1, 1, 35).reshape(5, 7), "a": np.linspace(0, 2, 5)}

    assert list_only(fused) == list_only(safe(fused)) == ()
    (found,) = evaluate(safe(fused), given, semantics=Float64).values()
    np.testing.assert_allclose(found, program.numpy(given)["out"], rtol=1e-12)
