"""What keeps a rule from a wrong rewriting where no golden case can say it: types and verification.

Preconditions with a reason in words are golden cases; these are the ones that cannot be broken in a
well-formed graph, and what happens to a rule that is applied all the same.
"""

import pytest

from blockbuster.errors import VerifyError
from blockbuster.ir.builder import Builder
from blockbuster.ir.expr import Arg, call
from blockbuster.ir.graph import Graph, Value
from blockbuster.ir.ops import Collect, Elementwise, Functional, Map
from blockbuster.ir.parse import parse
from blockbuster.ir.types import Type
from blockbuster.ir.verify import verify
from blockbuster.rules import (
    DuplicateScale,
    ExtendMap,
    FuseElementwise,
    FuseMaps,
    FuseReduction,
    FuseSiblings,
    SwapScaleDot,
    SwapShiftDot,
    reasons,
)
from blockbuster.rules.base import Match
from tests.rules.golden import GOLDEN, assert_rewritten_well, read_case
from tests.rules.numbers import assert_same_numbers


def before(name: str) -> Graph:
    """The program of a golden case."""
    return parse(read_case(GOLDEN / f"{name}.bb").before)


def list_read_whole() -> Graph:
    """T = map M { 2 x }, and Y = map M (t = !T) that reads the list T whole: not well formed."""
    builder = Builder()
    x = builder.input(Type(("M",), ("K",)), hint="X")
    body = Builder()
    (double,) = body.add(Elementwise(call("mul", Arg(0), 2)), body.input(Type((), ("K",))))
    (t,) = builder.add(Map("M", body.finish(double), (True,), (Collect(),)), x, hints=("T",))
    inner = Builder()
    kept = inner.input(Type(("M",), ("K",)))
    op = Map("M", inner.finish(kept), (False,), (Collect(),))
    (y,) = builder.add(op, t, hints=("Y",))
    return builder.finish(y)


def test_a_list_read_whole_by_a_map_over_its_dim_is_no_program():
    with pytest.raises(VerifyError, match="is passed whole into a map over M"):
        verify(list_read_whole())


def test_fuse_maps_refuses_a_list_read_whole():
    assert reasons(FuseMaps(), list_read_whole()) == [
        "T is passed whole to Y: every iteration reads all of it"
    ]


def test_siblings_cannot_share_a_list_that_one_iterates_and_the_other_reads_whole():
    with pytest.raises(VerifyError, match="is passed whole into a map over M"):
        parse("""graph(X: M[K] = port) {
          A = map M (x in !X) { a = x + 1 yield a }
          B = map M (y = !X) { yield y }
          return A, B
        }""")


@pytest.mark.parametrize("case", ["indirect_path", "indirect_path_through_a_map", "relabeled_list"])
def test_fusing_along_an_indirect_path_makes_a_cycle(case):
    graph = before(f"fuse_maps/{case}")
    maps = [position for position, _ in graph.of_type(Map)]

    with pytest.raises(VerifyError, match="cycle"):
        FuseMaps().apply(Match(FuseMaps(), graph, {"producer": maps[0], "consumer": maps[-1]}))


def test_fusing_dependent_siblings_makes_a_cycle():
    graph = before("fuse_siblings/depends_through_a_path")
    first, second = (position for position, _ in graph.of_type(Map))

    with pytest.raises(VerifyError, match="cycle"):
        FuseSiblings().apply(Match(FuseSiblings(), graph, {"first": first, "second": second}))


def test_siblings_need_something_to_share():
    graph = parse("""graph(X: M[M], Y: M[M]) {
      A = map M (x in !X) { a = x + 1 yield a }
      B = map M (y in !Y) { b = y * 2 yield b }
      return A, B
    }""")

    assert FuseSiblings().match(graph) is None
    assert reasons(FuseSiblings(), graph) == []


