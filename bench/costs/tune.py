"""Tune MCFuser's workloads on a GPU: how long it takes, and how near it comes to the best of all.

    python -m bench.costs.tune --out $OUT/tune --seconds 450           all, on a GPU
    python -m bench.costs.tune --out $OUT/tune --only G1,S4
    python -m bench.costs.tune --out /tmp/tune --compile --only G1     no GPU: choices are compiled

Each workload is tuned twice, with nothing compiled before. "tiered": our closed form ranks all
configurations, the first 8 are compiled side by side and timed. "mcfuser": the source's
evolutionary search with its equations. Then, as long as there is time, all configurations of a
workload are compiled and timed. Last, the choices of a workload are timed again in turn: the
default schedule, what each model would choose without a GPU, what was tuned, the best of all.

OUT/tune.jsonl gets a line for each workload; run again with the same --out, it goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import blockbuster as bb
from bench.costs.measure import machine as about
from bench.costs.tunable import EXAMPLES, Config, chain_of, mcfuser, scheduled, space, tiered
from bench.costs.tuning import Job, built, timed, timed_again, woken
from blockbuster.tiling.measurement import Measurement, Workers, gpu_workers
from blockbuster.tiling.mutation import mutations_of
from blockbuster.tiling.search import Found, Settings, evolutionary, exhaustive

Record = dict[str, Any]
TOP = 8  # configurations that are measured, as in the source
ROUNDS = 9  # in which the choices are timed in turn
NEAREST = 3  # of an exhaustive search, that are timed again
SETTLED = 20.0  # seconds that are kept for the workload at hand
PATIENCE = 90.0  # seconds in which some measurement must end
NOISE_US, NEAR = 0.15, 0.03  # how far from the best of all a choice may be


@dataclass(frozen=True)
class Bench:
    """Workers that compile and, on a GPU, one that times."""

    compilers: Workers
    gpu: Workers | None

    def seconds(self, jobs: Sequence[Job]) -> list[Measurement[Job]]:
        """Compile jobs side by side, then time each alone; without a GPU, only the first."""
        made = self.compilers.measure(built, jobs)
        if self.gpu is None:
            return list(made)
        right = [one.candidate for one in made if one.seconds is not None]
        times = {one.candidate: one for one in self.gpu.measure(timed, right)}
        return [times.get(one.candidate, one) for one in made]

    def in_turn(self, jobs: Sequence[Job]) -> dict[Job, float]:
        """Median seconds of rounds in which all jobs are timed."""
        assert self.gpu is not None
        turns = [(job, number) for number in range(ROUNDS) for job in jobs]
        found: dict[Job, list[float]] = {}
        for one in self.gpu.measure(timed_again, turns):
            if one.seconds is not None:
                found.setdefault(one.candidate[0], []).append(one.seconds)
        return {job: statistics.median(times) for job, times in found.items()}


@dataclass(frozen=True)
class Task:
    """A workload with its space: the texts of its schedules by configuration, and two models."""

    name: str
    texts: Mapping[Config, str]
    by_tiers: Mapping[Config, float]
    by_mcfuser: Mapping[Config, float]

    def measured(
        self, bench: Bench, folder: Path, configs: Sequence[Config]
    ) -> list[Measurement[Config]]:
        """Measurements of configurations, whose files are in ``folder``."""
        jobs = [Job(self.name, self.texts[config], str(folder)) for config in configs]
        found = bench.seconds(jobs)
        pairs = zip(configs, found, strict=True)
        return [Measurement(config, one.seconds, one.reason) for config, one in pairs]


def task_of(name: str, machine: bb.Machine) -> Task:
    """The space of a workload, without what our closed form says does not fit."""
    chain = chain_of(name)
    texts: dict[Config, str] = {}
    tiers: dict[Config, float] = {}
    for config in space(chain, machine):
        text = config.schedule(chain)
        try:
            tiers[config] = tiered(name, text, machine)
        except (ValueError, bb.EmitError):
            continue  # no such schedule, or too large
        texts[config] = text
    return Task(name, texts, tiers, {one: mcfuser(chain, one, machine) for one in texts})


# searches ----------------------------------------------------------------------------


def by_tiers(task: Task, bench: Bench, folder: Path) -> Found[Config]:
    """The best of those that our closed form ranks first."""
    ranked = sorted(task.by_tiers, key=lambda config: task.by_tiers[config])
    return exhaustive(ranked[:TOP], partial(task.measured, bench, folder))


def by_mcfuser(task: Task, bench: Bench, folder: Path) -> Found[Config]:
    """The source's evolutionary search with its equations."""
    configs = tuple(task.texts)
    mutations = mutations_of(configs, lambda config: config.coordinates)
    return evolutionary(
        configs,
        mutations,
        lambda config: task.by_mcfuser[config],
        partial(task.measured, bench, folder),
        Settings(top=TOP),
    )


METHODS: Mapping[str, Callable[[Task, Bench, Path], Found[Config]]] = {
    "tiered": by_tiers,
    "mcfuser": by_mcfuser,
}


