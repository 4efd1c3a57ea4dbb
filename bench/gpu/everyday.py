"""Everyday programs (bench/everyday.py) on a GPU: correctness, and the gain of masked loop bounds.

    python3 -m bench.gpu.everyday --out $OUT                  all of it, in under six minutes
    python3 -m bench.gpu.everyday --out $OUT --only causal    some programs
    python3 -m bench.gpu.everyday --out $OUT --no-lengths     the programs alone

Each program is called through ``bb.jit`` at large and at small sizes, and compared with float64, in
a process of its own, several at a time; then it is timed beside eager torch. Last, causal and
window attention are timed at several lengths: with ``narrow`` and ``part``, with the same schedule
without lines of ``part``, without those of ``narrow``, too, and without a mask.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from bench.child import Child, Record

LARGEST = 2e-3  # root mean square of the error, over that of the result: half precision gives 5e-4
LENGTHS = (1024, 2048, 4096, 8192, 16384)
HEADS, DEPTH = 16, 128
PATIENCE = 200.0  # seconds after which a process is stopped
KINDS = ("large", "small")
VARIANTS = {"": (), " in one part": ("part",), " without narrow": ("narrow", "part")}
"""Which moves of the default schedule are left out, by what stands behind a program's name."""


def inputs_of(program: Any, kind: str, dtype: Any, *, device: str, seed: int = 1) -> Record:
    """Random inputs: numbers, whole numbers in rising order, and shares of ones."""
    import torch

    random = torch.Generator(device=device).manual_seed(seed)
    made = {}
    for name, shape in program.shapes(kind).items():
        if name in (program.whole or {}):
            drawn = torch.randint(program.whole[name], shape, generator=random, device=device)
            made[name] = (drawn if name == "target" else drawn.sort(-1).values).to(dtype)
            continue
        x = torch.randn(shape, generator=random, device=device)
        if name in (program.shares or {}):
            x = (torch.rand(shape, generator=random, device=device) < program.shares[name]).float()
        elif name in ("w", "wq", "wk", "wv"):
            x = x * shape[-2 if len(shape) > 1 else -1] ** -0.5
        made[name] = x.to(dtype)
    return made


def eager(fn: Callable[..., Any], device: str) -> Callable[..., Any]:
    """A function of bench/everyday.py, and all it calls there, by torch's own functions."""
    from bench import everyday
    from bench.torch_functions import TorchFunctions

    def run(*arrays: Any, **named: Any) -> Any:
        ours, theirs = everyday.bb, TorchFunctions(device)
        everyday.bb = theirs  # type: ignore[assignment]
        try:
            return fn(*arrays, **named)
        finally:
            everyday.bb = ours

    return run


def check(name: str, device: str) -> Record:
    """Whether a program is right at large and small sizes, and its times."""
    import torch

    import blockbuster as bb
    from bench.everyday import BY_NAME
    from bench.gpu.measure import as_tuple

    program, fn = BY_NAME[name], eager(BY_NAME[name].fn, device)
    fast = bb.jit(program.fn)
    record: Record = {"program": name, "errors": {}, "passed": True}
    for kind in KINDS if device == "cuda" else KINDS[1:]:
        inputs = inputs_of(program, kind, torch.float16, device=device)
        found = [x.clone() for x in as_tuple(fast(**inputs))]
        again = as_tuple(fast(**inputs))
        wide = {n: x.double() if x.is_floating_point() else x for n, x in inputs.items()}
        exact = as_tuple(fn(**wide))
        errors = [
            float((x.double() - y).norm() / y.norm()) for x, y in zip(found, exact, strict=True)
        ]
        same = all(torch.equal(x, y) for x, y in zip(found, again, strict=True))
        record["errors"][kind] = errors
        right = same and all(error <= LARGEST for error in errors)
        record["passed"] = record["passed"] and right
        if kind == "large":
            record["kernels"] = fast.plan_for(**inputs).kernels
            record["report"] = str(fast.report_for(**inputs))
    return record


def times(name: str) -> Record:
    """Microseconds of a call by graph: ours, and eager torch."""
    import torch

    import blockbuster as bb
    from bench.everyday import BY_NAME
    from bench.timing import medians

    program = BY_NAME[name]
    inputs = inputs_of(program, "large", torch.float16, device="cuda")
    fast, fn = bb.jit(program.fn), eager(program.fn, "cuda")
    with torch.no_grad():
        runs: dict[str, Callable[[], Any]] = {
            "ours": lambda: fast(**inputs),
            "eager": lambda: fn(**inputs),
        }
        return {"program": name, "times": medians(runs, rounds=3)}


# masks as loop bounds ---------------------------------------------------------------


