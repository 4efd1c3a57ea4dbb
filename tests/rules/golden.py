"""Golden cases of rules as tests, and rewriting them with ``--update-golden``."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from blockbuster.ir.graph import Graph
from blockbuster.ir.parse import parse
from blockbuster.ir.verify import verify
from blockbuster.rules.base import Rule, reasons
from blockbuster.testing.cases import AFTER, BECAUSE, WRONG, Case, read_case
from tests.rules.numbers import assert_same_numbers, gives_other_numbers

GOLDEN = Path(__file__).parent.parent / "golden" / "rules"


def golden_cases(folder: str) -> list[object]:
    """The cases in ``tests/golden/rules/<folder>``, as parameters of a test."""
    paths = sorted((GOLDEN / folder).glob("*.bb"))
    assert paths, f"no golden cases in {GOLDEN / folder}"
    return [pytest.param(read_case(path), id=path.stem) for path in paths]


def check_golden(rule: Rule, case: Case, update: bool = False) -> None:
    """The rule does what the case says, by text, structure, types, numbers and provenance."""
    before = parse(case.before)
    match = rule.match(before)
    if update:
        case.path.write_text(_text(case, rule, before), encoding="utf-8", newline="\n")
        case = read_case(case.path)
    assert case.before == before.show(), "the program before is not as it prints"
    if case.after is None:
        assert match is None
        assert reasons(rule, before) == list(case.because)
        if case.wrong is not None:
            wrong = parse(case.wrong)
            assert case.wrong == wrong.show(), "the wrong program is not as it prints"
            assert gives_other_numbers(before, wrong), "the counterexample does not bite"
        return
    assert match is not None, reasons(rule, before)
    after = rule.apply(match)
    assert after.show() == case.after, f"not as in {case.path}; on purpose? pytest --update-golden"
    assert parse(case.after) == after
    assert_rewritten_well(rule, before, after)


def assert_rewritten_well(rule: Rule, before: Graph, after: Graph) -> None:
    """Well-formed, same interface and numbers, and the new nodes name the rule."""
    verify(after)
    assert after.inputs == before.inputs
    assert [after.type_of(o.value) for o in after.outputs] == [
        before.type_of(o.value) for o in before.outputs
    ]
    assert_same_numbers(before, after)
    assert rule.name in {node.origin.rule for node in after.nodes}


def _text(case: Case, rule: Rule, before: Graph) -> str:
    match = rule.match(before)
    text = case.title + before.show()
    if case.after is not None or (match is not None and not case.because):
        assert match is not None, reasons(rule, before)
        return f"{text}{AFTER}\n{rule.apply(match).show()}"
    text += "".join(f"{BECAUSE}{reason}\n" for reason in reasons(rule, before))
    return text + (f"{WRONG}\n{parse(case.wrong).show()}" if case.wrong else "")


def folder_of(rule: Rule) -> str:
    """The folder of a rule's golden cases."""
    return re.sub("-", "_", rule.name)
