"""Bytes that came from memory by the GPU's counters, beside those that are simulated.

    python -m bench.costs.counters --out $OUT/counters --seconds 150     first schedules, counted
    python -m bench.costs.counters --out $OUT/counters --only matmul-1024,softmax-16384
    python -m bench.costs.counters --counted FILE/counters.jsonl          no GPU: compare again

Nsight Compute (`ncu`) reads the counters of a process that runs each schedule once, after the
second-level cache has been overwritten and what was written there has been evicted. What a kernel
wrote and the cache still holds at its end is counted too: a kernel that reads a large array follows
each schedule, and the bytes that memory takes meanwhile are the schedule's. Not all are: the
profiler writes, too. So those behind as many kernels that touch no memory are taken off. Containers
often have no right to read counters: then the command says so, and nothing is written.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import blockbuster as bb
from bench.costs.measure import build
from bench.costs.pairs import read_pairs
from bench.costs.variations import Pair, scheduled
from bench.costs.workloads import BY_NAME
from bench.records import Log, Record, machine
from blockbuster.costs.cost import cost
from blockbuster.costs.work import work

READ, WRITTEN = "dram__bytes_read.sum", "dram__bytes_write.sum"
UNITS = {"byte": 1, "Kbyte": 10**3, "Mbyte": 10**6, "Gbyte": 10**9}
EVICTING = 256 << 20  # bytes that are read after a schedule: several times the cache
READS = 4  # of the large array before a schedule, until nothing of what was written is left
NOTHING = 3  # runs of kernels that touch no memory, whose bytes are not a schedule's
WITHIN = 0.10
COUNTING = 60.0  # seconds that are kept for the process whose kernels are counted


@dataclass(frozen=True)
class Traffic:
    """Bytes between memory and the second-level cache for one schedule, after a flush.

    ``read`` and ``written`` are counted, ``late`` is the part of ``written`` that reached memory
    after the last kernel had ended. ``simulated`` and ``closed``: by the two models, read and
    written together.
    """

    key: str
    part: str
    read: int
    written: int
    late: int
    simulated: int
    closed: int

    @property
    def counted(self) -> int:
        """All bytes of the schedule."""
        return self.read + self.written

    @property
    def errors(self) -> tuple[float, float]:
        """Simulated, and by the closed form, over counted, less one."""
        return self.simulated / self.counted - 1, self.closed / self.counted - 1


# in the process whose kernels are counted ------------------------------------------------


def run_counted(pairs: Sequence[Pair], place: Path) -> list[Record]:
    """Run each schedule, and as many kernels that touch no memory, once for each such number.

    The number of kernels of each run, in their order; a run without a schedule has no key.
    """
    from bench.costs.launching import ready

    done: list[Record] = []
    for pair in pairs:
        workload = BY_NAME[pair.workload]
        run = ready(place / f"{pair.key}.py", workload.drawn(workload.sizes, "cuda", seed=1))
        run()
        kernels = len(run.starts)
        if not any(one["kernels"] == kernels for one in done):
            for _ in range(NOTHING):
                between_marks(partial(idle, kernels))
                done.append({"key": "", "kernels": kernels})
        between_marks(run)
        done.append({"key": pair.key, "kernels": kernels})
    return done


def idle(kernels: int) -> None:
    """Run so many kernels that touch no memory."""
    import torch

    for _ in range(kernels):
        torch.cuda._sleep(1)


def between_marks(run: Callable[[], Any]) -> None:
    """Run with a cache that holds nothing of use, then read the large array.

    The marks are those of the profiler's start and stop: other kernels are not counted.
    """
    import torch

    evicting = torch.zeros(EVICTING // 4, dtype=torch.int32, device="cuda")  # overwrites the cache
    for _ in range(READS):
        evicting.max()
    torch.cuda.synchronize()
    torch.cuda.profiler.start()
    run()
    evicting.max()
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()


# around it -------------------------------------------------------------------------------


def counted(pairs: Sequence[Pair], place: Path) -> Iterator[Record]:
    """What the counters say of each schedule.

    Raises RuntimeError where they cannot be read, with the profiler's own words.
    """
    if shutil.which("ncu") is None:
        raise RuntimeError("Nsight Compute's `ncu` is not on the path")
    command = ["ncu", "--metrics", f"{READ},{WRITTEN}", "--cache-control", "none"]
    command += ["--clock-control", "none", "--profile-from-start", "off", "--csv"]
    command += ["--log-file", str(place / "ncu.csv")]
    command += [sys.executable, "-m", "bench.costs.counters", "--run", str(place)]
    given = json.dumps([asdict(pair) for pair in pairs])
    ended = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    log = place / "ncu.csv"
    text = log.read_text(encoding="utf-8") if log.exists() else ""
    if ended.returncode or '"Kernel Name"' not in text:
        said = " ".join((text[-600:] + ended.stdout[-400:] + ended.stderr[-600:]).split())
        raise RuntimeError(f"the counters could not be read: {said}")
    done = json.loads((place / "done.json").read_text(encoding="utf-8"))
    yield from of_schedules(by_launch(text), done)


def of_schedules(launches: Sequence[Mapping[str, int]], done: Sequence[Record]) -> list[Record]:
    """The bytes of each schedule, of the counters of all launches in their order.

    What memory takes late behind as many kernels that touch none is not the schedule's.
    """
    number, rest = evicting_kernels(launches, done), iter(launches)
    rows, behind = list[Record](), dict[int, list[int]]()
    for entry in done:
        own = [next(rest) for _ in range(entry["kernels"])]
        late = sum(next(rest)[WRITTEN] for _ in range(number))
        read, soon = (sum(one[name] for one in own) for name in (READ, WRITTEN))
        if not entry["key"]:
            behind.setdefault(entry["kernels"], []).append(late)
            continue
        late = max(0, round(late - statistics.median(behind[entry["kernels"]])))
        rows.append({"key": entry["key"], "read": read, "written": soon + late, "late": late})
    return rows


def by_launch(text: str) -> list[Mapping[str, int]]:
    """The counters of each kernel in the order of launches, in bytes, from the profiler's table."""
    table = text[text.index('"ID"') :]
    found: dict[str, dict[str, int]] = {}
    for row in csv.DictReader(io.StringIO(table)):
        value = float(row["Metric Value"].replace(",", "")) * UNITS[row["Metric Unit"]]
        found.setdefault(row["ID"], {})[row["Metric Name"]] = round(value)
    return list(found.values())


