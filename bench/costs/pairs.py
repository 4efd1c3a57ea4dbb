"""The (workload, schedule) pairs that are measured, kept in a file: the same for every run.

python -m bench.costs.pairs                choose them anew and write bench/costs/pairs.jsonl
python -m bench.costs.pairs --count 32     up to 32 schedules of each workload
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from bench.costs.variations import Pair, pairs_of
from bench.costs.workloads import WORKLOADS

FILE = Path(__file__).with_name("pairs.jsonl")
COUNT = 24


def read_pairs(names: Iterable[str] = ()) -> tuple[Pair, ...]:
    """The pairs of the file, or those of some workloads."""
    wanted = tuple(names)
    lines = FILE.read_text(encoding="utf-8").splitlines()
    found = (Pair(**json.loads(line)) for line in lines)
    return tuple(pair for pair in found if not wanted or pair.workload in wanted)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=COUNT)
    options = parser.parse_args()
    lines = []
    for workload in WORKLOADS:
        pairs = pairs_of(workload, options.count, workload.sizes)
        lines += [json.dumps(asdict(pair)) + "\n" for pair in pairs]
        print(f"{workload.name:20} {len(pairs)}", flush=True)
    FILE.write_text("".join(lines), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
