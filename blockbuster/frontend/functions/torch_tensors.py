"""Tensor functions and methods whose arguments or meaning differ from NumPy's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from blockbuster.frontend.array import TracedArray, apply
from blockbuster.frontend.at_positions import expect_on_axis
from blockbuster.frontend.dtype_names import UNDECIDED, dtype_name
from blockbuster.frontend.functions.choices import one_hot, take_along_axis
from blockbuster.frontend.functions.filled import held_in, positions
from blockbuster.frontend.functions.joins import constant
from blockbuster.frontend.functions.operators import fmod, is_integer, logical_or
from blockbuster.frontend.functions.pointwise import (
    astype,
    clip,
    floats_together,
    log,
    maximum,
    minimum,
    sign,
    trunc,
    where,
)
from blockbuster.frontend.functions.ranks import ranked
from blockbuster.frontend.functions.reductions import max, min
from blockbuster.frontend.functions.row import Array, named, torch_row, with_method
from blockbuster.frontend.functions.searches import argmax, argmin
from blockbuster.frontend.functions.shapes import swapaxes
from blockbuster.frontend.functions.torch_orders import Extreme
from blockbuster.frontend.kinds import FLOAT, MASK
from blockbuster.frontend.memory import perhaps
from blockbuster.frontend.shapes import axes_of, listed
from blockbuster.frontend.source import trace_error


def t(input: Array) -> Array:
    """The rows of a matrix as columns; a vector as it is."""
    if len(input.shape) > 2:
        raise trace_error("t takes matrices and vectors", hint="use x.mT or x.transpose(-1, -2)")
    return input if len(input.shape) < 2 else swapaxes(input, 0, 1)


def dim(input: Array) -> int:
    """The number of axes."""
    return len(input.shape)


def numel(input: Array) -> Any:
    """The number of elements."""
    return math.prod(input.shape, start=1)


def detach(input: Array) -> Array:
    """``x`` itself: traced arrays have no gradient."""
    return input


def contiguous(input: Array) -> Array:
    """``x``, or a copy of it: that depends on its layout."""
    return perhaps(input, input, "contiguous copies some layouts")


def copy_(input: Array, src: Array, non_blocking: bool = False) -> Array:  # noqa: ARG001
    """``x`` with the elements of another array."""
    input[...] = src
    return input


def fill_(input: Array, value: Any) -> Array:
    """``x`` with one number everywhere."""
    input[...] = value
    return input


def zero_(input: Array) -> Array:
    """``x`` with zeros."""
    return fill_(input, 0)


def masked_fill(input: Array, mask: Array, value: Any) -> Array:
    """``value`` where the mask holds, and ``x`` elsewhere."""
    return where(mask, _as_held_in(input, value), input)


def fill_diagonal_(input: Array, fill_value: Any, wrap: bool = False) -> Array:
    """A matrix with one number on its diagonal."""
    if len(input.shape) != 2 or wrap:
        reason = f"fill_diagonal_ of {len(input.shape)} axes" + ", wrap=True" * wrap
        raise trace_error(reason, hint="it takes matrices, and fills one diagonal")
    rows, columns = (positions(input.trace, n, at, 2) for at, n in enumerate(input.shape))
    input[...] = masked_fill(input, rows == columns, fill_value)
    return input


def _as_held_in(x: Array, value: Any) -> Any:
    """A number, or a tensor of one, in the dtype of ``x``, as torch fills with it."""
    if not isinstance(x, TracedArray):
        return value
    dtype = dtype_name(x)
    if isinstance(value, TracedArray):
        return apply("cast", value, dtype=dtype) if dtype != dtype_name(value) and dtype else value
    return held_in(x.kind, value.item() if hasattr(value, "item") else value)


def where_of(input: Array, condition: Array, other: Any) -> Array:
    """``x`` where the mask holds, and another array elsewhere."""
    return where(condition, input, other)


def add(input: Array, other: Array, *, alpha: float = 1) -> Array:
    """``x + alpha * y``."""
    return input + (other if alpha == 1 else alpha * other)


def sub(input: Array, other: Array, *, alpha: float = 1) -> Array:
    """``x - alpha * y``."""
    return input - (other if alpha == 1 else alpha * other)


def rsub(input: Array, other: Array, *, alpha: float = 1) -> Array:
    """``y - alpha * x``."""
    return other - (input if alpha == 1 else alpha * input)


def div(input: Array, other: Array, *, rounding_mode: str | None = None) -> Array:
    """``x / y``, of which "trunc" leaves out the fractional part."""
    if rounding_mode is None:
        return input / other
    if rounding_mode == "trunc" and (_is_float(input) or _is_float(other)):
        return trunc(input / other)
    if is_integer(input) and is_integer(other) and rounding_mode in ("trunc", "floor"):
        return (input - fmod(input, other) if rounding_mode == "trunc" else input) // other
    hints = {
        "floor": "torch.floor(x / y) rounds the rounded quotient down; of integers, x // y",
        "trunc": "make integers of masks: x.int()",
    }
    hint = hints.get(rounding_mode, f"modes: {', '.join(hints)}")
    raise trace_error(f"div with rounding_mode={rounding_mode!r} cannot be traced", hint=hint)


def _is_float(x: Array) -> bool:
    """True for a float of Python's, and for an array of floats."""
    if isinstance(x, TracedArray):
        return x.kind == FLOAT
    return isinstance(x, float) or "float" in str(getattr(x, "dtype", ""))


