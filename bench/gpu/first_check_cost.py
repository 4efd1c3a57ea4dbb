"""The cost of checking a kernel's first result on a GPU: seconds beside the compile.

    python3 -m bench.gpu.first_check_cost

Each program is compiled and called without a check first, then called anew with one, three times:
with the kernels compiled, that takes the check and a launch. The first program also pays for what
torch loads when it first computes in float64.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import blockbuster as bb


def attention(q: Any, k: Any, v: Any) -> Any:
    return bb.softmax(q @ k.mT * q.shape[-1] ** -0.5) @ v


def causal(q: Any, k: Any, v: Any) -> Any:
    s = q @ k.mT * q.shape[-1] ** -0.5
    mask = bb.arange(q.shape[-2])[:, None] >= bb.arange(k.shape[-2])
    return bb.softmax(bb.where(mask, s, -np.inf), axis=-1) @ v


def swiglu(x: Any, w: Any, v: Any) -> Any:
    h = bb.rms_norm(x)
    return bb.silu(h @ w) * (h @ v)


PROGRAMS: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "add": (lambda x, y: x + y, [(1024, 1024)] * 2),
    "softmax 8192 x 8192": (bb.softmax, [(8192, 8192)]),
    "sum of 16384 x 16384": (lambda x: bb.sum(x), [(16384, 16384)]),
    "layer norm, columns": (lambda x: bb.sum(bb.layer_norm(x), axis=0), [(8192, 4096)]),
    "matmul 4096": (lambda x, y: x @ y, [(4096, 4096)] * 2),
    "attention 4096, 16 heads": (attention, [(16, 4096, 128)] * 3),
    "causal attention 16384, 8 heads": (causal, [(8, 16384, 64)] * 3),
    "swiglu 4096 x 11008": (swiglu, [(4096, 4096), (4096, 11008), (4096, 11008)]),
}


def seconds(function: Callable[..., Any], given: list[Any], *, check: bool) -> float:
    torch.cuda.synchronize()
    jitted = bb.jit(function, check=check)
    start = time.perf_counter()
    jitted(*given)
    torch.cuda.synchronize()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", nargs="?", help="a JSON file")
    out = parser.parse_args().out
    rows = {}
    for name, (function, shapes) in PROGRAMS.items():
        given = [torch.randn(s, device="cuda", dtype=torch.float16) * 0.3 for s in shapes]
        compiled = seconds(function, given, check=False)
        plain = min(seconds(function, given, check=False) for _ in range(3))
        costs = []
        for _ in range(3):
            with tempfile.TemporaryDirectory() as folder:
                os.environ["XDG_CACHE_HOME"] = folder
                costs.append(seconds(function, given, check=True) - plain)
        rows[name] = {"compile": compiled, "plain": plain, "check": costs}
        shown = ", ".join(f"{cost:.3f}" for cost in costs)
        print(f"{name:34} compile {compiled:6.2f}   again {plain:.3f}   check {shown}", flush=True)
        del given
        torch.cuda.empty_cache()
    if out:
        with open(out, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
