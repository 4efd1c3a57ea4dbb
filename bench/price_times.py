"""The time that it takes to look at a schedule: to replay it, close its program and price it.

    python -m bench.price_times --only attention,ffn --out build/price.jsonl         # no GPU

For each case of bench/peers a kernel is chosen. Then all schedules that are one edit away from the
chosen one are looked at, one after the other, in a process that has seen none of them. A line of
the file has the medians of their milliseconds, and the seconds and schedules of the choice itself.
All times are of the process on the CPU, so that other work on the computer does not count.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context
from multiprocessing.context import BaseContext
from pathlib import Path
from time import process_time

from bench.choices import asked_for, fused
from bench.peers.cases import BY_KEY
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.tile.array_dtypes import given_by
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.trips import sized
from blockbuster.errors import BlockbusterError
from blockbuster.ir.garbage import collection_paused
from blockbuster.ir.sizes import bind_sizes
from blockbuster.selection.choice import Fused
from blockbuster.selection.price import priced
from blockbuster.selection.space import Space

PARTS = ("replay", "closing", "closed form", "in all")

@dataclass(frozen=True)
class Times:
    """A case: its choice, and medians of milliseconds of schedules near it."""

    key: str
    choice_seconds: float
    choice_schedules: int
    schedules: int
    milliseconds: dict[str, float]


def chosen(key: str, target: str) -> tuple[float, int, Scheduled]:
    """The seconds of a choice, how many schedules it looked at, and the schedule."""
    case = BY_KEY[key]
    derivation, dtypes, constant = fused(case)
    given = replace(given_by(dtypes), constants=tuple(constant))
    choices = Fused(derivation.start, derivation, constants=bool(constant))
    program = lower_to_tiles(derivation.start)
    sizes = bind_sizes((), {}, program.rules, case.sizes, needed=sized(program))
    begin = process_time()
    considered = choices.consider(sizes, given, target)
    seconds = process_time() - begin
    words = (one.schedules.split() for one in (considered.best, *considered.others))
    counts = (int(next((word for word in said if word.isdigit()), "1")) for said in words)
    assert considered.best.scheduled is not None
    return seconds, sum(counts), considered.best.scheduled


def looked_at(best: Scheduled) -> list[list[float]]:
    """Milliseconds of each schedule that is one edit away from ``best``, in its parts.

    What does not replay counts with the next one that does.
    """
    space, times = Space(best), list[list[float]]()
    space.after(best.moves)  # the search has come from it
    _priced(best)
    near, begin = space.neighbours(best), process_time()
    for one in near:
        replayed, made = process_time(), one.scheduled
        assert made.program
        closed = process_time()
        _priced(made)
        ends = (begin, replayed, closed, process_time())
        parts = [1e3 * (b - a) for a, b in itertools.pairwise(ends)]
        times.append([*parts, sum(parts)])
        begin = process_time()
    return times


def _without_collections(best: Scheduled) -> list[list[float]]:
    with collection_paused():  # as in a choice
        return looked_at(best)


def _priced(scheduled: Scheduled) -> None:
    try:
        priced(scheduled)
    except ValueError:  # it does not fit: that is an answer, too
        return


def times_of(key: str, target: str) -> Times:
    """The times of a case; the choice and the schedules near it each in a process of its own."""
    with ProcessPoolExecutor(1, _children()) as pool:
        seconds, count, best = pool.submit(chosen, key, target).result()
    with ProcessPoolExecutor(1, _children()) as pool:
        times = pool.submit(_without_collections, best).result()
    medians = [round(statistics.median(column), 3) for column in zip(*times, strict=True)]
    milliseconds = dict(zip(PARTS, medians, strict=False))
    return Times(key, round(seconds, 2), count, len(times), milliseconds)


def _children() -> BaseContext:
    """New processes with modules imported, in which nothing else was done."""
    context = get_context("forkserver")
    context.set_forkserver_preload(["bench.choices", "blockbuster.selection.choice"])
    return context


def summary(found: Sequence[Times]) -> str:
    """The medians over all cases, in words."""
    many = f"{len(found)} case{'s' * (len(found) != 1)}"
    lines = [f"{many}, medians of their medians:"]
    for part in PARTS:
        each = [one.milliseconds[part] for one in found if one.milliseconds]
        lines.append(f"{part}: {statistics.median(each):.2f} ms, at most {max(each):.2f}")
    schedules = sum(one.choice_schedules for one in found)
    seconds = [one.choice_seconds for one in found]
    lines.append(
        f"a choice: {statistics.median(seconds):.2f} s, at most {max(seconds):.2f}; "
        f"{1e3 * sum(seconds) / schedules:.1f} ms for each of {schedules} schedules"
    )
    return "\n".join(lines)


def main() -> int:
    """Write the times of cases."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="a file of JSON lines")
    parser.add_argument("--only", default="", help="suites or cases, separated by commas")
    parser.add_argument("--target", default="sm_90", help="an architecture or a GPU")
    options = parser.parse_args()
    words, found = [word for word in options.only.split(",") if word], list[Times]()
    with options.out.open("w", encoding="utf-8") as file:
        for key in asked_for(words):
            try:
                found.append(times_of(key, options.target))
            except (BlockbusterError, ValueError) as error:  # it has no kernel
                print(f"{key}: {error}", file=sys.stderr)
                continue
            file.write(json.dumps(asdict(found[-1])) + "\n")
            file.flush()
    print(summary(found), file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
