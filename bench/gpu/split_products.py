"""Schedules of split products of float32 side by side on a GPU: predicted and measured times.

    python3 -m bench.gpu.split_products --out $OUT             about a minute with 15 workers
    python3 -m bench.gpu.split_products --predict              no GPU: predicted times alone

The right operand of a product has its sum along memory (``x @ w.T``, as in torch's linear layers),
or its columns (``x @ w``, ``x.T @ w``): then parts of it are turned as they are written to shared
memory, where lanes wait for each other. Kernels are compiled by several processes, compared with
float64, and timed one at a time by CUDA graph. The end tells, for each product, how much longer the
schedule with the best price takes than the best one.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import blockbuster as bb
from bench.records import Record
from blockbuster.emit.target.load import load_module
from blockbuster.selection.nearby.fitting import rooms
from blockbuster.selection.price import priced

DTYPE, TARGET, MACHINE = "float32", "sm_90", "h200"
WORKERS, ROUNDS, WARM = 15, 3, 10
SHARED = 220 << 10
"""Bytes of shared memory that a schedule may want."""


class Shape(NamedTuple):
    """A product, its sizes, and the dims of its two arrays."""

    fn: Callable[[Any, Any], Any]
    sizes: dict[str, int]
    left: str
    right: str


def _plain(x: Any, w: Any) -> Any:
    return x @ w


def _linear(x: Any, w: Any) -> Any:
    return x @ w.T


def _gradient(x: Any, w: Any) -> Any:
    return x.T @ w


SQUARE, ODD = dict(M=2048, K=2048, N=2048), dict(M=777, K=1536, N=1536)
SHAPES = {
    "x @ w": Shape(_plain, SQUARE, "M K", "K N"),
    "x @ w, odd": Shape(_plain, ODD, "M K", "K N"),
    "x @ w, batched": Shape(_plain, dict(H=32, M=256, K=256, N=256), "H M K", "H K N"),
    "x @ w.T": Shape(_linear, SQUARE, "M K", "N K"),
    "x @ w.T, odd": Shape(_linear, ODD, "M K", "N K"),
    "x.T @ w": Shape(_gradient, SQUARE, "K M", "K N"),
}


def trials() -> Iterator[tuple[str, str]]:
    """A product and a schedule each."""
    tiles = product((64, 128), (32, 64, 128), (32, 64), (4, 8), (2, 3))
    texts = [
        f"split-float nest 1\nblock M {m}, K {k}, N {n}\nwarps {warps}\n"
        f"stage nest 1 K {stages}\noverlap nest 1"
        for m, n, k, warps, stages in tiles
        if (warps == 4 or m * n >= 64 * 128) and (m + n) * k * 4 * stages <= SHARED
    ]
    yield from product(SHAPES, texts)


def record(name: str, schedule: str, alone: Any = None) -> Record:
    """Predicted and, if there is a lock to hold meanwhile, measured microseconds."""
    found: Record = {"name": name, "schedule": schedule}
    fn, sizes, left, right = SHAPES[name]
    try:
        derivation = bb.fuse(bb.lower(bb.trace(fn, x=left, w=right)))
        kernel = bb.emit(derivation.snapshots[0], sizes, DTYPE, TARGET, schedule=schedule)
        found["predicted"] = kernel.cost(MACHINE, launch="graph").time_us
        scheduled = kernel.derivation.final
        found["fits"] = not priced(scheduled).spills_beside(rooms(scheduled))
        return found | (_measured(name, kernel, alone) if alone else {})
    except Exception as error:  # one that fails must not hide the others
        return found | {"error": f"{type(error).__name__}: {error}"[:200]}


def _measured(name: str, kernel: bb.Kernel, alone: Any) -> Record:
    import torch

    from bench.timing import Clock

    fn, sizes, *dims = SHAPES[name]
    launch = load_module(kernel.source).launch
    x, w = (torch.randn([sizes[dim] for dim in words.split()], device="cuda") for words in dims)
    made, right = launch(x, w), fn(x.double(), w.double())
    error = float((made.double() - right).abs().max() / right.abs().max())
    with alone:
        graph = Clock().graph(partial(launch, x, w, made), WARM)
        return {
            "error_of_largest": error,
            "warm": statistics.median(graph() for _ in range(ROUNDS)),
        }


def regrets(found: Sequence[Record]) -> str:
    """For each product the best time, and that of the schedule with the best price of those whose
    registers a search would not refuse.
    """
    lines = [
        "| product | best, us | by the price, us | longer by | schedule |",
        "|---|---|---|---|---|",
    ]
    for name in SHAPES:
        timed = [one for one in found if one["name"] == name and "warm" in one]
        if timed:
            best = min(one["warm"] for one in timed)
            chosen = min(timed, key=lambda one: (not one["fits"], one["predicted"]))
            longer, words = chosen["warm"] / best - 1, chosen["schedule"].replace("\n", "; ")
            lines.append(f"| {name} | {best:.1f} | {chosen['warm']:.1f} | {longer:.0%} | {words} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, help="a folder for split_products.jsonl")
    parser.add_argument("--predict", action="store_true", help="no GPU: predicted times alone")
    options = parser.parse_args(arguments)
    if options.predict:
        for name, schedule in trials():
            print(json.dumps(record(name, schedule)), flush=True)
        return
    if options.out is None:
        parser.error("--out is needed, or --predict")
    options.out.mkdir(parents=True, exist_ok=True)
    context = get_context("spawn")
    with (
        context.Manager() as manager,
        ProcessPoolExecutor(WORKERS, mp_context=context) as pool,
        (options.out / "split_products.jsonl").open("w") as file,
    ):
        alone, found = manager.Lock(), list[Record]()
        for done in as_completed([pool.submit(record, *one, alone) for one in trials()]):
            found.append(done.result())
            file.write(json.dumps(found[-1]) + "\n")
            file.flush()
    print(regrets(found))


if __name__ == "__main__":
    main(sys.argv[1:])
