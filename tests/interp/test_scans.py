"""What scans mean: in both interpreters, in any blocks, and in proofs."""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.interp.semantics import Float64
from blockbuster.ir.parse import parse
from tests.interp.counted import graph_traffic
from tests.interp.plain import plain

FOLDS = {"+": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}
BLOCKS = [(5, 7), (1, 3), (2, 1), (4, 4)]


def program(words, before="a", after="s"):
    """Lines scanned along N, an expression of the elements before and behind."""
    return parse(f"""graph(X: M,N[M,N]) {{
      Y = map M (x in !X) {{
        y = map N (a in !x) {{
          b = {before}
          s = scan {words} (b)
          c = {after}
          yield c
        }}
        yield y
      }}
      return Y
    }}""")


def expected(monoid, back, x):
    x = x[:, ::-1] if back else x
    made = FOLDS[monoid].accumulate(x, 1)
    return made[:, ::-1] if back else made


@pytest.mark.parametrize("back", [False, True], ids=["up", "back"])
@pytest.mark.parametrize("monoid", FOLDS)
def test_blocks_go_on_from_each_other(monoid, back):
    graph = program(f"{'back ' * back}{monoid}", "a * 1", "s * 1")
    x = np.random.default_rng(0).integers(-3, 4, (5, 7)).astype(float)

    for rows, columns in BLOCKS:
        sizes = {"M": rows, "N": columns}
        found = bb.evaluate(graph, {"X": x}, block_sizes=sizes)["out"]
        again = plain(graph, {"X": x}, {"M": 5, "N": 7}, sizes, Float64)["out"]
        np.testing.assert_array_equal(found, expected(monoid, back, x))
        np.testing.assert_array_equal(again, found)


@pytest.mark.parametrize("columns", [0, 1])
def test_short_lines(columns):
    x = np.ones((3, columns))

    found = bb.evaluate(program("+", "a * 2", "s * 1"), {"X": x})["out"]

    np.testing.assert_array_equal(found, 2 * x)


def test_halves_grow_in_float32():
    x = np.full((1, 4096), 1.0)
    found = bb.evaluate(program("+", "a * 1", "s * 1"), {"X": x}, semantics=bb.Float16)["out"]

    assert found[0, -1] == 4096


@pytest.mark.parametrize("back", ["", "back "])
def test_factors_that_all_elements_share_leave_a_sum(back):
    inside, outside = program(f"{back}+", "a * 2", "s * 1"), program(f"{back}+", "a * 1", "s * 2")

    assert bb.prove_equal(inside, outside).equal


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (program("+", "a * 2", "s * 1"), program("max", "a * 2", "s * 1")),
        (program("+", "a * 2", "s * 1"), program("back +", "a * 2", "s * 1")),
        (program("+", "exp(a)", "s * 1"), program("+", "a * 1", "exp(s)")),
        (program("prod", "a * 2", "s * 1"), program("prod", "a * 1", "s * 2")),
    ],
    ids=["monoid", "direction", "function", "factor of a product"],
)
def test_other_scans_are_told_apart(one, other):
    assert not bb.prove_equal(one, other).equal


def test_arithmetic_of_a_scan_is_counted():
    """One operation for each element, beside the two products; by running, and in closed form."""
    graph = program("+", "a * 2", "s * 1")
    sizes, blocks = {"M": 4, "N": 6}, {"M": 2, "N": 3}

    counted, closed = graph_traffic(graph, sizes, blocks), bb.traffic(graph, sizes, blocks)

    assert counted.flops["vector"] == closed.flops["vector"] == 3 * 24
    assert counted.loads == closed.loads
    assert counted.stores == closed.stores