def tuned(name: str, machine: bb.Machine, bench: Bench, work: Path, *, all_of_it: bool) -> Record:
    """The record of a workload."""
    record: Record = {"workload": name}
    choices: dict[str, str] = {"default": scheduled(name, None).schedule}
    for method, search in METHODS.items():
        began = time.perf_counter()
        task = task_of(name, machine)
        found = search(task, bench, work / method)
        record[method] = {
            "seconds": round(time.perf_counter() - began, 2),
            **_shown(found),
        }
        choices[f"{method} tuned"] = task.texts[found.best]
    record["space"] = len(task.texts)
    for model, estimates in (("tiered", task.by_tiers), ("mcfuser", task.by_mcfuser)):
        choices[f"{model} model"] = task.texts[min(estimates, key=lambda one: estimates[one])]
    if all_of_it:
        began = time.perf_counter()
        measure = partial(task.measured, bench, work / "tiered")
        found = exhaustive(tuple(task.texts), measure)
        record["all"] = {"seconds": round(time.perf_counter() - began, 2), **_shown(found)}
        record["all"]["times"] = {
            task.texts[one.candidate]: round(one.seconds * 1e6, 3)
            for one in found.measured
            if one.seconds is not None
        }
        times = record["all"]["times"]
        ranked = sorted((us, text) for text, us in times.items())
        choices |= {f"all {n}": text for n, (_, text) in enumerate(ranked[:NEAREST], start=1)}
    return record | {"choices": choices, "us": _again(name, choices, bench, work / "tiered")}


def _again(name: str, choices: Mapping[str, str], bench: Bench, folder: Path) -> dict[str, float]:
    """Microseconds of each choice, timed in turn; empty without a GPU."""
    jobs = {text: Job(name, text, str(folder)) for text in choices.values()}
    made = bench.compilers.measure(built, list(jobs.values()))
    if bench.gpu is None:
        return {}
    times = bench.in_turn([one.candidate for one in made if one.seconds is not None])
    found = {label: times.get(jobs[text]) for label, text in choices.items()}
    return {label: round(t * 1e6, 3) for label, t in found.items() if t is not None}


def _shown(found: Found[Config]) -> Record:
    lost = [one.reason[:200] for one in found.lost]
    return {"measured": len(found.measured), "us": round(found.seconds * 1e6, 3), "lost": lost}


# the run -----------------------------------------------------------------------------


def run(names: Sequence[str], options: argparse.Namespace) -> int:
    """Tune workloads until time is up; write and print what was found."""
    end = time.monotonic() + options.seconds
    options.out.mkdir(parents=True, exist_ok=True)
    path: Path = options.out / "tune.jsonl"
    (options.out / "machine.json").write_text(json.dumps(about(), indent=1) + "\n")
    records = _read(path)
    machine = bb.machine("h200")
    count = options.workers or os.cpu_count() or 1
    pool = partial(ProcessPoolExecutor, count, get_context("spawn"))
    one_gpu = Workers(partial(gpu_workers, ("0",)), patience=PATIENCE)
    with (
        tempfile.TemporaryDirectory() as folder,
        Workers(pool, patience=PATIENCE) as compilers,
        one_gpu as gpu,
    ):
        bench = Bench(compilers, None if options.compile else gpu)
        compilers.measure(woken, range(count))
        if bench.gpu is not None:
            bench.gpu.measure(woken, range(1))
        for name in names:
            if name in records or time.monotonic() + SETTLED > end:
                continue
            work = Path(folder) / name
            for method in METHODS:
                (work / method).mkdir(parents=True)
            all_of_it = name in options.all and not options.compile
            records[name] = tuned(name, machine, bench, work, all_of_it=all_of_it)
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(records[name]) + "\n")
            print(line(records[name]), flush=True)
    print(table(list(records.values())))
    return 0 if records else 1


def _read(path: Path) -> dict[str, Record]:
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {record["workload"]: record for record in map(json.loads, lines)}


def line(record: Record) -> str:
    """One workload in a line."""
    us = record["us"]
    times = " ".join(f"{label} {t:.2f}" for label, t in us.items())
    took = " ".join(f"{method} {record[method]['seconds']:.1f} s" for method in METHODS)
    return f"{record['workload']:4} {record['space']:3} configurations; {took}; {times}"


def table(records: Sequence[Record]) -> str:
    """Microseconds of every choice, and which come near the best of all."""
    labels = ("default", "tiered model", "mcfuser model", "tiered tuned", "mcfuser tuned")
    lines = [f"{'':4} {'seconds':>8} " + " ".join(f"{label:>14}" for label in labels) + "    best"]
    near, known = dict.fromkeys(labels, 0), 0
    for record in records:
        us = record["us"]
        best = min((us[label] for label in us if label.startswith("all")), default=None)
        cells = " ".join(f"{us[label]:14.2f}" if label in us else f"{'-':>14}" for label in labels)
        shown = f"{best:8.2f}" if best is not None else f"{'-':>8}"
        lines.append(f"{record['workload']:4} {record['tiered']['seconds']:8.1f} {cells} {shown}")
        if best is not None:
            known += 1
            within = best + max(NEAR * best, NOISE_US)
            for label in labels:
                near[label] += label in us and us[label] <= within
    if known:
        counts = ", ".join(f"{label} {count}" for label, count in near.items())
        lines.append(f"within max(3%, 0.15 us) of the best of all, of {known}: {counts}")
    beaten = sum(r["us"].get("tiered model", 0) < r["us"].get("default", 0) for r in records)
    lines.append(f"the model's choice beats the default schedule: {beaten} of {len(records)}")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("build/tune"))
    parser.add_argument("--only", default="", help="names of workloads, separated by commas")
    parser.add_argument("--all", default="", help="those that are searched exhaustively, too")
    parser.add_argument("--seconds", type=float, default=450)
    parser.add_argument("--compile", action="store_true", help="compile for sm_90, time nothing")
    parser.add_argument("--workers", type=int, default=0, help="that compile; 0: one for each core")
    options = parser.parse_args()
    names = [n for n in options.only.split(",") if n] or list(EXAMPLES)
    options.all = [n for n in options.all.split(",") if n] or names
    if unknown := [n for n in (*names, *options.all) if n not in EXAMPLES]:
        parser.error(f"unknown: {', '.join(unknown)}; workloads: {', '.join(EXAMPLES)}")
    return run(names, options)


if __name__ == "__main__":
    sys.exit(main())