def frac(input: Array) -> Array:
    """The fractional part."""
    return input - trunc(input)


def xlogy(input: Array, other: Array) -> Array:
    """``x * log(y)``, and 0 where x is 0 and y is a number."""
    x, y = floats_together(input, other)
    return where((x == 0) & (y == y), 0.0, x * log(y))


def logit(input: Array, eps: float | None = None) -> Array:
    """log(x / (1 - x)); ``x`` is at least ``eps``, and at most ``1 - eps``, if it is given."""
    x = input if eps is None else clip(input, eps, 1 - eps)
    return log(x / (1.0 - x))


def torch_heaviside(input: Array, values: Array) -> Array:
    """0 for numbers below 0 and for NaN, 1 for numbers above 0, and ``values`` where x is 0."""
    if input.kind == MASK:
        return logical_or(input, values)
    return where(input > 0, 1, where(input == 0, values, 0))  # in the dtype of ``values``


def addcmul(input: Array, tensor1: Array, tensor2: Array, *, value: float = 1) -> Array:
    """``x + value * a * b``."""
    return input + (tensor1 if value == 1 else value * tensor1) * tensor2


def addcdiv(input: Array, tensor1: Array, tensor2: Array, *, value: float = 1) -> Array:
    """``x + value * a / b``."""
    return input + value * tensor1 / tensor2


def lerp(input: Array, end: Array, weight: Any) -> Array:
    """``x + weight * (end - x)``."""
    return input + weight * (end - input)


def clamp_min(input: Array, min: Any) -> Array:
    """The larger of ``x`` and a bound."""
    return maximum(input, min)


def torch_sign(input: Array) -> Array:
    """1 for numbers above 0, -1 for numbers below 0, and 0 for 0 and for NaN."""
    made = sign(input)
    return where(input == input, made, 0) if getattr(input, "kind", "") == FLOAT else made


def clamp_max(input: Array, max: Any) -> Array:
    """The smaller of ``x`` and a bound."""
    return minimum(input, max)


def permute(input: Array, *dims: Any) -> Array:
    """The axes in another order, given as a tuple or one by one."""
    return input.transpose(dims[0] if len(dims) == 1 else tuple(dims))


def _extremum(
    name: str, fold: Callable[..., Array], place: Callable[..., Array], of_two: Callable[..., Array]
) -> Callable[..., Any]:
    """torch's maximum or minimum, which is one of three functions."""

    def extremum(input: Array, dim: Any = None, keepdim: bool = False) -> Any:
        if isinstance(dim, int):
            return Extreme(fold(input, dim, keepdim), place(input, dim, keepdim))
        return fold(input) if dim is None else of_two(input, dim)

    meaning = f"The {name}imum of all elements, along an axis with its positions, or of two arrays."
    return named(extremum, f"torch_{name}", meaning)


