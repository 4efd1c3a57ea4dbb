"""Scans, attention to caches and reductions that wait for others, on a GPU beside float64.

    python -m bench.gpu.scans_and_caches [NAME ...]

A line of JSON for each: errors of ours and of eager torch, over the largest exact result, kernels,
the time of the first call, and microseconds of both in a CUDA graph. Without a GPU: small arrays,
untimed.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

import blockbuster as bb

GPU = torch.cuda.is_available()
CALLS, REPLAYS, LARGEST_ON_CPU = 5, 8, 64

Tensor = torch.Tensor
Shape = tuple[int, ...]


def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = (q @ k.mT).float() * q.shape[-1] ** -0.5
    return torch.softmax(scores, -1).to(q.dtype) @ v


def joined(q: Tensor, k: Tensor, v: Tensor, k1: Tensor, v1: Tensor) -> Tensor:
    """One query beside a cache and a new token."""
    return attend(q, torch.cat([k, k1], 2), torch.cat([v, v1], 2))


def grouped(q: Tensor, k: Tensor, v: Tensor, k1: Tensor, v1: Tensor) -> Tensor:
    """The same with four heads of queries to one of keys."""
    k, v = torch.cat([k, k1], 2), torch.cat([v, v1], 2)
    return attend(q, k.repeat_interleave(4, 1), v.repeat_interleave(4, 1))


def chosen(q: Tensor, k: Tensor, v: Tensor, k1: Tensor, v1: Tensor) -> Tensor:
    """The same, with the new token in its place by a condition."""
    here = torch.arange(k.shape[2], device=k.device)[:, None] == k.shape[2] - 3
    return attend(q, torch.where(here, k1, k), torch.where(here, v1, v))


def normed_maximum(x: Tensor) -> Tensor:
    wide = x.float()
    return (wide * torch.rsqrt((wide**2).mean(-1, keepdim=True) + 1e-6)).amax(-1)


def p_norm(x: Tensor) -> Tensor:
    largest = x.abs().amax(-1, keepdim=True).float()
    return largest * ((x.float().abs() / largest) ** 3).sum(-1, keepdim=True) ** (1 / 3)


def nearest(x: Tensor, centres: Tensor) -> Tensor:
    distance = ((x[:, None].float() - centres[None].float()) ** 2).sum(-1)
    return (distance / distance.amax(-1, keepdim=True)).amin(-1)


CACHE = ((16, 8, 1, 128), (16, 8, 4096, 128), (16, 8, 4096, 128), (16, 8, 1, 128), (16, 8, 1, 128))
CASES: dict[str, tuple[Callable[..., Tensor], Sequence[Shape]]] = {
    "cumsum1": (lambda x: x.cumsum(1), [(2048, 4097)]),
    "cumsum0": (lambda x: x.cumsum(0), [(2048, 4097)]),
    "cumsum1k": (lambda x: x.cumsum(1), [(8192, 1024)]),
    "cumsum0k": (lambda x: x.cumsum(0), [(8192, 1024)]),
    "cumprod": (lambda x: (1 + x / 64).cumprod(1), [(512, 1025)]),
    "cummax": (lambda x: x.cummax(1).values, [(2048, 4097)]),
    "cumsum-long": (lambda x: x.cumsum(-1), [(64, 65536)]),
    "cumsum-flip": (lambda x: x.flip(1).cumsum(1).flip(1), [(1024, 4000)]),
    "cumsum-mid": (lambda x: x.cumsum(1) * 0.5, [(64, 1024, 128)]),
    "cumsum-around": (lambda x, g: (x * 2).cumsum(1) * g, [(2048, 4097)] * 2),
    "cat": (joined, CACHE),
    "gqa": (grouped, [(16, 32, 1, 128), *CACHE[1:]]),
    "where": (chosen, CACHE),
    "one-query": (attend, CACHE[:3]),
    "rms-max": (normed_maximum, [(256, 16384)]),
    "pnorm": (p_norm, [(256, 16384)]),
    "nearest": (nearest, [(1024, 48), (256, 48)]),
    "maxdiff": (lambda x: (x - x.amax(-1, keepdim=True)).abs().amax(-1), [(4096, 4096)]),
    "tanhmax": (lambda x: torch.tanh(x - x.mean(-1, keepdim=True)).amax(-1), [(4096, 4096)]),
    "colsum": (lambda x: x.sum(0), [(8192, 8192)]),
    "column-norm": (lambda x: x / (x.float() ** 2).sum(0).sqrt(), [(8192, 1000)]),
}


def drawn(shape: Shape) -> Tensor:
    extents = shape if GPU else [min(extent, LARGEST_ON_CPU) for extent in shape]
    made = torch.randn(*extents).to(torch.float16)
    return made.cuda() if GPU else made


def graph_us(call: Callable[[], Any]) -> float:
    """Microseconds of a call, several of them in one CUDA graph."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(CALLS):
            call()
    times = []
    for _ in range(REPLAYS):
        begun, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begun.record()
        graph.replay()
        ended.record()
        torch.cuda.synchronize()
        times.append(begun.elapsed_time(ended) * 1e3 / CALLS)
    return round(statistics.median(times), 1)


def row(name: str) -> dict[str, Any]:
    fn, shapes = CASES[name]
    arrays = [drawn(shape) for shape in shapes]
    jitted, begun = bb.jit(fn), time.monotonic()
    got = jitted(*arrays)
    found: dict[str, Any] = {"case": name, "first_s": round(time.monotonic() - begun, 1)}
    exact = fn(*(array.double().cpu() for array in arrays))
    scale = exact.abs().max().item()

    def error(made: Tensor) -> float:
        return (made.double().cpu() - exact).abs().max().item() / scale

    found |= {"error": error(got), "eager_error": error(fn(*arrays))}
    found["kernels"] = jitted.plan_for(*arrays).kernels
    if GPU:
        found |= {
            "us": graph_us(lambda: jitted(*arrays)),
            "eager_us": graph_us(lambda: fn(*arrays)),
        }
    return found


def main() -> None:
    for name in sys.argv[1:] or CASES:
        print(json.dumps(row(name)), flush=True)


if __name__ == "__main__":
    main()
