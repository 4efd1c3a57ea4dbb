"""What calls of a library take on a machine: products, convolutions and attention, by their sizes.

Each table is a file of ``data/library``, made by ``bench.gpu.library_calls``. A machine without one
has no library: what was not measured is never chosen.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib import resources
from math import inf, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockbuster.machines.machine import Machine

MEASURED = ("sm_90", "h200")
"""The targets, and the machines, that have tables: those of sm_90 are of an H100, and of an H200,
whose processors are the same; those of an H200 stand before them on that.
"""

HALVES = ("float16", "bfloat16")
"""Dtypes that share tables: both take the same time on matrix units."""

WIDE, FLOAT8 = "float32", "float8_e4m3fn"
"""Dtypes that have tables of their own: of products and attention, and of products with scales."""

IN_ONE_LOAD = {**dict.fromkeys(HALVES, 8), WIDE: 4, FLOAT8: 16}
"""Elements that are 16 bytes: rows of a multiple of so many are read by whole loads."""

MORE = (
    "product_float32", "batched", "batched_odd", "batched_float32", "attention_float32",
    "attention_causal_float32", "scaled", "scaled_rows",
)  # fmt: skip
"""Tables that a machine may lack: what they are for is never chosen there."""

IMAGES, VOLUMES, VOLUME_TAPS = 32, 8, 27
"""The images and volumes of a measured call, and the taps of a volume's filters."""


@dataclass(frozen=True)
class Grid:
    """Microseconds over a grid of sizes; ``axes`` are the sizes along each of its axes.

    >>> grid = Grid(((1, 4), (1, 10)), np.array([[2.0, 2.0], [8.0, 0.0]]))
    >>> round(grid.at(2, 1), 6), round(grid.at(4, 20), 6)
    (4.0, 16.0)
    """

    axes: tuple[tuple[int, ...], ...]
    us: NDArray[np.float64] = field(repr=False)

    @functools.cached_property
    def _logs(self) -> NDArray[np.float64]:
        """Logarithms of the times; what was not measured takes longer by as much as it is larger
        than its neighbours, after the one that gives least: large calls waste no more than small
        ones. Attention of 16 x 16384 x 128 takes an H100 and an H200 3,390 microseconds: from the
        neighbour of half the columns, whose time is no half, it would be 4,041.
        """
        known = self.us.copy()
        for at in np.ndindex(*known.shape):
            if known[at] == 0.0:
                known[at] = min(
                    known[(*at[:axis], place - 1, *at[axis + 1 :])]
                    * sizes[place]
                    / sizes[place - 1]
                    for axis, (place, sizes) in enumerate(zip(at, self.axes, strict=True))
                    if place
                )
        return np.log(known)

    @property
    def rate(self) -> float:
        """Operations a second of the fastest product; the axes are those of products."""
        made = functools.reduce(np.multiply.outer, map(np.array, self.axes))
        return float((2e6 * made / np.where(self.us > 0.0, self.us, np.inf)).max())

    def at(self, *sizes: float, powers: Sequence[int] = ()) -> float:
        """Microseconds at ``sizes``, along straight lines between logarithms of sizes and times.

        Below the grid the time is that of its edge, above it grows with each size, or with this
        power of it.
        """
        found, beyond = self._logs, 1.0
        for size, known, power in zip(sizes, self.axes, powers or (1,) * len(sizes), strict=True):
            beyond *= max(1.0, size / known[-1]) ** power
            logs = np.log(known)
            place = float(np.interp(np.log(max(size, 1)), logs, np.arange(len(known))))
            low = min(int(place), len(known) - 2)
            share = place - low
            found = (1.0 - share) * found[low] + share * found[low + 1]
        return float(np.exp(found)) * beyond


@dataclass(frozen=True)
class Convolution:
    """The sizes of a convolution along ``rank`` axes: elements of ``given`` and ``made`` channels,
    over all images, and products over its axes of ``taps`` and strides (``step``). ``last``: the
    channels are the last axis in memory; ``turned``: it is transposed.
    """

    rank: int
    channels: int
    filters: int
    groups: int
    taps: int
    step: int
    given: int
    made: int
    last: bool = False
    turned: bool = False

    @property
    def operations(self) -> float:
        """Of its multiplications and additions."""
        places = self.given if self.turned else self.made
        return 2.0 * places * self.channels * self.filters / self.groups * self.taps


