"""Times of a library's products, convolutions and attention on a GPU, over grids of sizes.

    python -m bench.gpu.library_calls --out $OUT          writes $OUT/library.toml
    python -m bench.gpu.library_calls --out $OUT --only depthwise,transposed

``blockbuster/machines/data/library`` keeps such a file for a target: the search for a plan
reads there what a call of the library takes (blockbuster/machines/library.py). Kernels only: each
call is one of several in a CUDA graph that read other operands in turn, so that none finds its own
in the cache. In float16, or in the dtype that a table's name tells (``scaled``: in float8), of
numbers drawn from a normal distribution.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import torch

from bench.records import machine
from blockbuster.frontend.torch import attended
from blockbuster.ir.dtypes import FLOAT8, HALF

POOL = 1 << 29  # elements of which operands are cut
APART = 150e6  # bytes that the operands of a graph's calls have together, at least
MOST_CALLS, REPLAYS = 12, 5
MOST_ELEMENTS = 1 << 28
MOST_OPERATIONS = {FLOAT8: 2.4e12, HALF: 1.2e12, "float32": 1.5e11}
IMAGES, VOLUMES = 32, 8
LENGTHS = (16, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
ODD = (63, 255, 1023, 4095)
WIDE = (16, 64, 256, 512, 1024, 2048, 4096, 8192)
BATCHES, BATCHED, BATCHED_ODD = (2, 4, 16, 64), (64, 128, 256, 1024, 4096), (63, 255, 1023)
SCALED_ROWS = (16, 64, 256, 1024, 2048, 4096, 8192)
SCALED = (512, 1024, 2048, 4096, 8192, 16384)
CHANNELS, FILTERS = (3, 16, 64, 256, 512), (16, 64, 256, 512)

Call = Callable[..., Any]
Axes = dict[str, tuple[int, ...]]
Measure = Callable[..., float]
Pair = tuple[int, int]


class Meter:
    """The times of calls on operands that are cut of one array of random numbers."""

    def __init__(self) -> None:
        self._pools = {HALF: torch.empty(POOL, dtype=torch.float16, device="cuda").normal_()}

    def us(
        self, call: Call, shapes: Sequence[Sequence[int]], made: int, dtype: str = HALF
    ) -> float:
        """Microseconds of a call on arrays of ``shapes``, which makes ``made`` elements."""
        sizes, pool = [prod(shape) for shape in shapes], self._pool(dtype)
        width = pool.dtype.itemsize
        calls = max(2, min(MOST_CALLS, int(APART / (width * (sum(sizes) + made))) + 1))
        given = [_operands(pool, shapes, sizes, at * sum(sizes)) for at in range(calls)]
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
        return 1e3 * float(statistics.median(b.elapsed_time(e) for b, e in pairs)) / calls

    def _pool(self, dtype: str) -> Any:
        if dtype not in self._pools:
            self._pools[dtype] = self._pools[HALF].to(getattr(torch, dtype))
        return self._pools[dtype]


def _operands(
    pool: Any, shapes: Sequence[Sequence[int]], sizes: Sequence[int], at: int
) -> list[Any]:
    """Arrays of ``shapes``, cut of the pool from element ``at`` on."""
    found = []
    for shape, size in zip(shapes, sizes, strict=True):
        at = (at + 63) // 64 * 64
        begin = at if at + size <= POOL else 0
        found.append(pool[begin : begin + size].view(*shape))
        at = begin + size
    return found


@dataclass(frozen=True)
class Product:
    """Products of M x K by the transpose of N x K; with sizes of four, so many of them."""

    meter: Meter
    call: Call = lambda x, w: x @ w.mT
    dtype: str = HALF

    def __call__(self, *sizes: int) -> float:
        """Microseconds; 0 where it is too large."""
        *batch, m, n, k = sizes
        shapes = [(*batch, m, k), (*batch, n, k)]
        made = prod((*batch, m, n))
        if 2.0 * made * k > MOST_OPERATIONS[self.dtype]:
            return 0.0
        if max(made, *map(prod, shapes)) > MOST_ELEMENTS:
            return 0.0
        return self.meter.us(self.call, shapes, made, self.dtype)


def scaled(*, by_rows: bool) -> Call:
    """Products of float8, by one scale for each operand, or one for each row of both."""
    scales: dict[tuple[int, ...], Any] = {}

    def one(shape: tuple[int, ...], like: Any) -> Any:
        if shape not in scales:
            scales[shape] = torch.ones(shape, device=like.device)
        return scales[shape]

    def call(x: Any, w: Any) -> Any:
        rows, columns = ((len(x), 1), (1, len(w))) if by_rows else ((), ())
        given: dict[str, Any] = dict(out_dtype=torch.bfloat16, use_fast_accum=False)
        return torch._scaled_mm(x, w.t(), one(rows, x), one(columns, x), **given)

    return call


@dataclass(frozen=True)
class Attention:
    """Attention of so many rows to so many keys, of so many columns; or, causal, to as many."""

    meter: Meter
    is_causal: bool = False
    dtype: str = HALF

    def __call__(self, batches: int, rows: int, *sizes: int) -> float:
        """Microseconds; 0 where it is too large."""
        keys, columns = sizes if not self.is_causal else (rows, *sizes)
        shapes = [(batches, length, columns) for length in (rows, keys, keys)]
        operations = (2.0 if self.is_causal else 4.0) * batches * rows * keys * columns
        if operations > MOST_OPERATIONS[self.dtype]:
            return 0.0
        call = partial(attended, is_causal=self.is_causal, scale=None)
        return self.meter.us(call, shapes, prod(shapes[0]), self.dtype)


@dataclass(frozen=True)
class Convolution:
    """Convolutions along ``rank`` places; ``last``: the channels lie last in memory."""

    meter: Meter
    rank: int
    last: bool

    def __call__(
        self,
        filters: Pair,
        taps: int,
        given: Pair,
        made: Pair,
        options: Mapping[str, int],
        *,
        way: str = "",
    ) -> float:
        """Microseconds by filters whose first axes are these, of images that have so many channels
        and this side, as those that are made have; ``way``: "_transpose" or nothing. 0 where it is
        too large.
        """
        many, rank = VOLUMES if self.rank == 3 else IMAGES, self.rank
        w = (*filters, *[taps] * rank)
        x, y = ((many, channels, *[side] * rank) for channels, side in (given, made))
        if 2.0 * prod(w[1:]) * prod(x if way else y) > MOST_OPERATIONS[HALF]:
            return 0.0
        conv = getattr(torch.nn.functional, f"conv{way}{rank}d")
        back = (0, rank + 1, *range(1, rank + 1)) if self.last else (*range(rank + 2),)
        shapes = [[shape[back.index(axis)] for axis in range(rank + 2)] for shape in (x, w)]
        return self.meter.us(
            lambda x, w: conv(x.permute(back), w.permute(back), **options), shapes, prod(y)
        )


def plain(of: Convolution) -> Measure:
    """Convolutions that keep the sides; of volumes by 3 x 3 x 3 taps."""

    def us(taps: int, channels: int, filters: int, side: int) -> float:
        w, given, made = (filters, channels), (channels, side), (filters, side)
        return of(w, taps, given, made, dict(padding=taps // 2))

    return us if of.rank < 3 else lambda *sizes: us(3, *sizes)


def depthwise(of: Convolution) -> Measure:
    """A filter for each channel, at every ``step``-th place of ``side`` ones."""

    def us(step: int, taps: int, channels: int, side: int) -> float:
        given, made = (channels, side), (channels, -(-side // step))
        options = dict(stride=step, padding=taps // 2, groups=channels)
        return of((channels, 1), taps, given, made, options)

    return us


def grouped(of: Convolution) -> Measure:
    """As many filters as channels, in groups."""

    def us(groups: int, taps: int, channels: int, side: int) -> float:
        w, shape = (channels, channels // groups), (channels, side)
        return of(w, taps, shape, shape, dict(padding=taps // 2, groups=groups))

    return us


def transposed(of: Convolution) -> Measure:
    """Sides that become longer by a step of 2, or of half of the taps."""

    def us(taps: int, channels: int, filters: int, side: int) -> float:
        step = max(2, taps // 2)
        pad = (taps - step + 1) // 2
        given, made = (channels, side), (filters, step * side)
        options = dict(stride=step, padding=pad, output_padding=step + 2 * pad - taps)
        return of((channels, filters), taps, given, made, options, way="_transpose")

    return us


def table(name: str, grid: Axes, times: Sequence[float]) -> str:
    """A table of the file: the grid's axes and the microseconds, the last axis fastest."""
    lines = [f"[{name}]", *(f"{axis} = {list(values)}" for axis, values in grid.items())]
    width = len([*grid.values()][-1])
    rows = [times[at : at + width] for at in range(0, len(times), width)]
    lines += ["us = [", *("    " + ", ".join(f"{us:.3g}" for us in row) + "," for row in rows), "]"]
    return "\n".join(lines) + "\n"


