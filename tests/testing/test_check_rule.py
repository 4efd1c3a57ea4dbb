"""check_rule: what it says of good rules, and how it catches wrong ones with a small program."""

from dataclasses import dataclass
from random import Random
from typing import ClassVar

import pytest

import blockbuster as bb
from blockbuster.ir.builder import Builder
from blockbuster.ir.expr import substitute
from blockbuster.ir.graph import Value
from blockbuster.ir.ops import Elementwise
from blockbuster.rules import FuseElementwise, Match, Rule
from blockbuster.testing.generators import GENERATORS
from blockbuster.testing.shrink import candidates, is_sound, size, smallest

TEXT = "graph(x: [M]) { y = %s return y }"


@dataclass(frozen=True)
class ForgetsReaders(Rule):
    """Fuses two functions in a row, and forgets who else reads the first one's result."""

    name: ClassVar[str] = "forgets-readers"

    def matches(self, graph, note=lambda _: None):
        for position, _ in graph.of_type(Elementwise):
            for reader in graph.consumers(Value(position)):
                node = graph.nodes[reader]
                if isinstance(node.op, Elementwise) and len(node.operands) == 1:
                    yield Match(self, graph, {"first": position, "second": reader})

    def apply(self, match):
        first, second = match.node("first"), match.node("second")
        edit = Builder(match.graph)
        fused = Elementwise(substitute(second.op.expr, [first.op.expr]))
        (new,) = edit.add(fused, *first.operands, origin=match.origin())
        edit.redirect(match.value("first"), new)
        edit.redirect(match.value("second"), new)
        return edit.finish()


class NoOrigin(ForgetsReaders):
    name = "no-origin"

    def apply(self, match):
        edit = Builder(match.graph)
        (new,) = edit.add(match.node("second").op, match.value("first"))
        (new,) = edit.add(Elementwise(match.node("second").op.expr), new)
        edit.redirect(match.value("second"), new)
        return edit.finish()


class Nothing(ForgetsReaders):
    name = "nothing"

    def apply(self, match):
        return match.graph


class Raises(ForgetsReaders):
    name = "raises"

    def apply(self, match):
        raise KeyError("oh")


class MatchesRaises(ForgetsReaders):
    name = "matches-raises"

    def matches(self, graph, note=lambda _: None):
        yield graph.nodes[100]


class LosesAResult(ForgetsReaders):
    name = "loses-a-result"

    def apply(self, match):
        return Builder(match.graph).finish(match.graph.outputs[0], match.graph.outputs[0])


class Never(ForgetsReaders):
    name = "never"

    def matches(self, graph, note=lambda _: None):
        yield from ()


class Flips(ForgetsReaders):
    name = "flips"
    random = Random(0)

    def apply(self, match):
        edit = Builder(match.graph)
        op = Elementwise(bb.ir.expr.call("add", bb.ir.expr.Arg(0), self.random.random()))
        (new,) = edit.add(op, match.value("first"), origin=match.origin())
        edit.redirect(match.value("second"), new)
        return edit.finish()


class ThereAndBack(Rule):
    """Writes a negation as a product and back."""

    name = "there-and-back"
    spellings = (bb.parse(TEXT % "-x").nodes[0].op, bb.parse(TEXT % "x * -1").nodes[0].op)

    def matches(self, graph, note=lambda _: None):
        for position, op in graph.of_type(Elementwise):
            if op in self.spellings:
                yield Match(self, graph, {"node": position})

    def written(self, op):
        return self.spellings[1 - self.spellings.index(op)]

    def apply(self, match):
        edit = Builder(match.graph)
        node = match.node("node")
        (new,) = edit.add(self.written(node.op), *node.operands, origin=match.origin())
        edit.redirect(match.value("node"), new)
        return edit.finish()


class Grows(ThereAndBack):
    """Puts two more negations in front of each."""

    name = "grows"

    def matches(self, graph, note=lambda _: None):
        yield from (m for m in super().matches(graph) if m.node("node").op == self.spellings[0])

    def apply(self, match):
        edit = Builder(match.graph)
        value = match.node("node").operands[0]
        for _ in range(3):
            (value,) = edit.add(self.spellings[0], value, origin=match.origin())
        edit.redirect(match.value("node"), value)
        return edit.finish()


class FailsLater(Grows):
    """Does not expect what it makes."""

    name = "fails-later"

    def matches(self, graph, note=lambda _: None):
        if sum(node.op == self.spellings[0] for node in graph.nodes) > 2:
            raise IndexError("oh")
        yield from super().matches(graph)


class Nameless(Never):
    name = ""


@pytest.mark.parametrize(
    ("rule", "story"),
    [
        (ThereAndBack(), "there-and-back comes back to a program that it has changed"),
        (Grows(), "grows still applies after 100 steps of its own"),
    ],
)
def test_rules_that_do_not_end(rule, story):
    (failure,) = bb.check_rule(rule, examples=[TEXT % "-x"]).failures

    assert failure.flaw.kind == "does not end"
    assert story in str(failure)
    assert len(failure.site.graph.nodes) == 1


