"""Host time of one call: a jitted function, plain launches of the same kernels, torch.

    python bench/gpu/jit_host_cost.py [--calls 2000] [--rounds 7]

Sizes are small, so that the GPU is never what is waited for. Each number is the least of several
rounds of many calls, in microseconds of Python per call; rounds of the alternatives alternate.
"launch" allocates and starts kernels as the emitted file does, "plain" starts them with Triton's
own ``kernel[grid](...)`` on arrays that are there already.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

import numpy as np
import torch
import triton

import blockbuster as bb
from blockbuster.emit.target.load import load_module
from blockbuster.runtime.recorder import Recorder


def scaled(x, y):
    return bb.silu(x) * y


def attention(q, k, v):
    return bb.softmax((q @ k.T) * q.shape[-1] ** -0.5) @ v


def normed_twice(x, w):
    return bb.softmax(bb.exp(x) @ w, axis=0)


def tensors(*shapes: tuple[int, ...]) -> list[torch.Tensor]:
    return [torch.randn(shape, device="cuda", dtype=torch.float16) for shape in shapes]


CASES: dict[str, tuple[Callable, list[tuple[int, ...]], Callable]] = {
    "silu(x) * y": (
        scaled,
        [(256, 256), (256, 256)],
        lambda x, y: torch.nn.functional.silu(x) * y,
    ),
    "attention": (
        attention,
        [(128, 64)] * 3,
        lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(
            q[None, None], k[None, None], v[None, None]
        ),
    ),
    "softmax(exp(x) @ w, 0)": (
        normed_twice,
        [(128, 64), (64, 128)],
        lambda x, w: torch.softmax(torch.exp(x) @ w, 0),
    ),
}


def host_us(call: Callable[[], object], calls: int) -> float:
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(calls):
        call()
    took = time.perf_counter() - start
    torch.cuda.synchronize()
    return took / calls * 1e6


def plain(source: str, arrays: list[torch.Tensor]) -> Callable[[], None]:
    """The launches of a file, each as Triton's ``kernel[grid](...)``, without any allocation."""
    module = load_module(source)
    recorder = Recorder(module)
    recorder.launch(arrays, {})
    functions = {entry["function"].__name__: entry["function"] for entry in module.KERNELS}
    kernels = [functions[noted.name] for noted in recorder.noted]

    def launch() -> None:
        for kernel, noted in zip(kernels, recorder.noted, strict=True):
            kernel[noted.grid](*noted.arguments, **noted.options)

    return launch


def measure(name: str, calls: int, rounds: int) -> None:
    function, shapes, eager = CASES[name]
    arrays = tensors(*shapes)
    jitted = bb.jit(function)
    compiled = jitted.compiled_for(*arrays)
    launch = load_module(compiled.source).launch
    captured = torch.cuda.CUDAGraph()
    jitted(*arrays)
    torch.cuda.synchronize()
    with torch.cuda.graph(captured):
        jitted(*arrays)
    alternatives: dict[str, Callable[[], object]] = {
        "jit": lambda: jitted(*arrays),
        "compiled": lambda: compiled(*arrays),
        "launch": lambda: launch(*arrays),
        "plain": plain(compiled.source, arrays),
        "torch": lambda: eager(*arrays),
        "empty": lambda: torch.empty(shapes[0], device="cuda", dtype=torch.float16),
        "graph": captured.replay,
    }
    for call in alternatives.values():
        host_us(call, 50)
    best = dict.fromkeys(alternatives, np.inf)
    for _ in range(rounds):
        for key, call in alternatives.items():
            best[key] = min(best[key], host_us(call, calls))
    shown = "  ".join(f"{key} {us:6.2f}" for key, us in best.items())
    per_launch = (best["jit"] - best["empty"]) / best["plain"]
    print(f"{name:24} {compiled.plan.kernels} kernels  {shown}  jit less one empty: "
          f"{per_launch:.2f} of plain")  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("needs a GPU that torch sees")
        return 2
    device = torch.cuda.get_device_name()
    print(f"{device}, torch {torch.__version__}, triton {triton.__version__}; us per call")
    for name in CASES:
        measure(name, options.calls, options.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
