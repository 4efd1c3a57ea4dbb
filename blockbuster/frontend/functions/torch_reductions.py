"""Reductions of torch's whose axes or dtypes differ from NumPy's."""

from __future__ import annotations

from typing import Any, NamedTuple

from blockbuster.frontend.functions.pointwise import astype
from blockbuster.frontend.functions.products import norm, vector_norm
from blockbuster.frontend.functions.reductions import (
    Axes,
    all,
    any,
    count_nonzero,
    logsumexp,
    max,
    mean,
    min,
    sum,
    var,
)
from blockbuster.frontend.functions.row import Array, torch_row, with_method
from blockbuster.frontend.functions.torch_dtypes import to
from blockbuster.frontend.shapes import axes_of
from blockbuster.frontend.source import trace_error


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


def torch_sum(input: Array, dim: Axes = None, keepdim: bool = False, *, dtype: Any = None) -> Array:
    """The sum over axes, in another dtype if one is given."""
    return sum(input, over(dim), keepdim, dtype=dtype)


def torch_mean(
    input: Array, dim: Axes = None, keepdim: bool = False, *, dtype: Any = None
) -> Array:
    """The mean over axes, in another dtype if one is given."""
    return mean(input, over(dim), keepdim, dtype=dtype)


def torch_var(
    input: Array, dim: Any = None, unbiased: bool = True, keepdim: bool = False,
    *, correction: Any = None,
) -> Array:  # fmt: skip
    """The squared distances from the mean, summed, over the count less ``correction`` (1)."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    return var(input, over(dim), keepdim, ddof=int(unbiased) if correction is None else correction)


def torch_std(
    input: Array, dim: Any = None, unbiased: bool = True, keepdim: bool = False,
    *, correction: Any = None,
) -> Array:  # fmt: skip
    """The square root of the variance."""
    return torch_var(input, dim, unbiased, keepdim, correction=correction) ** 0.5


def var_mean(
    input: Array, dim: Any = None, unbiased: bool = True, keepdim: bool = False,
    *, correction: Any = None,
) -> tuple[Array, Array]:  # fmt: skip
    """The variance and the mean."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    spread = torch_var(input, dim, unbiased, keepdim, correction=correction)
    return spread, mean(input, over(dim), keepdim)


def std_mean(
    input: Array, dim: Any = None, unbiased: bool = True, keepdim: bool = False,
    *, correction: Any = None,
) -> tuple[Array, Array]:  # fmt: skip
    """The square root of the variance, and the mean."""
    spread, middle = var_mean(input, dim, unbiased, keepdim, correction=correction)
    return spread**0.5, middle


class Ends(NamedTuple):
    """The smallest and the largest elements."""

    min: Array
    max: Array


def aminmax(input: Array, *, dim: int | None = None, keepdim: bool = False) -> Ends:
    """The minimum and the maximum along an axis, or of all."""
    return Ends(min(input, dim, keepdim), max(input, dim, keepdim))


def torch_logsumexp(input: Array, dim: Axes, keepdim: bool = False) -> Array:
    """The logarithm of the sum of exp(x) over axes."""
    given, rank = over(dim), len(input.shape)
    axes = axes_of("logsumexp", range(rank) if given is None else given, rank)
    for axis in sorted(axes, reverse=True):
        input = logsumexp(input, axis, keepdim)
    return input


def torch_norm(
    input: Array, p: Any = "fro", dim: Axes = None, keepdim: bool = False, dtype: Any = None,
    *, ord: Any = None,
) -> Array:  # fmt: skip
    """The norm of vectors along axes, or of all elements."""
    wanted = p if ord is None else ord
    input = input if dtype is None else to(input, dtype)
    if wanted in ("fro", 2, None):
        return norm(input, None, over(dim), keepdim)
    if isinstance(wanted, str):
        raise trace_error(f"a norm of order {wanted!r}", hint="p is a number, or 'fro'")
    return vector_norm(input, wanted, over(dim), keepdim)


def dist(input: Array, other: Array, p: float = 2) -> Array:
    """The norm of the difference of all elements."""
    return torch_norm(input - other, p)


ROWS = (
    with_method(torch_sum, "sum"), with_method(torch_mean, "mean"), with_method(torch_var, "var"),
    with_method(torch_std, "std"), torch_row(var_mean, "var_mean"), torch_row(std_mean, "std_mean"),
    with_method(aminmax, "aminmax"), with_method(torch_logsumexp, "logsumexp"),
    with_method(dist, "dist"), with_method(torch_norm, "norm"),
    torch_row(torch_norm, "linalg.vector_norm", "linalg_vector_norm"), with_method(amax, "amax"),
    with_method(amin, "amin"), with_method(count, "count_nonzero"), with_method(any_of, "any"),
    with_method(all_of, "all"),
)  # fmt: skip
