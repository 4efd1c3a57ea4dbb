"""Random array programs: emitted, compiled for a GPU that is not there, run in the interpreter.

    python -m bench.random_programs --count 200 --out build/random.json

Every program must compile for the target and equal the reference interpreter in float64 within the
tolerance of its dtype. Results are kept per seed, so that a run that was stopped goes on. A program
that emit refuses counts as refused, with the reason.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

TOLERANCE = {"float32": 2e-5, "float16": 1e-2}  # of the largest result
Record = dict[str, Any]


def one(seed: int, target: str) -> Record:
    """The verdict on the program of one seed."""
    from blockbuster.runtime.launch import run_batch

    record, job, wanted = prepared(seed, target)
    if job is None:
        return record
    (got,) = run_batch([job], timeout=300)
    return judged(record, got, wanted)


def prepared(
    seed: int, target: str, emit: Callable[..., Any] | None = None
) -> tuple[Record, Any, dict[str, Any]]:
    """A program's record so far, its kernel with inputs (None: it got no further), the truth.

    ``emit`` stands in for ``bb.emit``.
    """
    import blockbuster as bb
    from blockbuster.emit.target.compiler import compile_kernel
    from blockbuster.testing.arrays import random_array_function

    random = Random(seed)
    function = random_array_function(random)
    dtype = random.choice(tuple(TOLERANCE))
    record: Record = {"seed": seed, "dtype": dtype, "steps": [s for s, _ in function.steps]}
    derivation = bb.fuse(bb.lower(bb.trace(function, **function.inputs)))
    sizes = {d: random.choice((1, 3, 16, 33, 70)) for d in "MNK"} | {"B": random.choice((1, 2, 3))}
    which = random.choice((derivation.start, *derivation.snapshots))
    used = {d for dims in function.inputs.values() for d in dims.split()}
    record["sizes"] = sizes = {d: n for d, n in sizes.items() if d in used}
    try:
        kernel = (emit or bb.emit)(which, sizes=sizes, dtype=dtype, target=target)
    except bb.EmitError as error:
        return {**record, "verdict": "refused", "reason": str(error)}, None, {}
    try:
        record["spills"] = sum(r.spills for r in compile_kernel(kernel))
    except bb.EmitError as error:
        return {**record, "verdict": "does not compile", "reason": str(error)[:2000]}, None, {}
    arrays = {n: a.astype(dtype) for n, a in inputs(function, sizes, seed).items()}
    exact = {n: a.astype(float) for n, a in arrays.items()}
    return record, (kernel, arrays), bb.evaluate(derivation.start, exact, sizes=sizes)


def judged(record: Record, got: Any, wanted: dict[str, Any]) -> Record:
    """The record with its verdict."""
    if isinstance(got, Exception):
        return {**record, "verdict": "does not run", "reason": str(got)[:2000]}
    error = max(relative(got[name], right) for name, right in wanted.items())
    good = error <= TOLERANCE[record["dtype"]]
    return {**record, "error": error, "verdict": "equal" if good else "WRONG"}


def inputs(function: Any, sizes: dict[str, int], seed: int) -> dict[str, Any]:
    import numpy as np

    rng = np.random.default_rng(seed)
    dims = {name: text.split() for name, text in function.inputs.items()}
    return {name: rng.standard_normal([sizes[d] for d in ds]) for name, ds in dims.items()}


def relative(found: Any, right: Any) -> float:
    import numpy as np

    found, right = np.asarray(found, float), np.asarray(right, float)
    if found.shape != right.shape or not np.array_equal(np.isfinite(found), np.isfinite(right)):
        return float("inf")
    judged = np.isfinite(right)
    scale = np.abs(right[judged]).max(initial=1e-2)
    return float(np.abs(found - right)[judged].max(initial=0.0) / scale)


def child(seeds: list[int], target: str, folder: Path) -> None:
    """Write one file per seed; the seed of a program that killed the process is the last begun."""
    for seed in seeds:
        place = folder / f"{seed}.json"
        began = time.perf_counter()
        place.with_suffix(".begun").touch()
        try:
            record = one(seed, target)
        except Exception as error:
            record = {
                "seed": seed,
                "verdict": "raised",
                "reason": f"{type(error).__name__}: {error}",
            }
        record["seconds"] = round(time.perf_counter() - began, 2)
        place.write_text(json.dumps(record), encoding="utf-8")


def run(seeds: list[int], target: str, folder: Path) -> None:
    """Run seeds in processes of their own until each has a verdict."""
    left = [s for s in seeds if not (folder / f"{s}.json").exists()]
    while left:
        command = [sys.executable, "-m", "bench.random_programs", "--target", target]
        command += ["--folder", str(folder), "--seeds", ",".join(map(str, left[:10]))]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        missing = [s for s in left[:10] if not (folder / f"{s}.json").exists()]
        if missing:
            reason = f"code {done.returncode}: {done.stderr[-800:]}"
            record = {"seed": missing[0], "verdict": "died", "reason": reason}
            (folder / f"{missing[0]}.json").write_text(json.dumps(record), encoding="utf-8")
        left = [s for s in left if not (folder / f"{s}.json").exists()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--target", default="sm_90")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=Path("build/random"), help="one file a seed")
    parser.add_argument("--out", type=Path, default=Path("build/random.json"))
    parser.add_argument("--seeds", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.seeds:
        child([int(s) for s in options.seeds.split(",")], options.target, options.folder)
        return 0
    seeds = list(range(options.first, options.first + options.count))
    shares = [seeds[at :: options.processes] for at in range(options.processes)]
    os.environ.pop("TRITON_INTERPRET", None)
    with ThreadPoolExecutor(options.processes) as pool:
        list(pool.map(lambda share: run(share, options.target, options.folder), shares))
    records = [json.loads((options.folder / f"{s}.json").read_text()) for s in seeds]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps({"target": options.target, "programs": records}, indent=1))
    for record in records:
        if record["verdict"] != "equal":
            reason = record.get("reason") or f"error {record.get('error'):.2g}"
            print(f"seed {record['seed']}: {record['verdict']}: {reason[:300]}")
    counts = Counter(r["verdict"] for r in records)
    print(f"seeds {seeds[0]} to {seeds[-1]}:", ", ".join(f"{n} {v}" for v, n in counts.items()))
    return 0 if set(counts) <= {"equal", "refused"} else 1


if __name__ == "__main__":
    sys.exit(main())
