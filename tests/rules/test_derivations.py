"""The three examples of the paper, step by step, and what a derivation offers."""

import json
from dataclasses import dataclass, replace

import pytest

from blockbuster.errors import RuleError
from blockbuster.ir.graph import Graph
from blockbuster.ir.parse import parse
from blockbuster.ir.verify import verify
from blockbuster.rules import PAPER_RULES, RULES, fuse
from blockbuster.rules.derivation import path_in_words
from tests.interp import examples
from tests.rules.numbers import assert_same_numbers


@dataclass(frozen=True)
class Example:
    """A program before the first rule, its steps as (rule number, level), and what they lead to."""

    start: str
    steps: str
    snapshots_after: tuple[int, ...]
    edges: tuple[int, ...]
    snapshots: tuple[str, ...]

    @property
    def graph(self) -> Graph:
        return parse(self.start)

    def table(self) -> list[tuple[int, str]]:
        """The steps: ``1:/ *6`` is six steps of rule 1 at the top level."""
        found = []
        for line in self.steps.split():
            number, _, rest = line.partition(":")
            level, _, times = rest.partition("*")
            found += [(int(number), level)] * int(times or 1)
        return found


EXAMPLES = {
    "attention": Example(
        examples.ATTENTION_START,
        "1:/*6 4:/M 3:/M 1:/M*4 9:/M/N 3:/M/N 3:/M/L  6:/M 1:/M/L",
        (15, 17),
        (10, 1, 0),
        (examples.ATTENTION_FIRST, examples.ATTENTION_FINAL),
    ),
    "layer_norm": Example(
        examples.LAYER_NORM_START,
        "1:/*7 4:/M 5:/M 3:/M*2 1:/M*5 2:/M 3:/M/N*2 2:/M/N  6:/M 2:/M/N",
        (20, 22),
        (11, 0, 0),
        (examples.LAYER_NORM_FIRST, examples.LAYER_NORM_FINAL),
    ),
    "swiglu": Example(
        examples.SWIGLU_START,
        "1:/*8 8:/M 4:/M*2 3:/M 1:/M*6 3:/M/K*2 2:/M/K 3:/M/N  6:/M 1:/M/N  6:/M/N 2:/M/N/K",
        (22, 24, 26),
        (13, 1, 0, 0),
        (examples.SWIGLU_FIRST, examples.SWIGLU_SECOND, examples.SWIGLU_FINAL),
    ),
}
COUNTS = {"attention": 17, "layer_norm": 22, "swiglu": 26}
each_example = pytest.mark.parametrize("name", EXAMPLES)


def derived(name: str):
    return fuse(EXAMPLES[name].graph, PAPER_RULES)


@each_example
def test_steps_are_those_of_the_paper(name):
    example, derivation = EXAMPLES[name], derived(name)
    steps = [(step.number, path_in_words(step.before, step.path)) for step in derivation.steps]

    assert len(steps) == COUNTS[name]
    assert steps == example.table()
    assert derivation.snapshots_after == example.snapshots_after


@each_example
def test_interior_buffered_edges(name):
    derivation = derived(name)
    graphs = (derivation.start, *derivation.snapshots)

    assert tuple(len(graph.buffered_edges()) for graph in graphs) == EXAMPLES[name].edges


@each_example
def test_snapshots_are_the_listings_of_the_paper(name):
    assert derived(name).snapshots == tuple(map(parse, EXAMPLES[name].snapshots))


@each_example
def test_table_of_steps(name, golden):
    golden(f"derivations/{name}.txt", derived(name).show())


@each_example
def test_the_same_program_gives_the_same_derivation(name):
    first, again = derived(name), derived(name)

    assert first.show() == again.show()
    assert first.to_json() == again.to_json()
    assert [g.show() for g in first.snapshots] == [g.show() for g in again.snapshots]
    assert first == again


@each_example
def test_every_graph_on_the_way_computes_the_same(name):
    derivation = derived(name)
    for count in range(1, len(derivation.steps) + 1):
        graph = derivation.graph_after(count)
        verify(graph)
        assert_same_numbers(derivation.start, graph)


@each_example
def test_before_and_after_of_the_steps_make_a_chain(name):
    derivation = derived(name)
    graph = derivation.start
    for index, step in enumerate(derivation.steps):
        assert step.before == graph
        graph = step.after
        assert graph != step.before
        assert graph == derivation.graph_after(index + 1)

    assert graph == derivation.final == derivation.replay()


@each_example
def test_nodes_name_the_rules_that_made_them(name):
    derivation = derived(name)
    rules = {rule.name for rule in PAPER_RULES} | {""}
    found = {node.origin.rule for _, level in derivation.final.walk() for node in level.nodes}

    assert found <= rules
    assert len(found) > 2


@each_example
def test_default_rules_also_leave_no_interior_edge(name):
    assert fuse(EXAMPLES[name].graph, RULES).final.buffered_edges() == ()


def test_graph_after_refuses_a_step_that_is_not_there():
    with pytest.raises(IndexError, match="18 of 17 steps"):
        derived("attention").graph_after(18)


@pytest.mark.parametrize("first_bad", [1, 2, 8, 16, 17])
def test_bisect_finds_the_first_step_after_which_a_check_fails(first_bad):
    derivation = derived("attention")
    good = [derivation.graph_after(count) for count in range(first_bad)]

    step = derivation.bisect(lambda graph: graph in good)

    assert step.index == first_bad - 1


def test_bisect_finds_nothing_where_the_check_holds():
    assert derived("attention").bisect(lambda graph: True) is None


def test_json_names_its_schema_and_every_step():
    derivation = derived("swiglu")
    data = json.loads(derivation.to_json())

    assert data["schema"] == "blockbuster.derivation/1"
    assert parse(data["start"]) == derivation.start
    assert parse(data["final"]) == derivation.final
    assert data["snapshots_after"] == [22, 24, 26]
    assert [step["number"] for step in data["steps"]] == [s.number for s in derivation.steps]
    for step, entry in zip(derivation.steps, data["steps"], strict=True):
        assert tuple(entry["path"]) == step.path
        assert entry["match"] == dict(step.match)
        assert entry["description"] == step.description
        assert entry["rule"] == step.rule


def test_a_program_with_nothing_to_fuse():
    graph = parse("graph(X: M[M]) { Y = map M (x in !X) { y = exp(x) yield y } return Y }")
    derivation = fuse(graph)

    assert derivation.steps == ()
    assert derivation.snapshots == (graph,)
    assert derivation.final == graph == derivation.replay()
    assert derivation.show() == "no rule applies\n"


def test_replay_notices_a_checkpoint_that_differs():
    derivation = derived("attention")
    other = derived("layer_norm").start
    wrong = replace(derivation, checkpoints={0: derivation.start, 16: other})

    with pytest.raises(RuleError, match="replaying step 16"):
        wrong.replay()
