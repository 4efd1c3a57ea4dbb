"""Our kernels and their peers on a GPU, in one run: correctness and time.

    python -m bench.peers.run --out $OUT --quick                 a few shapes a family, <= 300 s
    python -m bench.peers.run --out $OUT --seconds 560           the full list; again to go on
    python -m bench.peers.run --out $OUT --only decode,rows      some suites, or cases by name
    python -m bench.peers.run --out $OUT --only outside --every 3     a third of bench/outside
    python -m bench.peers.run --out $OUT --quick --ours-only     to compare two commits
    python -m bench.peers.run --dry-run                          no GPU: all agree at small sizes

OUT/cases.jsonl gets a line for each case; a second run with the same --out leaves out timed cases.
OUT/table.md is made from it at the end; ``bench.peers.report`` makes it anew, with plots.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bench.peers.case import BOUND, HAND, LARGEST, Case
from bench.peers.cases import ALL, CASES, SUITES
from bench.peers.pool import Pool, Setting, taking_part, work
from bench.peers.report import table
from bench.peers.trial import checked, prepared
from bench.records import Log, Record, machine
from blockbuster.machines.present import gpu_name

EACH = 3.0  # seconds that are kept for timing a case
BATCH = 4  # cases that a process prepares before all are timed


def chosen(options: argparse.Namespace) -> list[Case]:
    """The cases of a run; without names those of all suites but ``outside`` and ``einsum``.

    Raises ValueError for a name that is neither suite nor case, an unknown family, ``every`` below
    1, and if no case is left.
    """
    if options.every < 1:
        raise ValueError(f"--every is {options.every}; 1 takes all cases, 2 every second one")
    words = [word for word in options.only.split(",") if word]
    known = {*SUITES, *(case.name for case in ALL), *(case.key for case in ALL)}
    if unknown := [word for word in words if word not in known]:
        raise ValueError(f"no suite or case is named {unknown[0]}; suites: {', '.join(SUITES)}")
    named = [case for case in ALL if {case.suite, case.name, case.key} & set(words)]
    named = [case for case in named or CASES if case.quick or not options.quick]
    families = dict.fromkeys(case.family for case in named)
    asked = [family for family in options.families.split(",") if family]
    if unknown := [family for family in asked if family not in families]:
        raise ValueError(f"no family here is named {unknown[0]}; families: {', '.join(families)}")
    found = [case for case in named if not asked or case.family in asked][:: options.every]
    if not found:
        raise ValueError("no case is left: leave out --quick, or name other suites")
    return found


def add_choice(parser: argparse.ArgumentParser, only: str = "") -> None:
    """The options that ``chosen`` reads."""
    parser.add_argument("--only", default=only, help="suites or cases, separated by commas")
    parser.add_argument("--families", default="", help="families of these, separated by commas")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="every N-th of these")
    parser.add_argument("--quick", action="store_true", help="few shapes, no max-autotune")


def run(cases: Sequence[Case], options: argparse.Namespace) -> int:
    """Time the cases that are not timed yet. The exit code is 1 if ours is not right in one."""
    begun = time.monotonic()
    options.out.mkdir(parents=True, exist_ok=True)
    log = Log(options.out / "cases.jsonl")
    states = {case.key: log.found.get(case.key, {}).get("state", "") for case in cases}
    left = [key for key, state in states.items() if state != "timed"]
    left.sort(key=lambda key: states[key] == "failed")  # those that failed before come last

    def note(record: Record) -> None:
        log.note(record)
        print(f"{time.monotonic() - begun:5.0f} s  {line(record)}", flush=True)

    setting = Setting(options.ours_only, not options.no_library, searches=not options.quick)
    count = min(options.workers or os.cpu_count() or 1, len(left))
    pool = Pool(count, setting, note, work)
    try:
        for at in range(0, len(left), BATCH * count or 1):
            pool.run(left[at : at + BATCH * count], each=EACH, end=begun + options.seconds)
    finally:
        pool.close()
    log.merge()
    about = machine() | {"library": setting.library}
    about |= {"seconds": round(time.monotonic() - begun, 1), "cases": len(left)}
    with (options.out / "runs.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(about) + "\n")
    records = [log.found[case.key] for case in cases if case.key in log.found]
    (options.out / "table.md").write_text(table(records), encoding="utf-8")
    print(table(records))
    missing = [case.key for case in cases if case.key not in log.found]
    print(f"{len(records)} cases, {len(missing)} left, {about['seconds']} s on {about['gpu']}")
    return 1 if any("ours" in record.get("failed", {}) for record in records) else 0


def line(record: Record) -> str:
    """One case in a line: its times, and what failed."""
    from bench.peers.report import times_of

    times = " · ".join(f"{name} {us:.1f}" for name, us in times_of(record).items())
    failed = "; ".join(
        f"{name}: {' '.join(why.split())[:120]}" for name, why in record.get("failed", {}).items()
    )
    return f"{record['key']:40} {times}{'  FAILED ' if failed else ''}{failed}"


def dry_run(cases: Sequence[Case]) -> int:
    """Compare all with the exact result at small sizes in float32, on the CPU.

    Compilers and hand-written kernels are left out. The exit code is 1 if one is wrong.
    """
    import torch

    wrong = 0
    with torch.no_grad():
        for case in cases:
            here = replace(case, dtype="float32")
            found = [one for one in taking_part(here, Setting()) if one.kind not in (HAND, BOUND)]
            made = prepared(here, found, here.drawn(here.few, "cpu", seed=1))
            errors = checked(made)
            wrong += len(made.failed)
            words = " · ".join(f"{name} {error:.0e}" for name, error in errors.items())
            print(f"{case.key:40} {words}", flush=True)
            for name, why in made.failed.items():
                print(f"  {name}: {why}", flush=True)
    print(f"{len(cases)} cases, {wrong} contestants wrong (above {LARGEST['float32']:.0e})")
    return 1 if wrong else 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("build/peers"))
    add_choice(parser)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--ours-only", action="store_true", help="no peers")
    parser.add_argument(
        "--no-library", action="store_true", help="ours without calls of torch's library"
    )
    parser.add_argument("--dry-run", action="store_true", help="small sizes on the CPU, untimed")
    parser.add_argument("--workers", type=int, default=0, help="processes; 0: one for each core")
    options = parser.parse_args()
    try:
        cases = chosen(options)
    except ValueError as error:
        parser.error(str(error))
    if not options.dry_run and not gpu_name():
        parser.error("there is no GPU here; --dry-run compares all contestants on the CPU")
    return dry_run(cases) if options.dry_run else run(cases, options)


if __name__ == "__main__":
    sys.exit(main())
