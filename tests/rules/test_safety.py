"""Numerical safety: exponentials as significand-exponent pairs, and what stays as written."""

import numpy as np
import pytest

from blockbuster.interp.evaluate import evaluate
from blockbuster.interp.semantics import Float32, Float64
from blockbuster.ir.graph import Graph
from blockbuster.ir.ops import Accumulate, Map, Rescale
from blockbuster.ir.parse import parse
from blockbuster.ir.verify import verify
from blockbuster.rules import PAPER_RULES, fuse
from blockbuster.rules.centering import centered
from blockbuster.rules.safety import safe
from blockbuster.rules.shifts_back import with_shifts_back
from tests.interp import examples

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


def test_programs_without_exp_are_left_as_they_are():
    for graph in forms(parse(examples.SWIGLU_START)):
        assert safe(graph) == graph


def test_of_a_norm_only_the_sums_and_the_shifts_change():
    for graph in forms(parse(examples.LAYER_NORM_START)):
        assert safe(graph) == centered(with_shifts_back(graph))


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
    assert {r.leads for r in groups[0] if isinstance(r, Rescale)} == {(0,)}


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
