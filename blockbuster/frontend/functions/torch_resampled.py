"""torch's interpolate: images of other sizes.

Whole factors repeat pixels, or put some on lines to their neighbours. For any other size, each
place of the result is compared with the places along the axis: it is the pixel that it names, or a
sum of those near by. Nothing is stored for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from blockbuster.frontend.functions.choices import element_where
from blockbuster.frontend.functions.cuts import cut
from blockbuster.frontend.functions.filled import positions
from blockbuster.frontend.functions.joins import repeat
from blockbuster.frontend.functions.pads import pad
from blockbuster.frontend.functions.pointwise import abs, maximum, minimum, where
from blockbuster.frontend.functions.reductions import sum
from blockbuster.frontend.functions.row import Array, torch_rows
from blockbuster.frontend.functions.shapes import expand_dims, reshape
from blockbuster.frontend.functions.spatial import known, number, numbers
from blockbuster.frontend.functions.torch_pools import adaptive_avg_pool
from blockbuster.frontend.memory import own
from blockbuster.frontend.sizes import SizeExpr
from blockbuster.frontend.source import trace_error

NEAREST, LINES = ("nearest", "nearest-exact"), ("linear", "bilinear", "trilinear")
MODES = (*NEAREST, *LINES, "bicubic", "area")
LONGEST = 1 << 12  # places by which a fraction of sizes is told from a float


@dataclass(frozen=True)
class Axis:
    """One axis: ``new`` places, each ``step`` pixels of the old ones behind the one before; the
    first stands ``first`` pixels behind the first pixel.
    """

    at: int
    new: int
    step: float
    first: float


def interpolate(
    input: Array, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
    align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Array:  # fmt: skip
    """``input`` with other numbers of pixels along the axes behind the channels.

    ``align_corners``: the first and the last pixel stay where they are.
    """
    if mode not in MODES or antialias:
        reason = f"interpolate with mode={mode!r}" + ", antialias=True" * antialias
        raise trace_error(f"{reason} cannot be traced", hint=f"modes are {', '.join(MODES)}")
    count = len(input.shape) - 2
    whole = _whole_factors(input, count, size, scale_factor)
    if whole and mode != "area" and mode != "bicubic" and not align_corners:
        larger = _along_lines if mode in LINES else repeat
        for at, factor in enumerate(whole, start=2):
            input = larger(input, factor, at) if factor != 1 else input
        return own(input)
    olds = [number("interpolate", "the size of x", n) for n in input.shape[2:]]
    sizes, steps = _sizes(olds, size, scale_factor, exact=bool(recompute_scale_factor))
    if mode == "area":
        return adaptive_avg_pool("interpolate", count, input, sizes)
    for at, (old, new, step) in enumerate(zip(olds, sizes, steps, strict=True), start=2):
        if old == new and (step == 1.0 or (align_corners and mode not in NEAREST)):
            continue
        if mode in NEAREST:
            input = _nearest(input, Axis(at, new, step, 0.5 * (mode != "nearest")))
            continue
        place = Axis(at, new, step, 0.5 * step - 0.5)
        if align_corners:
            place = Axis(at, new, (old - 1) / (new - 1) if new > 1 else 0.0, 0.0)
        input = _cubic(input, place) if mode == "bicubic" else _linear(input, place)
    return own(input)


def _factors(given: Any, count: int) -> list[float]:
    """A factor for each axis. Raises TraceError for others."""
    factors = [*given] if isinstance(given, tuple | list) else [given] * count
    if len(factors) != count or any(f is None or f <= 0 for f in factors):
        reason = f"interpolate with scale_factor={given!r} of {count} axes"
        raise trace_error(reason, hint="factors are above 0, one for each axis")
    return [float(f) for f in factors]


def _whole_factors(x: Array, count: int, size: Any, scale_factor: Any) -> list[int]:
    """The factors of all axes, if they are whole numbers and known; else none."""
    if size is None:
        found = _factors(scale_factor, count)
        return [int(f) for f in found] if all(f % 1 == 0 for f in found) else []
    olds, sizes = [*map(known, x.shape[2:])], numbers("interpolate", "size", size, count, 1)
    if any(isinstance(old, SizeExpr) or not old or new % old
           for old, new in zip(olds, sizes, strict=True)):  # fmt: skip
        return []
    return [new // old for old, new in zip(olds, sizes, strict=True)]


def _sizes(
    olds: Sequence[int], size: Any, scale_factor: Any, *, exact: bool
) -> tuple[tuple[int, ...], list[float]]:
    """The numbers of pixels, and how many old ones stand from one to the next.

    ``exact``: they are as the sizes say; else, where a factor is given, as that says.
    """
    count = len(olds)
    if size is not None:
        sizes = numbers("interpolate", "size", size, count, 1)
        return sizes, [old / new for old, new in zip(olds, sizes, strict=True)]
    factors = _factors(scale_factor, count)
    sizes = tuple(int(old * factor) for old, factor in zip(olds, factors, strict=True))
    if min(sizes) < 1:
        reason = f"interpolate with scale_factor={scale_factor!r} leaves no pixel"
        raise trace_error(reason, hint="the factors times the sizes are at least 1")
    if exact:
        return sizes, [old / new for old, new in zip(olds, sizes, strict=True)]
    return sizes, [1.0 / factor for factor in factors]


def _nearest(x: Array, axis: Axis) -> Array:
    """For each place the pixel that it names: as float32 has it, by which torch decides."""
    if axis.step % 1 == 0:
        begin, every = int(axis.first * axis.step), int(axis.step)
        key = (*(slice(None),) * axis.at, slice(begin, begin + axis.new * every, every))
        return x[key]
    rank, last = len(x.shape) + 1, x.shape[axis.at] - 1
    begun = np.arange(axis.new, dtype=np.float32) + np.float32(axis.first)
    table = np.minimum((begun * np.float32(axis.step)).astype(np.int64), known(last))
    step = Fraction(axis.step).limit_denominator(LONGEST)
    over, halves = 2 * step.denominator, round(2 * axis.first)
    exact = (2 * np.arange(axis.new) + halves) * step.numerator // over
    named: Array
    if (np.minimum(exact, known(last)) == table).all():
        place = positions(x.trace, axis.new, axis.at, rank)
        named = minimum((2 * place + halves) * step.numerator // over, last)
    else:
        named = x.trace.array(table)[(slice(None), *(None,) * (rank - axis.at - 1))]
    hit = named == positions(x.trace, x.shape[axis.at], axis.at + 1, rank)
    return element_where(hit, expand_dims(x, axis.at), axis.at + 1, keepdims=False)


def _linear(x: Array, axis: Axis) -> Array:
    """On the line between two pixels; in front of the first and behind the last, as these are."""
    place = minimum(maximum(_places(x, axis), 0.0), x.shape[axis.at] - 1)
    distance = abs(place - positions(x.trace, x.shape[axis.at], axis.at + 1, len(x.shape) + 1))
    return _weighted(x, axis.at, distance < 1.0, 1.0 - distance)


def _cubic(x: Array, axis: Axis) -> Array:
    """By torch's cubic of four pixels; the first and the last stand again outside."""
    place, reach = _places(x, axis), 3
    x = pad(x, [(reach * (at == axis.at),) * 2 for at in range(len(x.shape))], "edge")
    along = positions(x.trace, x.shape[axis.at], axis.at + 1, len(x.shape) + 1)
    far = abs(place - (along - reach))
    a = -0.75
    near = ((a + 2) * far - (a + 3)) * far * far + 1.0
    behind = ((far - 5.0) * far + 8.0) * far * a - 4.0 * a
    return _weighted(x, axis.at, far < 2.0, where(far < 1.0, near, behind))


