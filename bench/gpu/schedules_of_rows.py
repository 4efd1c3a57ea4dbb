"""Schedules of rows and columns side by side on a GPU: predicted and measured times.

    python3 -m bench.gpu.schedules_of_rows --out $OUT             about a minute
    python3 -m bench.gpu.schedules_of_rows --predict              no GPU: predicted times alone

Norms, softmax and sums of rows of even and of odd length, and of a middle axis, each with several
blocks and warps, with exponentials in base e and in base 2 (move ``factor``). Kernels are compiled
by several processes, and timed one at a time, cold and by CUDA graph.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import blockbuster as bb
from bench.records import Record
from blockbuster.emit.target.load import load_module
from blockbuster.errors import BlockbusterError

DTYPE, TARGET, MACHINE = "float16", "sm_90", "h100"
WORKERS, ROUNDS, COLD, WARM = 14, 3, 8, 10


def log_of_exponentials(x: Any) -> Any:
    return bb.logsumexp(x, axis=1)


def softmax(x: Any) -> Any:
    return bb.softmax(x, axis=1)


def layer_norm(x: Any) -> Any:
    y = x - bb.mean(x, axis=-1, keepdims=True)
    return y * bb.rsqrt(bb.mean(y * y, axis=-1, keepdims=True) + 1e-5)


def total(x: Any) -> Any:
    return bb.sum(x, axis=1)


@dataclass(frozen=True)
class Trial:
    """A function of one array whose dims are the letters of ``sizes``, with a schedule."""

    fn: Callable[[Any], Any]
    sizes: tuple[tuple[str, int], ...]
    schedule: str

    def __str__(self) -> str:
        shape = " x ".join(str(size) for _, size in self.sizes)
        return f"{self.fn.__name__} of {shape}"


def trials() -> Iterator[Trial]:
    """All of them, in order."""
    middle = [(512, 16, 4), (512, 16, 8), (256, 32, 4), (256, 32, 8), (128, 64, 4), (64, 128, 4)]
    for b, c, warps in middle:
        block = f"block B {b}, C {c}"
        for sizes in (dict(A=64, B=1023, C=257), dict(A=64, B=1024, C=256)):
            yield from both(log_of_exponentials, sizes, block, warps)
        yield from one(total, dict(A=32, B=4096, C=4095), block, warps)
    for c, warps in ((32, 1), (64, 2), (64, 4), (128, 4), (128, 8), (256, 8)):
        for size in (65535, 65536):
            yield from both(softmax, dict(A=16, B=21, C=size), f"block B 32 whole, C {c}", warps)
    for n, warps in ((2048, 4), (4096, 4), (4096, 8), (8192, 4), (8192, 8)):
        for fn, size in ((log_of_exponentials, 50257), (softmax, 50257), (softmax, 32768)):
            yield from both(fn, dict(M=4096, N=size), f"block M 1, N {n}", warps)
    for size in (4095, 4096):
        for warps in (4, 8):
            for fn in (log_of_exponentials, softmax):
                yield from both(fn, dict(M=8192, N=size), "block M 1, N 4096 whole", warps)
            yield from one(layer_norm, dict(M=8192, N=size), "block M 1, N 4096 whole", warps)


def one(fn: Callable[[Any], Any], sizes: dict[str, int], *lines: Any) -> Iterator[Trial]:
    """The schedule of a block, other moves if any, and a number of warps, the last."""
    *moves, warps = lines
    text = "\n".join([*moves, f"warps {warps}", "overlap nest 1"])
    yield Trial(fn, tuple(sizes.items()), text)


def both(
    fn: Callable[[Any], Any], sizes: dict[str, int], block: str, warps: int
) -> Iterator[Trial]:
    """With exponentials in base e and in base 2."""
    yield from one(fn, sizes, block, warps)
    yield from one(fn, sizes, block, "factor", warps)


@cache
def _derived(fn: Callable[[Any], Any], dims: str) -> bb.Derivation:
    return bb.fuse(bb.lower(bb.trace(fn, x=dims)))


def emitted(trial: Trial) -> bb.Kernel:
    """The kernel of the first snapshot that the schedule is for. Raises EmitError if none is."""
    sizes, refused = dict(trial.sizes), BlockbusterError("no snapshot")
    for graph in _derived(trial.fn, " ".join(sizes)).snapshots:
        try:
            return bb.emit(graph, sizes, DTYPE, TARGET, schedule=trial.schedule)
        except BlockbusterError as error:
            refused = error
    raise refused


def record(trial: Trial, alone: Any = None) -> Record:
    """Predicted and, if there is a lock to hold meanwhile, measured microseconds."""
    found: Record = {"name": str(trial), "schedule": trial.schedule}
    try:
        kernel = emitted(trial)
        found["predicted"] = kernel.cost(MACHINE, launch="graph").time_us
        return found | (_measured(trial, kernel, alone) if alone else {})
    except Exception as error:  # one that fails must not hide the others
        return found | {"error": f"{type(error).__name__}: {error}"[:200]}


def _measured(trial: Trial, kernel: bb.Kernel, alone: Any) -> Record:
    import torch

    from bench.timing import Clock

    launch = load_module(kernel.source).launch
    x = torch.randn([size for _, size in trial.sizes], device="cuda", dtype=torch.float16)
    made = launch(x)
    torch.cuda.synchronize()
    with alone:
        clock, call = Clock(), partial(launch, x, made)
        cold = statistics.median(clock.cold(call, COLD) for _ in range(ROUNDS))
        graph = clock.graph(call, WARM)
        return {"cold": cold, "warm": statistics.median(graph() for _ in range(ROUNDS))}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, help="folder for schedules_of_rows.jsonl")
    parser.add_argument("--predict", action="store_true", help="no GPU: predicted times alone")
    options = parser.parse_args(arguments)
    if options.predict:
        for trial in trials():
            print(json.dumps(record(trial)))
        return 0
    if options.out is None:
        parser.error("say --out FOLDER, or --predict")
    options.out.mkdir(parents=True, exist_ok=True)
    spawned = get_context("spawn")
    alone = spawned.Manager().Lock()
    with (
        ProcessPoolExecutor(WORKERS, mp_context=spawned) as pool,
        (options.out / "schedules_of_rows.jsonl").open("w", encoding="utf-8") as file,
    ):
        asked = [pool.submit(record, trial, alone) for trial in trials()]
        for done in as_completed(asked):
            file.write(json.dumps(done.result()) + "\n")
            file.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
