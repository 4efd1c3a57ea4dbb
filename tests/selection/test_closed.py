"""Closed forms equal what the interpreter counts: loads, stores, elements, dots and flops."""

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.examples import ALL
from blockbuster.interp.binding import dims_of
from blockbuster.interp.observers import Tensor
from blockbuster.interp.setting import Setting
from blockbuster.interp.setting import settings as sizes_and_blocks_for
from blockbuster.ir.fitting import fitted
from blockbuster.ir.list_only import list_only
from blockbuster.ir.ops import Map
from blockbuster.ir.types import size_class
from blockbuster.rules import PAPER_RULES, PEELING_RULES, RULES, fuse, safe
from blockbuster.selection import Symbol, closed_traffic
from blockbuster.testing.generators import GENERATORS
from tests.frontend.programs import PROGRAMS
from tests.parameters import one_in
from tests.random_programs.strategies import programs, sizes_and_blocks
from tests.rules.test_driver_speed import decoder
from tests.selection.counting import assert_equals_the_count

RULE_SETS = {"paper": PAPER_RULES, "ours": RULES, "peeling": PEELING_RULES}


def some_settings(graph, count=2, seed=0):
    return sizes_and_blocks_for(graph, graph, count, np.random.default_rng(seed))


@pytest.mark.parametrize("kind", GENERATORS)
@given(data=st.data())
def test_random_programs(kind, data):
    graph = data.draw(programs(kind), label="program")

    assert_equals_the_count(graph, data.draw(sizes_and_blocks(graph), label="setting"))


@pytest.mark.parametrize("rules", RULE_SETS)
@settings(max_examples=20)
@given(data=st.data())
def test_random_programs_fused(rules, data):
    graph = data.draw(programs(data.draw(st.sampled_from(list(GENERATORS)))), label="program")
    setting = data.draw(sizes_and_blocks(graph), label="setting")

    for snapshot in fuse(graph, RULE_SETS[rules]).snapshots:
        assert_equals_the_count(snapshot, setting)


@pytest.mark.parametrize("rules", RULE_SETS)
@pytest.mark.parametrize("example", ALL, ids=[example.name for example in ALL])
def test_after_every_step_of_the_papers_examples(example, rules):
    derivation = fuse(bb.lower(example.program()), RULE_SETS[rules])

    for graph in (derivation.start, *(step.after for step in derivation.steps)):
        assert_equals_the_count(graph, *some_settings(graph))
    for graph in derivation.snapshots:
        assert_equals_the_count(safe(graph), *some_settings(graph))


@pytest.mark.parametrize("rules", RULE_SETS)
def test_a_decoder_block(rules):
    derivation = fuse(decoder(1), RULE_SETS[rules])

    for graph in (derivation.start, *derivation.snapshots):
        assert_equals_the_count(graph, *some_settings(graph))


@pytest.mark.parametrize("name", one_in(4, PROGRAMS, first=3))
def test_array_programs(name):
    function, inputs = PROGRAMS[name]
    program = bb.trace(function, **inputs)
    graph = bb.lower(program)
    dims = dict.fromkeys(map(size_class, dims_of(graph)))
    drawn = {d: program.sizes.get(d, 5) for d in (*program.dims, *dims)}
    sizes = fitted(drawn, (*program.rules, *graph.size_rules))
    single = list_only(graph)

    for step in (1, 2, 5):
        blocks = {d: 1 if d in single else step for d in dims}
        assert_equals_the_count(graph, Setting({d: sizes[d] for d in dims}, blocks))


def test_blocks_that_are_diagonal():
    """Both axes of an item follow one loop: the squares of ragged blocks add up."""
    graph = bb.parse("""graph(X: M,K[M,K]) {
      T = map M (x in !X) {
        p = map K (a in !x) {
          b = relabel M -> M' (a)
          d = dot(a, b)
          r = row_sum(d)
          s = row_sum(d)
          t = row_scale(a, r)
          yield t
        }
        yield p
      }
      return T
    }""")
    assert_equals_the_count(graph, *some_settings(graph, 8))


def test_what_the_forms_say():
    """Fused attention: the forms that a person writes down after reading its listing."""
    form = closed_traffic(fuse(bb.lower(ALL[0].program()), PAPER_RULES).final)

    loaded = {tensor.name: str(m.loaded_elements) for tensor, m in form.tensors.items()}
    stored = {tensor.name: str(m.stored_elements) for tensor, m in form.tensors.items()}

    assert loaded == {
        "q": "B_L*B_N*S_D*S_M",
        "k": "B_L*B_M*S_D*S_N",
        "v": "B_M*S_L*S_N",
        "p": "0",
    }
    assert stored == {"q": "0", "k": "0", "v": "0", "p": "S_L*S_M"}
    assert str(form.dots) == "B_D*B_L*B_M*B_N + B_L*B_M*B_N"
    assert str(form.flops["matrix"]) == "2*B_L*S_D*S_M*S_N + 2*S_L*S_M*S_N"


def test_a_loop_that_starts_at_1_leaves_out_the_first_block():
    graph = fuse(decoder(1), PEELING_RULES).snapshots[1]
    (path,) = [p for p, level in graph.walk() for _, op in level.of_type(Map) if op.start]
    stored = [str(m.stored_elements) for m in closed_traffic(graph).tensors.values()]

    assert path == ()
    assert "S_L*S_S - F_L*S_S" in stored


def test_bytes_and_one_block_by_default():
    graph = bb.parse("graph(X: M[M]) { Y = map M (x in !X) { y = exp(x) yield y } return Y }")
    moved = bb.traffic(graph, {"M": 6}, item_bytes=2)

    assert (moved.loads, moved.stores, moved.elements, moved.bytes) == (1, 1, 12, 24)
    assert bb.traffic(graph, {"M": 6}, {"M": 3}).loads == 3
    with pytest.raises(ValueError, match="does not make 5 blocks"):
        bb.traffic(graph, {"M": 6}, {"M": 5})
    with pytest.raises(ValueError, match="the size of M shows in no input: pass sizes="):
        bb.traffic(graph, {})


def test_symbols_and_sympy():
    form = closed_traffic(bb.parse("graph(S: M[]) { s = reduce + M (!S) return s }"))
    loads = form.tensors[Tensor("S")].loads

    assert str(loads) == "B_M"
    assert loads.sympy() == sympy.Symbol("B_M", integer=True, positive=True)
    assert form.flops["vector"].sympy() == loads.sympy() - 1
    assert form.values({"M": 7}, {"M": 7})[Symbol("F", "M")] == 1


def test_the_first_entry_of_a_list_is_loaded_and_can_be_stored_elsewhere():
    graph = bb.parse("graph(S: M[]) { s = head M (!S) return s }")
    moved = bb.traffic(graph, {"M": 3}, {"M": 3})

    assert [(t.name, m.loads, m.stores) for t, m in moved.tensors.items()] == [
        ("S", 1, 0),
        ("out", 0, 1),
    ]
    assert_equals_the_count(graph, *some_settings(graph))
