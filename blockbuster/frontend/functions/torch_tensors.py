"""Tensor functions and methods whose arguments or meaning differ from NumPy's."""

from __future__ import annotations

import math
from itertools import accumulate
from typing import Any, NamedTuple, NoReturn

from blockbuster.frontend.array import TracedArray
from blockbuster.frontend.dtype_names import UNDECIDED
from blockbuster.frontend.functions.choices import (
    MOST_CHOSEN,
    one_hot,
    ranked,
    take_along_axis,
)
from blockbuster.frontend.functions.joins import chunk, constant
from blockbuster.frontend.functions.joins import split as cut_at
from blockbuster.frontend.functions.normalizations import log_softmax, softmax
from blockbuster.frontend.functions.pointwise import astype, maximum, minimum, sigmoid, where
from blockbuster.frontend.functions.products import matmul, norm
from blockbuster.frontend.functions.reductions import Axes, max, mean, min, sum, var
from blockbuster.frontend.functions.refused import CUSTOM
from blockbuster.frontend.functions.row import Array, Row
from blockbuster.frontend.functions.searches import argmax, argmin
from blockbuster.frontend.functions.shapes import swapaxes
from blockbuster.frontend.functions.torch_creation import extents
from blockbuster.frontend.functions.torch_reductions import over
from blockbuster.frontend.memory import own, perhaps
from blockbuster.frontend.sizes import fixed
from blockbuster.frontend.source import trace_error

_SAME = "a cast gives the array itself in one dtype"


def to(
    input: Array,
    *what: Any,
    dtype: Any = None,
    device: Any = None,
    non_blocking: bool = False,  # noqa: ARG001 - nothing is moved
    copy: bool = False,
) -> Array:
    """``x`` in another dtype: ``x.to(torch.float16)``, ``x.to(y)``."""
    if len(what) == 1 and isinstance(what[0], TracedArray):
        return to(input, what[0].dtype, copy=copy)
    given = [one for one in (*what, dtype, device) if one is not None]
    here = input.trace.device if isinstance(input, TracedArray) else input.device
    wanted = [one for one in given if type(one) is not type(here) or one != here]
    is_device = [one for one in wanted if isinstance(one, str) or "device" in type(one).__name__]
    if is_device or not given or len(wanted) > 1:
        _refuse_device()
    if not wanted or (wanted[0] is UNDECIDED and input.dtype is UNDECIDED):
        return own(input) if copy else input
    if wanted[0] is UNDECIDED:
        return own(input) if copy else perhaps(input, input, _SAME)
    return astype(input, wanted[0], copy=copy)


def _refuse_device() -> NoReturn:
    hint = "leave the device out: arrays are where the arguments are; .to(torch.float16) casts"
    raise trace_error("a traced array has no device to go to", hint=hint)


def type_as(input: Array, other: Array) -> Array:
    """``x`` in the dtype of another array."""
    return to(input, other.dtype)


def to_float(input: Array) -> Array:
    """``x`` in float32."""
    return astype(input, "float32", copy=False)


def to_half(input: Array) -> Array:
    """``x`` in float16."""
    return astype(input, "float16", copy=False)


def to_bfloat16(input: Array) -> Array:
    """``x`` in bfloat16."""
    return astype(input, "bfloat16", copy=False)


def to_double(input: Array) -> Array:
    """``x`` in float64."""
    return astype(input, "float64", copy=False)


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
    """``x``: traced arrays have no gradient."""
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
    return where(mask, value, input)


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
    """``x / y``."""
    if rounding_mode is not None:
        raise trace_error(f"div with rounding_mode={rounding_mode!r} cannot be traced")
    return input / other


def addmm(input: Array, mat1: Array, mat2: Array, *, beta: float = 1, alpha: float = 1) -> Array:
    """``beta * x + alpha * (a @ b)``."""
    product = matmul(mat1, mat2)
    added = input if beta == 1 else beta * input
    return added + (product if alpha == 1 else alpha * product)


def addcmul(input: Array, tensor1: Array, tensor2: Array, *, value: float = 1) -> Array:
    """``x + value * a * b``."""
    return input + value * tensor1 * tensor2


