"""What calls of a library take on a machine: products and convolutions, measured over their sizes.

Each table is a file of ``data/library``, made by ``bench.gpu.library_calls``. A machine without one
has no library: what was not measured is never chosen.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockbuster.machines.machine import Machine

MEASURED = ("sm_90",)
"""The targets that have a table: for sm_90, of an H100, whose processors are those of an H200."""

HALVES = ("float16", "bfloat16")
"""The dtypes that a table is for: both take the same time on matrix units."""

IN_ONE_LOAD = 8
"""Elements of a half that are 16 bytes: rows of a multiple of so many are read by whole loads."""

IMAGES, VOLUMES, VOLUME_TAPS = 32, 8, 27
"""The images and volumes of a measured call, and the taps of a volume's filters."""


@dataclass(frozen=True)
class Grid:
    """Microseconds over a grid of sizes; ``axes`` are the sizes along each of its axes.

    >>> grid = Grid(((1, 4), (1, 10)), np.array([[2.0, 2.0], [8.0, 0.0]]))
    >>> round(grid.at(2, 1), 6), round(grid.at(4, 20), 6)
    (4.0, 160.0)
    """

    axes: tuple[tuple[int, ...], ...]
    us: NDArray[np.float64] = field(repr=False)

    @functools.cached_property
    def _logs(self) -> NDArray[np.float64]:
        """Logarithms of the times; what was not measured takes longer by as much as it is larger
        than its neighbour.
        """
        known = self.us.copy()
        for at in np.ndindex(*known.shape):
            if known[at] == 0.0:
                known[at] = max(
                    known[(*at[:axis], place - 1, *at[axis + 1 :])]
                    * sizes[place]
                    / sizes[place - 1]
                    for axis, (place, sizes) in enumerate(zip(at, self.axes, strict=True))
                    if place
                )
        return np.log(known)

    def at(self, *sizes: float) -> float:
        """Microseconds at ``sizes``, along straight lines between logarithms of sizes and times.

        Below the grid the time is that of its edge, above it grows with each size.
        """
        found, beyond = self._logs, 1.0
        for size, known in zip(sizes, self.axes, strict=True):
            beyond *= max(1.0, size / known[-1])
            logs = np.log(known)
            place = float(np.interp(np.log(max(size, 1)), logs, np.arange(len(known))))
            low = min(int(place), len(known) - 2)
            share = place - low
            found = (1.0 - share) * found[low] + share * found[low + 1]
        return float(np.exp(found)) * beyond


@dataclass(frozen=True)
class Library:
    """The tables of one machine."""

    product: Grid
    product_odd: Grid
    images: Grid
    images_channels_last: Grid
    volumes: Grid

    @functools.cached_property
    def rate(self) -> float:
        """Operations a second of the fastest product."""
        made = functools.reduce(np.multiply.outer, map(np.array, self.product.axes))
        return float((2e6 * made / np.where(self.product.us > 0.0, self.product.us, np.inf)).max())

    def product_us(self, m: int, n: int, k: int) -> float:
        """Microseconds of an M x K by a K x N matrix."""
        odd = n % IN_ONE_LOAD or k % IN_ONE_LOAD
        return (self.product_odd if odd else self.product).at(m, n, k)

    def convolution_us(
        self, taps: int, channels: int, filters: int, outputs: int, *, rank: int, last: bool
    ) -> float:
        """Microseconds of a convolution with so many outputs a filter, along ``rank`` axes.

        ``last``: channels are the last axis in memory.
        """
        if rank == 3:
            side = (outputs / VOLUMES) ** (1 / 3)
            return self.volumes.at(channels, filters, side) * taps / VOLUME_TAPS
        grid = self.images_channels_last if last else self.images
        return grid.at(sqrt(taps), channels, filters, sqrt(outputs / IMAGES))


def library_of(machine: Machine) -> Library | None:
    """The library of a machine's target; None if it was not measured."""
    return _read(machine.target) if machine.target in MEASURED else None


@functools.cache
def _read(name: str) -> Library:
    data = resources.files("blockbuster.machines") / "data" / "library" / f"{name}.toml"
    tables = tomllib.loads(data.read_text(encoding="utf-8"))
    return Library(**{table: _grid(one) for table, one in tables.items()})


def _grid(table: Mapping[str, Any]) -> Grid:
    axes = tuple(tuple(sizes) for name, sizes in table.items() if name != "us")
    return Grid(axes, np.array(table["us"], dtype=np.float64).reshape([*map(len, axes)]))
