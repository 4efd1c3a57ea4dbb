"""Steps of broad random programs that only move elements: turned, cut, windowed, joined."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.random_programs.broad_arrays import Drawn, Growing


def _kind_of_view(to: Growing) -> str:
    return "b" if to.random.random() < 0.15 else "f"


def turned(to: Growing) -> Drawn | None:
    """The axes of a value in another order."""
    at = to.value(_kind_of_view(to), rank=2)
    if at is None:
        return None
    axes = list(range(len(to.shape(at))))
    to.random.shuffle(axes)
    return to.random.choice((
        ("transpose", (at,), (tuple(axes),)),
        ("swapaxes", (at,), (to.axis(at), to.axis(at))),
        ("reversed", (at,), ()),
    ))  # fmt: skip


def _entry(to: Growing, extent: int) -> Any:
    """A slice, a single position or all of an axis."""
    if extent < 2:
        return to.random.choice((slice(None), slice(None), slice(extent), *range(-extent, extent)))
    a, b = sorted(to.random.randint(0, extent) for _ in range(2))
    return to.random.choice((
        slice(None), slice(None), slice(a, b), slice(1, None), slice(None, -1), slice(a, None),
        slice(None, b), slice(-2, None), to.random.randrange(-extent, extent), 0,
    ))  # fmt: skip


def indexed(to: Growing) -> Drawn | None:
    """Slices, single positions and new axes of a value."""
    at = to.value(_kind_of_view(to), rank=1)
    if at is None:
        return None
    shape = to.shape(at)
    if to.random.random() < 0.15:
        return "halves", (at,), (to.random.randrange(len(shape)), to.random.random() < 0.5)
    if to.random.random() < 0.3:
        key: list[Any] = [slice(None)] * len(shape)
        key.insert(to.random.randint(0, len(shape)), None)
    else:
        some = to.random.randint(1, len(shape))
        key = [_entry(to, extent) for extent in shape[-some:]]
        key = [..., *key] if some < len(shape) else key
        if to.random.random() < 0.2:
            key.append(None)
    return "indexed", (at,), (tuple(key),)


def windowed(to: Growing) -> Drawn | None:
    """Windows of an axis that overlap, leave gaps, or reach outside."""
    at = to.value(_kind_of_view(to), rank=1)
    if at is None or len(to.shape(at)) > 2:
        return None
    axis, dilation = to.axis(at), to.random.choice((1, 1, 1, 2))
    pads = to.random.choice(((0, 0), (0, 0), (1, 1), (2, 0), (0, 1)))
    most = (to.shape(at)[axis] + sum(pads) - 1) // dilation + 1
    if most < 1 or not to.shape(at)[axis]:
        return None
    size, step = to.random.randint(1, min(most, 4)), to.random.choice((1, 1, 2, 3))
    return "windowed", (at,), (axis, size, step, dilation, pads)


def spread(to: Growing) -> Drawn | None:
    """A vector as a column, or rows of it: what meets another vector to make a matrix."""
    at = to.value(_kind_of_view(to), rank=1)
    if at is None:
        return None
    last = to.random.choice((slice(None), slice(None), 0))
    key = (..., last, None) if to.random.random() < 0.7 else (0, ..., last)
    return "indexed", (at,), (key,)


def concat(to: Growing) -> Drawn | None:
    """A value and others like it, one behind the other."""
    at = to.value(_kind_of_view(to), rank=1)
    if at is None:
        return None
    axis = to.random.randrange(len(to.shape(at)))
    kind, mine = to.arrays[at].dtype.kind, _without(to.shape(at), axis)
    others = [
        i for i, a in enumerate(to.arrays)
        if a.dtype.kind == kind and a.ndim == len(mine) + 1 and _without(a.shape, axis) == mine
    ]  # fmt: skip
    more = to.random.choices(others, k=to.random.choice((1, 1, 2)))
    return "concat", (at, *more), (axis - to.random.choice((0, len(mine) + 1)),)


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return (*shape[:axis], *shape[axis + 1 :])


def heads(to: Growing) -> Drawn | None:
    """The last axis split into heads, or heads merged."""
    at = to.value(rank=2)
    if at is None:
        return None
    if len(to.shape(at)) > 2 and to.random.random() < 0.6:
        return "merge_heads", (at,), ()
    return "split_heads", (at,), (to.random.choice((1, 2, 2, 3, 4)),)
