"""A rule that fails does not end a user's call: it is left out, and the report says so."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.errors import RuleError
from blockbuster.ir.graph import Graph, Output, Value
from blockbuster.rules import RULES, WholeDim
from blockbuster.view.cli import main
from tests.parameters import one_in
from tests.random_programs.walks import EVERY_RULE
from tests.rules.test_driver import GRAPH, Negate, Restore

EVERY_ONE = (*EVERY_RULE, WholeDim())
SIZES = {"M": 32, "K": 32, "N": 32}
INPUTS = [np.random.default_rng(0).standard_normal(shape) for shape in ((5, 8), (8, 6), (6,))]


def norm_and_place(x, w, g):
    h = bb.layer_norm(x) @ w
    return bb.softmax(h * g, axis=-1), bb.argmax(h, axis=-1)


PROGRAM = bb.trace(norm_and_place, x="M K", w="K N", g="N")
EXPECTED = PROGRAM.numpy(dict(zip("xwg", INPUTS, strict=True))).values()


def boom(*_, **__):
    raise KeyError("boom")


def an_output_that_is_not_there(self, match):
    """None for a level, which the driver edits in place."""
    graph = match.graph
    return replace(graph, outputs=(Output(Value(77)),)) if isinstance(graph, Graph) else None


FAILING = {
    "apply": boom, "describe": boom, "matches": boom, "ill-formed": an_output_that_is_not_there,
}  # fmt: skip


def break_rule(monkeypatch, rule, how):
    methods = {
        "ill-formed": ["apply"],
        "matches": ["matches_at"] if hasattr(rule, "matches_at") else ["match", "matches"],
    }
    for method in methods.get(how, [how]):
        monkeypatch.setattr(type(rule), method, FAILING[how])


CASES = one_in(5, product(EVERY_ONE, FAILING))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0].name} {case[1]}")
def test_calls_go_on_without_a_rule_that_fails(case, monkeypatch, faults_are_kept):
    rule, how = case
    break_rule(monkeypatch, rule, how)
    jitted, failed = bb.jit(norm_and_place), []

    for got, expected in zip(jitted(*INPUTS), EXPECTED, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-12)
    report = " ".join(str(jitted.report_for(*INPUTS)).split())  # its lines are cut
    kernel = bb.emit(bb.fuse(bb.lower(PROGRAM), on_fault=failed.append), SIZES, dtype="float32")

    if how == "matches" and rule in RULES:  # these are asked in every program
        assert failed
    for fault in failed[:1]:  # others may ask this rule, and fail then, too
        assert isinstance(fault.rule, type(rule))  # a rule made of this one fails, too
        said = f"{fault.rule.name} {'made an ill-formed' if 'made' in str(fault) else ''}"
        assert said.rstrip() in report
        assert "fused without this rule" in report
        assert said.rstrip() in kernel.source


@pytest.mark.parametrize("rule", one_in(4, RULES), ids=lambda rule: rule.name)
def test_tests_and_those_who_work_on_rules_get_the_error(rule, monkeypatch):
    """Under test ``jit`` raises it, too: see tests/conftest.py."""
    break_rule(monkeypatch, rule, "matches")
    for call in (
        lambda: bb.fuse(bb.lower(PROGRAM)),
        lambda: bb.explain(bb.parse("graph(X: M[M]) { Y = map M (x in !X) { y = exp(x) yield y } "
                                    "Z = map M (t in !Y) { z = exp(t) yield z } return Z }")),
        lambda: bb.jit(norm_and_place)(*INPUTS),
    ):  # fmt: skip
        with pytest.raises(RuleError, match=rf"{rule.name} failed: matches(_at)? raised KeyError"):
            call()


@pytest.mark.parametrize("command", ["fuse", "explain", "emit"])
def test_the_command_line_goes_on_and_warns(
    command, monkeypatch, tmp_path, capsys, faults_are_kept
):
    break_rule(monkeypatch, RULES[0], "matches")
    file = tmp_path / "model.py"
    file.write_text("def f(x, w):\n    return (x @ w).max(axis=-1)\n")
    sizes = ["--sizes", "M=32", "K=32", "N=32"]

    assert main([command, f"{file}:f", "--dims", "x=M K", "w=K N", *sizes]) == 0
    assert f"note: {RULES[0].name} failed: matches_at raised KeyError" in capsys.readouterr().err


def test_of_rules_that_loop_the_last_is_left_out():
    failed = []
    derivation = bb.fuse(GRAPH, (Negate(), Restore()), on_fault=failed.append)

    assert [fault.rule for fault in failed] == [Restore()]
    assert "the rules loop" in str(failed[0])
    assert [step.rule for step in derivation.steps] == ["negate"]


class Stranger(Negate):
    """Its matches name another rule, which is in no list."""

    def matches(self, graph, note=lambda _: None):
        yield from FromElsewhere().matches(graph)


class FromElsewhere(Restore):
    old, apply = Negate.old, boom


def test_a_rule_that_nobody_passed_cannot_be_left_out():
    with pytest.raises(RuleError, match="restore failed: apply raised KeyError"):
        bb.fuse(GRAPH, (Stranger(),), on_fault=lambda fault: None)


def test_explain_goes_on_without_a_rule_that_fails(monkeypatch):
    failed = []
    derivation = bb.fuse(bb.lower(PROGRAM))
    before = bb.explain(derivation.snapshots[0])
    break_rule(monkeypatch, RULES[-1], "matches")
    after = bb.explain(derivation.snapshots[0], on_fault=failed.append)

    assert len(after) == len(before) > 0
    assert {fault.rule for fault in failed} == {RULES[-1]}
