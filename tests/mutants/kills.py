"""Which mutants each tier of exact comparison kills by itself: a measure of tiers without a bound.

Tier A has a proven bound. Tier B and ordered arithmetic have none, so their misses are measured on
rules that are known to be wrong. A mutant that only wastes work, or refuses for another reason,
makes equal programs, which no tier may kill; a mutant that makes ill-formed programs is killed
before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from blockbuster.interp.constants import constants_of
from blockbuster.interp.tiers import CHARACTERS, DRAWN, FREE, ORDERED, Tier
from blockbuster.interp.trials import Trials, Unsettled
from blockbuster.ir.graph import Graph
from blockbuster.rules.base import Rule
from blockbuster.testing.cases import Case, problem
from blockbuster.testing.check import MOST_SITES, stages
from blockbuster.testing.generators import program_for
from blockbuster.testing.sites import TRIALS, Site, ill_made, sites
from tests.mutants.mutate import Mutant

TIERS: Mapping[str, Tier] = {
    "A": FREE, "A, orders drawn": DRAWN, "B": CHARACTERS, "ordered": ORDERED,
}  # fmt: skip
FORM, CASES = "form", "golden cases"


@dataclass(frozen=True)
class Kills:
    """The kills of a mutant: for each way the number of the program that did it."""

    mutant: Mutant
    programs: Mapping[str, int]
    case: str

    def by(self, way: str) -> bool:
        """True if this way alone kills the mutant: a tier, ``FORM`` or ``CASES``."""
        return bool(self.case) if way == CASES else way in self.programs

    @property
    def by_results(self) -> bool:
        """True if some tier does: the mutant makes well-formed programs that compute others."""
        return any(map(self.by, TIERS))


def kills(mutant: Mutant, cases: Sequence[Case] = (), programs: int = 60) -> Kills:
    """Every way that kills the mutant, on the programs of ``judge``."""
    rule = mutant.build()
    case = next((case.path.name for case in cases if problem(rule, case)), "")
    found: dict[str, int] = {}
    for number, site in _sites(rule, [case.before for case in cases], programs):
        if site is None or ill_made(site):
            found.setdefault(FORM, number)
            continue
        for name, tier in TIERS.items():
            if name in found:
                continue
            try:
                apart = _tell_apart(tier, site.graph, site.after, number)
            except ValueError:  # shapes that do not fit, which no type shows
                found.setdefault(FORM, number)
                break
            if apart:
                found[name] = number
        if found.keys() >= TIERS.keys():
            break
    return Kills(mutant, found, case)


def _sites(rule: Rule, examples: Sequence[str], programs: int) -> Iterator[tuple[int, Site | None]]:
    """Sites of the rule in random programs, numbered from 1; None if looking for them fails."""
    for at in range(programs):
        random = Random(f"0/{at}")
        _, graph = program_for(rule.name, at, random, examples)
        for stage in stages(graph, random):
            try:
                found = list(sites(stage, [rule]))
            except Exception:  # a mutant may do anything
                yield at + 1, None
                break
            for site in random.sample(found, min(len(found), MOST_SITES)):
                yield at + 1, site


def _tell_apart(tier: Tier, before: Graph, after: Graph, seed: int) -> bool:
    trials = Trials(TRIALS, seed, tier, constants_of(before, after))
    try:
        return trials.outcome(before, after).difference is not None
    except Unsettled:
        return False


def table(found: Sequence[Kills]) -> str:
    """A line for each mutant and the sums, as Markdown; numbers are those of programs."""
    ways = (FORM, *TIERS)
    lines = [f"| mutant | {' | '.join(ways)} | {CASES} |", "|---|" + "---:|" * (len(ways) + 1)]
    for kill in found:
        cells = [str(kill.programs.get(way, "")) for way in ways]
        lines.append(f"| {kill.mutant.name} | {' | '.join(cells)} | {'x' if kill.case else ''} |")
    sums = [str(sum(kill.by(way) for kill in found)) for way in (*ways, CASES)]
    lines.append(f"| **of {len(found)}** | {' | '.join(sums)} |")
    wrong = [kill for kill in found if kill.by_results]
    sums = [str(sum(kill.by(way) for kill in wrong)) for way in (*ways, CASES)]
    lines.append(f"| **of {len(wrong)} with other results** | {' | '.join(sums)} |")
    return "\n".join(lines) + "\n"
