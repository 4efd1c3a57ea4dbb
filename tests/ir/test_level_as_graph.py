"""What a level can be asked that a graph can be asked, it answers as its graph does."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blockbuster.errors import RuleError
from blockbuster.ir.graph import Graph, Value
from blockbuster.ir.level import Level
from blockbuster.ir.ops import Elementwise, Map, Op
from blockbuster.ir.uses import results_of
from blockbuster.rules import RULES
from blockbuster.rules.driver import fuse
from blockbuster.testing.generators import GENERATORS

KINDS = (Op, Map, Elementwise)


class Renamed:
    """The keys of a level as positions of its graph."""

    def __init__(self, level):
        self.place = {**level.rank, -1: -1}

    def value(self, value):
        return Value(self.place[value.node], value.port)

    def keys(self, keys):
        return [self.place[key] for key in keys]


def values(asked):
    """All values, in canonical order."""
    given = [Value(-1, port) for port in range(len(asked.inputs))]
    return given + [value for at in asked.places() for value in results_of(asked.nodes, at)]


def equations(asked, new):
    return [
        (node.op, [new.value(v) for v in node.operands], node.types, node.hints, node.origin)
        for node in map(asked.nodes.__getitem__, asked.places())
    ]


SHARED = {
    "inputs": lambda a, new: [(given, given.hint) for given in a.inputs],
    "nodes": lambda a, new: (len(a.nodes), equations(a, new)),
    "outputs": lambda a, new: [(new.value(o.value), o.name, o.axes) for o in a.outputs],
    "output_values": lambda a, new: sorted(map(new.value, a.output_values)),
    "type_of": lambda a, new: [*map(a.type_of, values(a))],
    "types_of": lambda a, new: a.types_of(values(a)),
    "places": lambda a, new: new.keys(a.places()),
    "rank": lambda a, new: [a.rank[at] for at in a.places()],
    "of_type": lambda a, new: [(new.place[at], op) for kind in KINDS for at, op in a.of_type(kind)],
    "consumers": lambda a, new: [new.keys(a.consumers(value)) for value in values(a)],
    "uses_of": lambda a, new: [
        [(new.place[at], index) for at, index in a.uses_of(value)] for value in values(a)
    ],
    "readers_before": lambda a, new: [new.keys(a.readers_before(at)) for at in a.places()],
    "reaches": lambda a, new: [a.reaches(p, c) for p in a.places() for c in a.places()],
}
PUBLIC = {name for name in vars(Graph) if not name.startswith("_")} | {"inputs", "nodes", "outputs"}


class Compared(Level):
    """A level that is asked all, as its graph is, at first and after every edit."""

    def __init__(self, graph):
        super().__init__(graph)
        self.compare()

    def finish(self, *outputs):
        result = super().finish(*outputs)
        self.compare()
        return result

    def compare(self):
        for name, ask in SHARED.items():
            graph = self.graph()
            assert ask(self, Renamed(self)) == ask(graph, Renamed(Level(graph))), name


def compare(kind, seeds):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("blockbuster.rules.driver.Level", Compared)
        for seed in seeds:
            fuse(GENERATORS[kind](Random(seed)), RULES)


@pytest.mark.parametrize("kind", GENERATORS)
@settings(max_examples=10)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_level_answers_as_its_graph(kind, seed):
    compare(kind, [seed])


def test_a_level_does_not_answer_what_it_cannot_answer_as_its_graph():
    """Nothing is answered in another sense: ``graph`` and what edits are a level's own."""
    assert {name for name in PUBLIC if hasattr(Level, name) or name in vars(Level(EMPTY))} == {
        *SHARED
    }


EMPTY = Graph((), (), ())


@pytest.mark.parametrize("name", ["consumers", "readers_before", "uses_of"])
def test_an_answer_in_another_order_is_told(name, monkeypatch):
    plain = getattr(Level, name)
    monkeypatch.setattr(Compared, name, lambda level, asked: plain(level, asked)[::-1])

    with pytest.raises((AssertionError, RuleError), match=name):
        compare("blocks", range(20))