def _places(x: Array, axis: Axis) -> Array:
    """Where each place of the result stands among the pixels."""
    return positions(x.trace, axis.new, axis.at, len(x.shape) + 1) * axis.step + axis.first


def _weighted(x: Array, axis: int, seen: Array, weight: Array) -> Array:
    return sum(where(seen, expand_dims(x, axis) * weight, 0.0), axis + 1)


def _along_lines(x: Array, factor: int, axis: int) -> Array:
    """``factor`` elements in place of each along an axis, on lines to its neighbours.

    Element j of them stands at (j + 1/2) / factor - 1/2 from the middle of the one that it is of;
    in front of the first element and behind the last there are the same again.
    """
    rank = len(x.shape)
    wide = pad(x, [(int(at == axis),) * 2 for at in range(rank)], "edge")
    sides = x, cut(wide, axis, 0, -2), cut(wide, axis, 2, None)
    here, left, right = (expand_dims(side, axis + 1) for side in sides)
    place = (positions(x.trace, factor, axis + 1, rank + 1) + 0.5) / factor - 0.5
    share = abs(place)
    made = here * (1.0 - share) + where(place < 0.0, left, right) * share
    return reshape(made, (*x.shape[:axis], x.shape[axis] * factor, *x.shape[axis + 1 :]))


ROWS = torch_rows("torch.nn.functional: images", interpolate)
