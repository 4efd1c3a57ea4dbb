"""The chosen schedule of each workload beside measured ones: the default, and the best of all.

    python -m bench.costs.choices                                   write bench/costs/choices.jsonl
    python -m bench.costs.measure --out $OUT/choices --pairs bench/costs/choices.jsonl    on a GPU
    python -m bench.costs.choices --judge bench/results/2026-11-22-h200-costs [more folders]

The file has, for each snapshot that a workload starts from, the default schedule, the chosen one
and those that follow it; and of all schedules that were measured before, the best. The judge needs
no GPU: it prints recorded times of the default schedule, of the chosen one, and of the best. A
schedule is recorded if one was measured that differs in ``LATER`` moves alone, which came later.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.costs.measured import WAYS, Record, records_of
from bench.costs.variations import Pair, scheduled
from bench.costs.workloads import WORKLOADS, Workload
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.selection.contest import best_schedule, why_default
from blockbuster.selection.cost import Cost
from blockbuster.selection.nearby.variation import preferred
from blockbuster.selection.nearby.variations import variations
from blockbuster.selection.price import priced

FILE = Path(__file__).with_name("choices.jsonl")
RESULTS = Path(__file__).parents[1] / "results"
RECORDED = (RESULTS / "2026-11-22-h200-costs", RESULTS / "2026-11-22-h200-kept")
FIRST = 2000  # the number of a workload's first pair: others have the numbers below
FOLLOWING = 5  # variations behind the chosen one that are measured, too
LATER = (
    "factor",
    "overlap",
    "group",
    "recut",
    "jam",
    "stage nest 2 K_chunk",
    "stage nest 2 N_chunk",
)


@dataclass(frozen=True)
class Chosen:
    """The default schedule of a snapshot, what is chosen instead, and what follows that."""

    snapshot: int
    default: Scheduled
    best: Scheduled
    following: tuple[Scheduled, ...]

    @property
    def cost(self) -> Cost:
        """Of the chosen one."""
        return priced(self.best)


def chosen(workload: Workload) -> list[Chosen]:
    """What is chosen for each snapshot that a workload starts from, the cheapest first."""
    found = []
    for snapshot in dict.fromkeys(snapshot for snapshot, _ in workload.starts):
        default = scheduled(workload, snapshot, None, workload.sizes)
        varied = not why_default(default, priced(default))
        near = preferred(variations(default)) if varied else []
        following = tuple(one.scheduled for one in near[1 : FOLLOWING + 1])
        found.append(Chosen(snapshot, default, best_schedule(default), following))
    return sorted(found, key=lambda one: one.cost.microseconds)


def pairs(workload: Workload, records: Sequence[Record]) -> Iterator[Pair]:
    """What is measured of a workload; nothing twice."""
    texts: dict[tuple[int, str], None] = {}
    for one in chosen(workload):
        for made in (one.default, one.best, *one.following):
            texts[one.snapshot, made.schedule] = None
    mine = [r for r in records if r["workload"] == workload.name]
    for way in WAYS:
        best = min(mine, key=lambda record: _time(record, way))
        texts[best["snapshot"], best["schedule"]] = None
    for number, (snapshot, text) in enumerate(texts, FIRST):
        yield Pair(workload.name, number, snapshot, text)


def judged(workload: Workload, records: Sequence[Record]) -> str:
    """A line of the table."""
    mine = [record for record in records if record["workload"] == workload.name]
    best, *others = chosen(workload)
    first = {one.snapshot: one.default for one in (best, *others)}
    cells = [f"{workload.name:20}"]
    for way in WAYS:
        least = min(_time(record, way) for record in mine)
        now = _recorded(mine, best.snapshot, best.best, way)
        before = (_recorded(mine, snapshot, one, way) for snapshot, one in first.items())
        known = min((t for t in before if t is not None), default=None)
        cells += [f"{_shown(known)} {_shown(now)} {least:8.2f}"]
    text = "; ".join(best.best.schedule.splitlines())
    return f"{' |'.join(cells)} | {best.cost.microseconds:8.2f} | {best.snapshot}: {text}"


def _recorded(records: Sequence[Record], snapshot: int, made: Scheduled, way: str) -> float | None:
    wanted = _plain(made.schedule)
    times = [
        _time(record, way)
        for record in records
        if record["snapshot"] == snapshot and _plain(record["schedule"]) == wanted
    ]
    return min(times, default=None)


def _plain(schedule: str) -> tuple[str, ...]:
    """The lines of moves that there were when schedules were measured first."""
    return tuple(line for line in schedule.splitlines() if not line.startswith(LATER))


def _time(record: Mapping[str, list[float]], way: str) -> float:
    return statistics.median(record[way])


def _shown(time: float | None) -> str:
    return f"{time:8.2f}" if time is not None else f"{'–':>8}"


def timed(folders: Sequence[Path]) -> list[Record]:
    """The records of some folders that have times."""
    found = [one for folder in folders for one in records_of(folder / "pairs.jsonl").values()]
    return [record for record in found if record["state"] == "timed"]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--judge", type=Path, nargs="+", help="folders of recorded times")
    parser.add_argument("--only", default="", help="names of workloads, separated by commas")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else [w.name for w in WORKLOADS]
    workloads = [workload for workload in WORKLOADS if workload.name in names]
    if options.judge:
        records = timed(options.judge)
        print(f"{'':20} |{'cold: default, chosen, best':>27} |{'warm: the same':>27} | said")
        for workload in workloads:
            print(judged(workload, records), flush=True)
        return 0
    records = timed(RECORDED)
    lines = [json.dumps(asdict(pair)) for w in workloads for pair in pairs(w, records)]
    FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(lines)} pairs in {FILE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
