"""Arguments of functions of images: numbers for each axis, and an axis of batches or none."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from blockbuster.frontend.functions.row import Array
from blockbuster.frontend.sizes import SizeExpr, fixed
from blockbuster.frontend.source import trace_error
from blockbuster.ir.expr_lengths import length_of


def numbers(name: str, what: str, given: Any, count: int, least: int) -> tuple[int, ...]:
    """A number for each of ``count`` axes, given as one, or one by one.

    Raises TraceError for other counts, for no whole numbers, and for numbers below ``least``.
    """
    each = tuple(given) if isinstance(given, tuple | list) else (given,)
    try:
        found = tuple(map(operator.index, each * count if len(each) == 1 else each))
    except TypeError:
        found = ()
    if len(found) != count or min(found) < least:
        many = f", or {count} of them" if count > 1 else ""
        hint = f"{what} is a whole number of at least {least}{many}"
        raise trace_error(f"{name} with {what}={given!r}", hint=hint)
    return found


def known(size: Any) -> Any:
    """A size of an example as a number: the program is for this size alone. Other sizes stay."""
    return fixed(size) if _has_extent(size) else size


def is_at_least(size: Any, least: int) -> bool:
    """True for a number, or a size of an example, that is at least ``least``: the program is for
    such sizes alone. Other sizes may have any extent.
    """
    return _has_extent(size) and bool(size >= least)


def _has_extent(size: Any) -> bool:
    if not isinstance(size, SizeExpr):
        return True
    length, dims = length_of(size.expr), size.trace.dims
    return length is not None and all(dims.extent(dim) is not None for dim in length.dims)


def number(name: str, what: str, size: Any) -> int:
    """A size as a number. Raises TraceError for one that is not known."""
    found = known(size)
    if isinstance(found, SizeExpr):
        word = repr(found).strip("|")
        hint = f'give the size a number where its array is declared: "{word}=3"'
        raise trace_error(f"{name} needs {what} as a number, and it is {found!r}", hint=hint)
    return int(found)


def check_rank(name: str, x: Array, count: int) -> None:
    """Raise TraceError unless ``x`` is images of ``count`` axes: (batch, channels, ...)."""
    rank = len(x.shape)
    if rank not in (count + 1, count + 2):
        hint = f"x is (batch, channels, ...) with {count} more axes, or without the batch axis"
        raise trace_error(f"{name} of an array of {rank} axes", hint=hint)


def in_batches(name: str, x: Array, count: int, work: Callable[[Array], Array]) -> Array:
    """``work`` of images of ``count`` axes, whose batch axis may be absent."""
    check_rank(name, x, count)
    return work(x) if len(x.shape) == count + 2 else work(x[None])[0]