def lengths(seconds: float) -> list[Record]:
    """Times of masked attention by length, with and without moves for masks; right or not."""
    import torch

    from bench.everyday import causal, full, window
    from bench.gpu.measure import as_tuple
    from bench.timing import medians

    end, records = time.monotonic() + seconds, []
    for length in LENGTHS:
        if time.monotonic() > end:
            break
        shape = (1, HEADS, length, DEPTH)
        q, k, v = (torch.randn(shape, device="cuda").half() for _ in "qkv")
        record: Record = {"length": length, "failed": {}, "errors": {}}
        runs: dict[str, Callable[[], Any]] = {}
        for name, fn in dict(full=full, causal=causal, window=window).items():
            for word, without in VARIANTS.items():
                if without and f"{without[0]} nest" not in kernel_of(fn, length).schedule:
                    continue
                try:
                    out = torch.full_like(q, float("nan"))
                    run = partial(kernel_of(fn, length, without), q=q, k=k, v=v, out=out)
                    run()
                    head = [x[:, :2].double() for x in (q, k, v)]
                    (exact,) = as_tuple(eager(fn, "cuda")(*head)) if length <= 8192 else (None,)
                    if exact is not None:
                        error = float((out[:, :2].double() - exact).norm() / exact.norm())
                        record["errors"][name + word] = error
                        if not error <= LARGEST:
                            raise ValueError(f"the error is {error:.1e} of the result")
                    runs[name + word] = run
                except Exception as error:
                    record["failed"][name + word] = f"{type(error).__name__}: {error}"[:500]
        runs |= _library(q, k, v)
        record["times"] = medians(runs, rounds=3)
        records.append(record)
        print(record, flush=True)
    return records


def _library(q: Any, k: Any, v: Any) -> dict[str, Callable[[], Any]]:
    import torch

    call = torch.nn.functional.scaled_dot_product_attention
    return {
        "library full": lambda: call(q, k, v),
        "library causal": lambda: call(q, k, v, is_causal=True),
    }


def kernel_of(fn: Any, length: int, without: tuple[str, ...] = ()) -> Any:
    """The kernel of the default schedule, or of that schedule ``without`` some moves."""
    import blockbuster as bb

    dims = dict.fromkeys("qkv", "B H S D")
    graph = bb.fuse(bb.lower(bb.trace(fn, **dims))).final
    sizes = dict(B=1, H=HEADS, S=length, D=DEPTH)
    kernel = bb.emit(graph, sizes, "float16", "sm_90")
    if not without:
        return kernel
    lines = [line for line in kernel.schedule.splitlines() if line.split()[0] not in without]
    if "part" in without:  # with it goes what is done to further parts
        lines = [line for line in lines if "#" not in line]
    return bb.emit(graph, sizes, "float16", "sm_90", schedule="\n".join(lines))


# the parent ------------------------------------------------------------------------


def child(phase: str, name: str, out: Path, end: float, device: str) -> Record:
    """What one process finds out; "error" where it ends badly."""
    seconds = min(PATIENCE, end - time.monotonic())
    more = ("--seconds", str(seconds), "--device", device)
    one = Child("bench.gpu.everyday", phase, name, more, interpreted=device == "cpu")
    return one.record(out / f"{phase}-{name}.json", seconds)


def run_all(options: argparse.Namespace, names: list[str]) -> int:
    """Check all, time all, write the record and print the table."""
    from bench.schedules.run import machine

    out: Path = options.out
    out.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + options.seconds
    with ThreadPoolExecutor(max(1, (os.cpu_count() or 2) // 2)) as pool:
        checks = list(pool.map(lambda name: child("check", name, out, end, options.device), names))
    timed = []
    if options.device == "cuda":
        passed = [record["program"] for record in checks if record.get("passed")]
        timed = [child("time", name, out, end, "cuda") for name in passed]
        if options.lengths:
            timed.append({"lengths": child("lengths", "all", out, end, "cuda")})
    report = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        **machine(),
        "largest_error": LARGEST,
        "checks": checks,
        "times": timed,
    }
    (out / "everyday.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return shown(checks, timed)


def shown(checks: list[Record], timed: list[Record]) -> int:
    """Print a line per program; 1 if one failed."""
    found: Mapping[str, Record] = {
        r["program"]: r.get("times", {}) for r in timed if "program" in r
    }
    for record in checks:
        us = found.get(record["program"], {})
        told = " ".join(f"{who} {what:.1f} us" for who, what in us.items())
        worst = max((e for row in record.get("errors", {}).values() for e in row), default=-1)
        word = "right" if record.get("passed") else f"FAILED {record.get('error', '')[-500:]}"
        print(
            f"{record['program']:28} {record.get('kernels', '-')} kernels {worst:.1e} {word} {told}"
        )
    print(json.dumps([r["lengths"] for r in timed if "lengths" in r], indent=1))
    return 0 if all(record.get("passed") for record in checks) else 1


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("build/everyday"))
    parser.add_argument("--only", default="", help="names, separated by commas")
    parser.add_argument("--seconds", type=float, default=360)
    parser.add_argument("--no-lengths", dest="lengths", action="store_false")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--phase", choices=["check", "time", "lengths"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    from bench.everyday import BY_NAME

    names = [name for name in options.only.split(",") if name] or list(BY_NAME)
    if options.phase:
        if options.phase == "lengths":
            record: Record = {"records": lengths(options.seconds - 20)}
        else:
            name = names[0]
            record = check(name, options.device) if options.phase == "check" else times(name)
        options.out.write_text(json.dumps(record), encoding="utf-8")
        return 0
    return run_all(options, names)


if __name__ == "__main__":
    sys.exit(main())
