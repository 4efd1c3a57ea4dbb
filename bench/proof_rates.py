"""Random programs and checked steps per second of one core.

    python bench/proof_rates.py [--rounds 5]

Like for like with the fuzzer of the prototype that this project began with: a random program is
drawn, a random one of the paper's rules is applied at a random level, up to 40 times, and after
each step the program is run and compared with the one before: in float64, or exactly (there in a
field of 44 bits, here in tier A with its random prime near 2^50). Everything counts: drawing,
finding sites, rewriting, running, comparing. Programs have the prototype's mean number of nodes:
smaller and larger ones than ``BOUNDS`` say are not taken, and drawing those does not count.
Seconds are those of the process; the fastest of several rounds over the same programs counts,
because other work on the machine slows this one down even in processor time.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from blockbuster.interp import equal
from blockbuster.interp.apart import close
from blockbuster.interp.semantics import Float64
from blockbuster.interp.setting import settings
from blockbuster.interp.trials import Draw, Trials, Unsettled
from blockbuster.ir.garbage import collection_paused
from blockbuster.ir.graph import Graph
from blockbuster.rules import PAPER_RULES
from blockbuster.rules.base import Rule
from blockbuster.rules.derivation import splice
from blockbuster.testing.generators import GENERATORS
from tests.random_programs.finder import Finder

RESULTS = Path(__file__).parent / "results" / "prove" / "rates"
MOST_STEPS = 40
BOUNDS = {"blocks": (1, 15), "arrays": (14, 60), "norms": (1, 60)}
PROGRAMS = {"blocks": 300, "arrays": 50, "norms": 25}  # in a round
# programs and checked steps per second, mean nodes; measured on 2 cores of x86-64, NumPy 2.4.6
PROTOTYPE: dict[tuple[str, str], tuple[float, float, int]] = {
    ("blocks", "float64"): (555, 620, 9), ("blocks", "exact"): (367, 416, 9),
    ("arrays", "float64"): (78, 1149, 29), ("arrays", "exact"): (25, 371, 29),
    ("norms", "float64"): (49, 1083, 37), ("norms", "exact"): (17, 377, 37),
}  # fmt: skip
Check = Callable[[Graph, Graph], bool | None]
Place = tuple[tuple[int, ...], Graph, Rule]


@dataclass
class Count:
    programs: int = 0
    steps: int = 0
    nodes: int = 0
    wrong: int = 0
    unsettled: int = 0
    drawing: float = 0.0
    rewriting: float = 0.0
    checking: float = 0.0

    @property
    def seconds(self) -> float:
        return self.drawing + self.rewriting + self.checking


def walk(graph: Graph, random: Random) -> Iterator[Graph]:
    """The program after each of up to ``MOST_STEPS`` steps, rules and levels at random."""
    finder = Finder(PAPER_RULES, most=1)
    for _ in range(MOST_STEPS):
        places = [
            (path, level, rule)
            for path, level in graph.walk()
            for rule in finder.hopeful(level).values()
        ]
        found = (
            (path, match)
            for path, level, rule in in_random_order(places, random)
            for match in finder.matches(rule, level)
        )
        site = next(found, None)
        if site is None:
            return
        path, match = site
        graph, _ = splice(graph, path, match.rule.apply(match))
        yield graph


def in_random_order(places: list[Place], random: Random) -> Iterator[Place]:
    """All of them; those that are not asked for are not drawn."""
    while places:
        at = int(random.random() * len(places))
        places[at], places[-1] = places[-1], places[at]
        yield places.pop()


def exactly(_: Graph, seed: int) -> Check:
    """One trial of tier A."""
    trials = Trials(1, seed)

    def agree(before: Graph, after: Graph) -> bool | None:
        try:
            return equal.difference(before, after, trials) is None
        except Unsettled:
            return None

    return agree


def in_float64(graph: Graph, seed: int) -> Check:
    """The same comparison in double precision, of numbers between -1 and 1."""

    @cache
    def draw() -> Draw:
        random = np.random.default_rng(seed)
        setting = next(settings(graph, graph, 1, random))
        inputs = {n: random.uniform(-1, 1, shape) for n, shape in setting.shapes(graph).items()}
        return Draw(setting, Float64, inputs)

    def agree(before: Graph, after: Graph) -> bool | None:
        left, right = draw().run(before), draw().run(after)
        if not all(np.isfinite(x).all() for x in left.values()):
            return None
        return all(close(x, right[name]) for name, x in left.items())

    return agree


CHECKS = {"float64": in_float64, "exact": exactly}


def measured(kind: str, check: str) -> Count:
    """The first programs of one kind."""
    np.random.default_rng(0)  # NumPy imports it on first use, which is no rate
    count, number = Count(), 0
    while count.programs < PROGRAMS[kind]:
        with collection_paused():  # as for every program of the thorough profile
            take(kind, check, number, count)
        number += 1
    return count


def take(kind: str, check: str, number: int, count: Count) -> None:
    """Draw a program, and count it if it is of the right size, and all of its steps."""
    random = Random(f"rates/{kind}/{number}")
    least, most = BOUNDS[kind]
    start = time.process_time()
    graph = GENERATORS[kind](random)
    drawn = time.process_time()
    if not least <= graph.size <= most:
        return
    count.drawing += drawn - start
    count.programs += 1
    count.nodes += graph.size
    start = time.process_time()
    agree = CHECKS[check](graph, number)
    count.checking += time.process_time() - start
    steps = walk(graph, random)
    while True:
        start = time.process_time()
        after = next(steps, None)
        rewritten = time.process_time()
        count.rewriting += rewritten - start
        if after is None:
            return
        verdict = agree(graph, after)
        count.checking += time.process_time() - rewritten
        count.steps += 1
        count.wrong += verdict is False
        count.unsettled += verdict is None
        graph = after


def shortest(kind: str, check: str, rounds: int) -> Count:
    """The fastest of several rounds over the same programs, each in a process of its own."""
    with get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        found = [pool.apply(measured, (kind, check)) for _ in range(rounds)]
    return min(found, key=lambda count: count.seconds)


def row(kind: str, check: str, rounds: int) -> dict[str, Any]:
    count = shortest(kind, check, rounds)
    programs, steps, nodes = PROTOTYPE[kind, check]
    return {
        "programs": kind,
        "check": check,
        "counted": count.programs,
        "steps": count.steps,
        "mean_nodes": round(count.nodes / count.programs, 1),
        "programs_per_s": round(count.programs / count.seconds, 1),
        "steps_per_s": round(count.steps / count.seconds, 1),
        "ms_per_step": {
            name: round(1e3 * getattr(count, name) / max(count.steps, 1), 3)
            for name in ("drawing", "rewriting", "checking")
        },
        "wrong": count.wrong,
        "unsettled": count.unsettled,
        "prototype": {"programs_per_s": programs, "steps_per_s": steps, "mean_nodes": nodes},
        "times_the_programs": round(count.programs / count.seconds / programs, 2),
        "times_the_steps": round(count.steps / count.seconds / steps, 2),
    }


def table(rows: list[dict[str, Any]]) -> str:
    lines = [
        "| programs | check | mean nodes | programs/s | checked steps/s | prototype: nodes "
        "| programs/s | steps/s | times | times |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for r in rows:
        old = r["prototype"]
        lines.append(
            f"| {r['programs']} | {r['check']} | {r['mean_nodes']} | {r['programs_per_s']} "
            f"| {r['steps_per_s']} | {old['mean_nodes']} | {old['programs_per_s']} "
            f"| {old['steps_per_s']} | {r['times_the_programs']} | {r['times_the_steps']} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="for each kind and check")
    parser.add_argument("--output", type=Path, default=RESULTS, help="without a suffix")
    args = parser.parse_args()
    rows = []
    for kind, check in PROTOTYPE:
        rows.append(row(kind, check, args.rounds))
        print({k: v for k, v in rows[-1].items() if k != "prototype"}, flush=True)
    machine = f"{platform.machine()}, one core; Python {platform.python_version()}"
    data = {
        "schema": "blockbuster.proof-rates/1",
        "date": date.today().isoformat(),
        "machine": f"{machine}, NumPy {np.__version__}",
        "rounds": args.rounds,
        "load_average": [round(load, 1) for load in os.getloadavg()],
        "rows": rows,
    }
    args.output.parent.mkdir(parents=True, exist_ok=True)
    args.output.with_suffix(".json").write_text(json.dumps(data, indent=1) + "\n", "utf-8")
    text = f"# Rates of checked steps, {data['date']}\n\n{data['machine']}; processor seconds, "
    text += f"load average {data['load_average'][0]}.\n"
    text += f"How it is measured stands in `bench/proof_rates.py`.\n\n{table(rows)}"
    args.output.with_suffix(".md").write_text(text, "utf-8")


if __name__ == "__main__":
    main()
