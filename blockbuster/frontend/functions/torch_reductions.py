"""Reductions of torch's whose axes or dtypes differ from NumPy's."""

from __future__ import annotations

from typing import Any

from blockbuster.frontend.functions.pointwise import astype
from blockbuster.frontend.functions.reductions import Axes, all, any, count_nonzero, max, min
from blockbuster.frontend.functions.row import Array, Row


def over(dim: Axes) -> Axes:
    """Axes as torch names them: no axis means all."""
    return None if isinstance(dim, tuple | list) and not dim else dim


def amax(input: Array, dim: Axes = None, keepdim: bool = False) -> Array:
    """The maximum over axes, or over all."""
    return max(input, over(dim), keepdim)


def amin(input: Array, dim: Axes = None, keepdim: bool = False) -> Array:
    """The minimum over axes, or over all."""
    return min(input, over(dim), keepdim)


def count(input: Array, dim: Axes = None) -> Array:
    """How many elements are not 0, along axes or of all."""
    return count_nonzero(input, over(dim))


def any_of(input: Array, dim: Axes = None, keepdim: bool = False) -> Array:
    """True if some element is not 0; of bytes, torch's truth values are bytes."""
    return _as_truth(input, any(input, dim, keepdim))


def all_of(input: Array, dim: Axes = None, keepdim: bool = False) -> Array:
    """True if no element is 0; of bytes, torch's truth values are bytes."""
    return _as_truth(input, all(input, dim, keepdim))


def _as_truth(input: Array, truth: Array) -> Array:
    return astype(truth, "uint8") if getattr(input, "kind", "") == "uint8" else truth


_GROUP = "torch: functions and methods"


def _both(function: Any, name: str) -> Row:
    return Row(function, _GROUP, torch=(name, f"Tensor.{name}"), public=False)


ROWS = (
    _both(amax, "amax"), _both(amin, "amin"), _both(count, "count_nonzero"),
    _both(any_of, "any"), _both(all_of, "all"),
)  # fmt: skip
