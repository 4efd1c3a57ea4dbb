"""The numbers that arrays of a dtype hold, and the arrays that proofs draw: from these numbers.

An identity of integers, such as (x + 1) // 2 == x // 2 + x % 2, fails for fractions. So every input
on which two programs are compared as numbers is made here: an array of integers holds integers that
its dtype has, a mask holds 0 and 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from blockbuster.interp.constants import LARGE
from blockbuster.interp.layout import Array
from blockbuster.ir.dtypes import INTEGERS, TRUTH, own_dtypes
from blockbuster.ir.graph import Graph

Inputs = dict[str, Array]

RANGES = {name: (int(np.iinfo(name).min), int(np.iinfo(name).max)) for name in INTEGERS}
"""The least and the largest number of each integer dtype."""
UNSIGNED = (TRUTH, *(name for name, (low, _) in RANGES.items() if low == 0))
NARROW = 2**8
"""All floating dtypes hold the integers up to here."""


def nearest(dtype: str, numbers: Array) -> Array:
    """The numbers of ``dtype`` that lie nearest to these, in that dtype; "" stands for floats.

    >>> nearest("uint8", np.array([-3.0, 1.75, 300.0])), nearest("", np.array([1.75]))
    (array([  0,   2, 255], dtype=uint8), array([1.75]))
    """
    if dtype == TRUTH:
        return np.asarray(numbers > 0.5)
    if dtype not in RANGES:
        return numbers
    low, high = RANGES[dtype]
    rounded = np.rint(numbers)
    inside = np.where((rounded > low) & (rounded < high), rounded, 0).astype(dtype)
    ends = np.where(rounded <= low, low, np.where(rounded >= high, high, 0)).astype(dtype)
    return np.asarray(inside + ends)


def wrapped(dtype: str, number: Any) -> Any:
    """What a cast of a finite number to ``dtype``, integers or masks, gives.

    The fraction is cut off, and integers that the dtype lacks wrap around, as in NumPy.

    >>> wrapped("uint8", -3.5), wrapped("bool", 0.5)
    (253, 1)
    """
    if dtype == TRUTH:
        return int(number != 0)
    low, high = RANGES[dtype]
    return (int(number) - low) % (high - low + 1) + low


def near_to(constants: Sequence[float], random: np.random.Generator, draws: Array) -> Array:
    """``draws``, a fifth of them replaced by the constants and their neighbours.

    Next to a large number is one clearly larger: -1e30 + 1 is -1e30.
    """
    if not constants:
        return draws
    chosen, side = random.choice(constants, draws.shape), random.integers(-1, 2, draws.shape)
    places = chosen + side * np.where(np.abs(chosen) < LARGE, 1, np.abs(chosen) / 4)
    return np.where(random.random(draws.shape) < 0.2, places, draws)


def small(
    dtype: str, random: np.random.Generator, shape: Sequence[int], *, lowest: int, parts: int
) -> Array:
    """Small numbers of ``dtype``, as floats.

    Floats are multiples of 1/parts from lowest/parts to 8/parts, integers lie between ``lowest``
    and 8; a dtype without signs takes their absolute values.
    """
    numbers = random.integers(lowest, 9, tuple(shape))
    if dtype == TRUTH:
        return np.asarray((numbers % 2).astype(float))
    if dtype not in RANGES:
        return np.asarray(numbers / parts)
    return np.asarray((np.abs(numbers) if dtype in UNSIGNED else numbers).astype(float))


def exact_in(dtype: str) -> tuple[int, int]:
    """The least and the largest whole number, up to ``NARROW``, that a cast to ``dtype`` keeps."""
    low, high = (0, 1) if dtype == TRUTH else RANGES.get(dtype, (-NARROW, NARROW))
    return max(low, -NARROW), min(high, NARROW)


@dataclass(frozen=True)
class Domain:
    """The shapes and dtypes of the arrays that programs read; "" stands for floats."""

    shapes: Mapping[str, tuple[int, ...]]
    dtypes: Mapping[str, str]

    def small(
        self, random: np.random.Generator, *, lowest: int, parts: int, near: Sequence[float] = ()
    ) -> Inputs:
        """Small numbers for each array, see ``small``, and a few that are ``near`` these."""
        drawn = {}
        for name, shape in self.shapes.items():
            numbers = small(self.dtypes.get(name, ""), random, shape, lowest=lowest, parts=parts)
            drawn[name] = near_to(near, random, numbers)
        return self.nearest(drawn)

    def nearest(self, inputs: Mapping[str, Array]) -> Inputs:
        """These arrays in their dtypes, each number replaced by the nearest one of its dtype."""
        return {name: nearest(self.dtypes.get(name, ""), x) for name, x in inputs.items()}


def dtypes_of(*graphs: Graph) -> dict[str, str]:
    """The dtypes of the arrays of masks and integers that programs read."""
    return {name: dtype for graph in graphs for name, dtype in own_dtypes(graph).items()}