def topk(
    input: Array,
    k: int,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,  # noqa: ARG001 - they are
) -> Extreme:
    """The ``k`` largest or smallest elements along an axis, in order, and where they stand.

    A library's function, which runs between kernels, finds more than 8 of a long row.
    """
    if k == 1 and largest:
        return Extreme(max(input, dim, True), argmax(input, dim, True))
    return Extreme(*ranked(input, k, dim, largest))


def gather(input: Array, dim: int, index: Array) -> Array:
    """The elements at positions along an axis, in each row its own: in rows that positions have."""
    expect_on_axis(input, dim, index, "gather", from_end=False)
    (at,) = axes_of("gather", dim, len(input.shape))
    traced = next(given for given in (input, index) if isinstance(given, TracedArray))
    x, index = traced.trace.array(input), traced.trace.array(index)
    for axis, (own, wanted) in enumerate(zip(x.axes, index.axes, strict=False)):
        if axis != at and x.trace.dims.reaches(wanted, own) is False:
            x = x[(*(slice(None),) * axis, slice(index.shape[axis]))]
    return take_along_axis(x, index, at)


def torch_one_hot(input: Array, num_classes: int = -1) -> Array:
    """1 along a new last axis at the position that each element names, and 0 elsewhere."""
    if num_classes < 0:
        raise trace_error("one_hot counts classes by values", hint="say how many: one_hot(x, 10)")
    return one_hot(input, num_classes)


def new_zeros(input: Array, *size: Any, dtype: Any = None) -> Array:
    """0 in another shape."""
    return new_full(input, listed(size), 0.0, dtype=dtype)


def new_ones(input: Array, *size: Any, dtype: Any = None) -> Array:
    """1 in another shape."""
    return new_full(input, listed(size), 1.0, dtype=dtype)


def new_full(input: Array, size: Any, fill_value: Any, *, dtype: Any = None) -> Array:
    """One number in another shape."""
    made = constant(input, listed((size,)), fill_value)
    return made if dtype is None or dtype is UNDECIDED else astype(made, dtype)


ROWS = (
    with_method(t, "t"), torch_row(dim, "Tensor.dim", "Tensor.ndimension"),
    torch_row(numel, "Tensor.numel", "Tensor.nelement", "numel"),
    with_method(detach, "detach", "positive"), torch_row(contiguous, "Tensor.contiguous"),
    torch_row(copy_, "Tensor.copy_"), with_method(fill_, "fill_"), with_method(zero_, "zero_"),
    with_method(masked_fill, "masked_fill"),
    torch_row(fill_diagonal_, "Tensor.fill_diagonal_"), torch_row(where_of, "Tensor.where"),
    with_method(add, "add"), with_method(sub, "sub", "subtract"), with_method(rsub, "rsub"),
    with_method(div, "div", "divide", "true_divide"), with_method(frac, "frac"),
    with_method(torch_heaviside, "heaviside"),
    torch_row(xlogy, "xlogy", "Tensor.xlogy", "special.xlogy"), with_method(logit, "logit"),
    with_method(torch_sign, "sign", "sgn"),
    with_method(addcmul, "addcmul"), with_method(addcdiv, "addcdiv"), with_method(lerp, "lerp"),
    with_method(clamp_min, "clamp_min"), with_method(clamp_max, "clamp_max"),
    with_method(_extremum("max", max, argmax, maximum), "max"),
    with_method(_extremum("min", min, argmin, minimum), "min"),
    with_method(permute, "permute"),
    with_method(topk, "topk"), with_method(gather, "gather"),
    torch_row(torch_one_hot, "nn.functional.one_hot"),
    torch_row(new_zeros, "Tensor.new_zeros", "Tensor.new_empty"),
    torch_row(new_ones, "Tensor.new_ones"), torch_row(new_full, "Tensor.new_full"),
)  # fmt: skip
