"""The report of the property suite on a rule: as text, and in notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape

from blockbuster.errors import quoted_lines, shown_lines
from blockbuster.rules.base import Rule
from blockbuster.testing.sites import Flaw, Site

WIDTH = 100


@dataclass(frozen=True)
class Failure:
    """Something that a rule owes and does not give, with a small program that shows it."""

    flaw: Flaw
    site: Site | None = None
    found: str = ""
    """Where the first program with this flaw came from."""

    @property
    def program(self) -> str:
        """The text of the program, "" if the flaw is not one of a program."""
        return self.site.graph.show() if self.site else ""

    @property
    def story(self) -> str:
        """The story of the flaw, long lines of numbers cut short."""
        lines = shown_lines(self.flaw.story.rstrip())
        return "\n".join(_cut_short(line) for line in lines)

    @property
    def snippet(self) -> str:
        """Python that shows the flaw, to be pasted into a file or a notebook."""
        return snippet(self.site) if self.site else ""

    def __str__(self) -> str:
        text = f"{self.flaw.kind}: {self.story}\n"
        if self.site:
            text += f"at {self.site}, {self.found}; a minimal program:\n\n{self.snippet}"
        return text


@dataclass(frozen=True)
class RuleReport:
    """The result of ``check_rule``; ``fired`` counts the programs that had a site of the rule."""

    rule: Rule
    programs: int
    seed: int
    fired: int
    checked_sites: int
    unsettled: int
    cases: int
    seconds: float
    failures: tuple[Failure, ...]
    refusals: Mapping[str, int] = field(default_factory=dict)
    """How often the rule refused a site of its pattern, by reason."""

    @property
    def passed(self) -> bool:
        """True if the rule keeps every promise at every site that was tried."""
        return not self.failures

    @property
    def rows(self) -> tuple[tuple[str, str], ...]:
        """The figures with their names."""
        rows = [
            ("programs", f"{self.programs} (seed {self.seed})"),
            ("with a site", str(self.fired)),
            ("sites checked exactly", str(self.checked_sites)),
            ("sites refused", f"{sum(self.refusals.values())}, for {len(self.refusals)} reasons"),
        ]
        if self.unsettled:
            rows.append(("sites left unsettled", str(self.unsettled)))
        if self.cases:
            rows.append(("golden cases", str(self.cases)))
        return (*rows, ("seconds", f"{self.seconds:.1f}"))

    def __str__(self) -> str:
        verdict = "passed" if self.passed else "FAILED"
        width = max(len(name) for name, _ in self.rows)
        lines = [f"{self.rule.name}: {verdict}"]
        lines += [f"  {name:{width}}  {value}" for name, value in self.rows]
        return "\n".join(lines + [f"\n{failure}" for failure in self.failures]).rstrip() + "\n"

    def _repr_html_(self) -> str:
        color, verdict = ("#2e7d32", "passed") if self.passed else ("#c62828", "failed")
        rows = "".join(f"<tr><td>{escape(n)}</td><td>{escape(v)}</td></tr>" for n, v in self.rows)
        parts = [
            f"<b>{escape(self.rule.name)}</b>: <b style='color:{color}'>{verdict}</b>",
            f"<table>{rows}</table>",
        ]
        for failure in self.failures:
            parts.append(f"<p><b>{escape(failure.flaw.kind)}</b></p>")
            parts.append(f"<pre>{escape(failure.story)}</pre>")
            if failure.snippet:
                title = f"a minimal program ({failure.found})"
                code = f"<pre>{escape(failure.snippet)}</pre>"
                parts.append(f"<details open><summary>{escape(title)}</summary>{code}</details>")
        if self.refusals:
            most = sorted(self.refusals.items(), key=lambda item: (-item[1], item[0]))[:10]
            listed = "".join(f"<li>{escape(why)} ({count})</li>" for why, count in most)
            parts.append(f"<details><summary>why it refused</summary><ul>{listed}</ul></details>")
        return "".join(parts)


def _cut_short(line: str) -> str:
    numbers = sum(map(str.isdigit, line)) > len(line) / 4
    return f"{line[: WIDTH - 4]} ..." if numbers and len(line) > WIDTH else line


def snippet(site: Site) -> str:
    """Python that applies the rule at ``site`` and compares the programs before and after."""
    kind = type(site.match.rule)
    lines = ["import blockbuster as bb"]
    if kind.__module__ == "__main__":
        lines += ["", f"rule = {kind.__qualname__}()  # as defined above"]
    else:
        lines += [f"from {kind.__module__} import {kind.__qualname__}", ""]
        lines += [f"rule = {kind.__qualname__}()"]
    lines += [f"program = bb.parse({quoted_lines(site.graph.show())})"]
    nodes = dict(site.match.nodes)
    if site.path:
        lines.insert(1, "from blockbuster.rules.derivation import splice")
        lines += [f"level = program.at({site.path})"]
    level = "level" if site.path else "program"
    wanted = f"dict(m.nodes) == {nodes!r}"
    lines += [f"match = next(m for m in rule.matches({level}) if {wanted})"]
    lines += ["after = rule.apply(match)"]
    if site.path:
        lines += [f"after, _ = splice(program, {site.path}, after)"]
    return "\n".join([*lines, "print(after)", "print(bb.prove_equal(program, after))"]) + "\n"
