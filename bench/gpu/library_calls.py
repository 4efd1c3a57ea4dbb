"""Times of a library's products and convolutions on a GPU, over grids of their sizes.

    python -m bench.gpu.library_calls --out $OUT          writes $OUT/library.toml

``blockbuster/machines/data/library`` keeps such a file for a target: the search for a plan
reads there what a call of the library takes (blockbuster/machines/library.py). Kernels only: each
call is one of several in a CUDA graph that read other operands in turn, so that none finds its own
in the cache. In float16, of numbers drawn from a normal distribution.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import torch

from bench.records import machine

POOL = 1 << 29  # elements of which operands are cut
APART = 150e6  # bytes that the operands of a graph's calls have together, at least
MOST_CALLS, REPLAYS = 12, 5
MOST_OPERATIONS, MOST_ELEMENTS = 1.2e12, 1 << 28
LENGTHS = (16, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
ODD = (63, 255, 1023, 4095)
CHANNELS, FILTERS, SIDES, TAPS = (
    (3, 16, 64, 256, 512),
    (16, 64, 256, 512),
    (7, 14, 28, 56, 112),
    (1, 3, 5),
)
IMAGES = 32
VOLUMES, VOLUME_CHANNELS = (8, 16, 32), (16, 64, 128)

Call = Callable[..., Any]
Grid = tuple[tuple[str, tuple[int, ...]], ...]


class Meter:
    """The times of calls on operands that are cut of one array of random numbers."""

    def __init__(self) -> None:
        self._pool = torch.empty(POOL, dtype=torch.float16, device="cuda").normal_()

    def us(self, call: Call, shapes: Sequence[Sequence[int]], made: int) -> float:
        """Microseconds of a call on arrays of ``shapes``, which makes ``made`` elements."""
        sizes = [prod(shape) for shape in shapes]
        calls = max(2, min(MOST_CALLS, int(APART / (2 * (sum(sizes) + made))) + 1))
        given = [self._operands(shapes, sizes, at * sum(sizes)) for at in range(calls)]
        call(*given[0])
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            kept = [call(*operands) for operands in given]
        graph.replay()
        pairs = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(REPLAYS)]
        for begun, ended in pairs:
            begun.record()
            graph.replay()
            ended.record()
        torch.cuda.synchronize()
        del kept
        return 1e3 * statistics.median(b.elapsed_time(e) for b, e in pairs) / calls

    def _operands(
        self, shapes: Sequence[Sequence[int]], sizes: Sequence[int], at: int
    ) -> list[Any]:
        found = []
        for shape, size in zip(shapes, sizes, strict=True):
            at = (at + 63) // 64 * 64
            begin = at if at + size <= POOL else 0
            found.append(self._pool[begin : begin + size].view(*shape))
            at = begin + size
        return found


def products(meter: Meter, lengths: Sequence[int]) -> Iterator[float]:
    """M x K by the transpose of N x K, by M, N and K. 0 where it is too large."""
    for m, n, k in product(lengths, repeat=3):
        if 2.0 * m * n * k > MOST_OPERATIONS or max(m * n, m * k, n * k) > MOST_ELEMENTS:
            yield 0.0
        else:
            yield meter.us(lambda x, w: torch.mm(x, w.t()), [(m, k), (n, k)], m * n)


def convolutions(meter: Meter, *, last: bool) -> Iterator[float]:
    """32 images, by taps, channels, filters and side; ``last``: channels come last in memory."""

    def conv(x: Any, w: Any, taps: int) -> Any:
        if last:
            x, w = x.permute(0, 3, 1, 2), w.permute(0, 3, 1, 2)
        return torch.conv2d(x, w, padding=taps // 2)

    for taps, c, k, side in product(TAPS, CHANNELS, FILTERS, SIDES):
        m = IMAGES * side * side
        if 2.0 * m * k * c * taps**2 > MOST_OPERATIONS:
            yield 0.0
            continue
        image, filters = (IMAGES, c, side, side), (k, c, taps, taps)
        if last:
            image, filters = (IMAGES, side, side, c), (k, taps, taps, c)
        yield meter.us(lambda x, w, t=taps: conv(x, w, t), [image, filters], m * k)


def volumes(meter: Meter) -> Iterator[float]:
    """8 volumes and 3 x 3 x 3 taps, by channels, filters and side."""
    for c, k, side in product(VOLUME_CHANNELS, VOLUME_CHANNELS, VOLUMES):
        shapes = [(8, c, side, side, side), (k, c, 3, 3, 3)]
        yield meter.us(lambda x, w: torch.conv3d(x, w, padding=1), shapes, 8 * k * side**3)


def table(name: str, grid: Grid, times: Sequence[float]) -> str:
    """A table of the file: the grid's axes and the microseconds, the last axis fastest."""
    lines = [f"[{name}]", *(f"{axis} = {list(values)}" for axis, values in grid)]
    width = len(grid[-1][1])
    rows = [times[at : at + width] for at in range(0, len(times), width)]
    lines += ["us = [", *("    " + ", ".join(f"{us:.3g}" for us in row) + "," for row in rows), "]"]
    return "\n".join(lines) + "\n"


def _tables(meter: Meter) -> dict[str, tuple[Grid, Callable[[], Iterator[float]]]]:
    """The grid of each table, and what measures it."""

    def of_products(lengths: tuple[int, ...]) -> Grid:
        return (("m", lengths), ("n", lengths), ("k", lengths))

    images = (("taps", TAPS), ("channels", CHANNELS), ("filters", FILTERS), ("side", SIDES))
    cubes = (("channels", VOLUME_CHANNELS), ("filters", VOLUME_CHANNELS), ("side", VOLUMES))
    return {
        "product": (of_products(LENGTHS), lambda: products(meter, LENGTHS)),
        "product_odd": (of_products(ODD), lambda: products(meter, ODD)),
        "images": (images, lambda: convolutions(meter, last=False)),
        "images_channels_last": (images, lambda: convolutions(meter, last=True)),
        "volumes": (cubes, lambda: volumes(meter)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    meter, begun, parts = Meter(), time.monotonic(), []
    for name, (grid, measure) in _tables(meter).items():
        parts.append(table(name, grid, [*measure()]))
        print(f"{name}: {time.monotonic() - begun:.0f} s", flush=True)
        head = f"# Measured by bench.gpu.library_calls: {machine()}\n\n"
        (options.out / "library.toml").write_text(head + "\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
