"""What is remembered is what the interpreter computes: peeled maps, groups, empty and ragged lists.

Programs and their fusion are tried in ``test_trials.py``; here is what they seldom show.
"""

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from blockbuster.examples import ALL
from blockbuster.frontend import lower
from blockbuster.interp.binding import dims_of
from blockbuster.interp.degree import VARIABLE, Degree, Degrees
from blockbuster.interp.exact import Exact
from blockbuster.interp.remembering import Remembering
from blockbuster.interp.residues import ZeroDenominator
from blockbuster.interp.setting import Setting, settings
from blockbuster.ir.graph import Input
from blockbuster.ir.ops import Map, Rescale
from blockbuster.ir.parse import parse
from blockbuster.ir.types import Type, size_class
from blockbuster.rules import PEELING_RULES, RULES, fuse, safe
from blockbuster.testing.generators import GENERATORS
from tests.parameters import one_in


def assert_remembered(programs, setting, seed=0):
    """The programs, in one memory, give what each gives alone."""
    numbers = np.random.default_rng(seed)
    semantics = Exact(seed=seed)
    shapes = setting.shapes(programs[0])
    inputs = {name: semantics.random(numbers, shape) for name, shape in shapes.items()}
    memory = Remembering(setting.layout, semantics, inputs)
    for program in (*programs, *programs):
        try:
            fresh = setting.run(program, inputs, Exact(seed=seed))
        except ZeroDenominator:
            with pytest.raises(ZeroDenominator):
                memory.outputs(program)
            continue
        found = memory.outputs(program)
        assert found.keys() == fresh.keys()
        for name, array in fresh.items():
            np.testing.assert_array_equal(found[name], array)


def every_program(derivation):
    return [derivation.graph_after(count) for count in range(len(derivation.steps) + 1)]


def maps_of(programs):
    return [op for graph in programs for _, level in graph.walk() for _, op in level.of_type(Map)]


@pytest.mark.parametrize("kind", one_in(3, GENERATORS))
def test_maps_whose_first_iteration_was_peeled_off(kind):
    peeled = 0
    for seed in (0, 1, 4, 7):  # 0 and 1 have none of the generator of blocks
        programs = every_program(fuse(GENERATORS[kind](Random(f"peeled {seed}")), PEELING_RULES))
        peeled += any(op.start for op in maps_of(programs))
        for setting in settings(programs[0], programs[-1], 2, np.random.default_rng(seed)):
            assert_remembered(programs, setting, seed)

    assert peeled or kind == "arrays"


@pytest.mark.parametrize("example", ALL, ids=lambda example: example.name)
def test_groups_that_share_an_exponent(example):
    programs = every_program(fuse(lower(example.program())))
    programs.append(safe(programs[-1]))
    grouped = [op for op in maps_of(programs) if any(isinstance(r, Rescale) for r in op.results)]
    assert bool(grouped) == (example.name == "attention")

    for setting in settings(programs[0], programs[-1], 3, np.random.default_rng(1)):
        assert_remembered(programs, setting)


@pytest.mark.parametrize("empty", ["M", "K", "N"])
@pytest.mark.parametrize("kind", ["blocks", "matrices"])
def test_dims_without_elements(kind, empty):
    for seed in range(4):
        programs = every_program(fuse(GENERATORS[kind](Random(f"empty {seed}")), RULES))
        dims = {size_class(dim) for dim in dims_of(programs[0])}
        sizes = {dim: 0 if dim == empty else 3 for dim in dims}
        assert_remembered(programs, Setting(sizes, {d: 1 if d == "B" else 2 for d in dims}), seed)


def test_where_a_value_is_spread_matters():
    """Over the current block, whose extent its operands do not show; the last one is shorter."""
    graph = parse("""graph(V: M[M], c: []) {
      T = map M (v in !V, s = c) { t = s + 1 over [M]  u = add(t, v) yield u }
      return T
    }""")

    assert_remembered([graph], Setting({"M": 5}, {"M": 2}))


