"""Every program of bench/programs.py on a GPU: errors, reproducibility, and time beside eager.

    python3 -m bench.gpu.run_programs --out $OUT          everything, in under eight minutes
    python3 -m bench.gpu.run_programs --only mlp,geglu    some programs
    python3 -m bench.gpu.run_programs --cpu               small sizes in Triton's interpreter

First every program is checked in its own process, several at a time; then all are timed, one after
the other, in another process. A process that dies or hangs fails alone.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

DTYPES = ("float16", "bfloat16", "float32")
KINDS = ("timed", "tiny", "ragged", "peaked", "extreme", "strided", "tiles", "shifted")
TIMING = 80  # seconds; 56 on an H200
Record = dict[str, Any]


# checking one program ------------------------------------------------------------


def check(name: str, dtypes: list[str], device: str, out: Path) -> None:
    """Write a record per dtype and kind of inputs."""
    import torch

    from bench.gpu.measure import final_graph
    from bench.programs import WORKLOADS

    torch.backends.cuda.matmul.allow_tf32 = False
    workload = WORKLOADS[name]
    graph = final_graph(workload)
    with out.open("w") as file:
        for dtype in dtypes:
            for kind in KINDS:
                if kind == "timed" and device == "cpu":
                    continue
                began = time.perf_counter()
                record: Record = {"program": name, "dtype": dtype, "kind": kind}
                try:
                    record |= check_kind(workload, graph, dtype, kind, device)
                except Exception as error:  # one failure must not hide the others
                    record |= {"passed": False, "error": f"{type(error).__name__}: {error}"[:800]}
                record["seconds"] = round(time.perf_counter() - began, 2)
                file.write(json.dumps(record) + "\n")
                file.flush()


def check_kind(workload: Any, graph: Any, dtype: str, kind: str, device: str) -> Record:
    import torch

    import blockbuster as bb
    from bench.gpu.measure import (
        DRAWS,
        as_tuple,
        into_poisoned,
        judge,
        make_inputs,
        poison_workspaces,
        run_into,
        same_bits,
    )
    from bench.programs import eager

    sizes = workload.sizes_of(kind if kind in ("timed", "tiny") else "ragged")
    kernel = bb.emit(graph, sizes=sizes, dtype=dtype)
    if kind == "tiles":
        kernel = other_tiles(graph, sizes, dtype, kernel)
    poison_workspaces(kernel)

    def draw(seed: int) -> Any:
        return make_inputs(workload, sizes, kind, getattr(torch, dtype), device, seed)

    inputs, most = draw(0), DRAWS if device == "cuda" else 3
    like = as_tuple(eager(workload.fn)(**inputs))
    run = into_poisoned(kernel, like, strided=kind == "strided")
    error, draws = judge(workload, run, draw, draws=most)
    record: Record = {**error.data(), "draws": draws, "sizes": sizes, "tiles": dict(kernel.tiles)}
    outputs, again = run(inputs), tuple(torch.full_like(x, 7) for x in like)
    run_into(kernel, inputs, again)
    record["reproducible"] = same_bits(outputs, again)
    if kind == "timed":
        record |= capture_and_stream(kernel, inputs, outputs)
        fast = bb.jit(workload.fn)
        jitted, _ = judge(workload, lambda given: fast(**given), draw, draws=most)
        record |= {"jitted": jitted.passed, "jitted_errors": jitted.data()}
    checks = ("passed", "reproducible", "captured", "streamed", "jitted")
    record["passed"] = all(record.get(check, True) for check in checks)
    return record


def other_tiles(graph: Any, sizes: dict[str, int], dtype: str, kernel: Any) -> Any:
    """The same kernel with smaller tiles along some dims, where it takes them."""
    import blockbuster as bb

    for least in (16, 32, 64):
        tiles = {d: max(n // 2, least) for d, n in kernel.tiles.items() if n > least}
        try:
            return bb.emit(graph, sizes=sizes, dtype=dtype, tiles=tiles)
        except bb.EmitError:
            continue
    return kernel


def capture_and_stream(kernel: Any, inputs: Any, outputs: Any) -> Record:
    """The same bits from a captured graph's replay, and from a launch on another stream."""
    import torch

    from bench.gpu.measure import poisoned, run_into, same_bits

    replayed, streamed = poisoned(outputs), poisoned(outputs)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run_into(kernel, inputs, replayed)
    for x in replayed:
        x.fill_(7)
    graph.replay()
    torch.cuda.synchronize()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        run_into(kernel, inputs, streamed)
    side.synchronize()
    return {"captured": same_bits(outputs, replayed), "streamed": same_bits(outputs, streamed)}


