"""torch's functions that write elements to positions which are values.

A few positions a row are compared with those along the axis, so that nothing is stored between;
of more, a library's function runs between kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from blockbuster.frontend.array import TracedArray
from blockbuster.frontend.at_positions import expect_on_axis
from blockbuster.frontend.functions.filled import held_in, positions, rounded_in
from blockbuster.frontend.functions.pointwise import where
from blockbuster.frontend.functions.row import Array, with_method
from blockbuster.frontend.kinds import MASK, WHOLES
from blockbuster.frontend.limits import MOST_COMPARED
from blockbuster.frontend.moves import Scattered
from blockbuster.frontend.shapes import axes_of
from blockbuster.frontend.sizes import fixed
from blockbuster.frontend.source import trace_error


def scatter(
    input: Array, dim: int, index: Array, src: Array | None = None, *,
    value: Any = None, reduce: str | None = None,
) -> Array:  # fmt: skip
    """``input`` with the elements of ``src``, or a number, at positions along an axis."""
    if reduce not in (None, "add"):
        raise trace_error(f"scatter with reduce={reduce!r}", hint="torch.scatter_add adds up")
    given = src if value is None else value
    return _scattered("scatter_add" if reduce else "scatter", input, dim, index, given)


def scatter_add(input: Array, dim: int, index: Array, src: Array) -> Array:
    """``input`` plus the elements of ``src``, each at its position along an axis."""
    return _scattered("scatter_add", input, dim, index, src)


def index_add(input: Array, dim: int, index: Array, source: Array, alpha: Any = 1) -> Array:
    """``input`` plus ``alpha`` times the slices of ``source``, each at its position."""
    (at,) = axes_of("index_add", dim, len(input.shape))
    expect_on_axis(input, at, index, "index_add", from_end=False)
    x, index, source = _traced(input, index, source)
    if index.ndim != 1 or source.ndim != x.ndim:
        reason = f"index_add at positions of {index.ndim} axes"
        raise trace_error(reason, hint="positions are a vector, the source has the axes of input")
    source = source if alpha == 1 else source * held_in(x.kind, alpha)
    return _by_library(Scattered("index_add", at), x, index, source)


def _scattered(how: str, input: Array, dim: int, index: Array, source: Any) -> Array:
    (at,) = axes_of(how, dim, len(input.shape))
    expect_on_axis(input, at, index, how, from_end=False)
    x, index, source = _traced(input, index, source)
    arrays = [each for each in (index, source) if isinstance(each, TracedArray)]
    if any(each.ndim != x.ndim for each in arrays):
        reason = f"{how} of {x.ndim} axes at positions of {index.ndim}"
        raise trace_error(reason, hint="give positions and elements as many axes: index[:, None]")
    number = None if len(arrays) > 1 else rounded_in(x, source)
    are_few = x.trace.dims.has(index.axes[at], MOST_COMPARED + 1) is False
    is_exact = not isinstance(number, int) or number == float(number)  # programs hold float64
    if not (are_few and is_exact) or not _are_alike(x, at, arrays):
        held = int(number) if isinstance(number, bool) else number
        return _by_library(Scattered(how, at, held), x, *arrays)
    place = positions(x.trace, x.shape[at], at, x.ndim)
    for step in range(fixed(index.shape[at])):
        key = (*(slice(None),) * at, slice(step, step + 1))
        hit, one = place == index[key], source[key] if number is None else number
        x = where(hit, one, x) if how == "scatter" else _added(x, hit, one)
    return x


def _added(x: TracedArray, hit: Array, one: Any) -> Array:
    """``x`` plus ``one`` where ``hit`` is true, in the dtype of ``x``; masks are combined by or."""
    if x.kind != MASK and isinstance(one, TracedArray):
        return x + where(hit, one, 0)
    return where(hit, x + one, x)


def _are_alike(x: TracedArray, at: int, arrays: Sequence[TracedArray]) -> bool:
    """True if positions, and elements for them, fill all axes but ``at``, which they share."""
    dims, (first, *_) = x.trace.dims, arrays
    pairs = [
        ((first if axis == at else x).axes[axis], each.axes[axis])
        for each in arrays
        for axis in range(x.ndim)
    ]
    return all(dims.reaches(*pair) and dims.reaches(*pair[::-1]) for pair in pairs)


def _traced(input: Array, index: Array, source: Any) -> tuple[TracedArray, TracedArray, Any]:
    """The arrays of a call; a source that is a number stays one. Raises TraceError for others."""
    given = (input, index, source)
    trace = next(each.trace for each in given if isinstance(each, TracedArray))
    x, at = trace.array(input), trace.array(index)
    if at.kind not in WHOLES:
        raise trace_error(f"{at.kind} positions", hint="positions are integers")
    if isinstance(source, int | float):
        return x, at, source
    source = trace.array(source)
    if source.kind != x.kind:
        reason = f"{source.kind} elements among {x.kind}"
        raise trace_error(reason, hint="cast them before: source.to(x.dtype)")
    return x, at, source


def _by_library(fn: Scattered, x: TracedArray, *arrays: TracedArray) -> TracedArray:
    if x.kind == MASK:  # functions of whole arrays give no masks: they count as 0 and 1
        numbers = [each + 0 if each.kind == MASK else each for each in arrays]
        return _by_library(fn, x + 0, *numbers) != 0
    return x.trace.custom(fn, (x, *arrays), x.axes, str(fn), x.kind)


ROWS = (
    with_method(scatter, "scatter"), with_method(scatter_add, "scatter_add"),
    with_method(index_add, "index_add"),
)  # fmt: skip
