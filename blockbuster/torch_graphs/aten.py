"""Torch's internal operators (aten), which graphs with gradients are made of, as torch's functions.

Only operators in the tables below are translated: each takes the same arguments as the function in
its place. All others run eagerly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from blockbuster.errors import TraceError
from blockbuster.frontend.array import TracedArray
from blockbuster.torch_graphs.attention import attention

Tensor = Any
Node = Any

SAME = (
    "abs", "acos", "add", "addcdiv", "addcmul", "addmm", "all", "amax", "amin", "any", "arange",
    "argmax", "argmin", "asin", "atan", "atan2", "avg_pool2d", "baddbmm", "bitwise_and",
    "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "bmm",
    "cat", "ceil", "clamp", "clamp_max", "clamp_min", "clone", "cos", "cumprod", "cumsum", "detach",
    "diagonal", "div", "empty", "eq", "erf", "exp", "exp2", "expm1", "flip", "floor", "full",
    "full_like", "gather", "ge", "gelu", "gt", "hypot", "index_select", "isinf", "isnan", "le",
    "lerp", "log", "log10", "log1p", "log2", "logical_and", "logical_not", "logical_or",
    "logical_xor", "lt", "max", "maximum", "mean", "min", "minimum", "mm", "mul", "ne", "neg",
    "ones_like", "permute", "pow", "prod", "reciprocal", "relu", "remainder", "roll", "round",
    "rsqrt", "select", "sigmoid", "sign", "sin", "sort", "split", "split_with_sizes", "sqrt",
    "squeeze", "stack", "sub", "sum", "t", "tan", "tanh", "topk", "transpose", "tril", "triu",
    "trunc", "unsqueeze", "var", "var_mean", "where", "zeros_like",
)  # fmt: skip
"""Operators that a function of this name computes, as in ``torch.add``."""

RENAMED = {
    "view": "reshape", "_unsafe_view": "reshape", "alias": "clone", "lift_fresh_copy": "clone",
}  # fmt: skip
"""Operators that a function of another name computes. A result that shares memory with an argument
never leaves a piece, so here it may as well be a copy.
"""


def copied(x: Tensor, *, dtype: Any = None, **_: Any) -> Tensor:
    """``aten._to_copy``: the tensor in another dtype; a piece has only one device."""
    return x if dtype is None else x.to(dtype)


def expanded(x: Tensor, size: Sequence[int], **_: Any) -> Tensor:
    """``aten.expand``."""
    return x.expand(size)


def softmax(x: Tensor, dim: int, to_float: bool) -> Tensor:
    """``aten._softmax``; ``to_float``: float16 becomes float32 before, not after."""
    return (x.float() if to_float else x).softmax(dim)


def log_softmax(x: Tensor, dim: int, to_float: bool) -> Tensor:
    """``aten._log_softmax``."""
    return (x.float() if to_float else x).log_softmax(dim)


def sliced(
    x: Tensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Tensor:
    """``aten.slice``; a large ``end`` stands for none."""
    return x[_sliced(x, dim, start, end, step)]


def _sliced(x: Tensor, dim: int, start: Any, end: Any, step: int) -> Any:
    cut = slice(start, None if isinstance(end, int) and end > 2**40 else end, step)
    return _along(x, dim, cut)


def _along(x: Tensor, dim: int, key: Any) -> Any:
    """What stands in brackets for ``key`` on one axis."""
    return (*(slice(None) for _ in range(dim % len(x.shape))), key)


def indexed(x: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    """``aten.index``."""
    return x[tuple([slice(None) if one is None else one for one in indices])]


def copied_into(x: Tensor, source: Tensor, *_: Any) -> Tensor:
    """``aten.copy``: the source in the shape and dtype of ``x``."""
    return source.expand(x.shape).to(x.dtype)


def slice_set(
    x: Tensor, source: Tensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Tensor:
    """``aten.slice_scatter``."""
    return _set(x, source, _sliced(x, dim, start, end, step))


def item_set(x: Tensor, source: Tensor, dim: int, index: int) -> Tensor:
    """``aten.select_scatter``."""
    return _set(x, source, _along(x, dim, index))


def _set(x: Tensor, source: Tensor, key: Any) -> Tensor:
    traced = isinstance(x, TracedArray)  # else, as a buffer of zeros, it cannot take what is traced
    made = x.clone() if traced else source.new_zeros(x.shape) + x
    made[key] = source
    return made


def slice_gradient(
    grad: Tensor, sizes: Sequence[Any], dim: int, start: Any, _: Any, step: int
) -> Tensor:
    """``aten.slice_backward``: zeros between the elements, and around them."""
    dim, extent = dim % len(sizes), sizes[dim]
    first = min(max(start + extent if start < 0 else start, 0), extent)
    if step != 1:
        apart = _padded_along(grad.unsqueeze(dim + 1), dim + 1, 0, step - 1)
        grad = apart.flatten(dim, dim + 1)
    made = _padded_along(grad, dim, first, max(extent - first - grad.shape[dim], 0))
    return made if step == 1 else made[_along(made, dim, slice(extent))]


def select_gradient(grad: Tensor, sizes: Sequence[Any], dim: int, index: int) -> Tensor:
    """``aten.select_backward``: zeros around the elements."""
    dim, index = dim % len(sizes), index % sizes[dim]
    return _padded_along(grad.unsqueeze(dim), dim, index, sizes[dim] - 1 - index)


def diagonal_gradient(
    grad: Tensor, sizes: Sequence[Any], offset: int, dim: int, other: int
) -> Tensor:
    """``aten.diagonal_backward`` of a matrix."""
    import torch

    if len(sizes) != 2 or (offset, dim, other) != (0, 0, 1):
        raise TraceError("it is the gradient of a diagonal of more axes, or beside the middle")
    made = torch.diag_embed(grad)
    for axis in (0, 1):
        made = _padded_along(made, axis, 0, sizes[axis] - made.shape[axis])
    return made


def _padded_along(x: Tensor, dim: int, before: Any, behind: Any) -> Tensor:
    """Zeros around the elements along one axis."""
    return padded(x, [*[0, 0] * (len(x.shape) - 1 - dim), before, behind])


def scattered(x: Tensor, dim: int, index: Tensor, source: Any) -> Tensor:
    """``aten.scatter`` of one element a line, as losses need it backwards."""
    import torch

    at = _places(x, dim, index, source)
    source = source if hasattr(source, "shape") else torch.full_like(x, source)
    return torch.where(at, source, x)


def scatter_added(x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """``aten.scatter_add`` of one element a line."""
    import torch

    return x + torch.where(_places(x, dim, index, source), source, torch.zeros_like(x))


def _places(x: Tensor, dim: int, index: Tensor, source: Any) -> Tensor:
    """True where a scatter writes. Raises TraceError unless it writes once in each line."""
    import torch

    axes = len(x.shape)
    dim %= max(axes, 1)
    wanted = [1 if axis == dim else extent for axis, extent in enumerate(x.shape)]
    if not axes or any([*one.shape] != wanted for one in (index, source) if hasattr(one, "shape")):
        raise TraceError("it scatters several elements, and is not fused")
    places = torch.arange(x.shape[dim], device=x.device)
    return index == places[(slice(None), *[None] * (axes - 1 - dim))]


def repeated(x: Tensor, repeats: Sequence[int]) -> Tensor:
    """``aten.repeat``."""
    return x.repeat(*repeats)


def unset(size: Sequence[int], _: Any, *, dtype: Any = None, **named: Any) -> Tensor:
    """``aten.empty_strided`` and ``aten.empty_permuted``."""
    import torch

    return torch.empty(size, dtype=dtype, **named)


def unset_like(x: Tensor, size: Sequence[int], *_: Any, dtype: Any = None, **__: Any) -> Tensor:
    """``aten.new_empty`` and ``aten.new_empty_strided``."""
    import torch

    return torch.empty(size, dtype=dtype or x.dtype, device=x.device)


def norm(
    x: Tensor, order: float = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """``aten.linalg_vector_norm``."""
    import torch

    return torch.linalg.vector_norm(copied(x, dtype=dtype), order, dim, keepdim)


def padded(x: Tensor, pad: Sequence[int], value: float = 0) -> Tensor:
    """``aten.constant_pad_nd``."""
    import torch

    return torch.nn.functional.pad(x, pad, value=value)


def scalar(value: float, **named: Any) -> Tensor:
    """``aten.scalar_tensor``: a tensor without axes."""
    import torch

    return torch.full([], value, **named)


def looked_up(weight: Tensor, indices: Tensor, *_: Any) -> Tensor:
    """``aten.embedding``: the rest of its arguments is for gradients."""
    import torch

    return torch.nn.functional.embedding(indices, weight)


def convolution(
    x: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any,
    transposed: bool, output_padding: Any, groups: int,
) -> Tensor:  # fmt: skip
    """``aten.convolution`` over one to three axes."""
    from torch.nn import functional

    rest = (output_padding, groups, dilation) if transposed else (dilation, groups)
    name = f"conv{'_transpose' if transposed else ''}{len(stride)}d"
    return getattr(functional, name)(x, weight, bias, stride, padding, *rest)


def pooled(x: Tensor, *window: Any) -> tuple[Tensor, Tensor]:
    """``aten.max_pool2d_with_indices``; in place of the indices, which nobody reads: the maxima."""
    import torch

    largest = torch.nn.functional.max_pool2d(x, *window)
    return largest, largest


OTHERS: Mapping[str, Callable[..., Any]] = {
    "_to_copy": copied, "expand": expanded, "_softmax": softmax, "_log_softmax": log_softmax,
    "scalar_tensor": scalar, "embedding": looked_up, "convolution": convolution, "slice": sliced,
    "linalg_vector_norm": norm, "constant_pad_nd": padded, "attention": attention,
    "copy": copied_into, "index": indexed,
    "slice_backward": slice_gradient, "select_backward": select_gradient,
    "diagonal_backward": diagonal_gradient, "slice_scatter": slice_set,
    "select_scatter": item_set, "scatter": scattered, "scatter_add": scatter_added,
    "repeat": repeated, "empty_strided": unset, "empty_permuted": unset,
    "new_empty": unset_like, "new_empty_strided": unset_like,
    "max_pool2d_with_indices": pooled,
}  # fmt: skip

_OF_MEMORY = ("layout", "memory_format", "pin_memory")
"""Arguments that change no element: results get their strides where they leave a piece."""


def is_aten(target: Any) -> bool:
    """True for the internal operators, and for ours that stands among them."""
    return str(getattr(target, "namespace", "")) in ("aten", "blockbuster")


def translated(node: Node) -> tuple[Any, dict[str, Any]]:
    """The function of torch in place of a node's operator, and its keywords.

    Raises ValueError for an unknown operator.
    """
    import torch

    kwargs = {key: value for key, value in node.kwargs.items() if key not in _OF_MEMORY}
    if node.all_input_nodes:
        kwargs.pop("device", None)  # that of the tensors, as of all in a piece
    name = node.target._schema.name.partition("::")[2]
    if name == "max_pool2d_with_indices" and any(user.args[1] == 1 for user in node.users):
        raise ValueError("its indices are read")
    if name in OTHERS:
        return OTHERS[name], kwargs
    if name in SAME or name in RENAMED:
        known = RENAMED.get(name, name)
        return getattr(torch, known, None) or getattr(torch.nn.functional, known), kwargs
    raise ValueError("this internal operator of torch is not translated")
