"""Measure (workload, schedule) pairs on a GPU: right, cold and warm times, what their binaries say.

    python -m bench.costs.measure --out $OUT/pairs --seconds 420       all pairs of pairs.jsonl
    python -m bench.costs.measure --out $OUT/pairs --only matmul,decode-8192
    python -m bench.costs.measure --out $OUT/held --pairs bench/costs/held2.jsonl
    python -m bench.costs.measure --out $OUT/pairs --smoke             a few, in some 40 seconds
    python -m bench.costs.measure --compile --only matmul              no GPU: binaries alone
    python -m bench.costs.measure --cpu                                few blocks, interpreted

First all pairs are compiled, by as many processes as there are cores; then one process times them,
one workload after the other. OUT/pairs.jsonl gets a line for each pair; OUT/machine.json records
the machine. A second run with the same --out measures only missing pairs.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

from bench.costs.children import BEGUN, worked_through
from bench.costs.pairs import FILE, read_pairs
from bench.costs.variations import Pair
from bench.costs.workloads import BY_NAME, WORKLOADS
from bench.records import Log, Record, machine
from blockbuster.machines.present import gpu_name

SMOKE = ("matmul-1024", "chain-G4", "attention-1024", "softmax-16384")
SMOKED = 5  # pairs of each
SLICE = 12  # pairs that a compiling process takes
SILENCE = {"build": 90.0, "time": 60.0}  # seconds after which a process is stopped
TIMING = 0.25  # seconds that are kept for timing each pair
ARCHIVED = 12 << 20  # bytes of an archive from which on another one is begun
START = 12.0  # and for starting a process that times


def measure(pairs: Sequence[Pair], options: argparse.Namespace) -> int:
    """Build and time all pairs. The exit code is 1 if none was timed."""
    options.out.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    end = begun + options.seconds
    with tempfile.TemporaryDirectory() as folder:
        work = Path(options.work or folder)
        log = Log(options.out / "pairs.jsonl")
        reserve = 0.0 if options.compile else START + TIMING * len(pairs)
        build(pairs, work, log, end - reserve, options)
        print(f"compiled in {time.monotonic() - begun:.0f} s", flush=True)
        if not options.compile:
            time_all(pairs, work, log, end)
        if options.keep:
            keep_binaries(work, options.out)
    log.merge()
    about = machine() | {"seconds": round(time.monotonic() - begun, 1), "pairs": len(pairs)}
    (options.out / "machine.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    print(table(pairs, log))
    states = [log.found.get(pair.key, {}).get("state") for pair in pairs]
    return 0 if ("built" if options.compile else "timed") in states else 1


def build(
    pairs: Sequence[Pair], work: Path, log: Log, end: float, options: argparse.Namespace
) -> None:
    """Compile the pairs whose files are not in ``work`` yet, several at a time."""
    for pair in pairs:
        if pair.key not in log.found:
            workload = BY_NAME[pair.workload]
            about = {"part": workload.part, "dtype": workload.dtype, "sizes": workload.sizes}
            log.note({"key": pair.key, "state": "chosen", **asdict(pair), **about})
    missing = [p for p in pairs if _state(log, p) not in ("refused", "timed", "wrong")]
    missing = [p for p in missing if not (work / f"{p.key}.py").exists()]
    slices = [missing[at : at + SLICE] for at in range(0, len(missing), SLICE)]

    def run(part: Sequence[Pair]) -> None:
        command = child("build", work)
        worked_through(part, command, silence=SILENCE["build"], end=end, note=log.note)

    with ThreadPoolExecutor(options.workers or os.cpu_count() or 1) as pool:
        list(pool.map(run, slices))


def time_all(pairs: Sequence[Pair], work: Path, log: Log, end: float) -> None:
    """Time the pairs that are built, one process at a time."""
    left = [p for p in pairs if _state(log, p) in ("built", "checked")]
    command = child("time", work)
    worked_through(left, command, silence=SILENCE["time"], end=end, note=log.note)


def child(phase: str, work: Path) -> list[str]:
    """The command of a process that builds or times."""
    return [sys.executable, "-m", "bench.costs.measure", "--phase", phase, "--work", str(work)]


def _state(log: Log, pair: Pair) -> str:
    return str(log.found.get(pair.key, {}).get("state", ""))


def keep_binaries(work: Path, out: Path) -> None:
    """Put the binaries and the texts of Triton's last IR into archives of a size that travels."""
    files = sorted(path for path in work.iterdir() if path.suffix in (".cubin", ".ttgir"))
    number, archive = 0, None
    for path in files:
        place = out / f"binaries-{number}.zip"
        if archive is None or place.stat().st_size > ARCHIVED:
            number += archive is not None
            if archive is not None:
                archive.close()
            archive = ZipFile(out / f"binaries-{number}.zip", "w", ZIP_DEFLATED)
        archive.write(path, path.name)
    if archive is not None:
        archive.close()


