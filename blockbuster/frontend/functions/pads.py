"""Arrays with more around them: a number, or elements of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from blockbuster.frontend.array import TracedArray, apply
from blockbuster.frontend.functions.cuts import narrowed
from blockbuster.frontend.functions.filled import chosen, held_in, positions
from blockbuster.frontend.functions.joins import constant, take
from blockbuster.frontend.functions.row import Array, Row, example
from blockbuster.frontend.functions.shapes import FREE
from blockbuster.frontend.functions.windows import windowed
from blockbuster.frontend.kinds import MASK
from blockbuster.frontend.limits import ONE_BY_ONE
from blockbuster.frontend.memory import own
from blockbuster.frontend.sizes import SizeExpr
from blockbuster.frontend.source import trace_error

Places = Callable[[int], tuple[int, int]]
"""The elements that stand ``d`` places before an axis and behind it, counted from its start if they
are not negative, and from its end if they are."""

MODES: Mapping[str, Places] = {
    "edge": lambda d: (0, -1),
    "reflect": lambda d: (d, -1 - d),
    "symmetric": lambda d: (d - 1, -d),
    "wrap": lambda d: (-d, d - 1),
}
"""By NumPy's names of modes."""

IN_TORCH = {"replicate": "edge", "circular": "wrap"}


def pad(x: Array, pad_width: Any, mode: str = "constant", constant_values: Any = 0) -> Array:
    """The array with more around it: ``((before, after), ...)`` elements along each axis.

    ``mode``: what stands there, ``"constant"`` or one of ``MODES``.
    """
    rank = len(x.shape)
    one = isinstance(pad_width, int)
    pairs = [(pad_width, pad_width)] if one else [*pad_width]
    pairs = [(pairs[0], pairs[1])] if len(pairs) == 2 and isinstance(pairs[0], int) else pairs
    if isinstance(x, TracedArray) and x.kind == MASK:
        numbers: Array = apply("add", x, 0)
        return pad(numbers, pad_width, mode, int(bool(constant_values))) != 0
    if isinstance(x, TracedArray):
        constant_values = held_in(x.kind, constant_values)
    widths = pairs * rank if len(pairs) == 1 else pairs
    for axis, (before, behind) in enumerate(widths):
        if mode == "constant":
            x = _padded(x, axis, before, behind, constant_values)
        else:
            x = repeated_around(x, axis, before, behind, mode)
    return own(x)


def pad_last(x: Array, pad: Sequence[int], mode: str = "constant", value: Any = 0) -> Array:
    """``pad`` as torch spells it: (before, behind) of the last axis, then of the one before it.

    Negative numbers leave elements out.
    """
    count = len(pad) // 2
    pairs = [(pad[2 * n], pad[2 * n + 1]) for n in reversed(range(count))]
    added: list[tuple[Any, ...]] = [(0, 0)] * (len(x.shape) - count)
    for axis, pair in enumerate(pairs, start=len(added)):
        before, behind = (-n if isinstance(n, int) and n < 0 else 0 for n in pair)
        if before or behind:
            x = narrowed(x, axis, before, behind)
    added += [tuple(0 if isinstance(n, int) and n < 0 else n for n in pair) for pair in pairs]
    return globals()["pad"](x, added, mode, 0 if value is None else value)


def _padded(x: Array, axis: int, before: Any, behind: Any, value: Any) -> Array:
    """``x`` with ``value`` around it: a view that shows zeros there, or parts that are joined where
    their sizes are no numbers.
    """
    counts: list[Any] = [n for n in (before, behind) if isinstance(n, SizeExpr) or n]
    if any(isinstance(count, int) and count < 0 for count in counts):
        raise trace_error(f"pad by {min(counts)} elements", hint="x[1:-1] leaves elements out")
    if not counts:
        return x
    if isinstance(x, TracedArray) and not any(isinstance(count, SizeExpr) for count in counts):
        made = windowed(x, axis, 1, pads=(before, behind))[..., 0]
        if str(value) in ("0", "0.0"):
            return made
        place = positions(x.trace, made.shape[axis], axis, made.ndim)
        return chosen((place >= before) & (place < x.shape[axis] + before), made, value)
    parts = [x]
    for count, at in ((before, 0), (behind, 2)):
        if isinstance(count, SizeExpr) or count:
            shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
            parts.insert(at, constant(x, shape, value))
    return apply("concat", *parts, axis=axis)


