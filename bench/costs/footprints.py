"""The footprints of compiled kernels on a processor, to compare estimates with; needs no GPU.

    python -m bench.costs.footprints            compile, and write tests/golden/footprints.json
    python -m bench.costs.footprints --compare  the estimates beside what is written there

Every third pair of pairs.jsonl is compiled for sm_90, and every twelfth for sm_80: some 300 pairs,
a second or two each. Kernels that Triton refuses, or that need more than the device has, are left
out.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import blockbuster as bb
from bench.costs.pairs import read_pairs
from bench.costs.variations import Pair
from bench.costs.workloads import BY_NAME
from blockbuster.costs.footprint import Footprint, footprint
from blockbuster.emit.schedule.scheduled import Scheduled, unscheduled
from blockbuster.emit.schedule.script import replayed
from blockbuster.emit.target.compiler import compile_kernel
from blockbuster.emit.target.targets import target_of
from blockbuster.emit.tile.array_dtypes import given_by, typed_for_gpu
from blockbuster.emit.tile.layouts import layouts_of
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.ir.sizes import bind_sizes
from blockbuster.rules import safe

Record = dict[str, Any]
FILE = Path(__file__).parents[2] / "tests" / "golden" / "footprints.json"
CHOSEN = {"sm_90": slice(0, None, 3), "sm_80": slice(1, None, 12)}
WITHIN = 0.1


def chosen() -> Iterator[tuple[Pair, str]]:
    """The pairs that are compiled, and for which target."""
    for target, part in CHOSEN.items():
        yield from ((pair, target) for pair in read_pairs()[part])


def compiled(pair: Pair, target: str) -> Record | None:
    """What each kernel of a pair takes; None if it cannot be had."""
    workload = BY_NAME[pair.workload]
    graph = workload.graph(pair.snapshot)
    try:
        kernel = bb.emit(graph, workload.sizes, workload.dtype, target, schedule=pair.schedule)
        found = compile_kernel(kernel)
    except bb.EmitError:
        return None
    kernels = [[report.shared, report.registers, report.spills] for report in found]
    return {
        "workload": pair.workload, "snapshot": pair.snapshot, "schedule": pair.schedule,
        "target": target, "kernels": kernels,
    }  # fmt: skip


def records() -> list[Record]:
    """What is written: a record for each pair; kernels are [shared bytes, registers, spills]."""
    found: list[Record] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def write(found: list[Record]) -> None:
    """Write records, one to a line."""
    lines = ",\n".join(json.dumps(record) for record in found)
    FILE.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def scheduled(record: Record) -> Scheduled:
    """The scheduled program of a record."""
    start = _start(record["workload"], record["snapshot"], record["target"])
    return replayed(start, record["schedule"])


def estimated(record: Record) -> tuple[Footprint, ...]:
    """The estimate for each kernel of a record."""
    program = scheduled(record).program
    return tuple(footprint(layouts_of(program, nest, record["target"])) for nest in program.nests)


@cache
def _start(name: str, snapshot: int, target: str) -> Scheduled:
    workload = BY_NAME[name]
    graph = safe(workload.graph(snapshot))
    program = typed_for_gpu(graph, lower_to_tiles(graph), given_by(workload.dtype))
    sizes = bind_sizes((), {}, program.rules, workload.sizes)
    return unscheduled(program, sizes, target_of(target))


def compare() -> None:
    """Print kernels whose shared memory is estimated wrongly, and how many there are."""
    total = right = 0
    for record in records():
        for number, (guess, (shared, _, _)) in enumerate(
            zip(estimated(record), record["kernels"], strict=True), 1
        ):
            total += 1
            if abs(guess.shared - shared) <= WITHIN * shared:
                right += 1
                continue
            where = f"{record['workload']} kernel {number} {record['target']}"
            text = "; ".join(record["schedule"].splitlines())
            print(f"{where:36} estimated {guess.shared:7,}, takes {shared:7,}: {text}")
    print(f"{right} of {total} kernels within {WITHIN:.0%}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--compare", action="store_true", help="compile nothing")
    if parser.parse_args().compare:
        compare()
        return 0
    found = []
    for number, (pair, target) in enumerate(chosen(), 1):
        record = compiled(pair, target)
        found += [record] if record else []
        print(f"{number:4} {pair.key:24} {target} {record and record['kernels']}", flush=True)
    write(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
