"""Numerical safety: exponentials as significand-exponent pairs, and what stays as written."""

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blockbuster.interp.evaluate import evaluate
from blockbuster.interp.semantics import Float32, Float64
from blockbuster.ir.graph import Graph
from blockbuster.ir.ops import Accumulate, Map, Rescale
from blockbuster.ir.parse import parse
from blockbuster.ir.verify import verify
from blockbuster.rules import PAPER_RULES, fuse
from blockbuster.rules.safety import safe
from blockbuster.testing.matrices import MatrixPrograms
from tests.interp import examples
from tests.rules.numbers import assert_same_numbers

BLOCKS = {"M": 2, "N": 3, "D": 2, "L": 2}
SHAPES = {"Q": (5, 4), "KT": (7, 4), "VT": (3, 7)}
ROWS = "graph(X: M,N[M,N]) {"
EXP = "E = map M (x in !X) { y = map N (b in !x) { c = exp(b) yield c } yield y }"
SUM = """T = map M (e in !E) {
  y = map N (b in !e) { c = row_sum(b) yield c }
  z = reduce + N (!y)
  yield z
}"""


def attention(*, masked: bool = False) -> Graph:
    """Unfused attention; masked: a bias is added to the scores, and a row may be absent."""
    text = examples.ATTENTION_START
    if masked:
        text = text.replace("VT: L,N[L,N])", "VT: L,N[L,N], B: M,N[M,N])")
        text = text.replace(
            "E = map M (x in !A) { y = map N (b in !x) { c = exp(b)  yield c }  yield y }",
            """E = map M (x in !A, m in !B) {
              y = map N (b in !x, mm in !m) { c = exp(b + mm)  yield c }
              yield y
            }""",
        ).replace("reciprocal(x)", "recip0(x)")
    return parse(text)


def softmax(scores: np.ndarray) -> np.ndarray:
    """Stable, in float64; zero on a row of only -inf."""
    scores = scores.astype(float)
    top = scores.max(axis=-1, keepdims=True)
    powers = np.where(np.isneginf(scores), 0.0, np.exp(scores - np.where(np.isinf(top), 0, top)))
    total = powers.sum(axis=-1, keepdims=True)
    return np.divide(powers, total, out=np.zeros_like(powers), where=total != 0)


def attended(q, kt, vt, bias=0.0) -> np.ndarray:
    """Attention in float64."""
    return softmax(q @ kt.T / np.sqrt(q.shape[1]) + bias) @ vt.T


def arrays(seed: int = 0, scale: float = 1.0) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    given = {name: random.standard_normal(shape) for name, shape in SHAPES.items()}
    return given | {"Q": given["Q"] * scale}


def forms(graph: Graph) -> list[Graph]:
    """The program unfused, and each snapshot."""
    return [graph, *fuse(graph, PAPER_RULES).snapshots]


def out(graph: Graph, inputs, semantics=Float64, blocks=None) -> np.ndarray:
    """The one output of a program."""
    return evaluate(graph, inputs, blocks=blocks, semantics=semantics)["out"]


def row_program(body: str) -> Graph:
    """A program over the rows of X."""
    return parse(f"{ROWS} {body} }}")


# what the pass makes ----------------------------------------------------------------------


@pytest.mark.parametrize("form", range(3))
def test_safe_changes_nothing_the_second_time(form):
    graph = safe(forms(attention())[form])

    assert safe(graph) == graph
    verify(graph)


@pytest.mark.parametrize("text", [examples.LAYER_NORM_START, examples.SWIGLU_START])
def test_programs_without_exp_are_left_as_they_are(text):
    for graph in forms(parse(text)):
        assert safe(graph) == graph


def test_fused_attention_has_one_running_maximum_for_two_sums():
    graph = safe(fuse(attention(), PAPER_RULES).final)
    groups = [
        op.results
        for _, level in graph.walk()
        for _, op in level.of_type(Map)
        if any(isinstance(r, Rescale) for r in op.results)
    ]

    assert len(groups) == 1
    assert [type(result) for result in groups[0]] == [Accumulate, Rescale, Rescale]
    assert groups[0][0] == Accumulate("max")
    assert {r.lead for r in groups[0] if isinstance(r, Rescale)} == {0}


def test_fused_attention_listing(golden):
    golden("listings/safe_attention.bb", safe(fuse(attention(), PAPER_RULES).final).show())


def test_nodes_that_the_pass_adds_name_it():
    graph = safe(fuse(attention(), PAPER_RULES).final)
    rules = [node.origin.rule for _, level in graph.walk() for node in level.nodes]

    assert "safe" in rules