def test_a_node_in_two_programs_whose_operands_differ_in_type():
    rows = parse("graph(X: [M,K]) { Y = transpose [K,M] (X) return Y }")
    columns = replace(rows, inputs=(Input(Type((), ("K", "M")), hint="X"),))
    assert columns.nodes[0] is rows.nodes[0]

    setting, semantics = Setting({"M": 2, "K": 2}, {"M": 2, "K": 2}), Exact()
    memory = Remembering(setting.layout, semantics, {"X": np.array([[1, 2], [3, 4]])})

    (turned,), (same,) = (memory.outputs(graph).values() for graph in (rows, columns))
    np.testing.assert_array_equal(turned, same.T)


class Counting(Exact):
    """Exact arithmetic that counts how often an operator is computed."""

    count = 0

    def functional(self, name, args):
        self.count += 1
        return super().functional(name, args)


def test_a_program_is_computed_once_and_a_step_computes_what_it_changed():
    before = parse("""graph(X: M,K[M,K]) {
      A = map M (x in !X) { a = map K (t in !x) { u = row_sum(t)  v = add(u, u) yield +v } yield a }
      B = map M (x in !X) { b = map K (t in !x) { u = row_sum(t)  v = mul(u, u) yield +v } yield b }
      return A, B
    }""")
    after = parse("""graph(X: M,K[M,K]) {
      A, B = map M (x in !X) {
        a, b = map K (t in !x) {
          u = row_sum(t)
          v = add(u, u)
          w = mul(u, u)
          yield +v
          yield +w
        }
        yield a
        yield b
      }
      return A, B
    }""")
    setting, semantics = Setting({"M": 4, "K": 3}, {"M": 2, "K": 2}), Counting()
    inputs = {"X": semantics.random(np.random.default_rng(0), (4, 3))}
    memory = Remembering(setting.layout, semantics, inputs)

    memory.outputs(before)
    assert semantics.count == 4  # row sums of blocks of two shapes, add and mul of one
    for program in (before, after):
        memory.outputs(program)
    assert semantics.count == 4


def test_a_level_is_gone_through_once_for_all_iterations(monkeypatch):
    gone_through = []
    level = Remembering._level

    def counted(self, graph, inputs, places):
        gone_through.append(len(places))
        return level(self, graph, inputs, places)

    monkeypatch.setattr(Remembering, "_level", counted)
    graph = parse("""graph(X: M,K[M,K]) {
      A = map M (x in !X) { a = map K (t in !x) { u = row_sum(t) yield +u } yield a }
      return A
    }""")
    setting, semantics = Setting({"M": 5, "K": 4}, {"M": 2, "K": 2}), Exact()
    inputs = {"X": semantics.random(np.random.default_rng(0), (5, 4))}
    Remembering(setting.layout, semantics, inputs).outputs(graph)

    assert gone_through == [1, 3, 6]


@pytest.mark.parametrize("kind", one_in(3, GENERATORS, first=1))
def test_degrees_are_those_of_each_program_alone(kind):
    noted = 0
    for seed in range(3):
        derivation = fuse(GENERATORS[kind](Random(f"degrees {seed}")), RULES)
        programs = every_program(derivation)
        for setting in settings(programs[0], programs[-1], 2, np.random.default_rng(seed)):
            shapes = setting.shapes(programs[0])
            inputs = {name: np.full(shape, VARIABLE) for name, shape in shapes.items()}
            degrees = Degrees(setting.layout, inputs)
            for program in programs:
                alone = Degree()
                outputs, bound = setting.run(program, inputs, alone), degrees.bound(program)
                for name, array in outputs.items():
                    np.testing.assert_array_equal(bound.outputs[name], array)
                assert bound.noted == alone.noted
                noted += len(alone.noted.arguments)

    assert noted