def test_a_matmul_with_itself_is_read_through_a_relabeled_view():
    with pytest.raises(VerifyError, match="both operands of dot have rows M: relabel one"):
        parse("""graph(X: K[M,K] = port, c: [M]) {
          S = map K (x in !X, v = c) { s = row_scale(x, v) yield s }
          G = map K (x in !X, s in !S) { g = dot(x, s) yield +g }
          return G
        }""")


def test_a_scale_cannot_leave_the_right_operand_of_a_gram_matrix():
    """With fresh dims the wrong result has other types: diag(c) stands on the wrong side."""
    with pytest.raises(
        VerifyError, match=r"operand 1 of row_scale has axes \[M'\], expected \[M\]"
    ):
        parse("""graph(X: K[M,K] = port, Y: K[M',K] = port, c: [M']) {
          G = map K (x in !X, y in !Y) { g = dot(x, y) yield +g }
          Z = row_scale(G, c)
          return Z
        }""")


def test_two_sums_of_one_list_become_one_result():
    graph = parse("""graph(X: H[M] = port, Z: H[M] = port) {
      E = map H (x in !X) { e = square(x) yield e }
      s = reduce + H (!E)
      t = reduce + H (!E)
      y = mul(s, t)
      return y
    }""")
    fused = graph
    for _ in range(2):
        fused = FuseReduction().apply(FuseReduction().match(fused))

    assert fused == parse("""graph(X: H[M] = port, Z: H[M] = port) {
      s = map H (x in !X) { e = square(x) yield +e }
      y = mul(s, s)
      return y
    }""")
    assert_same_numbers(graph, fused)


def test_three_matmuls_need_two_copies():
    graph = before("duplicate_scale/three_matmuls")
    count = 0
    while (match := DuplicateScale().match(graph)) is not None:
        after = DuplicateScale().apply(match)
        assert_rewritten_well(DuplicateScale(), graph, after)
        graph, count = after, count + 1

    assert count == 2
    assert len(list(SwapScaleDot().matches(graph))) == 3


@pytest.mark.parametrize(
    ("case", "witness"),
    [
        ("a_pulled_map_feeds_an_inner_one", "extend L for (a) N<square(x) row_sum> -> N<dot>"),
        ("b_both_read_an_input", "extend N for (b) K<dot> | K<row_sum>"),
        ("c_both_read_a_node", "extend L for (c) N<row_scale dot> | N<row_scale row_max>"),
    ],
)
def test_extend_map_says_which_maps_will_meet(case, witness):
    match = ExtendMap().match(before(f"extend_map/{case}"))

    assert ExtendMap().describe(match) == witness


@pytest.mark.parametrize(
    ("rule", "case"),
    [
        (FuseMaps(), "fuse_maps/two_lists"),
        (FuseSiblings(), "fuse_siblings/shared_list"),
        (FuseReduction(), "fuse_reduction/two_reductions"),
        (SwapScaleDot(), "swap_scale_dot/accumulated"),
        (SwapShiftDot(), "swap_shift_dot/accumulated"),
        (DuplicateScale(), "duplicate_scale/two_matmuls"),
        (FuseElementwise(), "fuse_elementwise/several_operands"),
        (ExtendMap(), "extend_map/accumulated_results"),
    ],
)
def test_rules_only_read_what_they_match(rule, case):
    graph, again = before(case), before(case)

    matches = list(rule.matches(graph))
    for match in matches:
        rule.apply(match)

    assert matches
    assert graph == again
    assert graph.show() == again.show()


def test_product_and_sum_of_table_1_stay_separate_operators():
    assert Functional("mul") != Elementwise(call("mul", Arg(0), Arg(1)))
    assert FuseElementwise().match(before("fuse_elementwise/product_is_not_elementwise")) is None


def test_a_match_names_its_values():
    match = FuseReduction().match(before("fuse_reduction/only_reader"))

    assert match.value("map") == Value(0)
    assert match.value("reduction") == Value(1)
