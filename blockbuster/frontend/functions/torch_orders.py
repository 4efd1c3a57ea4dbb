"""torch's functions that put elements in order, and say where they stood; running folds."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from blockbuster.frontend.array import TracedArray, along_axis
from blockbuster.frontend.functions.filled import positions
from blockbuster.frontend.functions.joins import flip
from blockbuster.frontend.functions.orders import argsort, sort
from blockbuster.frontend.functions.pointwise import where
from blockbuster.frontend.functions.ranks import in_order
from blockbuster.frontend.functions.reductions import any
from blockbuster.frontend.functions.row import Array, with_method
from blockbuster.frontend.functions.shapes import ravel
from blockbuster.frontend.kinds import FLOAT
from blockbuster.frontend.shapes import axes_of
from blockbuster.frontend.sizes import SizeExpr, fixed
from blockbuster.frontend.source import trace_error


class Extreme(NamedTuple):
    """The largest or smallest elements along an axis, and where the first of them stand."""

    values: Array
    indices: Array


def torch_sort(
    input: Array, dim: int = -1, descending: bool = False,
    stable: bool = False,  # noqa: ARG001 - it is
) -> Extreme:  # fmt: skip
    """The elements in order along an axis, and where they stood."""
    ranked = in_order(input, dim, descending)
    if ranked is not None:
        return Extreme(*ranked)
    order = torch_argsort(input, dim, descending)
    return Extreme(flip(sort(input, dim), dim) if descending else sort(input, dim), order)


def torch_argsort(
    input: Array, dim: int = -1, descending: bool = False,
    stable: bool = False,  # noqa: ARG001 - it is
) -> Array:  # fmt: skip
    """The positions that put the elements of an axis in order; equal ones stay in theirs."""
    ranked = in_order(input, dim, descending)
    if ranked is not None:
        return ranked[1]
    if not descending:
        return argsort(input, dim)
    last = input.shape[dim] - 1
    return last - flip(argsort(flip(input, dim), dim), dim)


def msort(input: Array) -> Array:
    """The elements in ascending order along the first axis."""
    return sort(input, 0)


def kthvalue(input: Array, k: int, dim: int = -1, keepdim: bool = False) -> Extreme:
    """The ``k``-th smallest elements along an axis, and where they stand."""
    (at,) = axes_of("kthvalue", dim, len(input.shape))
    extent = input.shape[at]
    if k < 1 or (not isinstance(extent, SizeExpr) and k > extent):
        raise trace_error(f"the {k}-th of {extent} elements", hint="the first is k=1")
    return _ranked(input, k - 1, at, keepdim)


def torch_median(input: Array, dim: int | None = None, keepdim: bool = False) -> Any:
    """The lower of the middle elements, of all or along an axis with its position."""
    if dim is None:
        return torch_median(ravel(input), 0).values
    (at,) = axes_of("median", dim, len(input.shape))
    values, places = _ranked(input, (fixed(input.shape[at]) - 1) // 2, at, keepdim)
    if not isinstance(input, TracedArray) or input.kind != FLOAT:
        return Extreme(values, places)
    return Extreme(where(any(input != input, at, keepdim), np.nan, values), places)


def _ranked(x: Array, rank: Any, axis: int, keepdim: bool) -> Extreme:
    """The element that stands behind ``rank`` others in order."""
    key = (*(slice(None),) * axis, slice(rank, rank + 1) if keepdim else rank)
    return Extreme(*(each[key] for each in torch_sort(x, axis)))


def cummax(input: Array, dim: int) -> Extreme:
    """The largest element up to each along an axis, and its position."""
    return _running("cummax", input, dim)


def cummin(input: Array, dim: int) -> Extreme:
    """The smallest element up to each along an axis, and its position."""
    return _running("cummin", input, dim)


def logcumsumexp(input: Array, dim: int) -> Array:
    """The logarithm of the sum of exp(x) up to each element along an axis, without overflow."""
    return along_axis("logcumsumexp", input, dim)


def _running(name: str, x: Array, dim: int) -> Extreme:
    """Of equal elements, and of NaN, the position is that of the last."""
    (at,) = axes_of(name, dim, len(x.shape))
    values = along_axis(name, x, at)
    if not isinstance(x, TracedArray):
        return Extreme(values, getattr(x, name)(at).indices)
    place = positions(x.trace, x.shape[at], at, x.ndim)
    holds = (x == values) | (x != x) if x.kind == FLOAT else x == values
    return Extreme(values, along_axis("cummax", where(holds, place, 0), at))


ROWS = (
    with_method(torch_sort, "sort"), with_method(torch_argsort, "argsort"),
    with_method(msort, "msort"), with_method(kthvalue, "kthvalue"),
    with_method(torch_median, "median"), with_method(cummax, "cummax"),
    with_method(cummin, "cummin"), with_method(logcumsumexp, "logcumsumexp"),
)  # fmt: skip
