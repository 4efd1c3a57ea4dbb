"""How much slower than the best schedule the first choice by the price is, workload by workload.

    python -m bench.costs.regret bench/results/2026-11-26-h100-space/held.jsonl      # no GPU
    python -m bench.costs.regret --recorded FILE     # by the price of the day of the drawing

The file has measured pairs (measure.py) of schedules in the space of a workload (near.py). Of each
workload the table has the best time, that of the schedule that the price ranks first and of the one
that was chosen when the pairs were drawn (the first of them), cold; the correlation of ranks, and
the predicted time over the measured one. Schedules that have become illegal since are left out.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.costs.variations import scheduled
from bench.costs.workloads import BY_NAME
from blockbuster.errors import BlockbusterError
from blockbuster.selection.search import microseconds

FEWEST = 3  # schedules of a workload that is judged


@dataclass(frozen=True)
class Judged:
    """A workload: measured microseconds of schedules, and what was predicted of them."""

    name: str
    part: str
    measured: tuple[float, ...]
    predicted: tuple[float, ...]

    @property
    def first(self) -> int:
        """The schedule that the price ranks first."""
        return min(range(len(self.predicted)), key=self.predicted.__getitem__)

    @property
    def regret(self) -> float:
        """How many times slower than the best it is, less one."""
        return self.measured[self.first] / min(self.measured) - 1.0

    @property
    def ranked(self) -> float:
        """Spearman's correlation."""
        places = [np.argsort(np.argsort(x)) for x in (self.predicted, self.measured)]
        return float(np.corrcoef(*places)[0, 1])

    def __str__(self) -> str:
        best, first, chosen = min(self.measured), self.measured[self.first], self.measured[0]
        ratio = self.predicted[self.first] / first
        return (
            f"{self.name:24} {len(self.measured):3} {best:9.2f} {first:9.2f} {self.regret:7.1%}"
            f" {chosen / best - 1.0:7.1%} {self.ranked:6.2f} {ratio:6.2f}"
        )


def judged(file: Path, *, recorded: bool = False) -> Iterator[Judged]:
    """The workloads of a file with enough schedules.

    ``recorded``: judged are the predictions that were noted when the pairs were drawn.
    """
    lines = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    timed = [one for one in lines if one["state"] == "timed"]
    for name in dict.fromkeys(one["workload"] for one in timed):
        mine = (one for one in timed if one["workload"] == name)
        pairs = [pair for one in mine if (pair := _pair(one, recorded))]
        if len(pairs) >= FEWEST:
            measured, predicted = zip(*pairs, strict=True)
            yield Judged(name, BY_NAME[name].part, measured, predicted)


def _pair(one: dict[str, Any], recorded: bool) -> tuple[float, float] | None:
    """Measured and predicted microseconds; None for a schedule that is no longer legal."""
    measured = statistics.median(one["cold"])
    if recorded:
        return measured, one["predicted"]
    workload = BY_NAME[one["workload"]]
    try:
        made = scheduled(workload, one["snapshot"], one["schedule"], workload.sizes)
    except BlockbusterError:
        return None
    return measured, microseconds(made)


def table(found: Sequence[Judged]) -> str:
    """A line for each workload, and the median and the worst regret of each part."""
    head = f"{'workload':24} {'n':>3} {'best us':>9} {'first us':>9} {'regret':>7}"
    lines = [f"{head} {'chosen':>7} {'rank':>6} {'ratio':>6}", *map(str, found)]
    for part in dict.fromkeys(one.part for one in found):
        regrets = [one.regret for one in found if one.part == part]
        middle = statistics.median(regrets)
        worst = max(regrets)
        lines.append(f"{part}: {len(regrets)} workloads, median {middle:.1%}, worst {worst:.1%}")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path, help="pairs, as bench.costs.measure writes them")
    parser.add_argument(
        "--recorded", action="store_true", help="judge the predictions noted before measuring"
    )
    options = parser.parse_args()
    print(table(list(judged(options.file, recorded=options.recorded))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