def addcdiv(input: Array, tensor1: Array, tensor2: Array, *, value: float = 1) -> Array:
    """``x + value * a / b``."""
    return input + value * tensor1 / tensor2


def lerp(input: Array, end: Array, weight: Any) -> Array:
    """``x + weight * (end - x)``."""
    return input + weight * (end - input)


def clamp_min(input: Array, min: Any) -> Array:
    """The larger of ``x`` and a bound."""
    return maximum(input, min)


def clamp_max(input: Array, max: Any) -> Array:
    """The smaller of ``x`` and a bound."""
    return minimum(input, max)


def torch_softmax(input: Array, dim: int, dtype: Any = None) -> Array:
    """exp(x) over its sum along an axis, in another dtype if one is given."""
    return softmax(input if dtype is None else to(input, dtype), dim)


def torch_log_softmax(input: Array, dim: int, dtype: Any = None) -> Array:
    """x - logsumexp(x) along an axis, in another dtype if one is given."""
    return log_softmax(input if dtype is None else to(input, dtype), dim)


def torch_sum(input: Array, dim: Axes = None, keepdim: bool = False, *, dtype: Any = None) -> Array:
    """The sum over axes, in another dtype if one is given."""
    return sum(input if dtype is None else to(input, dtype), over(dim), keepdim)


def torch_mean(
    input: Array, dim: Axes = None, keepdim: bool = False, *, dtype: Any = None
) -> Array:
    """The mean over axes, in another dtype if one is given."""
    return mean(input if dtype is None else to(input, dtype), over(dim), keepdim)


def permute(input: Array, *dims: Any) -> Array:
    """The axes in another order, given as a tuple or one by one."""
    return input.transpose(dims[0] if len(dims) == 1 else tuple(dims))


class Extreme(NamedTuple):
    """The largest or smallest elements along an axis, and where the first of them stand."""

    values: Array
    indices: Array


def torch_max(input: Array, dim: Any = None, keepdim: bool = False) -> Any:
    """The maximum of all elements, along an axis with its positions, or of two arrays."""
    if isinstance(dim, int):
        return Extreme(max(input, dim, keepdim), argmax(input, dim, keepdim))
    return max(input) if dim is None else maximum(input, dim)


def torch_min(input: Array, dim: Any = None, keepdim: bool = False) -> Any:
    """The minimum of all elements, along an axis with its positions, or of two arrays."""
    if isinstance(dim, int):
        return Extreme(min(input, dim, keepdim), argmin(input, dim, keepdim))
    return min(input) if dim is None else minimum(input, dim)


def topk(
    input: Array,
    k: int,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,  # noqa: ARG001 - they are
) -> Extreme:
    """The ``k`` largest or smallest elements along an axis, in order, and where they stand."""
    if not 1 <= k <= MOST_CHOSEN:
        reason = f"topk of {k} elements: each takes a fold of its own, up to {MOST_CHOSEN}"
        raise trace_error(reason, hint=CUSTOM)
    if k == 1 and largest:
        return Extreme(max(input, dim, True), argmax(input, dim, True))
    return Extreme(*ranked(input, k, dim, largest))


def gather(input: Array, dim: int, index: Array) -> Array:
    """The elements at positions along an axis, in each row its own."""
    return take_along_axis(input, index, dim)


def torch_one_hot(input: Array, num_classes: int = -1) -> Array:
    """1 along a new last axis at the position that each element names, and 0 elsewhere."""
    if num_classes < 0:
        raise trace_error("one_hot counts classes by values", hint="say how many: one_hot(x, 10)")
    return one_hot(input, num_classes)


def new_zeros(input: Array, *size: Any, dtype: Any = None) -> Array:
    """0 in another shape."""
    return new_full(input, extents(size), 0.0, dtype=dtype)


def new_ones(input: Array, *size: Any, dtype: Any = None) -> Array:
    """1 in another shape."""
    return new_full(input, extents(size), 1.0, dtype=dtype)