def repeated_around(x: Array, axis: int, before: Any, behind: Any, mode: str) -> Array:
    """``x`` with elements of its own before and behind those of an axis.

    Raises TraceError for a mode that is none, for pads that are no numbers, and for pads that reach
    farther than the axis.
    """
    mode = IN_TORCH.get(mode, mode)
    if mode not in MODES:
        hint = f"it is constant, {', '.join((*MODES, *IN_TORCH))}"
        raise trace_error(f"pad with mode {mode!r} cannot be traced", hint=hint)
    if isinstance(before, SizeExpr) or isinstance(behind, SizeExpr):
        raise trace_error(f"pad by sizes with mode {mode!r}", hint="give numbers")
    if not before and not behind:
        return x
    traced = isinstance(x, TracedArray)
    extent = x.trace.dims.length(x.axes[axis]).constant if traced else x.shape[axis]
    farthest = max(before, behind) + (mode == "reflect")
    if extent is not None and mode != "edge" and farthest > extent:
        reason = f"pad by {max(before, behind)} with mode {mode!r} of {extent} elements"
        raise trace_error(reason, hint="pads with this mode reach no farther than the array")
    if traced and mode == "edge":
        return _edges(x, axis, before, behind)
    if traced and before + behind <= ONE_BY_ONE:
        return _one_by_one(x, axis, before, behind, MODES[mode])
    if extent is None:
        reason = f"pad by {before} and {behind} with mode {mode!r} of {x.shape[axis]} elements"
        raise trace_error(reason, hint="give the axis a number of elements, as in x='A B=64'")
    return _looked_up(x, axis, before, behind, int(extent), MODES[mode])


def _edges(x: TracedArray, axis: int, before: int, behind: int) -> Array:
    """The first element at all places before ``x``, and the last at all behind it."""
    made = windowed(x, axis, 1, pads=(before, behind))[..., 0]
    place = positions(x.trace, made.shape[axis], axis, made.ndim)
    along = (slice(None),) * axis
    if before:
        made = chosen(place < before, x[(*along, slice(0, 1))], made)
    if behind:
        made = chosen(place >= x.shape[axis] + before, x[(*along, slice(-1, None))], made)
    return made


def _one_by_one(x: TracedArray, axis: int, before: int, behind: int, places: Places) -> Array:
    """Each element around is one of ``x``, where it stands."""
    made = windowed(x, axis, 1, pads=(before, behind))[..., 0]
    extent = x.shape[axis]
    place = positions(x.trace, made.shape[axis], axis, made.ndim)
    around = [(before - d, places(d)[0]) for d in range(1, before + 1)]
    around += [(extent + before + d - 1, places(d)[1]) for d in range(1, behind + 1)]
    for at, source in around:
        stop = source + 1 if source != -1 else None
        element = x[(*(slice(None),) * axis, slice(source, stop))]
        made = chosen(place == at, element, made)
    return made


def _looked_up(
    x: Array, axis: int, before: int, behind: int, extent: int, places: Places
) -> Array:
    """The elements at positions that are known before the program runs."""
    first = [places(d)[0] % extent for d in range(before, 0, -1)]
    last = [places(d)[1] % extent for d in range(1, behind + 1)]
    found = np.array([*first, *range(extent), *last], dtype=np.int64)
    return take(x, found, axis)


_GROUP = "Joins, cuts and orders"

ROWS = (
    Row(pad, _GROUP, ("pad",), note=FREE,
        examples=(example("M N", 1), example("M N", ((1, 0), (0, 2)), constant_values=0.5))),
    Row(pad_last, _GROUP, torch=("nn.functional.pad",), public=False, note=FREE,
        examples=(example("M N", (1, 2)),),
        reference=lambda x, pad: np.pad(x, ((0, 0), pad))),
)  # fmt: skip
