"""Tune MCFuser's workloads on a GPU: the time it takes, and the distance to the best of all.

    python -m bench.costs.tune --out $OUT/tune --seconds 450           all, on a GPU
    python -m bench.costs.tune --out $OUT/tune --only G1,S4 --gpus 2
    python -m bench.costs.tune --out build/tune --compile --only G1     no GPU: choices are compiled

Each workload is tuned twice, with nothing compiled before. "ranked": our closed form ranks all
configurations, 32 are compiled and ranked by their binaries, 8 are timed. "mcfuser": the source's
evolutionary search with its equations. Then, for ten workloads, all configurations are compiled and
timed. Last, the choices of a workload are timed again in turn: the default schedule, what each
model would choose without a GPU (the closed form, the binaries' model, the source's equations),
what was tuned, the best of all.

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
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import blockbuster as bb
from bench.costs.measure import machine as about
from bench.costs.ranking import rank
from bench.costs.tunable import EXAMPLES, Config, chain_of, mcfuser, scheduled, space
from bench.costs.tuning import InFolder, Job, built, timed, timed_again, woken
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.tiling.measurement import Measurement, Workers, gpu_workers
from blockbuster.tiling.mutation import mutations_of
from blockbuster.tiling.search import Found, Settings, evolutionary, exhaustive

Record = dict[str, Any]
TOP = 8  # configurations that are measured, as in the source
GENERATIONS = 6  # of the source's search, at most
CHECKED = ("G1", "G4", "G6", "G7", "G9", "G11", "S1", "S4", "S6", "S8")
ROUNDS = 9  # in which the choices are timed in turn
NEAREST = 3  # of an exhaustive search, that are timed again
SETTLED = 20.0  # seconds that are kept for the workload at hand
PATIENCE = 90.0  # seconds in which some measurement must end
BOTH = "both"  # the better of the two ways to tune, one after the other
NOISE_US, NEAR = 0.15, 0.03  # how far from the best of all a choice may be


@dataclass(frozen=True)
class Bench:
    """Workers that compile and, on a GPU, one that times."""

    compilers: Workers
    gpu: Workers | None

    def seconds(self, jobs: Sequence[Job]) -> list[Measurement[Job]]:
        """Compile jobs side by side, then time each alone on a GPU; without one, compile alone."""
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
    """A workload with its space: the schedule of each configuration, and the source's estimate."""

    name: str
    schedules: Mapping[Config, Scheduled]
    estimates: Mapping[Config, float]

    def measured(
        self, bench: Bench, folder: Path, configs: Sequence[Config]
    ) -> list[Measurement[Config]]:
        """Measurements of configurations, whose files are in ``folder``."""
        jobs = [Job(self.name, self.schedules[config].schedule, str(folder)) for config in configs]
        found = bench.seconds(jobs)
        pairs = zip(configs, found, strict=True)
        return [Measurement(config, one.seconds, one.reason) for config, one in pairs]


def task_of(name: str, machine: bb.Machine) -> Task:
    """The space of a workload."""
    chain = chain_of(name)
    configs = space(chain, machine)
    schedules = {config: scheduled(name, config.schedule(chain)) for config in configs}
    return Task(name, schedules, {one: mcfuser(chain, one, machine) for one in configs})


# searches ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """What a search found; ``chosen``: what its models would choose without a GPU, by model."""

    found: Found[Config]
    chosen: Mapping[str, Config]


def ranked(task: Task, machine: bb.Machine, bench: Bench, folder: Path) -> Outcome:
    """Our closed form and the binaries' model rank, the first are timed."""
    configs = {made.schedule: config for config, made in task.schedules.items()}
    executor = InFolder(bench.compilers.executor, str(folder))
    schedules = tuple(task.schedules.values())
    ranking = rank(schedules, machine, warm=True, best=TOP, executor=executor)
    places = (*ranking.best, *ranking.others)
    best = [configs[place.scheduled.schedule] for place in ranking.best]
    first = min(places, key=lambda place: place.first)
    chosen = {"closed form": configs[first.scheduled.schedule], "binaries": best[0]}
    return Outcome(exhaustive(best, partial(task.measured, bench, folder)), chosen)


def by_mcfuser(task: Task, machine: bb.Machine, bench: Bench, folder: Path) -> Outcome:  # noqa: ARG001
    """The source's evolutionary search with its equations."""
    configs = tuple(task.schedules)
    mutations = mutations_of(configs, lambda config: config.coordinates)
    measured = partial(task.measured, bench, folder)
    estimates = task.estimates
    found = evolutionary(
        configs,
        mutations,
        estimates.__getitem__,
        measured,
        Settings(top=TOP, generations=GENERATIONS),
    )
    return Outcome(found, {"equations": min(configs, key=estimates.__getitem__)})


METHODS: Mapping[str, Callable[[Task, bb.Machine, Bench, Path], Outcome]] = {
    "ranked": ranked,
    "mcfuser": by_mcfuser,
}