def new_full(input: Array, size: Any, fill_value: Any, *, dtype: Any = None) -> Array:
    """One number in another shape."""
    made = constant(input, extents((size,)), fill_value)
    return made if dtype is None or dtype is UNDECIDED else astype(made, dtype)


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


def torch_norm(
    input: Array, p: Any = "fro", dim: Axes = None, keepdim: bool = False, *, ord: Any = None
) -> Array:
    """The norm of vectors along ``dim``, or of all elements."""
    wanted = p if ord is None else ord
    if dim is None and wanted not in ("fro", 2):
        raise trace_error(f"a norm of order {wanted!r} of all elements", hint="name the axis: dim=")
    return norm(input, None if wanted in ("fro", 2) else wanted, dim, keepdim)


def split(input: Array, split_size_or_sections: Any, dim: int = 0) -> list[Array]:
    """An axis cut into parts of one size, or of these several sizes."""
    sizes = split_size_or_sections
    if not isinstance(sizes, tuple | list):
        count = fixed(input.shape[dim] // sizes)
        rest = fixed(input.shape[dim] - sizes * count)
        sizes = [sizes] * count + ([rest] if rest or not count else [])
    *ends, total = accumulate(sizes)
    if isinstance(total, int) and total != (extent := fixed(input.shape[dim])):
        hint = "sizes of parts add up to the axis"
        raise trace_error(f"torch.split of {extent} elements into {sizes}", hint=hint)
    return cut_at(input, ends, dim)


def glu(input: Array, dim: int = -1) -> Array:
    """The first half along an axis, times the sigmoid of the second."""
    first, second = chunk(input, 2, dim)
    return first * sigmoid(second)


_GROUP = "torch: functions and methods"


def _of(function: Any, *names: str) -> Row:
    return Row(function, _GROUP, torch=names, public=False)


def _both(function: Any, *names: str) -> Row:
    """A row of a function that is a method, too."""
    return _of(function, *names, *(f"Tensor.{name}" for name in names))


ROWS = (
    _of(to, "Tensor.to"), _of(type_as, "Tensor.type_as"), _of(to_float, "Tensor.float"),
    _of(to_half, "Tensor.half"), _of(to_bfloat16, "Tensor.bfloat16"),
    _of(to_double, "Tensor.double"), _both(t, "t"), _of(dim, "Tensor.dim", "Tensor.ndimension"),
    _of(numel, "Tensor.numel", "Tensor.nelement", "numel"),
    _both(detach, "detach"), _of(contiguous, "Tensor.contiguous"), _of(copy_, "Tensor.copy_"),
    _both(fill_, "fill_"), _both(zero_, "zero_"),
    _both(masked_fill, "masked_fill"), _of(where_of, "Tensor.where"),
    _both(add, "add"), _both(sub, "sub", "subtract"), _both(rsub, "rsub"),
    _both(div, "div", "divide", "true_divide"), _both(addmm, "addmm", "baddbmm"),
    _both(addcmul, "addcmul"), _both(addcdiv, "addcdiv"), _both(lerp, "lerp"),
    _both(clamp_min, "clamp_min"), _both(clamp_max, "clamp_max"),
    _both(torch_softmax, "softmax"), _of(torch_softmax, "nn.functional.softmax"),
    _both(torch_log_softmax, "log_softmax"), _of(torch_log_softmax, "nn.functional.log_softmax"),
    _both(torch_sum, "sum"), _both(torch_mean, "mean"),
    _both(torch_max, "max"), _both(torch_min, "min"),
    _both(torch_var, "var"), _both(torch_std, "std"),
    _both(torch_norm, "norm"), _of(torch_norm, "linalg.vector_norm", "linalg_vector_norm"),
    _both(permute, "permute"), _both(chunk, "chunk"), _both(split, "split"),
    _of(glu, "nn.functional.glu"), _both(topk, "topk"), _both(gather, "gather"),
    _of(torch_one_hot, "nn.functional.one_hot"),
    _of(new_zeros, "Tensor.new_zeros", "Tensor.new_empty"),
    _of(new_ones, "Tensor.new_ones"), _of(new_full, "Tensor.new_full"),
)  # fmt: skip
