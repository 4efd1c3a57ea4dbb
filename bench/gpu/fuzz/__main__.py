"""Random array programs on a GPU: every result against float64, beside torch eager, twice.

    python3 -m bench.gpu.fuzz --seconds 300 --out DIR      fresh seeds, five minutes
    python3 -m bench.gpu.fuzz --first 5000 --count 2000    these seeds
    python3 -m bench.gpu.fuzz --assembler all --out DIR    once under each ptxas that is there
    python3 -m bench.gpu.fuzz --seed 123                   print a program, and run it here
    python3 -m bench.gpu.fuzz --cpu --count 200            bb.jit's CPU path: no GPU is needed
    python3 -m bench.gpu.fuzz --compile sm_90 --count 50   only compile: no GPU is needed
    python3 -m bench.gpu.fuzz --interpret --count 20       small ones, in Triton's interpreter
    python3 -m bench.gpu.fuzz --without first-check        a protection taken out

A seed is a program, its inputs, its dtype, and for half of them a snapshot and a number of warps;
trial.py says what is wrong. The exit code is 1 if any is. Results go to fuzz.json.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from itertools import count, islice
from pathlib import Path
from typing import Any

from bench.gpu.fuzz import assemblers, pool, report, without
from bench.gpu.fuzz.draw import FAMILIES, draw
from bench.gpu.fuzz.trial import BAD, INTERPRETER

Record = dict[str, Any]

MOST_INTERPRETED = 30_000  # elements of the inputs of a program that is interpreted


def main(arguments: list[str] | None = None) -> int:
    options = parsed(arguments)
    device = device_of(options)
    if options.seed is not None:
        return alone(options.seed, device, options.without)
    runs = []
    found: Record = {"about": report.about(sys.argv[1:]), "without": options.without, "runs": runs}
    first = options.first
    for assembler in options.assemblers:
        run = run_under(assembler, first, device, options)
        print(report.shown(run), flush=True)
        runs.append(run)
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "fuzz.json").write_text(json.dumps(found, indent=1), encoding="utf-8")
    print(f"results in {options.out / 'fuzz.json'}")
    return 1 if any(map(report.bad_in, runs)) else 0


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python3 -m bench.gpu.fuzz",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--seconds", type=float, default=300, help="per assembler; what began by then is finished")
    add("--count", type=int, help="the most programs (default: as many as there is time for)")
    add("--first", type=int, help="the first seed (default: a fresh one, from the clock)")
    add("--workers", type=int, default=os.cpu_count(), help="processes (default: one a core)")
    add("--families", default=",".join(FAMILIES), help="of these (default: all), with commas")
    add("--assembler", default=assemblers.CHOSEN, help="a ptxas, or all; default: not touched")
    add("--limit", type=float, default=60, help="seconds after which a program hangs")
    add("--out", type=Path, default=Path("build/gpu"), help="folder for fuzz.json")
    add("--seed", type=int, help="print this program, run it here")
    add("--cpu", action="store_true", help="through bb.jit on the CPU")
    add("--interpret", action="store_true", help="kernels for a GPU, in Triton's interpreter")
    add("--compile", metavar="TARGET", help="only compile for a GPU that need not be there")
    taken = f"take it out, for a test of the others: {', '.join(without.names())}, MODULE:FUNCTION"
    add("--without", action="append", default=[], metavar="PROTECTION", help=taken)
    options = parser.parse_args(arguments)
    unknown = [name for name in options.families.split(",") if name not in FAMILIES]
    if unknown:
        parser.error(f"no family {', '.join(unknown)}; known: {', '.join(FAMILIES)}")
    try:
        options.assemblers = assemblers.assemblers(options.assembler)
        for name in options.without:
            without.protection(name)
    except ValueError as error:
        parser.error(str(error))
    if options.first is None:
        options.first = time.time_ns() // 1000 % 10**9
    return options


def device_of(options: argparse.Namespace) -> str:
    """What ``tried`` takes: see trial.py."""
    if options.interpret:
        return INTERPRETER
    return "cpu" if options.cpu else options.compile or "cuda"


def run_under(assembler: str, first: int, device: str, options: argparse.Namespace) -> Record:
    """The summary of one run."""
    wanted = options.families.split(",")
    most = MOST_INTERPRETED if device == INTERPRETER else None
    drawn = (draw(seed) for seed in count(first))
    seeds = (d.seed for d in drawn if d.family in wanted and (most is None or d.elements <= most))
    records: list[Record] = []
    began = time.monotonic()

    def note(record: Record) -> None:
        records.append(record)
        bad = sum(r["verdict"] in BAD for r in records)
        if record["verdict"] in BAD or len(records) % 100 == 0:
            passed = time.monotonic() - began
            last = f"; seed {record['seed']} {record['verdict']}"
            report.warn(f"{passed:4.0f} s: {len(records)} programs, {bad} bad{last}")

    with tempfile.TemporaryDirectory(prefix="fuzz-", ignore_cleanup_errors=True) as folder:
        # what passed in an earlier run is judged again
        environment = {"TRITON_CACHE_DIR": f"{folder}/triton", "XDG_CACHE_HOME": folder}
        environment["HOME"] = folder
        if assembler != assemblers.CHOSEN:
            environment["TRITON_PTXAS_PATH"] = assembler
        setting = pool.Setting(device, environment, tuple(options.without), options.limit)
        end = began + options.seconds
        pool.run(islice(seeds, options.count), options.workers, setting, end, note)
    return report.summary(records, assembler, time.monotonic() - began)


def alone(seed: int, device: str, taken_out: list[str]) -> int:
    """Print the program of a seed and its record."""
    from bench.gpu.fuzz.trial import tried

    drawn = draw(seed)
    print(drawn)
    record = tried(drawn, device, check=without.take_out(taken_out))
    print(json.dumps({k: v for k, v in record.items() if k not in ("source", "inputs")}, indent=1))
    return 1 if record["verdict"] in BAD else 0


if __name__ == "__main__":
    sys.exit(main())
