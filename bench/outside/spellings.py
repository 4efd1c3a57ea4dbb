"""The same computation in three spellings: are the plans predicted to be as fast, without a GPU?

    python -m bench.outside.spellings --out build/spellings.jsonl             again to go on
    python -m bench.outside.spellings --out build/spellings.jsonl --table     only the table
    python -m bench.outside.spellings --show causal-3                         texts and plans

A program is a family of one of the files ``spelled_*.py`` with a number, its seed, which gives its
sizes. It is written in three ways, in NumPy's or torch's
words, and each way is planned for an H100 in float16. A program counts as even if its slowest
plan is predicted to take at most 1.05 of the time of its fastest: what a person typed should not
decide how fast it is.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import blockbuster as bb
from bench.outside import (
    spelled_attention,
    spelled_folds,
    spelled_layers,
    spelled_layouts,
    spelled_losses,
    spelled_masks,
    spelled_metrics,
    spelled_norms,
    spelled_places,
    spelled_positions,
    spelled_products,
    spelled_units,
)
from bench.outside.spelling import Draw, Spelled, Written
from bench.peers.report import geometric_mean, markdown
from bench.records import Log, Record
from blockbuster.frontend import ArrayProgram
from blockbuster.frontend.merged_axes import merged
from blockbuster.frontend.trace import trace_with_facts
from blockbuster.runtime.merged_arrays import extents_of

MODULES = (
    spelled_products, spelled_attention, spelled_folds, spelled_losses, spelled_norms,
    spelled_positions, spelled_layouts, spelled_layers, spelled_units,
    spelled_masks, spelled_metrics, spelled_places,
)  # fmt: skip
FAMILIES = tuple(family for module in MODULES for family in module.FAMILIES)
COUNT = 400
EVEN = 1.05


def keys(count: int = COUNT) -> list[str]:
    """The names of the first programs: each family in turn, with a number."""
    return [f"{FAMILIES[n % len(FAMILIES)].__name__}-{n // len(FAMILIES)}" for n in range(count)]


def drawn(key: str, *, small: bool = False) -> Spelled:
    """The program of a name; ``small`` gives it sizes at which it can be computed at once."""
    name, _, _ = key.rpartition("-")
    made = {family.__name__: family for family in FAMILIES}[name]
    return made(Draw(Random(key), small))


def traced(program: Spelled, way: Written, where: str) -> tuple[ArrayProgram, Mapping[str, int]]:
    """The array program of one way, for its class of sizes and with merged axes as ``bb.jit`` has
    it, and its sizes.

    Raises BlockbusterError if it is refused.
    """
    import numpy as np
    import torch

    given: dict[str, Any] = {
        name: np.empty(shape, np.float16) if way.of_numpy else torch.empty(shape).half()
        for name, shape in program.shapes.items()
    }
    made, _ = trace_with_facts(way.function(program.names, where), **given)
    arrays = [{**given, **made.held}[one.name] for one in made.inputs]
    made = made.without_held()
    fewer = merged(made)
    extents = extents_of(fewer, arrays) if fewer else [tuple(array.shape) for array in arrays]
    assert extents is not None, "contiguous arrays"
    made = fewer.program if fewer else made
    stand_ins = {
        one.name: np.broadcast_to(np.int8(0), shape)
        for one, shape in zip(made.inputs, extents, strict=True)
    }
    return made, made.bind(stand_ins)


def planned(program: Spelled, way: Written, where: str, machine: str, *, library: bool) -> bb.Plan:
    """The plan of one way. Raises BlockbusterError if it is refused."""
    made, sizes = traced(program, way, where)
    return bb.select(made, sizes, machine=machine, library=library)


def record(key: str, machine: str, *, library: bool) -> Record:
    """Predicted microseconds and kernels of each way; None, and a reason, for one without plan."""
    program, begun = drawn(key), time.process_time()
    known: dict[ArrayProgram, bb.Plan] = {}  # two ways may be one program
    us: list[float | None] = []
    kernels: list[int] = []
    reasons = []
    for number, way in enumerate(program.ways):
        try:
            made, sizes = traced(program, way, f"<{key} way {number}>")
            if made not in known:
                known[made] = bb.select(made, sizes, machine=machine, library=library)
        except Exception as error:  # a refusal, or a fault of ours: it must not end the list
            reasons.append(f"way {number}: {type(error).__name__}: {str(error).splitlines()[0]}")
            us.append(None)
            continue
        us.append(round(known[made].total_us, 2))
        kernels.append(known[made].kernels)
    seconds = round(time.process_time() - begun, 1)
    return {"key": key, "us": us, "kernels": kernels, "seconds": seconds, "reasons": reasons}


def ratio(found: Record) -> float:
    """The slowest way over the fastest; infinite if one has no plan."""
    us = found["us"]
    return float("inf") if None in us else max(us) / min(us)


def table(found: Sequence[Record], worst: int) -> str:
    """How many programs are even, and those that are least so."""
    ratios = [ratio(one) for one in found]
    even = sum(one <= EVEN for one in ratios)
    known = [one for one in ratios if one < float("inf")]
    lines = [
        f"{even} of {len(found)} programs within {EVEN - 1:.0%}; largest ratio {max(known):.2f},"
        f" geometric mean {geometric_mean(known):.3f}, median {statistics.median(known):.3f}"
    ]
    ordered = sorted(found, key=ratio, reverse=True)
    uneven = [one for one in ordered if ratio(one) > EVEN]
    head = ("program", "microseconds of each way", "kernels", "ratio", "reasons")
    rows = [
        (r["key"], ", ".join(map(str, r["us"])), ", ".join(map(str, r["kernels"])),
         f"{ratio(r):.2f}", " ".join(r["reasons"]))
        for r in uneven[:worst]
    ]  # fmt: skip
    return "\n".join([*lines, "", markdown(head, rows)] if rows else lines)


def show(key: str, machine: str, *, library: bool) -> None:
    """Print the texts of a program and what is planned for each."""
    program = drawn(key)
    print(key, dict(program.shapes))
    for number, way in enumerate(program.ways):
        print(way.text(program.names))
        plan = planned(program, way, f"<{key} way {number}>", machine, library=library)
        print(plan.explain(), "\n")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("build/spellings.jsonl"))
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--families", help="only these, with commas between them")
    parser.add_argument("--machine", default="h100")
    parser.add_argument("--library", action="store_true", help="with calls of torch's library")
    parser.add_argument("--table", action="store_true", help="print the table of what is there")
    parser.add_argument("--show", help="print one program and its plans")
    parser.add_argument("--worst", type=int, default=40, help="programs in the table")
    options = parser.parse_args()
    if options.show:
        show(options.show, options.machine, library=options.library)
        return 0
    chosen = keys(options.count)
    if options.families:
        named = options.families.split(",")
        chosen = [key for key in chosen if key.rpartition("-")[0] in named]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    log = Log(options.out)
    for key in chosen:
        if key not in log.found and not options.table:
            log.note(record(key, options.machine, library=options.library))
            print(key, log.found[key], flush=True)
    print(table([log.found[key] for key in chosen if key in log.found], options.worst))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
