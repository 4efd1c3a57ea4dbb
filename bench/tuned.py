"""Tune programs on a GPU, and write a file of the results, for `blockbuster cache import`.

    python -m bench.tuned --out $OUT/tuned --seconds 540           a list of families
    python -m bench.tuned --out $OUT/tuned --only gemm/4096x4096x4096,decode/gqa-8192
    python -m bench.tuned --out $OUT/tuned --all                   all short cases of bench/peers
    python -m bench.tuned --dry-run                                no GPU: what would be tuned

Each program is called through ``bb.jit(tune="measure")``, and its result compared with float64. A
line shows the times of the model's choice and of the best schedule, taken in turn in one process.
OUT/cache keeps all measurements, so a second run continues; OUT/NAME.json, for the machine's NAME,
holds them as one file. Both are written after each program. With several GPUs, each has a process,
and the programs are dealt out in turn; all share OUT.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.peers.case import Case, as_tuple, error_of
from bench.peers.cases import BY_KEY, CASES
from blockbuster.machines import known_device
from blockbuster.tuning.entry import Entry
from blockbuster.tuning.setting import gpu_name
from blockbuster.tuning.store import Store, write_file
from blockbuster.view.measurements import as_table

FAMILIES = (
    "gemm/2048x4096x4096",
    "gemm/4096x4096x4096",
    "attention/full-4096-128",
    "attention/causal-4096-128",
    "attention/full-1024-64",
    "masks/soft-cap-2048",
    "masks/window-8192",
    "decode/gqa-8192",
    "decode/soft-cap-8192",
    "norm_matmul/rms-2048x4096x4096",
    "norm_matmul/layer-8192x1024x1024",
    "ffn/llama3-8b-2048",
    "ffn/llama3-8b-16",
    "ffn/llama3.2-1b-128",
    "gemm_chain/G1",
    "gemm_chain/G4",
    "gemm_chain/G10",
    "self_attention/S1",
    "self_attention/S6",
    "rows/length-256x131072",
    "rows/softmax-256x16384",
    "performer/performer-2048",
    "float32/linear-2048x1024x1024",
    "others/geglu",
)
ROOM = 25.0  # seconds that are left for the case at hand

Record = dict[str, Any]


def tuned(case: Case) -> Record:
    """A case called through a tuned ``jit``: what was measured, and its error."""
    import blockbuster as bb

    began = time.monotonic()
    inputs = case.drawn(case.sizes, "cuda", seed=1)
    record: Record = {"case": case.key}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            jitted = bb.jit(tune="measure")(case.fn)
            result = as_tuple(jitted(*inputs.values()))
            record["error"] = error_of(result, case.reference(inputs))
            record["right"] = record["error"] <= case.largest
            plan = jitted.plan_for(*inputs.values())
            record["reasons"] = [f.considered.reason for f in plan.files if f.considered]
            record["schedules"] = [
                f.considered.best.scheduled.schedule
                for f in plan.files
                if f.considered and f.considered.best.scheduled
            ]
        except (bb.BlockbusterError, ValueError, RuntimeError) as error:
            record["failed"] = f"{type(error).__name__}: {error}"[:600]
    record["warnings"] = [str(one.message)[:400] for one in caught]
    return record | {"seconds": round(time.monotonic() - began, 1)}


def line(record: Record) -> str:
    """A case in some lines."""
    name, seconds = record["case"], record["seconds"]
    if "failed" in record:
        return f"{name:36} {seconds:5.1f} s  FAILED: {record['failed']}"
    error = f"error {record['error']:.1e}{'' if record['right'] else '  WRONG'}"
    said = [f"    {one}" for one in (*record["reasons"], *record["warnings"])]
    return "\n".join([f"{name:36} {seconds:5.1f} s  {error}", *said])


def run(cases: Sequence[Case], out: Path, seconds: float) -> int:
    """Tune cases on one GPU until time is up. The exit code is 1 if one is wrong."""
    end = time.monotonic() + seconds
    out.mkdir(parents=True, exist_ok=True)
    os.environ["XDG_CACHE_HOME"] = str(out / "cache")
    import torch

    right = []
    for case in cases:
        if time.monotonic() + ROOM > end:
            print(f"{case.key:36} no time was left for it", flush=True)
            continue
        record = tuned(case)
        with (out / "tuned.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        exported(out, torch.cuda.get_device_name())
        print(line(record), flush=True)
        right.append(bool(record.get("right")))
        torch.cuda.empty_cache()
    return 0 if right and all(right) else 1


def exported(out: Path, device: str) -> tuple[Path, list[Entry]]:
    """The file of all that OUT/cache holds, written anew."""
    machine = known_device(device)
    entries = [*Store().entries()]
    return write_file(entries, out / f"{machine.name if machine else 'device'}.json"), entries


def on_each_gpu(names: Sequence[str], out: Path, seconds: float, gpus: Sequence[str]) -> int:
    """Tune the named cases in a process for each GPU. The exit code is that of the worst."""
    running = []
    for at, gpu in enumerate(gpus):
        asked = ["--only", ",".join(names[at :: len(gpus)]), "--seconds", str(seconds)]
        command = [sys.executable, "-m", "bench.tuned", "--out", str(out), *asked]
        environment = {**os.environ, "CUDA_VISIBLE_DEVICES": gpu}
        running.append(subprocess.Popen(command, env=environment))
    return max(process.wait() for process in running)


def visible_gpus() -> list[str]:
    """What CUDA_VISIBLE_DEVICES says, or the numbers of all GPUs."""
    import torch

    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    return given.split(",") if given else [str(n) for n in range(torch.cuda.device_count())]


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("build/tuned"))
    parser.add_argument("--only", default="", help="cases of bench/peers, separated by commas")
    parser.add_argument("--all", action="store_true", help="all short cases, not one list")
    parser.add_argument("--seconds", type=float, default=540)
    parser.add_argument("--dry-run", action="store_true", help="say what would be tuned")
    options = parser.parse_args()
    short = [case.key for case in CASES if case.quick]
    names = [n for n in options.only.split(",") if n] or (short if options.all else [*FAMILIES])
    if unknown := [name for name in names if name not in BY_KEY]:
        parser.error(f"unknown: {', '.join(unknown)}; cases: {', '.join(BY_KEY)}")
    if options.dry_run:
        print("\n".join(names))
        return 0
    gpus = visible_gpus()
    if len(gpus) < 2 or len(names) < 2:
        code = run([BY_KEY[name] for name in names], options.out, options.seconds)
    else:
        code = on_each_gpu(names, options.out, options.seconds, gpus[: len(names)])
    os.environ["XDG_CACHE_HOME"] = str(options.out / "cache")
    path, entries = exported(options.out, gpu_name())
    print(f"\n{as_table(entries)}\n\nwrote {len(entries)} kernels into {path}")
    return code


if __name__ == "__main__":
    sys.exit(main())
