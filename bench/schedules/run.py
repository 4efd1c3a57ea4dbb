"""Replay each schedule here on a GPU: correctness, and time beside the same kernel by hand.

    python3 -m bench.schedules.run --out $OUT               all, in under five minutes
    python3 -m bench.schedules.run --out $OUT --only matmul,decode --default
    python3 -m bench.schedules.run --compile                what they compile to; needs no GPU
    python3 -m bench.schedules.run --cpu                    few blocks, in Triton's interpreter

First every program is compiled and checked in a process of its own, several at a time; then all are
timed, one after the other, each in a process again: one that dies or hangs loses one row. Ours, the
hand forms, the library's call and, with --default, our default schedule are timed in turn.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from bench.child import Child, Record
from bench.schedules.measure import CPU, GPU, LARGEST, emitted, judged, timed
from bench.schedules.programs import BY_NAME, CASES, Case

TIMING = 12.0  # seconds that are kept for timing each program
PATIENCE = 120.0  # seconds after which a process is stopped


# compiling ------------------------------------------------------------------------


def compiled(case: Case) -> Record:
    """What each kernel of a case's schedule and of its hand forms takes, without a GPU."""
    from blockbuster.emit.target.compiler import compile_kernel

    texts = {"ours": case.text} | {f"ours {w}": t for w, t in case.alternatives().items()}
    made = {name: compile_kernel(emitted(case, text, case.sizes)) for name, text in texts.items()}
    mine = {name: [asdict(report) for report in reports] for name, reports in made.items()}
    return {"program": case.name, "kernels": {**mine, **compiled_forms(case)}}


def compiled_forms(case: Case) -> dict[str, list[Record]]:
    """What each kernel of the hand forms takes."""
    import torch

    from blockbuster.emit.target.compiler import compile_entry
    from blockbuster.emit.target.targets import target_of

    target = target_of("sm_90")
    shapes = case.shapes(case.sizes).items()
    inputs = {n: torch.empty(s, dtype=torch.float16, device="meta") for n, s in shapes}
    return {
        form.name: [asdict(compile_entry(x.entry(), target)) for x in form.ready(inputs).launches]
        for form in case.forms()
    }


def compile_all(names: list[str]) -> int:
    """Print what is compiled, a kernel to a line. The exit code is 1 if a schedule fails."""
    import blockbuster as bb

    failed = 0
    print(f"{'program':20} {'form':44} {'kernel':28} {'shared':>7} {'regs':>5} {'spills':>6}")
    for name in names:
        try:
            record = compiled(BY_NAME[name])
        except bb.BlockbusterError as error:
            print(f"{name:20} FAILED {error}")
            failed += 1
            continue
        for form, reports in record["kernels"].items():
            for r in reports:
                numbers = f"{r['shared']:7} {r['registers']:5} {r['spills']:6}"
                print(f"{name:20} {form:44} {r['function']:28} {numbers}")
    return 1 if failed else 0


# the parent ------------------------------------------------------------------------


def run_all(names: list[str], options: argparse.Namespace) -> int:
    """Check all, time all, write the record and print the table."""
    options.out.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    end = began + options.seconds
    reserve = 0.0 if options.cpu else TIMING * len(names)
    workers = options.workers or max(1, (os.cpu_count() or 2) // 2)
    with ThreadPoolExecutor(workers) as pool:
        records = list(pool.map(lambda name: child("check", name, options, end - reserve), names))
    print(f"checked in {time.monotonic() - began:.0f} s", flush=True)
    if not options.cpu:
        for record in records:
            right = list(record.get("errors", ()))
            found = child("time", record["program"], options, end, right) if right else {}
            record.update(found)
    report = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        **machine(),
        "seconds": round(time.monotonic() - began, 1),
        "largest_error": LARGEST,
        "records": records,
    }
    path: Path = options.out / "schedules.json"
    path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(table(records))
    what = (report["gpu"], f"torch {report['torch']}", f"triton {report['triton']}", report["date"])
    print(f"{', '.join(map(str, what))}; {report['seconds']} s")
    return 1 if any("error" in r or "ours" in r.get("failed", {}) for r in records) else 0