@dataclass(frozen=True)
class Library:
    """The tables of one machine; those of ``convolutions`` by kind and layout; ``more``: by their
    names, those that not every machine has.
    """

    product: Grid
    product_odd: Grid
    attention: Grid
    attention_causal: Grid
    convolutions: Mapping[str, Grid]
    more: Mapping[str, Grid]

    @functools.cached_property
    def rate(self) -> float:
        """Operations a second of the fastest product of halves."""
        return self.product.rate

    @functools.cached_property
    def scaled_rate(self) -> float:
        """Operations a second of the fastest product of float8."""
        return self.more["scaled"].rate if "scaled" in self.more else self.rate

    def product_us(self, batch: int, m: int, n: int, k: int, dtype: str = HALVES[0]) -> float:
        """Microseconds of so many products of an M x K by a K x N matrix. Infinite for what was not
        measured: rows of float32 that no whole loads read.
        """
        odd = n % IN_ONE_LOAD[dtype] or k % IN_ONE_LOAD[dtype]
        sizes = (m, n, k) if batch == 1 else (batch, m, n, k)
        kind = "product" if batch == 1 else "batched"
        if dtype == WIDE:
            return inf if odd else self._us(f"{kind}_float32", *sizes)
        if batch > 1:
            return self._us("batched_odd" if odd else "batched", *sizes)
        return (self.product_odd if odd else self.product).at(*sizes)

    def scaled_us(self, m: int, n: int, k: int, *, by_rows: bool) -> float:
        """Microseconds of a product of float8 with scales, of the whole or of rows. Infinite for
        lengths that it does not take.
        """
        if n % IN_ONE_LOAD[FLOAT8] or k % IN_ONE_LOAD[FLOAT8]:
            return inf
        return self._us("scaled_rows" if by_rows else "scaled", m, n, k)

    def attention_us(
        self,
        batches: int,
        rows: int,
        keys: int,
        columns: int,
        values: int,
        *,
        is_causal: bool,
        dtype: str = HALVES[0],
    ) -> float:
        """Microseconds of attention of rows of so many columns to so many keys, with as many
        ``values`` each. Infinite for what was not measured: other numbers of values, more columns,
        columns of odd lengths, and a causal mask that is not square.
        """
        odd = columns % IN_ONE_LOAD[dtype] or columns > self.attention.axes[-1][-1]
        if odd or values != columns or (is_causal and rows != keys):
            return inf
        sizes = (batches, rows, columns) if is_causal else (batches, rows, keys, columns)
        powers = (1, 2, 1) if is_causal else ()
        if dtype == WIDE:
            name = "attention_causal_float32" if is_causal else "attention_float32"
            return self._us(name, *sizes, powers=powers)
        return (self.attention_causal if is_causal else self.attention).at(*sizes, powers=powers)

    def _us(self, name: str, *sizes: float, powers: Sequence[int] = ()) -> float:
        """Microseconds by a table that the machine may have."""
        return self.more[name].at(*sizes, powers=powers) if name in self.more else inf

    def convolution_us(self, of: Convolution) -> float:
        """Microseconds of a convolution. Lines are told as images of as many taps and elements
        where they were not measured, and groups of a transposed convolution one after the other.
        Taps that lie apart take as long as neighbours: those of 32 images of 14 to 56 pixels an
        H200 as long, or up to 12% less (bench/results/2026-11-29-h200-convs).
        """
        if of.turned and of.groups > 1:
            alone = replace(
                of, channels=of.channels // of.groups, filters=of.filters // of.groups, groups=1
            )
            return of.groups * self.convolution_us(alone)
        if of.turned:
            made = of.made / 2**of.rank  # of a stride of 2, of which the table is
            return self._at("transposed", of, max(of.given, made), of.channels, of.filters)
        if of.groups == of.channels > 1:
            return self._at("depthwise", of, of.given, max(of.channels, of.filters))
        if of.groups > 1:
            return self._at("grouped", of, of.made, sqrt(of.channels * of.filters))
        return self._at("", of, of.made, of.channels, of.filters)

    def _at(self, kind: str, of: Convolution, elements: float, *channels: float) -> float:
        """Microseconds by the table of a kind, at so many elements of a channel."""
        names = {
            1: f"lines_{kind}" if kind else "lines",
            2: kind or "images",
            3: f"volumes_{kind}" if kind else "volumes",
        }
        name = names[of.rank] if names[of.rank] in self.convolutions else names[2]
        table = self.convolutions[f"{name}_channels_last" if of.last else name]
        rank = 2 if name == names[2] else of.rank
        side = (elements / (VOLUMES if rank == 3 else IMAGES)) ** (1 / rank)
        step, taps = of.step ** (1 / rank), of.taps ** (1 / rank)
        front = {"depthwise": [step], "grouped": [of.groups]}.get(kind, [])
        sizes = [*front, taps, *channels, side]
        if name == "volumes":
            return table.at(*channels, side, powers=[1, 1, 3]) * of.taps / VOLUME_TAPS
        powers = [1] * len(front) + [rank] + [1] * len(channels) + [rank]
        return table.at(*sizes, powers=powers)


def library_of(machine: Machine) -> Library | None:
    """The library of a machine's target; None if it was not measured."""
    names = (machine.target, machine.name)
    known = machine.target in MEASURED
    return _read(tuple(name for name in names if name in MEASURED)) if known else None


@functools.cache
def _read(names: tuple[str, ...]) -> Library:
    folder = resources.files("blockbuster.machines") / "data" / "library"
    tables: dict[str, Any] = {}
    for name in names:
        tables |= tomllib.loads((folder / f"{name}.toml").read_text(encoding="utf-8"))
    grids = {table: _grid(one) for table, one in tables.items()}
    always = [one.name for one in fields(Library) if one.name not in ("convolutions", "more")]
    more = {name: grids.pop(name) for name in MORE if name in grids}
    return Library(**{name: grids.pop(name) for name in always}, convolutions=grids, more=more)


def _grid(table: Mapping[str, Any]) -> Grid:
    axes = tuple(tuple(sizes) for name, sizes in table.items() if name != "us")
    return Grid(axes, np.array(table["us"], dtype=np.float64).reshape([*map(len, axes)]))
