"""Which mutants of the rules each tier of exact comparison kills by itself.

    python -m bench.mutant_kills

Writes bench/results/prove/kills.json and kills.md.
"""

from __future__ import annotations

import argparse
import json
import time
from datetime import date
from pathlib import Path

from blockbuster.testing.cases import read_cases
from tests.interp.pairs import told_apart
from tests.mutants.kills import CASES, FORM, TIERS, kills, table
from tests.mutants.of_ours import MUTANTS_OF_OURS
from tests.mutants.of_the_paper import MUTANTS

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests" / "golden" / "rules"
RESULTS = ROOT / "bench" / "results" / "prove" / "kills"
PROGRAMS = 40
EDITS = 100

TEXT = """# What each tier kills, {date}

{count} mutants of the rules, each tried on {programs} random programs at up to four sites of each
stage. A number is that of the first program on which this way of checking alone notices, in
{trials} trials. *Form*: the result is ill-formed or breaks another promise that shows without
running anything. A mutant without a number among the tiers makes equal programs (it wastes work,
or refuses for another reason: the golden cases tell), or none that is well-formed.
Each tier alone also rejects the right rules factor-out, where it takes factors out of extrema and
magnitudes, and repair-by-law, which are proved in every case of their comparisons: numbers of these
mutants (scaled, magnitude) say nothing, and golden cases kill them.
Tier B and ordered arithmetic have no proven bound: this is their measured kill rate.
{seconds:.0f} s of processor time.

{table}
## Edited programs

Mutants of the safety pass are not in the catalogue, and it is what tier B is for. So random
programs, and safe forms of random programs, are edited at one node (an operator, an operand, a
constant, a monoid), where float64 tells the two apart; each tier is asked alone, in 8 trials.
*Agree* would be a false answer; ordered arithmetic refuses most: roots, erf, exp of fractions.

{edits}"""


def edited(count: int) -> str:
    """What each tier says of edited programs, as a table."""
    lines = ["| pairs | tier | differ | agree | unsettled |", "|---|---|---:|---:|---:|"]
    for safely in (False, True):
        what = f"{count} {'safe forms' if safely else 'programs'}"
        for tier, said in told_apart(count, safely=safely).items():
            cells = " | ".join(str(said[verdict]) for verdict in ("differ", "agree", "unsettled"))
            lines.append(f"| {what} | {tier} | {cells} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    start, found = time.process_time(), []
    for mutant in (*MUTANTS, *MUTANTS_OF_OURS):
        found.append(kills(mutant, read_cases(GOLDEN / mutant.rule_module), PROGRAMS))
        print(mutant.name, dict(found[-1].programs), found[-1].case, flush=True)
    seconds = time.process_time() - start
    data = {
        "schema": "blockbuster.kills/1",
        "date": date.today().isoformat(),
        "programs": PROGRAMS,
        "mutants": [
            {"name": k.mutant.name, "programs": dict(k.programs), "case": k.case} for k in found
        ],
        "killed": {way: sum(k.by(way) for k in found) for way in (FORM, *TIERS, CASES)},
        "with_other_results": sum(k.by_results for k in found),
        "cpu_seconds": round(seconds, 1),
    }
    RESULTS.with_suffix(".json").write_text(json.dumps(data, indent=1) + "\n", "utf-8")
    text = TEXT.format(
        date=data["date"], count=len(found), programs=PROGRAMS, trials=2, seconds=seconds,
        table=table(found), edits=edited(EDITS),
    )  # fmt: skip
    RESULTS.with_suffix(".md").write_text(text, "utf-8")


if __name__ == "__main__":
    main()
