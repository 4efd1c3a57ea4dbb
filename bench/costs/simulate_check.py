"""Simulated times beside measured ones: the first schedules of each workload.

    python -m bench.costs.simulate_check --measured bench/results/2026-11-23-h200-costs/pairs.jsonl
    python -m bench.costs.simulate_check --device cuda --out $OUT/simulate     measures them first
    python -m bench.costs.simulate_check --measured FILE --machine h200.toml --pairs 8 --csv out.csv

Cold times are of calls that find nothing in the cache, launched from the host; warm times are of
consecutive calls in a CUDA graph. Bytes from memory are for counters.py,
which needs rights that a container rarely has. The last column of the file of --csv is a bandwidth,
simulated bytes over measured cold time; these bytes include those that reach memory only after the
kernel has ended. Kernels that spill registers are left out: a machine without their
registers runs another program.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import blockbuster as bb
from bench.costs.measured import Record, records_of
from bench.costs.pairs import read_pairs
from bench.costs.variations import scheduled
from bench.costs.workloads import BY_NAME

FIRST = 2  # schedules of each workload: as a rule the default, and one tuned by hand
WITHIN = 0.25
SECONDS = 85.0  # that measuring may take


@dataclass(frozen=True)
class Row:
    """Microseconds of one schedule, simulated and measured, after a flush and in a graph.

    ``memory``: simulated bytes from memory after a flush; ``terabytes``: those that were moved in
    each second of the measured time without its launch.
    """

    key: str
    part: str
    cold: float
    cold_simulated: float
    warm: float
    warm_simulated: float
    limited: str
    memory: int
    terabytes: float

    @property
    def errors(self) -> tuple[float, float]:
        """Simulated over measured, less one: cold and warm."""
        return self.cold_simulated / self.cold - 1, self.warm_simulated / self.warm - 1


def chosen(records: Iterable[Record], first: int) -> list[Record]:
    """The records that are compared: right, timed, without spills."""
    return [
        record
        for record in records
        if record["state"] == "timed"
        and record["number"] < first
        and not any(kernel["spilled"] for kernel in record["kernels"])
    ]


def compared(record: Record, machine: bb.Machine) -> Row:
    """One schedule simulated, after a flush and in a graph."""
    workload = BY_NAME[record["workload"]]
    made = scheduled(workload, record["snapshot"], record["schedule"], record["sizes"])
    cold = bb.simulate(made, machine, launch="plain", flushed=True)
    warm = bb.simulate(made, machine, launch="graph", warm=True)
    measured = statistics.median(record["cold"])
    running = max(measured - 1e6 * machine.launch.plain, 1e-3)
    moved = cold.bytes[machine.memory.name]
    return Row(
        record["key"], record["part"], measured, cold.time_us, statistics.median(record["warm"]),
        warm.time_us, cold.critical, moved, moved / running / 1e6,
    )  # fmt: skip


def _written(row: Row) -> dict[str, Any]:
    """The fields of a row, numbers with three digits."""
    fields = asdict(row).items()
    return {name: round(v, 3) if isinstance(v, float) else v for name, v in fields}


def said(rows: Sequence[Row]) -> str:
    """A line for each schedule, and which share is near."""
    lines = [
        f"{'schedule':24} {'cold us':>9} {'simulated':>9} {'':>5} {'warm us':>9} {'simulated':>9}"
    ]
    for row in rows:
        cold, warm = row.errors
        lines.append(
            f"{row.key:24} {row.cold:9.2f} {row.cold_simulated:9.2f} {cold:+5.0%} {row.warm:9.2f} "
            f"{row.warm_simulated:9.2f} {warm:+5.0%}  {row.limited}"
        )
    for part in ("fit", "judge", ""):
        of_part = [row for row in rows if part in ("", row.part)]
        for at, way in enumerate(("cold", "warm")):
            errors = [abs(row.errors[at]) for row in of_part]
            near = sum(error <= WITHIN for error in errors)
            middle = statistics.median(errors) if errors else 0.0
            lines.append(
                f"{part or 'all':6} {way}: {near} of {len(errors)} within {WITHIN:.0%}, "
                f"median error {middle:.0%}"
            )
    return "\n".join(lines)


def measured_here(options: argparse.Namespace) -> Path:
    """The file of times that were measured now, on this computer's GPU."""
    from bench.costs.measure import measure

    pairs = [pair for pair in read_pairs() if pair.number < options.pairs]
    how = argparse.Namespace(
        out=options.out, seconds=SECONDS, compile=False, keep=False, work="", workers=0
    )
    if measure(pairs, how):
        raise SystemExit("nothing was timed")
    return Path(options.out) / "pairs.jsonl"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--measured", type=Path, help="pairs.jsonl of bench.costs.measure")
    parser.add_argument("--device", choices=["cuda"], help="measure first")
    parser.add_argument("--out", type=Path, default=Path("build/simulate"))
    parser.add_argument("--machine", default="h200", help="a name, or a file that calibrate wrote")
    parser.add_argument("--pairs", type=int, default=FIRST, help="schedules of each workload")
    parser.add_argument("--csv", type=Path, help="write the rows")
    options = parser.parse_args()
    if not options.device and not options.measured:
        parser.error("give --measured FILE, or --device cuda")
    path = measured_here(options) if options.device else options.measured
    machine = bb.machine(options.machine)
    rows = [
        compared(record, machine) for record in chosen(records_of(path).values(), options.pairs)
    ]
    if not rows:
        print(f"{path} has no timed schedule to compare: nothing is simulated, nothing is written")
        return 1
    print(said(rows))
    if options.csv:
        with options.csv.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, asdict(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(map(_written, rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