# in a child ------------------------------------------------------------------------


def say(record: Record) -> None:
    """Tell the parent."""
    print(json.dumps(record), flush=True)


def build_here(pairs: Iterable[Pair], work: Path) -> None:
    """Compile pairs in this process."""
    from bench.costs.building import built

    for pair in pairs:
        say({"key": pair.key, "state": BEGUN})
        say(built(pair, work))


def time_here(pairs: Sequence[Pair], work: Path) -> None:
    """Time pairs in this process, a workload at a time."""
    from bench.costs.timing import checked, timed

    for name in dict.fromkeys(pair.workload for pair in pairs):
        sources = {p.key: work / f"{p.key}.py" for p in pairs if p.workload == name}
        runs = checked(BY_NAME[name], sources, say)
        for record in timed(runs):
            say(record)


# without a GPU ---------------------------------------------------------------------


def interpret(names: Sequence[str]) -> int:
    """Run two schedules of each workload on few blocks, in Triton's interpreter."""
    from bench.costs.interpreted import errors_of

    worst = 0
    for name in names:
        workload = BY_NAME[name]
        if workload.dtype == "bfloat16":
            print(f"{name:20} not run: Triton's interpreter computes bfloat16 wrongly")
            continue
        errors = errors_of(workload)
        bad = [error for error in errors if not error <= workload.largest]
        worst = max(worst, len(bad))
        print(f"{name:20} {' '.join(f'{error:.1e}' for error in errors)}{'  WRONG' * bool(bad)}")
    return 1 if worst else 0


# what is printed -------------------------------------------------------------------


def table(pairs: Sequence[Pair], log: Log) -> str:
    """Per workload: how many pairs ended how, and the best times, cold and warm."""
    lines = [
        f"{'workload':20} {'pairs':>5} {'timed':>5} {'spill':>5} {'cold us':>9} {'warm us':>9}"
    ]
    for name in dict.fromkeys(pair.workload for pair in pairs):
        records = [log.found.get(p.key, {}) for p in pairs if p.workload == name]
        good = [r for r in records if r.get("state") == "timed"]
        spilled = sum(any(k["spilled"] for k in r.get("kernels", ())) for r in records)
        best = (min((min(r[way]) for r in good), default=0.0) for way in ("cold", "warm"))
        times = " ".join(f"{t:9.2f}" for t in best)
        lines.append(f"{name:20} {len(records):5} {len(good):5} {spilled:5} {times}")
        for record in records:
            if record.get("state") in ("refused", "failed", "wrong"):
                why = record.get("reason") or f"its error is {record.get('error')}"
                lines.append(f"  {record['key']} {record['state']}: {' '.join(why.split())[:160]}")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("build/costs"))
    parser.add_argument("--pairs", type=Path, default=FILE, help="the file that lists them")
    parser.add_argument("--only", default="", help="names of workloads, separated by commas")
    parser.add_argument("--seconds", type=float, default=420)
    parser.add_argument("--smoke", action="store_true", help="a few pairs of four workloads")
    parser.add_argument("--compile", action="store_true", help="compile for sm_90, time nothing")
    parser.add_argument("--cpu", action="store_true", help="few blocks, in Triton's interpreter")
    parser.add_argument("--workers", type=int, default=0, help="that compile; 0: one for each core")
    parser.add_argument("--keep", action="store_true", help="keep the binaries, in archives")
    parser.add_argument("--work", default="", help="where emitted files are kept")
    parser.add_argument("--phase", choices=["build", "time"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.phase:
        pairs = [Pair(**data) for data in json.load(sys.stdin)]
        (build_here if options.phase == "build" else time_here)(pairs, Path(options.work))
        return 0
    names = [n for n in options.only.split(",") if n]
    if unknown := [n for n in names if n not in BY_NAME]:
        parser.error(f"unknown: {', '.join(unknown)}; workloads: {', '.join(BY_NAME)}")
    if options.cpu:
        return interpret(names or [w.name for w in WORKLOADS])
    if not options.compile and not gpu_name():
        parser.error("there is no GPU here; --compile and --cpu need none")
    if options.smoke:
        names = list(SMOKE)
        options.seconds = min(options.seconds, 100)
    pairs = list(read_pairs(names, options.pairs))
    if options.smoke:
        pairs = [pair for pair in pairs if pair.number < SMOKED]
    return measure(pairs, options)


if __name__ == "__main__":
    sys.exit(main())
