"""Golden cases of rules, as text: the program that a rule makes, or its reason to refuse.

A case is a ``.bb`` file: comment lines that say what it shows, the program before, and then either

- ``# after`` and the program that the first match makes; or
- ``# because: <reason>``, one line for each reason, and perhaps ``# wrong`` and the program that
  the rule would make without its precondition: it must give other numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from blockbuster.ir.parse import parse
from blockbuster.rules.base import Rule, reasons
from blockbuster.testing.sites import Flaw, Site, difference, flaw, raised

AFTER, BECAUSE, WRONG = "# after", "# because: ", "# wrong"
KIND = "golden case"


@dataclass(frozen=True)
class Case:
    """One golden file, taken apart; ``after`` and ``wrong`` are None if it has none."""

    path: Path
    title: str
    before: str
    after: str | None
    because: tuple[str, ...]
    wrong: str | None


def read_case(path: Path) -> Case:
    """The parts of a golden file."""
    parts: dict[str, list[str]] = {"title": [], "before": [], AFTER: [], WRONG: []}
    because, part = [], "title"
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
        if line.startswith(BECAUSE):
            because.append(line.removeprefix(BECAUSE).rstrip("\n"))
        elif line.rstrip() in (AFTER, WRONG):
            part = line.rstrip()
        else:
            part = "before" if part == "title" and line.startswith("graph") else part
            parts[part].append(line)
    text = {name: "".join(lines) for name, lines in parts.items()}
    return Case(
        path,
        text["title"],
        text["before"],
        text[AFTER] or None,
        tuple(because),
        text[WRONG] or None,
    )


def read_cases(folder: Path) -> tuple[Case, ...]:
    """The cases of a folder, by name. Raises ValueError if there are none."""
    paths = sorted(folder.glob("*.bb"))
    if not paths:
        raise ValueError(f"there are no golden cases (*.bb) in {folder}")
    return tuple(map(read_case, paths))


def problem(rule: Rule, case: Case) -> Flaw | None:
    """The difference between the rule's result and the case, in words."""
    try:
        found = next(_problems(rule, case), None)
    except Exception as error:
        found = raised(error)
    return Flaw(KIND, f"{case.path.name}: {found}") if found else None


def _problems(rule: Rule, case: Case) -> Iterator[str]:
    before = parse(case.before)
    match = rule.match(before)
    if case.after is None:
        if match is not None:
            yield "the rule must refuse this program and matches it"
        elif reasons(rule, before) != list(case.because):
            yield f"refused because of {reasons(rule, before)}, expected {list(case.because)}"
        if case.wrong is not None and difference(before, parse(case.wrong)) is None:
            yield "what the case calls wrong is not: the counterexample does not bite"
        return
    if match is None:
        yield f"the rule must match this program; it refuses it: {reasons(rule, before)}"
        return
    if rule.apply(match).show() != case.after:
        yield f"the rule makes another program:\n{rule.apply(match).show()}"
    found = flaw(Site(before, (), match))
    if found:
        yield f"{found.kind}: {found.story}"
