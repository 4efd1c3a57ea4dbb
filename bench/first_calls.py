"""The processor time of first calls by stage, without a GPU: choosing, compiling, inspecting.

    python -m bench.first_calls [--only attend,linear] [--machine h100] [--out FILE]

What a first call does in a warm process: a program is traced and its kernels are chosen, Triton
compiles them into an empty cache, and their machine code is disassembled and read. Launches and the
comparison of first results need a GPU (bench.gpu.first_check_cost) and are left out. Seconds are
those of the processor: ``choosing`` and ``compiling`` of this process, ``assembling`` of ptxas and
``inspecting`` of nvdisasm and its reader, which run beside it. ``--out`` gets a line of JSON for
each program.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import torch

import blockbuster as bb
from bench.outside.making import callable_for
from bench.outside.predict import imported
from bench.peers.cases import BY_KEY
from blockbuster.emit.target.compiler import compiled_entry, made_of
from blockbuster.emit.target.inspection import faults_in_code
from blockbuster.emit.target.load import load_module
from blockbuster.emit.target.targets import target_of

PROGRAMS = (
    "linear-scale-leaky-relu-1024x8192x8192", "matmul-sigmoid-sum-1024x8192x8192",
    "linear-gelu-softmax-1024x8192x8192", "linear-group-norm-16-hardtanh-1024x8192x8192",
    "matmul-2048x8192x2048", "chain-relu-512x1024x4096x1024", "mean-middle-128x4095x255",
    "rms-of-channels-16x64x256x257", "softmax-middle-64x77x1025", "huber-4096x4097",
    "divergence-4096x8192", "gelu-by-hand-8192x8191", "attend-causally-4x16x1024x64",
    "normed-layer-1024x2048",
)  # fmt: skip
"""Of bench.outside: one or two of each family that a person calls first."""
STAGES = ("choosing", "compiling", "assembling", "inspecting")
Seconds = dict[str, float]


def spent() -> tuple[float, float]:
    """Seconds of the processor until now: of this process, and of its children that ended."""
    both = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    own, children = (used.ru_utime + used.ru_stime for used in both)
    return own, children


@contextmanager
def counted(seconds: Seconds, own: str, children: str) -> Iterator[None]:
    """Adds what is spent inside to two stages, which may be one."""
    before = spent()
    yield
    for stage, was, now in zip((own, children), before, spent(), strict=True):
        seconds[stage] += now - was


def stages(name: str, machine: str) -> dict[str, Any]:
    """The seconds of each stage for one program, and how many kernels it has."""
    case, seconds = BY_KEY[f"outside/{name}"], dict.fromkeys(STAGES, 0.0)
    dtypes = {given: getattr(torch, case.own.get(given, case.dtype)) for given in case.inputs}
    arrays = [torch.empty(case.shape(n, case.sizes), dtype=dtype) for n, dtype in dtypes.items()]
    with torch.no_grad(), counted(seconds, "choosing", "choosing"):
        plan = bb.jit(callable_for(case.fn, arrays), machine=machine).plan_for(*arrays)
    target = target_of(plan.target)
    for file in plan.files:
        for entry in load_module(file.text).KERNELS:
            with counted(seconds, "compiling", "assembling"):
                compiled, assembler = compiled_entry(entry, target)
            with counted(seconds, "inspecting", "inspecting"):
                faults_in_code(made_of(entry["function"].__name__, compiled, assembler))
    return {"key": name, "kernels": plan.kernels} | {n: round(s, 3) for n, s in seconds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--only", default="", help="beginnings of names, with commas between")
    parser.add_argument("--machine", default="h100")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    names = [name for name in PROGRAMS if name.startswith(tuple(asked.only.split(",")))]
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"TRITON_CACHE_DIR": folder, "XDG_CACHE_HOME": folder}
        imported(asked.machine)
        stages("mean-middle-128x4095x255", asked.machine)  # Triton is imported and has compiled
        os.environ |= dict.fromkeys(("TRITON_CACHE_DIR", "XDG_CACHE_HOME"), f"{folder}/cold")
        print(f"{'program':46} {'kernels':>7} " + " ".join(f"{stage:>10}" for stage in STAGES))
        rows = []
        for name in names:
            rows.append(stages(name, asked.machine))
            print(f"{name:46} {rows[-1]['kernels']:7} ", end="")
            print(" ".join(f"{rows[-1][stage]:10.2f}" for stage in STAGES), flush=True)
    print(f"{'median':54} " + " ".join(f"{median(r[s] for r in rows):10.2f}" for s in STAGES))
    if asked.out:
        asked.out.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


if __name__ == "__main__":
    main()
