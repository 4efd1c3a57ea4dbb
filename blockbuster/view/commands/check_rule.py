"""`blockbuster check-rule`: runs the property suite on a user's rule."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from blockbuster.rules import Rule
from blockbuster.testing.check import check_rule
from blockbuster.testing.report import RuleReport
from blockbuster.view.load import load_module
from blockbuster.view.terminal import say

EXAMPLES = """examples:
  blockbuster check-rule my_rules.py:FuseNegations
  blockbuster check-rule blockbuster.rules:FuseMaps --programs 50
  blockbuster check-rule my_rules.py:FuseNegations --cases tests/golden/fuse_negations
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    command.add_argument(
        "rule", metavar="MODULE:RULE", help="a class or an instance in a module or a FILE.py"
    )
    command.add_argument("--programs", type=int, default=200, help="random programs (default 200)")
    command.add_argument("--seed", type=int, default=0, help="another seed, other programs")
    command.add_argument(
        "--examples", nargs="+", type=Path, default=[], metavar="FILE.bb",
        help="programs with a site of the rule, to be planted in random ones",
    )  # fmt: skip
    command.add_argument("--cases", type=Path, metavar="FOLDER", help="golden cases (*.bb)")
    command.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Check the rule; the exit code is 1 where it fails."""
    report = check_rule(
        load_rule(arguments.rule),
        programs=arguments.programs,
        seed=arguments.seed,
        examples=[path.read_text(encoding="utf-8") for path in arguments.examples],
        cases=arguments.cases,
    )
    say(as_json(report) if arguments.json else report)
    return 0 if report.passed else 1


def load_rule(where: str) -> Rule:
    """The rule that MODULE:RULE names. Raises ValueError saying what is wrong with it."""
    name, colon, attribute = where.rpartition(":")
    if not colon or not name:
        raise ValueError(f"expected MODULE:RULE or FILE.py:RULE, got {where!r}")
    module = load_module(name) if name.endswith(".py") else _imported(name)
    found = getattr(module, attribute, None)
    if isinstance(found, type) and issubclass(found, Rule):
        return found()
    if isinstance(found, Rule):
        return found
    known = list(_rules_of(module))
    hint = f"it has {', '.join(known)}" if known else "it has no rules"
    raise ValueError(f"{name} has no rule {attribute}: {hint}")


def _imported(name: str) -> ModuleType:
    sys.path.insert(0, "")  # a module beside the user, as with `python -m`
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise ValueError(f"there is no module {error.name}: is it a file? then {name}.py") from None
    finally:
        sys.path.remove("")


def _rules_of(module: ModuleType) -> Sequence[str]:
    return [
        name
        for name, value in vars(module).items()
        if isinstance(value, Rule)
        or (isinstance(value, type) and issubclass(value, Rule) and value is not Rule)
    ]


def as_json(report: RuleReport) -> str:
    """The report as data."""
    data = {
        "rule": report.rule.name,
        "passed": report.passed,
        "programs": report.programs,
        "seed": report.seed,
        "fired": report.fired,
        "checked_sites": report.checked_sites,
        "unsettled": report.unsettled,
        "seconds": round(report.seconds, 2),
        "failures": [
            {
                "kind": failure.flaw.kind,
                "story": failure.flaw.story,
                "program": failure.program,
                "snippet": failure.snippet,
            }
            for failure in report.failures
        ],
        "refusals": dict(report.refusals),
    }
    return json.dumps(data, indent=1) + "\n"
