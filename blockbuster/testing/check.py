"""The property suite of one rule: ``check_rule``."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from blockbuster.errors import RuleError
from blockbuster.interp.trials import Trials
from blockbuster.ir.graph import Graph
from blockbuster.ir.parse import parse
from blockbuster.rules import RULES, fuse
from blockbuster.rules.base import Rule
from blockbuster.testing.cases import problem, read_cases
from blockbuster.testing.generators import program_for
from blockbuster.testing.report import Failure, RuleReport
from blockbuster.testing.shrink import smallest
from blockbuster.testing.sites import TRIALS, UNSETTLED, Flaw, Site, endless, flaw, raised, sites

MOST_SITES = 4  # sites checked at one stage of a program; others are left to other programs
MOST_STAGES = 2  # stages of its fusion at which a program is tried, besides the program itself
FEWEST = 10  # programs that must have a site, or a tenth of those tried if that is less


def check_rule(
    rule: Rule,
    *,
    programs: int = 200,
    seed: int = 0,
    examples: Sequence[str | Graph] = (),
    cases: str | Path | None = None,
) -> RuleReport:
    """Check that a rule keeps its obligations at every site of random programs.

    The result is well-formed, has the same interface, prints and parses back, names the rule as its
    origin and computes the same, exactly; apply does not change its input; the rule terminates, and
    fires often enough for the check to mean something. ``examples`` are programs that have a site,
    which are planted in random programs; ``cases`` is a folder of golden ``.bb`` files. A failure
    comes with a minimal program. Stops at the first program that shows a flaw. Raises TypeError for
    an argument that is not a rule, or a rule without a name.
    """
    if not isinstance(rule, Rule):
        hint = f": pass {rule.__name__}()" if isinstance(rule, type) else ""
        raise TypeError(f"check_rule takes a rule, an instance of a subclass of Rule{hint}")
    if not getattr(rule, "name", ""):
        kind = type(rule).__name__
        raise TypeError(f'{kind} has no name: write name: ClassVar[str] = "my-rule" in its class')
    if isinstance(examples, str | Graph):
        raise TypeError("examples is one program: pass a list of them, [example]")
    start = time.perf_counter()
    texts = tuple(e.show() if isinstance(e, Graph) else parse(e).show() for e in examples)
    trial = Trial(rule, seed, texts)
    failures = [] if cases is None else _golden_failures(rule, trial, Path(cases))
    for found in trial.flaws(programs):
        failures.append(minimal(found, seed))
        break
    else:
        failures += trial.too_few()
    return RuleReport(
        rule, trial.programs, seed, trial.fired, trial.checked, trial.unsettled, trial.cases,
        time.perf_counter() - start, tuple(failures), dict(trial.refusals),
    )  # fmt: skip


@dataclass
class Trial:
    """A rule on trial: the programs drawn for it, and what was counted on the way."""

    rule: Rule
    seed: int = 0
    examples: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    programs: int = 0
    fired: int = 0
    checked: int = 0
    unsettled: int = 0
    cases: int = 0
    refusals: Counter[str] = field(default_factory=Counter)

    def flaws(self, programs: int) -> Iterator[Failure]:
        """The first flaw of each program, at a site as it was found."""
        for at in range(programs):
            random = Random(f"{self.seed}/{at}")
            kind, graph = program_for(self.rule.name, at, random, self.examples, self.kinds)
            self.programs += 1
            before = self.checked + self.unsettled
            where = f"found in program {at} of seed {self.seed} ({kind})"
            for stage in stages(graph, random):
                found = self._flaw(stage, random)
                if found:
                    self.fired += 1
                    yield Failure(found[1], found[0], where)
                    break
            else:
                self.fired += self.checked + self.unsettled > before

    def _flaw(self, graph: Graph, random: Random) -> tuple[Site | None, Flaw] | None:
        try:
            found = list(sites(graph, [self.rule], self._note))
        except Exception as error:
            return None, Flaw("matches fails", f"matches raised {raised(error)} on\n\n{graph}")
        trials = Trials(TRIALS, random.randrange(2**32))
        for site in random.sample(found, min(len(found), MOST_SITES)):
            wrong = flaw(site, trials) or endless(site)
            if wrong and wrong.kind != UNSETTLED:
                self.checked += 1
                return site, wrong
            self.checked += wrong is None
            self.unsettled += wrong is not None
        return None

    def _note(self, refusal: object) -> None:
        self.refusals[getattr(refusal, "reason", "")] += 1

    def too_few(self) -> list[Failure]:
        """A rule that hardly fires has shown nothing."""
        fewest = max(1, min(FEWEST, self.programs // 10))
        if self.checked and self.fired >= fewest:
            return []
        story = (
            f"{self.fired} of {self.programs} programs had a site of {self.rule.name}, expected at "
            f"least {fewest}: its promises were hardly tried. Pass programs that have one: "
            "check_rule(rule, examples=[...])"
        )
        return [Failure(Flaw("hardly fires", story))]


def stages(graph: Graph, random: Random) -> Iterator[Graph]:
    """The program, and as it is after some steps of its fusion."""
    yield graph
    if random.random() < 0.5:
        return
    try:
        derivation = fuse(graph, RULES)
    except RuleError as error:
        raise AssertionError("our rules failed on a generated program") from error
    counts = range(1, len(derivation.applications) + 1)
    for count in sorted(random.sample(counts, min(len(counts), MOST_STAGES))):
        yield derivation.graph_after(count)


def minimal(failure: Failure, seed: int) -> Failure:
    """The failure with a program that no single cut makes smaller."""
    if failure.site is None:
        return failure
    rule, kind = failure.site.match.rule, failure.flaw.kind
    shown = {failure.site.graph: (failure.site, failure.flaw)}

    def fails(graph: Graph) -> bool:
        try:
            found = list(sites(graph, [rule]))
        except Exception:
            return False  # another flaw than the one to be shown
        for site in found[:MOST_SITES]:
            wrong = flaw(site, Trials(TRIALS, seed)) or endless(site)
            if wrong and wrong.kind == kind:
                shown[graph] = site, wrong
                return True
        return False

    site, wrong = shown[smallest(failure.site.graph, fails)]
    return Failure(wrong, site, failure.found)


def _golden_failures(rule: Rule, trial: Trial, folder: Path) -> list[Failure]:
    found = []
    for case in read_cases(folder):
        trial.cases += 1
        wrong = problem(rule, case)
        found += [Failure(wrong)] if wrong else []
    return found