def test_a_rule_that_fails_on_what_it_made():
    (failure,) = bb.check_rule(FailsLater(), examples=[TEXT % "-x"]).failures

    assert failure.flaw.kind in ("fails on its results", "matches fails")
    assert "IndexError: oh" in str(failure)


def test_what_hardly_fires_is_told_to_the_end():
    assert "check_rule(rule, examples=[...])" in str(bb.check_rule(Never(), programs=10))


def test_arguments_that_are_none():
    with pytest.raises(TypeError, match=r"Nameless has no name: write name: ClassVar"):
        bb.check_rule(Nameless())
    with pytest.raises(TypeError, match=r"examples is one program: .*\[example\]"):
        bb.check_rule(Never(), examples=TEXT % "-x")


def test_a_good_rule_passes_and_says_how_much_was_tried():
    report = bb.check_rule(FuseElementwise(), programs=30)

    assert report.passed
    assert report.fired >= 10
    assert report.checked_sites >= report.fired
    assert str(report).startswith("fuse-elementwise: passed\n  programs ")
    assert "passed" in report._repr_html_()
    assert report.refusals
    assert bb.check_rule(FuseElementwise(), programs=30).fired == report.fired


def test_a_rule_that_forgets_a_second_reader_is_caught_with_a_minimal_program(monkeypatch):
    tried = []

    def counted(graph, fails):
        return smallest(graph, lambda smaller: tried.append(smaller) or fails(smaller))

    monkeypatch.setattr("blockbuster.testing.check.smallest", counted)
    report = bb.check_rule(ForgetsReaders())
    (failure,) = report.failures

    assert not report.passed
    assert failure.flaw.kind == "other results"
    assert len(failure.site.graph.nodes) == 2
    assert len(failure.site.graph.outputs) == 2
    assert failure.snippet in str(report)
    assert "a minimal program" in report._repr_html_()
    assert 2 <= len(tried) <= 50  # smaller programs, until none of them shows the flaw


def test_the_snippet_shows_the_flaw(capsys):
    (failure,) = bb.check_rule(ForgetsReaders()).failures
    code = failure.snippet.replace(f"from {__name__} import ForgetsReaders\n", "")

    exec(code, {"ForgetsReaders": ForgetsReaders})

    assert "\ndifferent" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("rule", "kind", "story"),
    [
        (Nothing(), "changes nothing", "it would be applied forever"),
        (Raises(), "apply fails", "apply raised KeyError: 'oh'"),
        (MatchesRaises(), "matches fails", "matches raised IndexError"),
        (Flips(), "apply fails", "two different graphs"),
        (Never(), "hardly fires", "0 of 40 programs had a site of never, expected at least 4"),
    ],
)
def test_other_flaws_are_told_in_words(rule, kind, story):
    report = bb.check_rule(rule, programs=40)

    assert [failure.flaw.kind for failure in report.failures] == [kind]
    assert story in str(report)
    assert kind in report._repr_html_()


@pytest.mark.parametrize("rule", [NoOrigin(), LosesAResult()])
def test_interface_and_origin(rule):
    report = bb.check_rule(rule, programs=60)

    kinds = ("no origin", "other results", "other interface", "does not end")
    assert report.failures[0].flaw.kind in kinds


def test_a_class_is_no_rule():
    with pytest.raises(TypeError, match=r"an instance of a subclass of Rule: pass Never\(\)"):
        bb.check_rule(Never)


def test_examples_are_planted():
    example = "graph(x: [M]) { t = x * 7 y = exp(t) return y }"
    report = bb.check_rule(FuseElementwise(), programs=10, examples=[example, bb.parse(example)])

    assert report.passed


def test_golden_cases_of_a_folder(tmp_path):
    (tmp_path / "refused.bb").write_text(
        "# must refuse\ngraph(x: [M]) {\n  t = x * 7\n  y = exp(t)\n  return y\n}\n"
    )
    report = bb.check_rule(FuseElementwise(), programs=10, cases=tmp_path)

    assert not report.passed
    assert "refused.bb: the rule must refuse this program and matches it" in str(report)
    with pytest.raises(ValueError, match="there are no golden cases"):
        bb.check_rule(FuseElementwise(), cases=tmp_path / "none")


@pytest.mark.parametrize("kind", GENERATORS)
def test_shrinking_keeps_what_it_is_asked_to_keep(kind):
    graph = max((GENERATORS[kind](Random(seed)) for seed in range(20)), key=size)

    def has_a_function(candidate):
        return any(True for _, g in candidate.walk() for _ in g.of_type(Elementwise))

    assert has_a_function(graph)
    small = smallest(graph, has_a_function)
    assert has_a_function(small)
    assert is_sound(small)
    assert size(small) < size(graph)
    assert len(small.nodes) == 1
    assert [c for c in candidates(small) if size(c) < size(small) and has_a_function(c)] == []
