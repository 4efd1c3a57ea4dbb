"""The closed footprint equals the peak of a run in which every iteration is written out."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.examples import ALL
from blockbuster.interp.binding import dims_of
from blockbuster.interp.setting import Setting
from blockbuster.ir.fitting import fitted
from blockbuster.ir.list_only import list_only
from blockbuster.ir.types import size_class
from blockbuster.rules import PEELING_RULES, RULES, fuse, safe
from blockbuster.selection import closed_traffic
from blockbuster.testing.generators import GENERATORS
from tests.random_programs.strategies import programs
from tests.rules.test_driver_speed import decoder
from tests.selection.unrolled import Unrolled


def three_blocks(graph, step=2):
    """Three equal blocks of every dim: in the middle one everything is held that ever is."""
    single = list_only(graph)
    dims = dict.fromkeys(map(size_class, dims_of(graph)))
    steps = {dim: 1 if dim in single else step for dim in dims}
    sizes = fitted({dim: 3 * steps[dim] for dim in dims}, graph.size_rules)
    return Setting(sizes, {dim: -(-sizes[dim] // 3) if steps[dim] > 1 else 1 for dim in dims})


def footprint(graph, setting):
    return closed_traffic(graph).at(setting.sizes, block_sizes=setting.block_sizes).footprint


def assert_equals_the_peak(graph):
    setting = three_blocks(graph)
    assert footprint(graph, setting) == Unrolled(graph, setting).peak(), graph.show()


@pytest.mark.parametrize("kind", GENERATORS)
@settings(max_examples=25)
@given(data=st.data())
def test_random_programs_and_what_they_fuse_to(kind, data):
    graph = data.draw(programs(kind), label="program")

    for program in (graph, *fuse(graph, RULES).snapshots):
        assert_equals_the_peak(program)


@pytest.mark.parametrize("example", ALL, ids=[example.name for example in ALL])
def test_after_every_step_of_the_papers_examples(example):
    derivation = fuse(bb.lower(example.program()))

    for graph in (derivation.start, *(step.after for step in derivation.steps)):
        assert_equals_the_peak(graph)
    for graph in derivation.snapshots:
        assert_equals_the_peak(safe(graph))


def test_a_decoder_block():
    for graph in fuse(decoder(1)).snapshots:
        assert_equals_the_peak(graph)


def test_first_values_are_held_with_the_totals_that_take_their_place():
    for example in ALL:
        graph = fuse(bb.lower(example.program()), PEELING_RULES).final
        setting = three_blocks(graph)

        assert footprint(graph, setting) >= Unrolled(graph, setting).peak()


def test_a_matmul_by_hand():
    graph = fuse(bb.lower(bb.trace(lambda x, w: x @ w, x="M K", w="K N"))).final
    form = closed_traffic(graph)

    # a block of either operand, their product, and the running total
    assert [*map(str, form.footprint)] == ["F_K*F_M + F_K*F_N + 2*F_M*F_N"]


def test_what_is_dead_is_not_held():
    text = """graph(X: M[M]) {
      Y = map M (x in !X) { a = exp(x) b = exp(a) c = exp(b) yield c }
      return Y
    }"""

    assert [*map(str, closed_traffic(bb.parse(text)).footprint)] == ["2*F_M"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("graph(S: M[]) { s = reduce + M (!S) return s }", "2"),  # the total and one item
        (
            """graph(X: M,K[M,K]) {
              Y = map M (x in !X) {
                y = map K (b in !x) { t = transpose [K,M] (b) s = exp(t) yield s }
                yield y
              }
              return Y
            }""",
            "2*F_K*F_M",  # a transposed block is the block, and lives on under the other name
        ),
    ],
)
def test_what_takes_room(text, expected):
    graph = bb.parse(text)

    assert [*map(str, closed_traffic(graph).footprint)] == [expected]
    assert_equals_the_peak(graph)
