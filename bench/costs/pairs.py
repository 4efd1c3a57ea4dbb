"""The (workload, schedule) pairs that are measured, kept in files: the same for every run.

    python -m bench.costs.pairs                choose them anew and write bench/costs/pairs.jsonl
    python -m bench.costs.pairs --count 32     up to 32 schedules of each workload
    python -m bench.costs.pairs --kept         write bench/costs/kept.jsonl

The second file is for judging both stages together, on schedules that nothing was fitted to: of
each workload of the part "judge" the 32 of some 70 that the closed form ranks best, and up to eight
others. None of them is in the first file.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path

from bench.costs.variations import Pair, pairs_of, scheduled
from bench.costs.workloads import JUDGED, WORKLOADS, Workload
from blockbuster.costs.cost import cost
from blockbuster.costs.work import work

FILE = Path(__file__).with_name("pairs.jsonl")
KEPT_FILE = Path(__file__).with_name("kept.jsonl")
COUNT = 24
MANY, KEPT, OTHERS = 96, 32, 8


def read_pairs(names: Iterable[str] = (), file: Path = FILE) -> tuple[Pair, ...]:
    """The pairs of a file, or those of some workloads."""
    wanted = tuple(names)
    lines = file.read_text(encoding="utf-8").splitlines()
    found = (Pair(**json.loads(line)) for line in lines)
    return tuple(pair for pair in found if not wanted or pair.workload in wanted)


def chosen(count: int) -> Iterator[Pair]:
    """Up to so many schedules of every workload."""
    for workload in WORKLOADS:
        pairs = pairs_of(workload, count, workload.sizes)
        print(f"{workload.name:20} {len(pairs)}", flush=True)
        yield from pairs


def kept() -> Iterator[Pair]:
    """What the closed form keeps of many schedules of each judging workload, and some others."""
    for workload in JUDGED:
        known = {(p.snapshot, p.schedule) for p in read_pairs([workload.name])}
        many = pairs_of(workload, MANY, workload.sizes)
        fresh = [p for p in many if (p.snapshot, p.schedule) not in known]
        ranked = sorted(fresh, key=lambda pair: _closed(workload, pair))
        rest = ranked[KEPT:]
        others = random.Random(workload.name).sample(rest, min(OTHERS, len(rest)))
        pairs = [*ranked[:KEPT], *others]
        print(f"{workload.name:20} {len(pairs)} of {len(fresh)}", flush=True)
        yield from (replace(pair, number=1000 + at) for at, pair in enumerate(pairs))


def _closed(workload: Workload, pair: Pair) -> float:
    """Microseconds by the closed form; infinite where it says that no program fits."""
    works = work(scheduled(workload, pair.snapshot, pair.schedule, workload.sizes))
    try:
        return cost(works, launch="graph", warm=True).time_us
    except ValueError:
        return float("inf")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--kept", action="store_true", help="what the closed form keeps of many")
    options = parser.parse_args()
    pairs = kept() if options.kept else chosen(options.count)
    lines = [json.dumps(asdict(pair)) + "\n" for pair in pairs]
    file = KEPT_FILE if options.kept else FILE
    file.write_text("".join(lines), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
