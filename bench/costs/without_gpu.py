"""MCFuser's workloads: the schedule that is chosen without a GPU beside the default one, timed.

    python -m bench.costs.without_gpu --out $OUT/choices                 all, on a GPU
    python -m bench.costs.without_gpu --out $OUT/choices --only G1,S4
    python -m bench.costs.without_gpu --table bench/results/2026-11-23-h200-costs/choices.jsonl

"default" is the default schedule of the fused program; "chosen" is what ``bb.jit`` takes, which
prices all snapshots with many schedules and measures none. Processes choose and compile; then both
schedules of a workload are checked and timed in turn, cold and by CUDA graph. OUT/choices.jsonl
gets a line for each schedule, with the closed form's microseconds (``said``).
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import blockbuster as bb
from bench.costs.measured import WAYS
from bench.costs.ranking import text_of
from bench.costs.tunable import EXAMPLES, TARGET, scheduled, workload_of
from bench.records import machine
from blockbuster.costs import cost, work
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.selection.choice import Fused

Record = dict[str, Any]
DEFAULT, CHOSEN = "default", "chosen"
ROUNDS = 5
LAUNCH = {"cold": "plain", "warm": "graph"}


@dataclass(frozen=True)
class Made:
    """A compiled schedule of a workload: its file, and what the closed form says, by way."""

    workload: str
    choice: str
    schedule: str
    file: str
    said: Mapping[str, float]


def chosen(name: str) -> Scheduled:
    """What ``bb.jit`` takes for a workload if nothing is measured."""
    example = EXAMPLES[name]
    fused = Fused(bb.lower(example.program()))
    found = fused.consider(example.sizes, "float16", TARGET).best.scheduled
    assert found is not None, "a GPU's choice has a schedule"
    return found


def made(name: str, choice: str, folder: str) -> Made:
    """One schedule, compiled; its file is kept in ``folder``."""
    from bench.costs.building import runnable
    from blockbuster.emit.target.load import load_module
    from blockbuster.emit.target.targets import target_of

    found = scheduled(name, None) if choice == DEFAULT else chosen(name)
    text = text_of(found)
    for entry in load_module(text).KERNELS:
        runnable(entry, target_of(TARGET))
    path = Path(folder) / f"{name}-{choice}.py"
    path.write_text(text, encoding="utf-8")
    works = work(found)
    said = {
        way: round(cost(works, launch=LAUNCH[way], warm=way == "warm").time_us, 3) for way in WAYS
    }
    return Made(name, choice, found.schedule, str(path), said)


def timed(both: Sequence[Made]) -> Iterator[Record]:
    """The schedules of one workload in turn. Raises ValueError if a result is wrong."""
    from bench.costs.launching import ready
    from bench.costs.timing import clocks_of, error_of, in_rounds
    from bench.timing import Clock

    workload, clock, clocks = workload_of(both[0].workload), Clock(), {}
    inputs = workload.drawn(workload.sizes, "cuda", seed=1)
    exact = workload.reference(inputs)
    for one in both:
        run = ready(Path(one.file), inputs)
        if not (error := error_of(run, exact)) <= workload.largest:
            raise ValueError(f"{one.workload}, {one.choice}: wrong by {error:.1e}")
        clocks[one.choice] = clocks_of(clock, run, clock.cold(run, 3))
    times = in_rounds(clocks, ROUNDS)
    for one in both:
        record = asdict(one)
        del record["file"]
        cold, warm = times[one.choice]
        yield record | {"cold": cold, "warm": warm}


def table(records: Sequence[Record]) -> str:
    """A line for each workload in Markdown, and how often what is chosen is faster."""
    lines = ["| | default, cold | warm | chosen, cold | warm |", "|---|---|---|---|---|"]
    found: dict[str, dict[str, Record]] = {}
    for record in records:
        found.setdefault(record["workload"], {})[record["choice"]] = record
    ratios: dict[str, list[float]] = {way: [] for way in WAYS}
    for name in (name for name in EXAMPLES if name in found):
        cells = [
            statistics.median(found[name][choice][way])
            for choice in (DEFAULT, CHOSEN)
            for way in WAYS
        ]
        lines.append(f"| {name} | {' | '.join(f'{time:.2f}' for time in cells)} |")
        for at, way in enumerate(WAYS):
            ratios[way].append(cells[2 + at] / cells[at])
    for way, parts in ratios.items():
        mean = math.exp(statistics.fmean(map(math.log, parts))) if parts else math.nan
        faster = sum(part < 1 for part in parts)
        lines.append(f"\n{way}: {faster} of {len(parts)} faster, {mean:.2f} of the time")
    return "\n".join(lines)


def run(names: Sequence[str], out: Path, workers: int) -> list[Record]:
    """Choose, compile and time; write a line for each schedule as soon as it is timed."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "choices-machine.json").write_text(json.dumps(machine(), indent=1) + "\n", "utf-8")
    records: list[Record] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(workers or None, get_context("spawn")) as pool,
        (out / "choices.jsonl").open("w", encoding="utf-8") as file,
    ):
        jobs = {n: [pool.submit(made, n, c, folder) for c in (DEFAULT, CHOSEN)] for n in names}
        for futures in jobs.values():
            for record in timed([future.result() for future in futures]):
                records.append(record)
                file.write(json.dumps(record) + "\n")
                file.flush()
    return records


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("build/choices"))
    parser.add_argument("--only", default="", help="names of workloads, separated by commas")
    parser.add_argument("--workers", type=int, default=0, help="processes; 0: one for each core")
    parser.add_argument("--table", type=Path, help="choices.jsonl of an earlier run; no GPU")
    options = parser.parse_args()
    if options.table:
        lines = options.table.read_text(encoding="utf-8").splitlines()
        print(table([json.loads(line) for line in lines]))
        return 0
    names = [name for name in options.only.split(",") if name] or list(EXAMPLES)
    if unknown := [name for name in names if name not in EXAMPLES]:
        parser.error(f"unknown: {', '.join(unknown)}; workloads: {', '.join(EXAMPLES)}")
    print(table(run(names, options.out, options.workers)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
