"""Convolutions that a library computes: products over channels, summed over the taps of windows.

t[r, s, n, h, w, k] = sum over c of x[n, c, h + r, w + s] * f[k, c, r, s]
y[n, h, w, k] = sum over r and s of t[r, s, n, h, w, k]
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest

from blockbuster.frontend.kinds import FLOAT
from blockbuster.frontend.library_calls import LibraryConvolution
from blockbuster.frontend.program import ArrayProgram
from blockbuster.ir.graph import Value
from blockbuster.selection.library.match import Match, only_reader
from blockbuster.selection.library.origins import OWN, TAP, WINDOW, Origin, Origins, origins
from blockbuster.selection.library.padding import is_even

MOST_AXES = 3
"""The axes along which torch convolves, at most."""


@dataclass(frozen=True)
class _Axis:
    """An axis of a product's result: what it runs along in ``x`` and in ``w``."""

    x: Origin = OWN
    w: Origin = OWN


def matched_convolution(program: ArrayProgram, at: int) -> Match | None:
    """The call for the product of equation ``at`` and the sums of it; None if it is none."""
    one = program.equations[at]
    sides = [origins(program, o) for o in one.operands if isinstance(o, Value)]
    if len(sides) != 2 or sides[0] is None or sides[1] is None:
        return None
    x, w = sides[0], sides[1]
    if min(len(x.axes), len(w.axes)) < 2 or len(_windowed(x)) not in range(1, MOST_AXES + 1):
        return None
    last, axes, summed = _summed(program, at, _axes(x, w))
    return _match(program, last, (x, w), axes, summed)


def _axes(x: Origins, w: Origins) -> list[_Axis]:
    """The axes of a product's result, each from one or both of its operands."""
    batch = zip_longest(reversed(x.axes[:-2]), reversed(w.axes[:-2]), fillvalue=OWN)
    rows, columns = _Axis(x=x.axes[-2]), _Axis(w=w.axes[-1])
    return [*reversed([_Axis(*both) for both in batch]), rows, columns]


def _summed(
    program: ArrayProgram, at: int, axes: list[_Axis]
) -> tuple[int, list[_Axis], list[_Axis]]:
    """The last of the sums over taps that alone read a product in turn; the axes left, and gone."""
    gone: list[_Axis] = []
    while (reader := only_reader(program, at)) is not None:
        one = program.equations[reader]
        axis, is_sum = one.param("axis"), one.op == "sum" and one.kind == FLOAT
        if not is_sum or one.param("keepdims") or axes[axis].x.role != TAP:
            break
        gone.append(axes[axis])
        axes, at = [*axes[:axis], *axes[axis + 1 :]], reader
    return at, axes, gone


def _windowed(x: Origins) -> list[int]:
    """The axes of the input that are cut into windows, in order."""
    return sorted(one.axis for one in x.axes if one.role == WINDOW)


def _match(
    program: ArrayProgram,
    last: int,
    sides: tuple[Origins, Origins],
    axes: list[_Axis],
    summed: list[_Axis],
) -> Match | None:
    x, w = sides
    places, channels, of_filters = _windowed(x), x.axes[-1], w.axes[-2]
    taps = {axis.x.axis: axis.w.axis for axis in summed if axis.x.role == TAP and axis.w.is_plain}
    images = [axis.x.axis for axis in axes if axis.x.is_plain and axis.w == OWN]
    filters = [axis.w.axis for axis in axes if axis.w.is_plain and axis.x == OWN]
    found = [axis.x.axis for axis in axes if axis.x.role == WINDOW and axis.w == OWN]
    whole = channels.is_plain and of_filters.is_plain and len(summed) == len(places)
    if not whole or (len(images), len(filters), len(axes)) != (1, 1, len(places) + 2):
        return None
    if sorted(taps) != places or sorted(found) != places:
        return None
    windows = [next(o.windows for o in x.axes if o.axis == axis and o.windows) for axis in places]
    if not all(is_even(program, one) for one in windows):
        return None
    now = [1 if a.x == OWN else 0 if a.x.is_plain else 2 + places.index(a.x.axis) for a in axes]
    is_last = channels.axis == len(places) + 1
    made = (0, *range(2, len(now)), 1) if is_last else tuple(range(len(now)))
    shape = dict(zip(now, program.equations[last].shape, strict=True))
    call = LibraryConvolution(
        (images[0], channels.axis, *places),
        (filters[0], of_filters.axis, *(taps[axis] for axis in places)),
        tuple(one.param("step") for one in windows),
        tuple(one.param("dilation") for one in windows),
        tuple(one.param("before") for one in windows),
        made,
    )
    shape_made, order = tuple(shape[axis] for axis in made), tuple(made.index(axis) for axis in now)
    return Match(last, call, (x.port, w.port), shape_made, order)