def tuned(name: str, machine: bb.Machine, bench: Bench, work: Path, *, all_of_it: bool) -> Record:
    """The record of a workload."""
    record: Record = {"workload": name}
    choices: dict[str, str] = {"default": scheduled(name, None).schedule}
    for method, search in METHODS.items():
        began = time.perf_counter()
        task = task_of(name, machine)
        outcome = search(task, machine, bench, work / method)
        took = round(time.perf_counter() - began, 2)
        record[method] = {"seconds": took, **_shown(outcome.found)}
        choices[method] = task.schedules[outcome.found.best].schedule
        choices |= {model: task.schedules[one].schedule for model, one in outcome.chosen.items()}
    record["space"] = len(task.schedules)
    if all_of_it:
        found = exhaustive(tuple(task.schedules), partial(task.measured, bench, work / "ranked"))
        times = {
            task.schedules[one.candidate].schedule: round(one.seconds * 1e6, 3)
            for one in found.measured
            if one.seconds is not None
        }
        record["all"] = {**_shown(found), "times": times}
        nearest = sorted(times, key=times.__getitem__)[:NEAREST]
        choices |= {f"all {n}": text for n, text in enumerate(nearest, start=1)}
    return record | {"choices": choices, "us": _again(name, choices, bench, work / "ranked")}


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
    devices = [str(number) for number in range(options.gpus)]
    with (
        tempfile.TemporaryDirectory() as folder,
        Workers(pool, patience=PATIENCE) as compilers,
        Workers(partial(gpu_workers, devices), patience=PATIENCE) as gpu,
    ):
        bench = Bench(compilers, None if options.compile else gpu)
        compilers.measure(woken, range(count))
        if bench.gpu is not None:
            bench.gpu.measure(woken, range(options.gpus))
        for name in names:
            if name in records or time.monotonic() + SETTLED > end:
                continue
            work = Path(folder) / name
            for method in METHODS:
                (work / method).mkdir(parents=True)
            all_of_it = name in options.all and not options.compile
            try:
                records[name] = tuned(name, machine, bench, work, all_of_it=all_of_it)
            except (ValueError, bb.EmitError, BrokenExecutor) as error:
                records[name] = {"workload": name, "error": f"{type(error).__name__}: {error}"}
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
    if "error" in record:
        return f"{record['workload']:4} FAILED: {record['error']}"
    us = record["us"]
    times = " ".join(f"{label} {t:.2f}" for label, t in us.items())
    took = " ".join(f"{method} {record[method]['seconds']:.1f} s" for method in METHODS)
    return f"{record['workload']:4} {record['space']:3} configurations; {took}; {times}"


def table(found: Sequence[Record]) -> str:
    """Microseconds of every choice, and which come near the best of all.

    ``seconds``: what both ways to tune take together.
    """
    records = [record for record in found if "error" not in record]
    labels = ("default", "closed form", "binaries", "equations", "ranked", "mcfuser", BOTH)
    heads = " ".join(f"{label:>11}" for label in ("seconds", *labels, "best"))
    lines = [f"{'':4} {heads}"]
    near, known = dict.fromkeys(labels, 0), 0
    for record in records:
        us = dict(record["us"])
        if {"ranked", "mcfuser"} <= set(us):
            us[BOTH] = min(us["ranked"], us["mcfuser"])
        best = min((us[label] for label in us if label.startswith("all")), default=None)
        seconds = record["ranked"]["seconds"] + record["mcfuser"]["seconds"]
        numbers = (seconds, *(us.get(label) for label in labels), best)
        cells = " ".join(f"{'-' if x is None else format(x, '.2f'):>11}" for x in numbers)
        lines.append(f"{record['workload']:4} {cells}")
        if best is not None:
            known += 1
            within = best + max(NEAR * best, NOISE_US)
            for label in labels:
                near[label] += label in us and us[label] <= within
    if known:
        counts = ", ".join(f"{label} {count}" for label, count in near.items())
        lines.append(f"within max(3%, 0.15 us) of the best of all, of {known}: {counts}")
    for model in ("closed form", "binaries"):
        pairs = [
            (r["us"][model], r["us"]["default"])
            for r in records
            if {model, "default"} <= set(r["us"])
        ]
        beaten = sum(mine < default for mine, default in pairs)
        lines.append(f"{model}: the choice beats the default schedule for {beaten} of {len(pairs)}")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("build/tune"))
    parser.add_argument("--only", default="", help="names of workloads, separated by commas")
    parser.add_argument(
        "--all", default=",".join(CHECKED), help="whose configurations all are timed"
    )
    parser.add_argument("--seconds", type=float, default=450)
    parser.add_argument("--compile", action="store_true", help="compile for sm_90, time nothing")
    parser.add_argument("--gpus", type=int, default=1, help="of this host, one process for each")
    parser.add_argument("--workers", type=int, default=0, help="that compile; 0: one for each core")
    options = parser.parse_args()
    names = [n for n in options.only.split(",") if n] or list(dict.fromkeys((*CHECKED, *EXAMPLES)))
    options.all = [n for n in options.all.split(",") if n]
    if unknown := [n for n in (*names, *options.all) if n not in EXAMPLES]:
        parser.error(f"unknown: {', '.join(unknown)}; workloads: {', '.join(EXAMPLES)}")
    return run(names, options)


if __name__ == "__main__":
    sys.exit(main())
