"""Messages for inputs, sizes and blocks that do not fit a program."""

import numpy as np
import pytest

from blockbuster.interp.evaluate import evaluate
from blockbuster.interp.layout import Layout
from blockbuster.ir.parse import parse

GRAPH = parse("""graph(X: M,K[M,K], Y: N,K[N,K]) {
  U = map M (x in !X) { u = map K (b in !x) { c = exp(b) yield c } yield u }
  V = map N (y in !Y) { v = map K (b in !y) { c = exp(b) yield c } yield v }
  return U, V
}""")
X, Y = np.ones((4, 3)), np.ones((2, 3))


@pytest.mark.parametrize(
    ("inputs", "error", "text"),
    [
        ({"X": X}, ValueError, "missing input Y: the program reads X, Y"),
        ({"X": X, "Y": Y, "Z": Y}, ValueError, "unknown input Z: the program reads X, Y"),
        ({"X": X, "Y": Y[0]}, ValueError, r"^Y has shape \(3,\), expected the axes \(N, K\)"),
        (
            {"X": X, "Y": Y.T},
            ValueError,
            r"^Y has shape \(3, 2\), expected \(N, K\) with K = 3 as in X",
        ),
        ({"X": X, "Y": Y.astype(int)}, TypeError, r"integers .* use \.astype\(float\)"),
        ({"X": X, "Y": Y.tolist()}, TypeError, "input Y is a list, expected a NumPy array"),
        ({"X": X, "Y": Y + 1j}, TypeError, "input Y holds complex128"),
    ],
)
def test_inputs_that_do_not_fit(inputs, error, text):
    with pytest.raises(error, match=text):
        evaluate(GRAPH, inputs)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"sizes": {"L": 3}}, "unknown dim L in sizes; known: M, K, N"),
        ({"sizes": {"M": 5}}, r"^X has shape \(4, 3\), expected \(M, K\) with M = 5 as in sizes"),
        ({"blocks": {"L": 3}}, "unknown dim L in blocks; known: M, K, N"),
        ({"blocks": {"M": 3}}, "dim M of size 4 does not make 3 blocks: blocks of 2 make 2"),
        ({"blocks": {"M": 0}}, "blocks of M is 0, expected at least 1"),
        ({"block_sizes": {"M": 0}}, "block_sizes of M is 0, expected at least 1"),
    ],
)
def test_sizes_and_blocks_that_do_not_fit(given, text):
    with pytest.raises(ValueError, match=text):
        evaluate(GRAPH, {"X": X, "Y": Y}, **given)


def test_a_size_that_shows_in_no_input():
    graph = parse(
        "graph(i: N[N] = index(N)) { Y = map N (x in !i) { y = x + |N| yield y } return Y }"
    )

    with pytest.raises(ValueError, match="the size of N shows in no input"):
        evaluate(graph, {})
    np.testing.assert_array_equal(evaluate(graph, {}, {"N": 2}, {"N": 3})["out"], [3, 4, 5])


def test_inputs_are_left_alone():
    frozen = X.copy()
    frozen.setflags(write=False)

    evaluate(GRAPH, {"X": frozen, "Y": Y}, {"M": 2})


def test_a_list_of_partial_items_is_no_array():
    layout = Layout({"M": 4}, {"M": (range(0, 2), range(2, 4))})
    type = parse("graph(X: M[] = port) { Y = map M (x in !X) { yield x } return Y }").inputs[0].type

    with pytest.raises(ValueError, match="one item per block of M"):
        layout.join([np.zeros(()), np.zeros(())], type, float)
