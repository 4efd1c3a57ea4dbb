"""Mutants: rules with one precondition dropped or one detail wrong, which the suite must catch.

A mutant is an edit of one line of a rule's source, or of what the rule is built from. The edited
modules are private copies that no one can import: the rules in use never change.
"""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Literal

from blockbuster.rules.base import Rule
from blockbuster.testing.cases import Case, problem
from blockbuster.testing.check import Trial

PACKAGE = "blockbuster.rules"
Suite = Literal["programs", "cases"]


@dataclass(frozen=True)
class Mutant:
    """``before`` becomes ``after`` in ``module``, and ``rule`` of ``rule_module`` is wrong.

    ``killer`` is the part of the suite that must notice: random programs, exactly compared, or the
    golden cases, where the mutant is merely wasteful or its preconditions are about profit.
    """

    name: str
    rule: str
    module: str
    before: str
    after: str
    killer: Suite = "programs"

    @property
    def rule_module(self) -> str:
        """The module of the rule's class: snake case of its name."""
        letters = [f"_{c.lower()}" if c.isupper() else c for c in self.rule]
        return "".join(letters).lstrip("_")

    def build(self) -> Rule:
        """The wrong rule. Raises ValueError if the text to be edited is not there once."""
        return Copies(f"{PACKAGE}.{self.module}", self.before, self.after).rule(self)


@dataclass(frozen=True)
class Verdict:
    """The death of a mutant: by which golden case, or after how many random programs."""

    mutant: Mutant
    case: str
    programs: int | None
    how: str

    @property
    def dead(self) -> bool:
        """True if the part of the suite that must kill the mutant does."""
        return bool(self.case) if self.mutant.killer == "cases" else self.programs is not None

    def __str__(self) -> str:
        programs = f"program {self.programs} ({self.how})" if self.programs else "no program"
        killer = programs if self.mutant.killer == "programs" else self.case or "no golden case"
        return f"{self.mutant.name}: {killer}"


def judge(mutant: Mutant, cases: tuple[Case, ...] = (), programs: int = 150) -> Verdict:
    """Run the part of the suite that must kill a mutant until something notices.

    The cases are planted in random programs, too. ``kills`` tells what every part notices.
    """
    rule = mutant.build()
    if mutant.killer == "cases":
        wrong = (case.path.name for case in cases if problem(rule, case))
        return Verdict(mutant, next(wrong, ""), None, "")
    trial = Trial(rule, examples=tuple(case.before for case in cases))
    found = next(trial.flaws(programs), None)
    count = trial.programs if found else None
    return Verdict(mutant, "", count, found.flaw.kind if found else "")


class _Edited(SourceFileLoader):
    """Loads a module from its source with an edit."""

    def __init__(self, name: str, path: str, before: str, after: str) -> None:
        super().__init__(name, path)
        self.before, self.after = before, after

    def get_code(self, fullname: str) -> CodeType:
        source = Path(self.path).read_text(encoding="utf-8")
        if self.before and source.count(self.before) != 1:
            count = source.count(self.before)
            raise ValueError(f"{fullname} has {self.before!r} {count} times, expected once")
        edited = source.replace(self.before, self.after) if self.before else source
        return self.source_to_code(edited.encode(), self.path)


class Copies:
    """Private copies of the edited module and of every module of rules that builds on it."""

    def __init__(self, module: str, before: str, after: str) -> None:
        self.edited, self.before, self.after = module, before, after
        self.copies: dict[str, ModuleType] = {}

    def rule(self, mutant: Mutant) -> Rule:
        copy = self.copy(f"{PACKAGE}.{mutant.rule_module}")
        rule = getattr(copy, mutant.rule)()
        assert isinstance(rule, Rule)
        return rule

    def copy(self, name: str) -> ModuleType:
        """A copy of a module whose names of edited things are bound to the copies of those."""
        if name in self.copies:
            return self.copies[name]
        path = importlib.import_module(name).__file__ or ""
        edits = (self.before, self.after) if name == self.edited else ("", "")
        loader = _Edited(name, path, *edits)
        spec = spec_from_loader(name, loader)
        assert spec is not None
        made = self.copies[name] = module_from_spec(spec)
        loader.exec_module(made)
        for attribute, value in list(vars(made).items()):
            if _owner(value) != name:
                setattr(made, attribute, self._copied(value))
            elif isinstance(value, type):
                bases = tuple(map(self._copied, value.__bases__))
                if bases != value.__bases__:
                    value.__bases__ = bases
        return made

    def _copied(self, value: Any) -> Any:
        """The copy of a class or function that an edited module defines; else ``value``."""
        owner = _owner(value)
        return getattr(self.copy(owner), value.__name__) if self.reaches(owner) else value

    def reaches(self, name: str) -> bool:
        """True if the module is the edited one or takes names from one that reaches it."""
        if not name.startswith(f"{PACKAGE}."):
            return False
        if name == self.edited:
            return True
        owners = dict.fromkeys(_owner(value) for value in vars(sys.modules[name]).values())
        return any(owner != name and self.reaches(owner) for owner in owners)


def _owner(value: object) -> str:
    """The module in which a class or function was defined, "" for other values."""
    named = isinstance(value, type) or callable(value)
    return getattr(value, "__module__", "") or "" if named and hasattr(value, "__name__") else ""
