"""The thorough profile: ``python -m bench.thorough``, or ``make prove``.

At least 20,000 random programs and 100,000 checked steps, in parallel, with a progress bar. It may
be interrupted: a state file keeps the progress, and the next start continues. It ends with a
report, in Markdown for people and in JSON.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import multiprocessing
import os
import platform
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tests.random_programs.walks import Tally, walked

CHUNK = 25  # programs of one task; a task done is a line in the state file
ROUND = 16  # tasks between two looks at what is reached
SCHEMA = "blockbuster.prove/1"
ROOT = Path(__file__).parents[1]
SOURCES = ("blockbuster", "tests/random_programs")


def main(argv: Sequence[str] | None = None) -> int:
    """Run, or go on with, the profile; the exit code is 1 where a step was wrong."""
    parser = argparse.ArgumentParser(prog="python -m bench.thorough")
    parser.add_argument("--programs", type=int, default=20_000, help="at least (default 20000)")
    parser.add_argument("--steps", type=int, default=100_000, help="at least (default 100000)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=max(1, min(os.cpu_count() or 1, 8)))
    parser.add_argument("--out", type=Path, default=Path("bench/results/prove"))
    arguments = parser.parse_args(argv)
    arguments.out.mkdir(parents=True, exist_ok=True)
    run = Run(arguments.out, arguments.seed, arguments.programs, arguments.steps)
    run.go(arguments.workers)
    text, data = run.report(arguments.workers)
    stem = arguments.out / f"{data['date']}-seed{arguments.seed}"
    stem.with_suffix(".md").write_text(text, encoding="utf-8")
    stem.with_suffix(".json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    run.state.unlink()
    print(f"{text}\nwrote {stem}.md and {stem}.json")
    return 1 if run.tally.failures else 0


class Run:
    """A run and its state file, whose first line says which run it is."""

    def __init__(self, out: Path, seed: int, programs: int, steps: int) -> None:
        self.seed, self.programs, self.steps = seed, programs, steps
        self.state = out / f"unfinished-seed{seed}.jsonl"
        self.tally = Tally()
        self.done: dict[int, None] = {}
        self.wall = 0.0
        self.sources = sources_digest()
        self._resume()

    def _resume(self) -> None:
        """Take over what an interrupted run of the same sources has done, or begin."""
        header = {"schema": SCHEMA, "seed": self.seed, "chunk": CHUNK, "sources": self.sources}
        lines = self.state.read_text(encoding="utf-8").splitlines() if self.state.exists() else []
        if lines and json.loads(lines[0]) == header:
            for line in lines[1:]:
                self._take(json.loads(line))
            print(f"going on with {self.state}: {len(self.done)} tasks are done")
            return
        if lines:
            print(f"{self.state} is of other sources: starting anew")
        self.state.write_text(json.dumps(header) + "\n", encoding="utf-8")

    def _take(self, entry: dict[str, Any]) -> None:
        self.done[entry["task"]] = None
        self.wall += entry["wall"]
        fields = dict(entry["tally"])
        for name in ("programs", "orders", "steps"):
            fields[name] = Counter(fields[name])
        self.tally.add(Tally(**fields))

    def go(self, workers: int) -> None:
        """Run tasks until there are enough programs and steps."""
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        context = multiprocessing.get_context("spawn")
        with (
            context.Pool(workers) as pool,
            Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True)) as progress,
        ):
            programs = progress.add_task("programs", total=self.programs)
            steps = progress.add_task("steps checked", total=self.steps)

            def show() -> None:
                progress.update(programs, completed=self.tally.programs.total())
                progress.update(steps, completed=self.tally.steps.total())

            first = 0
            while self._short():
                tasks = [t for t in range(first, first + ROUND) if t not in self.done]
                self._round(
                    pool.imap_unordered(_task, [(self.seed, t, CHUNK) for t in tasks]), show
                )
                first += ROUND

    def _short(self) -> bool:
        tally = self.tally
        return tally.programs.total() < self.programs or tally.steps.total() < self.steps

    def _round(self, results: Any, show: Callable[[], None]) -> None:
        last = time.monotonic()
        for task, tally in results:
            entry = {"task": task, "wall": time.monotonic() - last, "tally": vars(tally)}
            last = time.monotonic()
            with self.state.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")
            self._take(entry)
            show()

    def report(self, workers: int) -> tuple[str, dict[str, Any]]:
        """The report as Markdown and as data."""
        tally = self.tally
        data = {
            "schema": SCHEMA,
            "date": datetime.date.today().isoformat(),
            "seed": self.seed,
            "program_numbers": [0, tally.programs.total() - 1],
            "programs": dict(sorted(tally.programs.items())),
            "steps": dict(sorted(tally.steps.items())),
            "orders": dict(sorted(tally.orders.items())),
            "unsettled": tally.unsettled,
            "failures": tally.failures,
            "wall_seconds": round(self.wall, 1),
            "cpu_seconds": round(tally.seconds, 1),
            "workers": workers,
            "sources": self.sources,
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
            "versions": f"Python {platform.python_version()}, NumPy {np.__version__}",
        }
        return markdown(data), data


def markdown(data: dict[str, Any]) -> str:
    """The report for people."""
    programs, steps = sum(data["programs"].values()), sum(data["steps"].values())
    verdict = f"**{len(data['failures'])} steps were wrong.**" if data["failures"] else "0 wrong."
    cpu, wall = max(data["cpu_seconds"], 0.1), max(data["wall_seconds"], 0.1)
    lines = [
        f"# Thorough profile, {data['date']}",
        "",
        f"{programs:,} random programs, {steps:,} steps, each checked exactly: {verdict}",
        "",
        f"- seed {data['seed']}, programs {data['program_numbers'][0]} to "
        f"{data['program_numbers'][1]}; again: "
        f"`python -m bench.thorough --seed {data['seed']} --programs {programs}`",
        f"- {wall:,.0f} s on {data['workers']} processes, {cpu:,.0f} s of processor time: "
        f"{programs / cpu:.1f} programs and {steps / cpu:.1f} checked steps per processor second",
        f"- {data['machine']}; {data['versions']}; sources {data['sources'][:12]}",
        f"- {data['unsettled']} steps left unsettled (an undefined output, a zero denominator)",
        "",
    ]
    for title, key in (("programs", "programs"), ("rule", "steps"), ("order", "orders")):
        count = "programs" if key == "programs" else "steps"
        lines += [f"| {title} | {count} |", "|---|---:|"]
        lines += [f"| {name} | {number:,} |" for name, number in data[key].items()]
        lines.append("")
    for failure in data["failures"]:
        lines += ["```", failure.rstrip(), "```", ""]
    return "\n".join(lines)


def sources_digest() -> str:
    """A digest of all source files, so that a state file is never continued by other code."""
    digest = hashlib.sha256()
    files = (path for folder in SOURCES for path in (ROOT / folder).rglob("*.py"))
    for path in sorted(files):
        digest.update(path.relative_to(ROOT).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()


def _task(numbered: tuple[int, int, int]) -> tuple[int, Tally]:
    seed, task, chunk = numbered
    return task, walked(seed, range(task * chunk, (task + 1) * chunk))


if __name__ == "__main__":
    sys.exit(main())
