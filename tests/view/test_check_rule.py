"""`blockbuster check-rule` as a user meets it."""

import json

import pytest

from blockbuster.view.cli import main

RULES = """
from __future__ import annotations
from dataclasses import dataclass
from typing import ClassVar
from blockbuster.rules import FuseReduction, Rule

@dataclass(frozen=True)
class Good(FuseReduction):
    name: ClassVar[str] = "good"

class Idle(Good):
    name = "idle"
    def apply(self, match):
        return match.graph

idle = Idle()
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "rules_of_a_user.py"
    path.write_text(RULES)
    return str(path)


def run(capsys, *arguments):
    code = main(["check-rule", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_a_rule_of_ours(capsys):
    code, out, _ = run(capsys, "blockbuster.rules:FuseReduction", "--programs", "20")

    assert code == 0
    assert out.startswith("fuse-reduction: passed\n")


def test_a_class_or_an_instance_in_a_file(capsys, file):
    assert run(capsys, f"{file}:Good", "--programs", "20")[0] == 0
    code, out, _ = run(capsys, f"{file}:idle", "--programs", "40")

    assert code == 1
    assert "changes nothing" in out
    assert "from rules_of_a_user import Idle" in out


def test_json(capsys, file):
    code, out, _ = run(capsys, f"{file}:Idle", "--programs", "40", "--json", "--seed", "5")
    data = json.loads(out)

    assert code == 1
    assert data["rule"] == "idle"
    assert data["seed"] == 5
    assert [failure["kind"] for failure in data["failures"]] == ["changes nothing"]
    assert "bb.parse(" in data["failures"][0]["snippet"]


def test_examples_are_planted(capsys, file, tmp_path):
    example = tmp_path / "example.bb"
    example.write_text("graph(x: [M]) { t = x * 7 y = exp(t) return y }")

    assert run(capsys, f"{file}:Good", "--programs", "10", "--examples", str(example))[0] == 0


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("FuseMaps", "expected MODULE:RULE or FILE.py:RULE"),
        ("blockbuster.rules:FuseMap", "has no rule FuseMap: it has CopyProducer"),
        ("blockbuster.errors:message", "it has no rules"),
        ("no_such_module:Rule", "is it a file? then no_such_module.py"),
    ],
)
def test_what_is_no_rule(capsys, where, words):
    code, _, err = run(capsys, where)

    assert code == 2
    assert words in err


def test_a_file_that_is_not_there(capsys):
    code, _, err = run(capsys, "gone.py:Rule")

    assert code == 1
    assert "there is no file gone.py" in err