CONVOLUTIONS: dict[str, tuple[Callable[[Convolution], Measure], int, Axes]] = {
    "images": (
        plain, 2,
        dict(taps=(1, 3, 5), channels=CHANNELS, filters=FILTERS, side=(7, 14, 28, 56, 112)),
    ),
    "lines": (
        plain, 1,
        dict(taps=(3, 7, 15), channels=(64, 256), filters=(64, 256), side=(256, 1024, 4096)),
    ),
    "volumes": (
        plain, 3, dict(channels=(16, 64, 128), filters=(16, 64, 128), side=(8, 16, 32)),
    ),
    "transposed": (
        transposed, 2,
        dict(taps=(2, 3, 4), channels=(16, 64, 256), filters=(16, 64, 256), side=(8, 32, 64)),
    ),
    "lines_transposed": (
        transposed, 1,
        dict(taps=(2, 4, 16), channels=(64, 256), filters=(64, 256), side=(128, 2048)),
    ),
    "volumes_transposed": (
        transposed, 3, dict(taps=(2, 4), channels=(16, 64), filters=(16, 64), side=(8, 16, 32)),
    ),
    "depthwise": (
        depthwise, 2,
        dict(step=(1, 2), taps=(3, 5, 7), channels=(32, 128, 512), side=(7, 14, 56, 112)),
    ),
    "lines_depthwise": (
        depthwise, 1, dict(step=(1, 2), taps=(3, 31), channels=(64, 512), side=(256, 1024, 8192)),
    ),
    "volumes_depthwise": (
        depthwise, 3, dict(step=(1, 2), taps=(3, 5), channels=(32, 128), side=(8, 32)),
    ),
    "grouped": (
        grouped, 2, dict(groups=(2, 8, 32), taps=(1, 3), channels=(64, 256, 1024), side=(14, 56)),
    ),
    "volumes_grouped": (
        grouped, 3, dict(groups=(2, 8), taps=(1, 3), channels=(32, 128), side=(8, 32)),
    ),
}  # fmt: skip
"""Tables of convolutions: what is measured, along so many places, over which sizes."""