def child(
    phase: str, name: str, options: argparse.Namespace, end: float, right: list[str] | None = None
) -> Record:
    """What one program's process finds out; "error" where it ends badly."""
    patience = 10 * PATIENCE if options.cpu else PATIENCE
    more = ["--right", json.dumps(right or [])]
    more += [f"--{flag}" for flag in ("default", "cpu") if getattr(options, flag)]
    one = Child("bench.schedules.run", phase, name, more, interpreted=options.cpu)
    return one.record(options.out / f"{name}.json", min(patience, end - time.monotonic()))


def in_child(case: Case, options: argparse.Namespace) -> None:
    """Write what a phase finds out about a case."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    if options.phase == "time":
        record = timed(case, json.loads(options.right), default=options.default)
    else:
        record = judged(case, CPU if options.cpu else GPU, default=options.default)
    options.out.write_text(json.dumps(record), encoding="utf-8")


def machine() -> dict[str, str]:
    import torch
    import triton

    import blockbuster as bb

    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"
    versions = {"torch": torch.__version__, "triton": triton.__version__}
    return {"gpu": gpu, **versions, "python": sys.version.split()[0], "blockbuster": bb.__version__}


def table(records: list[Record]) -> str:
    """Per program: ours, the best hand form, the library, the default; times in microseconds.

    Last, the relative errors: ours, and that form's.
    """
    lines = [
        f"{'program':20} {'ours':>8} {'by hand':>8} {'ratio':>6} {'library':>8} {'default':>8}"
        f" {'errors':>15}  best by hand"
    ]
    for record in records:
        times = record.get("times", {})
        hand = {n: t for n, t in times.items() if n.startswith("hand ")}
        best = min(hand, key=lambda n: hand[n], default="")
        ratio = times["ours"] / hand[best] if "ours" in times and best else None
        shown = (
            *(_cell(times.get("ours"), 8, 1), _cell(hand.get(best), 8, 1), _cell(ratio, 6, 2)),
            *(_cell(times.get(name), 8, 1) for name in ("library", "default")),
        )
        errors = record.get("errors", {})
        said = "|".join(f"{errors[n]:.1e}" if n in errors else "-" for n in ("ours", best))
        form = best.removeprefix("hand ")
        lines.append(f"{record['program']:20} {' '.join(shown)} {said:>15}  {form}")
        lines += [f"  {name}: {t:.1f}" for name, t in times.items() if name.startswith("ours ")]
        if "error" in record:
            lines.append(f"  FAILED: {record['error'][:400]}")
        lines += [f"  FAILED {n}: {why[:400]}" for n, why in record.get("failed", {}).items()]
    return "\n".join(lines)


def _cell(number: float | None, width: int, digits: int) -> str:
    return f"{'-' if number is None else format(number, f'.{digits}f'):>{width}}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("build/schedules"))
    parser.add_argument("--only", default="", help="names, separated by commas")
    parser.add_argument("--seconds", type=float, default=280)
    parser.add_argument("--default", action="store_true", help="time the default schedule, too")
    parser.add_argument("--compile", action="store_true", help="compile for sm_90, run nothing")
    parser.add_argument("--cpu", action="store_true", help="few blocks, in Triton's interpreter")
    parser.add_argument("--workers", type=int, default=0, help="0: half of the cores")
    parser.add_argument("--phase", choices=["check", "time"], help=argparse.SUPPRESS)
    parser.add_argument("--right", default="[]", help=argparse.SUPPRESS)
    options = parser.parse_args()
    names = [n for n in options.only.split(",") if n] or [case.name for case in CASES]
    if unknown := [n for n in names if n not in BY_NAME]:
        parser.error(f"unknown: {', '.join(unknown)}; programs: {', '.join(BY_NAME)}")
    if options.phase:
        in_child(BY_NAME[names[0]], options)
        return 0
    return compile_all(names) if options.compile else run_all(names, options)


if __name__ == "__main__":
    sys.exit(main())