# timing --------------------------------------------------------------------------


def time_all(names: list[str], dtypes: list[str], out: Path) -> None:
    """Append a record per program and dtype."""
    import torch

    from bench.programs import WORKLOADS

    torch.backends.cuda.matmul.allow_tf32 = False
    with out.open("a") as file:
        for name in names:
            for dtype in dtypes:
                record: Record = {"program": name, "dtype": dtype}
                file.write(json.dumps({**record, "begun": True}) + "\n")
                file.flush()
                try:
                    record |= time_one(WORKLOADS[name], dtype)
                except Exception as error:
                    record |= {"error": f"{type(error).__name__}: {error}"[:800]}
                file.write(json.dumps(record) + "\n")
                file.flush()


def time_one(workload: Any, dtype: str) -> Record:
    """Medians in microseconds of three alternating rounds; by CUDA graph where below 100.

    Ours is the function from ``bb.jit``: both make their outputs, as a user's call does.
    """
    import torch
    from triton.testing import do_bench

    import blockbuster as bb
    from bench.gpu.measure import make_inputs
    from bench.programs import eager

    inputs = make_inputs(
        workload, workload.sizes_of("timed"), "random", getattr(torch, dtype), "cuda"
    )
    fast, fn = bb.jit(workload.fn), eager(workload.fn)
    runs = {"ours": lambda: fast(**inputs), "eager": lambda: fn(**inputs)}
    found: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(3):
        for name, run in runs.items():
            found[name].append(1e3 * do_bench(run, warmup=10, rep=25, return_mode="median"))
    record: Record = {f"{name}_us": sorted(times)[1] for name, times in found.items()}
    for name, run in runs.items():
        if record[f"{name}_us"] < 100:
            record[f"{name}_graph_us"] = graph_time(run)
    return record


def graph_time(run: Any, times: int = 20) -> float:
    """Microseconds per call when ``times`` calls are captured once and replayed."""
    import torch
    from triton.testing import do_bench

    graph = torch.cuda.CUDAGraph()
    run()
    with torch.cuda.graph(graph):
        for _ in range(times):
            run()
    return 1e3 * float(do_bench(graph.replay, warmup=10, rep=25, return_mode="median")) / times


# the parent ----------------------------------------------------------------------


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("build"), help="folder for the results")
    parser.add_argument("--only", default="", help="names, separated by commas")
    parser.add_argument("--dtypes", default=",".join(DTYPES))
    parser.add_argument("--workers", type=int, default=0, help="0: three quarters of the cores")
    parser.add_argument(
        "--seconds",
        type=float,
        default=450,
        help=f"what is not done by then is dropped; {TIMING} of them are kept for timing",
    )
    parser.add_argument("--cpu", action="store_true", help="small sizes, in Triton's interpreter")
    parser.add_argument("--no-times", action="store_true")
    parser.add_argument("--check-one", help=argparse.SUPPRESS)
    parser.add_argument("--time", help=argparse.SUPPRESS)
    options = parser.parse_args()
    dtypes = options.dtypes.split(",")
    if options.check_one:
        check(options.check_one, dtypes, "cpu" if options.cpu else "cuda", options.out)
        return 0
    if options.time:
        time_all(options.time.split(","), dtypes, options.out)
        return 0
    return Parent(options).run()


