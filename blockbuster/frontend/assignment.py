"""``x[key] = value``: elements that slices, positions or a mask name take other values."""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from blockbuster.frontend.at_positions import with_elements
from blockbuster.frontend.dtype_names import dtype_name
from blockbuster.frontend.in_place import change, converted
from blockbuster.frontend.indexing import piece, spread
from blockbuster.frontend.kinds import FLOAT, MASK
from blockbuster.frontend.memory import is_held
from blockbuster.frontend.put_back import hits
from blockbuster.frontend.sizes import SizeExpr, scalar
from blockbuster.frontend.source import Refused, trace_error
from blockbuster.frontend.taking import arrays_among, of_several, plain
from blockbuster.frontend.torch import is_tensor, one_element

if TYPE_CHECKING:
    from blockbuster.frontend.array import TracedArray

INSTEAD = "x = bb.where(mask, new, x) replaces elements; bb.concat joins pieces"


def assign(x: TracedArray, key: Any, value: Any) -> None:
    """``x[key] = value``. Raises TraceError for several arrays of positions as keys."""
    keys = key if isinstance(key, tuple) else (key,)
    if _is_item(value, x, keys):
        if value.memory is x.memory:
            return  # x[key] += 1 has changed the view that it assigns
        x.memory.regain(value)
    keys = tuple(map(plain, keys))
    try:
        number = _number(x, value)
        if any(map(_is_mask, keys)):
            new = _where_mask(x, keys, number)
        elif (found := arrays_among(keys, x.trace.of_tensors)) is not None:
            (place, count, axis), at = found, keys[found[0]]
            if count > 1:
                raise of_several()
            x = x.trace.index(x, (*keys[:place], slice(None), *keys[place + 1 :]))
            given = x.trace.array(value) if number is None else number
            new = with_elements(x, at, axis % x.ndim, given)
        elif number is not None:
            new = _at_places(x, keys, number)
        else:
            x = x.trace.index(x, keys)
            new = _spread(x, x.trace.array(value if _is_array(value) else np.asarray(value)))
    except Refused as refused:
        reason = f"x[...] = value: {refused.reason}"
        raise trace_error(reason, hint=refused.hint or INSTEAD) from None
    change(x, new, casts=True)


def _is_item(value: Any, x: TracedArray, keys: tuple[Any, ...]) -> bool:
    """True if ``x[keys]`` gave ``value``, or what was changed to it."""
    if not is_held(value) or value.taken_as is None:
        return False
    base, taken = value.taken_as
    return base is x and repr(taken) == repr(keys)


def _is_mask(key: Any) -> bool:
    of_truths = getattr(key, "kind", "") == MASK or str(getattr(key, "dtype", "")).endswith("bool")
    return _is_array(key) and of_truths


def _is_array(value: Any) -> bool:
    return bool(getattr(value, "ndim", 0))


def _number(x: TracedArray, value: Any) -> Any:
    """A single value in the dtype of ``x``; None for an array."""
    value = one_element(value)
    if is_held(value):
        return None if value.ndim else converted(x, value, casts=True)
    if isinstance(value, np.ndarray | np.generic) and value.ndim == 0:
        value = value.item()
    if is_tensor(value) or scalar(value) is None:
        return None
    if isinstance(value, SizeExpr) or x.kind == FLOAT:
        return value if isinstance(value, SizeExpr) else float(value)
    if x.kind == MASK:
        return bool(value)
    ends = np.iinfo(dtype_name(x))
    if not ends.min <= value <= ends.max:
        raise Refused(f"{value} is no {dtype_name(x)}", "an array keeps its dtype: cast it before")
    return int(value)


def _where_mask(x: TracedArray, keys: tuple[Any, ...], number: Any) -> TracedArray:
    """``x`` with a number where a mask of its first axes holds."""
    mask = x.trace.array(keys[0]) if _is_array(keys[0]) else None
    if mask is None or len(keys) > 1 or mask.kind != MASK or mask.ndim > x.ndim:
        raise Refused("the key has indices beside a mask, or a mask of more axes")
    if number is None:
        raise Refused("how many elements a mask takes is not known, so the value is one number")
    for axis, own in zip(mask.axes, x.axes, strict=False):
        x.trace.dims.unify(axis, own)
    behind = (None,) * (x.ndim - mask.ndim)
    return x.trace.record("where", (mask[(..., *behind)], number, x))


def _at_places(x: TracedArray, keys: tuple[Any, ...], number: Any) -> TracedArray:
    """``x`` with a number at the places that slices and positions name."""
    entries = [entry for entry in spread(keys, x.ndim) if entry is not None]
    seen = []
    for axis, entry in enumerate(entries):
        found = piece(x.trace.dims, x.axes[axis], entry)
        if found is not None:
            if found.backwards:  # the first place follows from the number of elements
                x.trace.dims.expect_whole((found.length,))
            seen.append(hits(x, axis, found.start, found.length, found.step))
    if seen:
        return x.trace.record("where", (functools.reduce(operator.and_, seen), number, x))
    made: TracedArray = x.trace.spellings.numpy[np.full_like].function(x, number)
    return made


def _spread(x: TracedArray, value: TracedArray) -> TracedArray:
    """``value`` in the shape of ``x``: repeated along axes where it has one element, or none."""
    dims, missing = x.trace.dims, x.ndim - value.ndim
    fits = missing >= 0 and all(
        dims.length(dims.broadcast(axis, own)) == dims.length(own)
        for axis, own in zip(value.axes, x.axes[missing:], strict=True)
    )
    if not fits:
        reason = f"an array {dims.show(value.axes)} for elements {dims.show(x.axes)}"
        raise Refused(reason, "the value has their shape, or one that broadcasts to it")
    if [*map(dims.length, value.axes)] == [*map(dims.length, x.axes)]:
        return value
    made: TracedArray = x.trace.spellings.numpy[np.broadcast_to].function(value, x.shape)
    return made
