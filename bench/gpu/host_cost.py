"""Host time of a call, by kind of call: jitted functions beside what torch does for the same.

    python -m bench.gpu.host_cost [--calls 50] [--rounds 40] [--only WORD]

On a GPU: the time in which a burst of calls is issued, per call; the burst ends before the queue of
launches is full, and the GPU is waited for between bursts, outside the time. Bursts of ours and of
torch alternate; each number is the least over rounds. Without a GPU: the same with a stand-in for
the driver's launch (``--stand-in`` asks for it where there is a GPU), in CPU time, tensors on the
CPU and no torch beside it, because torch would compute. Numbers of the two are not comparable.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any, NamedTuple
from unittest import mock

import torch
import triton

import blockbuster as bb
from blockbuster.emit.target.load import load_module
from blockbuster.runtime import compiled, first_launch, replay
from tests.compile.launchers import Kernel, with_driver
from tests.compile.stand_ins import Device

F = torch.nn.functional
Shape = tuple[int, ...]


class Kind(NamedTuple):
    """A kind of call: a function for ``bb.jit``, torch's, shapes of its arrays, and options.

    ``starts_kernels``: no library computes in it, which nothing stands in for.
    """

    ours: Callable[..., Any]
    torchs: Callable[..., Any]
    shapes: Sequence[Shape]
    options: dict[str, Any] = {}  # noqa: RUF012 - never changed
    starts_kernels: bool = True


def two_products(x, a, b):
    return bb.maximum(x @ a, 0) @ b


def attention(q, k, v):
    return bb.softmax((q @ k.mT) * q.shape[-1] ** -0.5) @ v


def decode(q, k, v):
    return F.scaled_dot_product_attention(q, k, v)


OURS = {"library": False}
KINDS = {
    "one kernel": Kind(lambda x: bb.maximum(x, 0), torch.relu, [(256, 256)]),
    "one kernel, 2 arrays": Kind(
        lambda x, y: bb.silu(x) * y, lambda x, y: F.silu(x) * y, [(256, 256)] * 2
    ),
    "one kernel, 8 arrays": Kind(
        lambda *xs: sum(xs[1:], xs[0]), lambda *xs: sum(xs[1:], xs[0]), [(64, 64)] * 8
    ),
    "two kernels": Kind(attention, decode, [(1, 8, 1, 128), (1, 8, 4096, 128), (1, 8, 4096, 128)]),
    "two kernels, descriptors": Kind(
        two_products,
        lambda x, a, b: torch.relu(x @ a) @ b,
        [(2048, 4096), (4096, 4096), (4096, 2048)],
        OURS,
    ),
    "library product": Kind(lambda x, w: x @ w, torch.mm, [(4096, 4096)] * 2, {}, False),
}


def burst_us(call: Callable[[], object], calls: int, *, gpu: bool) -> float:
    """Microseconds of the host for one of so many calls."""
    if gpu:
        torch.cuda.synchronize()
    clock = time.perf_counter if gpu else time.process_time
    start = clock()
    for _ in range(calls):
        call()
    took = clock() - start
    if gpu:
        torch.cuda.synchronize()
    return took / calls * 1e6


NOTHING = "".format
"""Takes any arguments and does nothing, in C as the driver's function."""


@contextmanager
def stand_in():
    """Kernels that start nothing, and tensors of the CPU that pass for those of a GPU."""
    device = Device(torch)

    def loaded(text: str) -> Any:
        module = load_module(text)
        module.empty = lambda shape, dtype, like: torch.zeros(shape, dtype=device.dtype(dtype))
        for entry in module.KERNELS:
            if not isinstance(entry["function"], Kernel):
                entry["function"] = Kernel(entry["function"], NOTHING)
        return module

    triton.knobs.runtime.interpret = True
    checks = first_launch.FirstChecks
    with (
        with_driver(),
        mock.patch.object(replay, "load_module", loaded),
        mock.patch.object(compiled, "Gpu", partial(Device, torch)),
        mock.patch.object(compiled.Compiled, "_check"),
        mock.patch.object(checks, "admit"),
        mock.patch.object(checks, "expect_no_capture"),
    ):
        yield
    triton.knobs.runtime.interpret = False


def measured(kind: Kind, options: argparse.Namespace, *, gpu: bool) -> str:
    """The least times, and what the plan is."""
    where = {"device": "cuda"} if gpu else {}
    arrays = [torch.randn(shape, dtype=torch.float16, **where) for shape in kind.shapes]
    jitted = bb.jit(kind.ours, **kind.options, **({} if gpu else {"machine": "h100"}))
    calls: dict[str, Callable[[], object]] = {"jit": lambda: jitted(*arrays)}
    if gpu:
        calls["torch"] = lambda: kind.torchs(*arrays)
    for call in calls.values():
        burst_us(call, options.calls, gpu=gpu)
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(options.rounds):
        for name, call in calls.items():
            best[name] = min(best[name], burst_us(call, options.calls, gpu=gpu))
    plan = jitted.plan_for(*arrays)
    made = f"{plan.kernels} kernels, {plan.source.count('=descriptor(')} descriptors"
    return f"{'  '.join(f'{name} {us:6.2f}' for name, us in best.items())}  {made}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--only", default="")
    parser.add_argument("--stand-in", action="store_true")
    options = parser.parse_args()
    gpu = torch.cuda.is_available() and not options.stand_in
    place = torch.cuda.get_device_name() if gpu else "stand-in for a GPU"
    print(f"{place}, torch {torch.__version__}, Triton {triton.__version__}; us per call")
    for name, kind in KINDS.items():
        if options.only not in name or not (gpu or kind.starts_kernels):
            continue
        with nullcontext() if gpu else stand_in():
            print(f"{name:26} {measured(kind, options, gpu=gpu)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
