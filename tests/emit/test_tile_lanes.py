"""Padded lanes and counts of tile programs, as their interpreter finds them."""

from dataclasses import replace

import numpy as np
import pytest

from blockbuster.emit.closing.guard import guard
from blockbuster.emit.interpret.interpreter import run_tiles
from blockbuster.emit.interpret.lanes import check_lanes
from blockbuster.emit.interpret.memory import Hazard
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.program import (
    For,
    Guard,
    Let,
    Load,
    Store,
    statements,
)
from blockbuster.interp.exact import Exact
from blockbuster.ir.parse import parse
from tests.emit.cases import (
    TEXTS,
    graph_of,
    sizes_of,
)
from tests.emit.counting import count_run
from tests.interp.counted import graph_traffic

SQUARE = parse("graph(X: M[M]) { Y = map M (x in X) { y = square(x) yield y } return Y }")
SUM = parse("""
graph(X: M,N[M,N]) {
  Y = map M (x in !X) { s = map N (b in !x) { t = row_sum(b)  yield +t }  yield s }
  return Y
}
""")
DOTS = parse("""
graph(A: M,K[M,K], B: N,K[N,K]) {
  Y = map M (a in !A, b = !B) {
    y = map N (c in !b, a2 = !a) {
      s = map K (x in !a2, z in !c) { d = dot(x, z)  yield +d }
      yield s
    }
    yield y
  }
  return Y
}
""")


EXP_SUM = parse("""
graph(X: M,N[M,N]) {
  Y = map M (x in !X) { s = map N (b in !x) { e = exp(b) t = row_sum(e) yield +t } yield s }
  return Y
}
""")


def test_a_lost_guard_shows_in_numbers_and_in_words():
    inputs, blocks = {"X": np.zeros((3, 5))}, {"M": 2, "N": 4}
    plain = lower_to_tiles(EXP_SUM)
    guarded = guard(plain, ("M", "N"))
    np.testing.assert_array_equal(
        run_tiles(guarded, inputs, block_sizes=blocks, padded=True)["out"], [5, 5, 5]
    )
    check_lanes(guarded, {"M": 3, "N": 5}, blocks)

    lost = without_guards(guarded)
    np.testing.assert_array_equal(
        run_tiles(lost, inputs, block_sizes=blocks, padded=True)["out"], [8, 8, 8]
    )
    with pytest.raises(Hazard, match="past the end of N count: they hold 1, where 0 would"):
        check_lanes(lost, {"M": 3, "N": 5}, blocks)
    check_lanes(lost, {"M": 3, "N": 8}, blocks)  # nothing is past the end


def without_guards(program):
    alias = {
        s.target: s.value for n in program.nests for s in statements(n.body) if type(s) is Guard
    }

    def walked(body):
        out = []
        for stmt in body:
            if isinstance(stmt, For):
                stmt = replace(stmt, body=walked(stmt.body))
            elif isinstance(stmt, Let):
                stmt = replace(stmt, args=tuple(alias.get(a, a) for a in stmt.args))
            if not isinstance(stmt, Guard):
                out.append(stmt)
        return tuple(out)

    nests = tuple(replace(nest, body=walked(nest.body)) for nest in program.nests)
    return replace(program, nests=nests)


def test_lanes_of_a_dot():
    graph = parse("""
graph(A: M,K[M,K], B: N,K[N,K]) {
  Y = map M (a in !A, b = !B) {
    y = map N (c in !b, a2 = !a) {
      s = map K (x in !a2, z in !c) { e = reciprocal(x)  d = dot(e, z)  yield +d }
      yield s
    }
    yield y
  }
  return Y
}
""")
    plain = lower_to_tiles(graph)
    with pytest.raises(Hazard, match="past the end of K count: their product is nan, not 0"):
        check_lanes(plain, {"M": 3, "N": 3, "K": 5}, {"M": 2, "N": 2, "K": 4})
    check_lanes(guard(plain, "MNK"), {"M": 3, "N": 3, "K": 5}, {"M": 2, "N": 2, "K": 4})
    check_lanes(lower_to_tiles(DOTS), {"M": 3, "N": 3, "K": 5}, {"M": 2, "N": 2, "K": 4})


def test_padding_needs_floats():
    with pytest.raises(ValueError, match="padded lanes need floats, not Exact"):
        run_tiles(lower_to_tiles(SQUARE), {"X": np.ones(3)}, semantics=Exact(), padded=True)


# counting ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TEXTS)
def test_dots_and_flops_are_those_of_the_block_program(name):
    graph = graph_of(name)
    sizes = dict.fromkeys(sizes_of(graph), 4)
    counts = count_run(lower_to_tiles(graph), sizes, dict.fromkeys(sizes, 2))
    wanted = graph_traffic(graph, sizes, dict.fromkeys(sizes, 2))

    assert counts.dots == wanted.dots
    assert counts.flops["matrix"] == wanted.flops["matrix"]


def test_folds_count_in_the_first_iteration_too():
    counts = count_run(lower_to_tiles(SUM), {"M": 3, "N": 5}, {"M": 2, "N": 2})

    assert counts.flops == {"matrix": 0, "vector": 15 + 3 * 3}


def test_bytes_of_arrays_with_dtypes():
    tiles = lower_to_tiles(SQUARE)

    def typed(program, dtypes):
        change = {b.name: replace(b, dtype=dtypes[b.name]) for b in (*tiles.inputs, *tiles.outputs)}

        def of(stmt):
            if isinstance(stmt, For):
                return replace(stmt, body=tuple(map(of, stmt.body)))
            if isinstance(stmt, Load | Store):
                view = replace(stmt.view, buffer=change[stmt.view.buffer.name])
                return replace(stmt, view=view)
            return stmt

        nests = tuple(replace(n, body=tuple(map(of, n.body))) for n in program.nests)
        return replace(
            program,
            nests=nests,
            inputs=tuple(change[b.name] for b in program.inputs),
            outputs=tuple(change[b.name] for b in program.outputs),
        )

    counts = count_run(typed(tiles, {"X": "bfloat16", "out": "float32"}), {"M": 5}, {"M": 2})
    assert counts.bytes == {"X": 10, "out": 20}
    assert count_run(tiles, {"M": 5}, {"M": 2}).bytes == {}
