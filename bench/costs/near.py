"""Choose (workload, schedule) pairs in the space of schedules, near what is chosen for a workload.

    python -m bench.costs.near --out bench/costs/near.jsonl         # no GPU; --only, --count
    python -m bench.costs.near --held                               # those of held2.jsonl
    python -m bench.costs.measure --pairs bench/costs/near.jsonl --out $OUT/near      # on a GPU

Each pair has its price, so that predictions are known to be older than measurements.
Of each workload: the schedule that is chosen, those that a beam search by the closed form ranks
first, neighbours of the chosen schedule drawn with a fixed seed, and neighbours of these. A search
exploits whatever the closed form does not know, so the second kind shows what it has to learn.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path

from bench.costs.variations import TARGET, Pair
from bench.costs.workloads import BY_NAME, FIT_WORKLOADS, HELD, NEAR, ONCE_HELD
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.target.targets import target_of
from blockbuster.emit.tile.array_dtypes import given_by, typed_for_gpu
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.errors import BlockbusterError
from blockbuster.rules import safe
from blockbuster.selection.contest import best_schedule
from blockbuster.selection.decisions.default_schedule import default_schedule
from blockbuster.selection.search import beam, microseconds
from blockbuster.selection.space import Space

FILE = Path(__file__).with_name("near.jsonl")
HELD_FILE = Path(__file__).with_name("held2.jsonl")
"""The pairs of ``HELD``."""
COUNT, HELD_COUNT = 24, 17
BUDGET = 200
"""Schedules that the beam search prices for each workload."""
WORST = 3.0
"""Times the price of the chosen schedule: what costs more is left out."""


def pairs_of(name: str, count: int) -> tuple[Pair, ...]:
    """The pairs of one workload, the chosen schedule first."""
    chosen = {}
    for snapshot in range(BY_NAME[name].snapshots):
        try:
            made = chosen_for(name, snapshot)
        except BlockbusterError:
            continue
        chosen[snapshot] = made
    first = min(chosen, key=lambda snapshot: microseconds(chosen[snapshot]))
    start = chosen[first]
    limit, chance, space = WORST * microseconds(start), random.Random(name), Space(start)
    ranked = [one.scheduled for one in beam([start], microseconds, budget=BUDGET)]
    best: dict[tuple[object, ...], Scheduled] = {}
    for one in ranked:  # of those that differ in order alone the first
        best.setdefault(_shape(one), one)
    found = list(best.values())
    near = [one.scheduled for one in space.neighbours(start)]
    chance.shuffle(near)
    near = [one for one in near if microseconds(one) <= limit]
    far = []
    for one in near[: count // 4]:
        steps = [other.scheduled for other in space.neighbours(one)]
        chance.shuffle(steps)
        far += [step for step in steps[:20] if microseconds(step) <= limit][:1]
    kept = [start, *found[: count // 3], *near[: count // 2], *far, *near[count // 2 :]]
    texts = {one.schedule: round(microseconds(one), 3) for one in kept}
    drawn = list(texts.items())[:count]
    return tuple(Pair(name, at, first, *one) for at, one in enumerate(drawn))


def _shape(scheduled: Scheduled) -> tuple[object, ...]:
    """What schedules have in common that differ in the order of their programs alone."""
    return tuple((nest.blocks, nest.warps, nest.programs) for nest in scheduled.draft.nests)


def chosen_for(name: str, snapshot: int) -> Scheduled:
    """The schedule that is chosen for a snapshot. Raises EmitError if it has no form."""
    workload = BY_NAME[name]
    graph = workload.graph(snapshot)
    program = typed_for_gpu(graph, lower_to_tiles(safe(graph)), given_by(workload.dtype))
    return best_schedule(default_schedule(program, workload.sizes, device=target_of(TARGET)))


def choose(names: Sequence[str], count: int, out: Path, workers: int) -> None:
    """Write the pairs of these workloads to a file."""
    with ProcessPoolExecutor(workers) as pool, out.open("w", encoding="utf-8") as file:
        for name, pairs in zip(names, pool.map(partial(pairs_of, count=count), names), strict=True):
            print(f"{name}: {len(pairs)} pairs", file=sys.stderr)
            file.writelines(json.dumps(asdict(pair)) + "\n" for pair in pairs)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, help="default: near.jsonl, or held2.jsonl")
    parser.add_argument("--only", default="", help="names of workloads, separated by commas")
    parser.add_argument("--held", action="store_true", help="the workloads that are held back")
    parser.add_argument("--count", type=int, help="pairs of a workload, at most")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    names = [name for name in options.only.split(",") if name]
    if unknown := [name for name in names if name not in BY_NAME]:
        parser.error(f"unknown: {', '.join(unknown)}; workloads: {', '.join(BY_NAME)}")
    known = HELD if options.held else (*ONCE_HELD, *NEAR, *FIT_WORKLOADS)
    names = names or [workload.name for workload in known]
    count = options.count or (HELD_COUNT if options.held else COUNT)
    out = options.out or (HELD_FILE if options.held else FILE)
    choose(names, count, out, options.workers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