@pytest.mark.parametrize(
    "body",
    [
        f"{EXP} return E",
        "Y = map M (x in !X) { y = map N (b in !x) { c = 1 + exp(b) yield c } yield y } return Y",
        "Y = map M (x in !X) { y = map N (b in !x) { c = 1 / (1 + exp(-b)) yield c } yield y } "
        "return Y",
        "Y = map M (x in !X) { y = map N (b in !x) { c = tanh(exp(b)) yield c } yield y } return Y",
        "Y = map M (x in !X) { y = map N (b in !x) { c = exp(1) + b yield c } yield y } return Y",
    ],
)
def test_an_exp_that_nobody_sums_stays_as_written(body):
    graph = row_program(body)

    assert safe(graph) == graph


# extreme scores ---------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1.0, 1e2, 1e4])
@pytest.mark.parametrize("form", range(3))
def test_attention_is_right_in_float32_at_any_scale(form, scale):
    inputs = arrays(1, scale)
    graph = safe(forms(attention())[form])

    found = out(graph, inputs, Float32, BLOCKS)

    np.testing.assert_allclose(found, attended(inputs["Q"], inputs["KT"], inputs["VT"]), rtol=1e-3)


@pytest.mark.parametrize("offset", [1e4, -1e4, 100.0])
@pytest.mark.parametrize("form", range(3))
def test_attention_is_right_in_float32_at_any_offset(form, offset):
    inputs = arrays(2) | {"B": np.full((5, 7), offset)}
    graph = safe(forms(attention(masked=True))[form])
    expected = attended(inputs["Q"], inputs["KT"], inputs["VT"])

    found = out(graph, inputs, Float32, BLOCKS)

    np.testing.assert_allclose(found, expected, rtol=3e-3, atol=1e-3)


def test_the_unsafe_form_fails_where_the_safe_one_is_right():
    inputs = arrays(1, 1e4)

    assert np.isnan(out(attention(), inputs, Float32)).any()


@pytest.mark.parametrize("form", range(3))
def test_a_fully_masked_row_is_zero_and_harms_no_other(form):
    bias = np.zeros((5, 7))
    bias[1] = -np.inf
    bias[3, :5] = -np.inf
    bias[4, 5:] = -np.inf
    inputs = arrays(3) | {"B": bias}
    graph = safe(forms(attention(masked=True))[form])

    for blocks in (None, BLOCKS, {"M": 5, "N": 7}):
        found = out(graph, inputs, Float64, blocks)
        expected = attended(inputs["Q"], inputs["KT"], inputs["VT"], bias)
        assert (found[1] == 0).all()
        np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("form", range(3))
def test_rows_far_apart_in_one_block(form):
    """An exponent shared by the block would make the second row 0/0."""
    graph = forms(attention(masked=True))[form]
    bias = np.array([[0.0, 1.0], [-200.0, -199.0]])
    inputs = {"Q": np.zeros((2, 1)), "KT": np.zeros((2, 1)), "VT": np.eye(2), "B": bias}

    found = out(safe(graph), inputs, Float32)

    np.testing.assert_allclose(found, softmax(bias), rtol=1e-6)


@pytest.mark.parametrize("form", range(3))
def test_a_nan_stays_in_its_row(form):
    inputs = arrays(4)
    inputs["Q"][2, 1] = np.nan
    found = out(safe(forms(attention())[form]), inputs, Float64, BLOCKS)

    assert np.isnan(found[2]).all()
    assert np.isfinite(np.delete(found, 2, axis=0)).all()


@pytest.mark.parametrize("form", range(3))
def test_an_infinite_score_spoils_its_row_only(form):
    bias = np.zeros((5, 7))
    bias[2, 3] = np.inf
    inputs = arrays(5) | {"B": bias}

    found = out(safe(forms(attention(masked=True))[form]), inputs, Float64, BLOCKS)

    assert np.isnan(found[2]).all()
    assert np.isfinite(np.delete(found, 2, axis=0)).all()


# other programs with exp ------------------------------------------------------------------

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
EXTREME = ("logsumexp", "log_softmax", "masked_before_the_sum", "list_order", "relabeled_list")


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


def test_softmax_of_columns_is_right_at_moderate_inputs():
    """Exponents belong to rows: what is summed along columns stays as written."""
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
    x = np.random.default_rng(1).uniform(-5, 5, (4, 5))
    assert safe(graph) == graph
    for form in forms(graph):
        found = out(safe(form), {"X": x}, Float64, {"M": 2, "N": 3})
        np.testing.assert_allclose(found, softmax(x.T), rtol=1e-9)


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


def test_random_programs_do_have_something_to_make_safe():
    graphs = [MatrixPrograms(Random(s), whole=False, exponentials=True).graph() for s in range(40)]

    assert sum(safe(graph) != graph for graph in graphs) >= 10