def tables(meter: Meter) -> dict[str, tuple[Axes, Measure]]:
    """The grid of each table, and what measures it; tables of convolutions stand twice."""
    among = dict(batches=(4, 32, 128), rows=(1, 64, 256, 1024, 4096, 16384))
    keys, columns = (64, 256, 1024, 4096, 16384), (64, 128)
    wide = dict(batches=(4, 16, 64), rows=(64, 256, 1024, 2048, 4096))
    found: dict[str, tuple[Axes, Measure]] = {
        "product": (dict.fromkeys("mnk", LENGTHS), Product(meter)),
        "product_odd": (dict.fromkeys("mnk", ODD), Product(meter)),
        "attention": (dict(**among, keys=keys, columns=columns), Attention(meter)),
        "attention_causal": (
            dict(batches=among["batches"], rows=keys, columns=columns), Attention(meter, True),
        ),
        "batched": (dict(batches=BATCHES, **dict.fromkeys("mnk", BATCHED)), Product(meter)),
        "batched_odd": (dict(batches=BATCHES, **dict.fromkeys("mnk", BATCHED_ODD)), Product(meter)),
        "product_float32": (dict.fromkeys("mnk", WIDE), Product(meter, dtype="float32")),
        "batched_float32": (
            dict(batches=BATCHES, **dict.fromkeys("mnk", BATCHED)), Product(meter, dtype="float32"),
        ),
        "attention_float32": (
            dict(**wide, keys=wide["rows"], columns=columns), Attention(meter, dtype="float32"),
        ),
        "attention_causal_float32": (
            dict(**wide, columns=columns), Attention(meter, True, "float32"),
        ),
    }  # fmt: skip
    for name, by_rows in (("scaled", False), ("scaled_rows", True)):
        grid = dict(m=SCALED_ROWS, n=SCALED, k=SCALED)
        found[name] = grid, Product(meter, scaled(by_rows=by_rows), FLOAT8)
    for name, (measure, rank, grid) in CONVOLUTIONS.items():
        for last in (False, True):
            key = f"{name}_channels_last" if last else name
            found[key] = (grid, measure(Convolution(meter, rank, last)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", help="tables of these names, separated by commas")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    meter, begun, parts = Meter(), time.monotonic(), []
    known = tables(meter)
    names = options.only.split(",") if options.only else [*known]
    if unknown := {*names} - {*known}:
        parser.error(f"no tables: {', '.join(sorted(unknown))}; known: {', '.join(known)}")
    for name in names:
        grid, measure = known[name]
        parts.append(table(name, grid, [measure(*sizes) for sizes in product(*grid.values())]))
        print(f"{name}: {time.monotonic() - begun:.0f} s", flush=True)
        head = f"# Measured by bench.gpu.library_calls: {machine()}\n\n"
        (options.out / "library.toml").write_text(head + "\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