def evicting_kernels(launches: Sequence[Mapping[str, int]], done: Sequence[Record]) -> int:
    """How many kernels the reading of the large array takes."""
    others = len(launches) - sum(entry["kernels"] for entry in done)
    if others % len(done):
        raise RuntimeError(f"{others} kernels read the large array in {len(done)} runs")
    return int(others // len(done))


def compared(pair: Pair, record: Mapping[str, Any], on: bb.Machine) -> Traffic:
    """One schedule counted, simulated and by the closed form."""
    workload = BY_NAME[pair.workload]
    made = scheduled(workload, pair.snapshot, pair.schedule, workload.sizes)
    cold = bb.simulate(made, on, launch="plain")
    closed = cost(work(made), on)
    memory = on.memory.name
    return Traffic(
        pair.key, workload.part, record["read"], record["written"], record["late"],
        cold.bytes[memory], closed.bytes[memory],
    )  # fmt: skip


def said(rows: Sequence[Traffic]) -> str:
    """A line for each schedule in megabytes, and how many are near."""
    lines = [
        f"{'schedule':24} {'read':>8} {'written':>8} {'late':>7} {'simulated':>10} {'closed':>14}"
    ]
    for row in rows:
        read, written, late, simulated, closed = (
            n / 1e6 for n in (row.read, row.written, row.late, row.simulated, row.closed)
        )
        first, second = row.errors
        lines.append(
            f"{row.key:24} {read:8.2f} {written:8.2f} {late:7.2f} "
            f"{simulated:8.2f} {first:+5.0%} {closed:8.2f} {second:+5.0%}"
        )
    for at, model in enumerate(("simulated", "closed form")):
        near = sum(abs(row.errors[at]) <= WITHIN for row in rows)
        lines.append(f"{model}: {near} of {len(rows)} within {WITHIN:.0%}")
    return "\n".join(lines)


def count(pairs: Sequence[Pair], out: Path, seconds: float) -> Log:
    """Compile the schedules, count, and keep what was counted in a file."""
    end = time.monotonic() + seconds - COUNTING
    out.mkdir(parents=True, exist_ok=True)
    log = Log(out / "counters.jsonl")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        build(pairs, place, Log(place / "built.jsonl"), end, argparse.Namespace(workers=0))
        right = [pair for pair in pairs if (place / f"{pair.key}.py").exists()]
        for record in counted(right, place):
            log.note(record)
    (out / "counters-machine.json").write_text(json.dumps(machine(), indent=1) + "\n", "utf-8")
    return log


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("build/counters"))
    parser.add_argument("--only", default="", help="names of workloads, separated by commas")
    parser.add_argument("--pairs", type=int, default=1, help="schedules of each workload")
    parser.add_argument("--seconds", type=float, default=150)
    parser.add_argument("--counted", type=Path, help="counters.jsonl of an earlier run")
    parser.add_argument("--machine", default="h200", help="a name, or a file that calibrate wrote")
    parser.add_argument("--run", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        done = run_counted([Pair(**data) for data in json.load(sys.stdin)], options.run)
        (options.run / "done.json").write_text(json.dumps(done), encoding="utf-8")
        return 0
    names = [name for name in options.only.split(",") if name]
    if unknown := [name for name in names if name not in BY_NAME]:
        parser.error(f"unknown: {', '.join(unknown)}; workloads: {', '.join(BY_NAME)}")
    pairs = [pair for pair in read_pairs(names) if pair.number < options.pairs]
    if options.counted:
        log = Log(options.counted)
    else:
        try:
            log = count(pairs, options.out, options.seconds)
        except RuntimeError as error:
            print(f"nothing was counted: {error}")
            return 1
    on = bb.machine(options.machine)
    rows = [compared(pair, log.found[pair.key], on) for pair in pairs if pair.key in log.found]
    print(said(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