class Parent:
    """Starts the processes, gathers their records, prints the table."""

    def __init__(self, options: argparse.Namespace) -> None:
        from bench.programs import WORKLOADS

        self.options = options
        self.names = [n for n in options.only.split(",") if n] or list(WORKLOADS)
        self.out: Path = options.out
        self.out.mkdir(parents=True, exist_ok=True)
        self.scratch = Path(os.environ.get("TMPDIR", "/tmp")) / f"programs-{os.getpid()}"
        self.scratch.mkdir()
        self.end = time.monotonic() + options.seconds
        self.python = [sys.executable, "-m", "bench.gpu.run_programs", "--dtypes", options.dtypes]

    def run(self) -> int:
        began = time.monotonic()
        workers = self.options.workers or max(1, (os.cpu_count() or 2) * 3 // 4)
        with ThreadPoolExecutor(workers) as pool:
            checks = [r for records in pool.map(self.check, self.names) for r in records]
        checked = time.monotonic() - began
        times = [] if self.options.cpu or self.options.no_times else self.times()
        report = {
            "machine": machine(),
            "method": __import__("blockbuster.check.judge", fromlist=["x"]).__doc__,
            "checks": checks,
            "times": times,
            "check_seconds": checked,
            "seconds": time.monotonic() - began,
        }
        (self.out / "programs.json").write_text(json.dumps(report, indent=1), encoding="utf-8")
        failed = [r for r in checks if not r.get("passed")]
        for r in failed:
            what = r.get("error") or {k: r.get(k) for k in SHOWN if k in r}
            print(f"FAILED {r['program']} {r['dtype']} {r['kind']}: {str(what)[:300]}")
        for r in checks:
            if r.get("passed") and max(r.get("ratio_max", 0), r.get("ratio_rms", 0)) > 1.5:
                shown = f"{r['ratio_max']:.2f}|{r['ratio_rms']:.2f}, relative {r['relative']:.1e}"
                where = f"{r['program']} {r['dtype']} {r['kind']}"
                print(f"by a floor, or on few errors: {where} ratio {shown}, {r['erring']} errors")
        print(table(self.names, checks, times))
        kinds = {(r["program"], r["dtype"]) for r in checks}
        print(
            f"{len(checks)} checks of {len(kinds)} kernels, {len(failed)} failed;"
            f" {checked:.0f} s checking, {report['seconds']:.0f} s in all; {report['machine']}"
        )
        return 1 if failed else 0

    def check(self, name: str) -> list[Record]:
        """The records of a program's own process."""
        out = self.scratch / f"{name}.jsonl"
        flags = ["--cpu"] if self.options.cpu else []
        command = [*self.python, "--check-one", name, "--out", str(out), *flags]
        reserve = 0 if self.options.cpu or self.options.no_times else TIMING
        left = self.end - reserve - time.monotonic()
        reason = self.child(command, min(left, 3000 if self.options.cpu else 240))
        records = read(out)
        if reason:
            at = {"program": name, "dtype": "-", "kind": "process", "passed": False}
            records.append({**at, "error": f"{reason} after {len(records)} records"})
        return records

    def times(self) -> list[Record]:
        """The records of the timing processes: the next one goes on behind what killed the last."""
        out, names = self.scratch / "times.jsonl", list(self.names)
        while names and time.monotonic() < self.end - 5:
            command = [*self.python, "--time", ",".join(names), "--out", str(out)]
            reason = self.child(command, self.end - time.monotonic())
            if not reason:
                break
            begun = [r["program"] for r in read(out) if r.get("begun")]
            print(f"timing ended at {begun[-1] if begun else names[0]}: {reason}")
            names = names[names.index(begun[-1]) + 1 :] if begun and begun[-1] in names else []
        return [r for r in read(out) if not r.get("begun")]

    def child(self, command: list[str], seconds: float) -> str:
        """Why a process ended badly; empty if it did not."""
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        if self.options.cpu:
            environment["TRITON_INTERPRET"] = "1"
        if seconds <= 0:
            return "no time left"
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=seconds,
                env=environment,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"stopped after {seconds:.0f} s"
        return "" if done.returncode == 0 else f"code {done.returncode}: {done.stderr[-600:]}"


SHOWN = (
    "ratio_max", "ratio_rms", "ratio_all", "relative", "erring", "draws", "lost", "reproducible",
    "captured", "streamed", "jitted_errors",
)  # fmt: skip


def read(path: Path) -> list[Record]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]


def machine() -> str:
    import torch
    import triton

    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"
    return f"{gpu}, torch {torch.__version__}, triton {triton.__version__}"


def table(names: list[str], checks: list[Record], times: list[Record]) -> str:
    """Per program: the worst ratios to eager's error, failures, times ours/eager by dtype."""
    lines = [
        f"{'program':24} {'error ratio max|rms: f16, bf16, f32':40} bad  us ours/eager (g: graph)"
    ]
    for name in names:
        mine = [r for r in checks if r["program"] == name]
        ratios, clocks = [], []
        for dtype in DTYPES:
            of = [r for r in mine if r["dtype"] == dtype and "ratio_max" in r]
            peak = max((r["ratio_max"] for r in of), default=float("nan"))
            mean = max((r["ratio_rms"] for r in of), default=float("nan"))
            ratios.append(f"{peak:.2f}|{mean:.2f}")
            clocks += [clock(r) for r in times if r["program"] == name and r["dtype"] == dtype]
        bad = sum(not r.get("passed") for r in mine)
        lines.append(f"{name:24} {'  '.join(ratios):40} {bad:3}  {'  '.join(clocks)}")
    return "\n".join(lines)


def clock(record: Record) -> str:
    if "error" in record:
        return "error"
    text = f"{record['ours_us']:.0f}/{record['eager_us']:.0f}"
    if "ours_graph_us" in record and "eager_graph_us" in record:
        text += f" g{record['ours_graph_us']:.1f}/{record['eager_graph_us']:.1f}"
    return text


if __name__ == "__main__":
    sys.exit(main())
