"""Torch's internal operators (aten), which graphs with gradients are made of, as torch's functions.

Only operators in the tables below are translated: each takes the same arguments as the function in
its place. All others run eagerly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Tensor = Any
Node = Any

SAME = (
    "abs", "add", "addmm", "amax", "amin", "baddbmm", "bitwise_and", "bitwise_not", "bitwise_or",
    "bmm", "cat", "ceil", "clamp", "clamp_max", "clamp_min", "cos", "cumsum", "div", "eq", "erf",
    "exp", "expm1", "floor", "full_like", "gather", "ge", "gt", "le", "log", "log1p", "logical_and",
    "logical_not", "logical_or", "lt", "maximum", "minimum", "mm", "mul", "ne", "neg", "ones_like",
    "permute", "pow", "reciprocal", "relu", "round", "rsqrt", "select", "sigmoid", "sign", "sin",
    "split", "split_with_sizes", "sqrt", "squeeze", "stack", "sub", "t", "tanh", "transpose",
    "tril", "triu", "unsqueeze", "var_mean", "where", "zeros_like", "arange", "full",
)  # fmt: skip
"""Operators that a function of this name computes, as in ``torch.add``."""


def copied(x: Tensor, *, dtype: Any = None, **_: Any) -> Tensor:
    """``aten._to_copy``: the tensor in another dtype; a piece has only one device."""
    return x if dtype is None else x.to(dtype)


def same(x: Tensor) -> Tensor:
    """``aten.clone``, ``aten.alias`` and others that give the same elements."""
    return x


def viewed(x: Tensor, size: Sequence[int]) -> Tensor:
    """``aten.view``, and ``aten._unsafe_view``."""
    return x.reshape(size)


def expanded(x: Tensor, size: Sequence[int], **_: Any) -> Tensor:
    """``aten.expand``."""
    return x.expand(size)


def softmax(x: Tensor, dim: int, to_float: bool) -> Tensor:
    """``aten._softmax``; ``to_float``: float16 becomes float32 before, not after."""
    return (x.float() if to_float else x).softmax(dim)


def log_softmax(x: Tensor, dim: int, to_float: bool) -> Tensor:
    """``aten._log_softmax``."""
    return (x.float() if to_float else x).log_softmax(dim)


def total(
    x: Tensor, dim: Sequence[int] | None = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """``aten.sum``: over all axes where none is named."""
    return (x if dtype is None else x.to(dtype)).sum(_axes(x, dim), keepdim)


def average(
    x: Tensor, dim: Sequence[int] | None = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """``aten.mean``: likewise."""
    return (x if dtype is None else x.to(dtype)).mean(_axes(x, dim), keepdim)


def _axes(x: Tensor, dim: Sequence[int] | None) -> list[int]:
    return [*dim] if dim else [*range(len(x.shape))]


def scalar(value: float, **named: Any) -> Tensor:
    """``aten.scalar_tensor``: a tensor without axes."""
    import torch

    return torch.full([], value, **named)


def looked_up(weight: Tensor, indices: Tensor, *_: Any) -> Tensor:
    """``aten.embedding``: the rest of its arguments is for gradients."""
    import torch

    return torch.nn.functional.embedding(indices, weight)


def gelu(x: Tensor, *, approximate: str = "none") -> Tensor:
    """``aten.gelu``."""
    import torch

    return torch.nn.functional.gelu(x, approximate=approximate)


def convolution(
    x: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any,
    transposed: bool, output_padding: Any, groups: int,
) -> Tensor:  # fmt: skip
    """``aten.convolution`` over one to three axes."""
    from torch.nn import functional

    rest = (output_padding, groups, dilation) if transposed else (dilation, groups)
    name = f"conv{'_transpose' if transposed else ''}{len(stride)}d"
    return getattr(functional, name)(x, weight, bias, stride, padding, *rest)


OTHERS: Mapping[str, Callable[..., Any]] = {
    "view": viewed, "_unsafe_view": viewed, "reshape": viewed, "expand": expanded,
    "_to_copy": copied, "clone": same, "alias": same, "detach": same, "lift_fresh_copy": same,
    "_softmax": softmax, "_log_softmax": log_softmax, "sum": total, "mean": average,
    "scalar_tensor": scalar, "embedding": looked_up, "gelu": gelu, "convolution": convolution,
}  # fmt: skip

_OF_MEMORY = ("layout", "memory_format", "pin_memory")
"""Arguments that choose no element: the layout of results is the caller's to make."""

_WRITTEN_OUT = (
    "native_layer_norm", "native_group_norm", "native_batch_norm",
    "_native_batch_norm_legit_functional", "_native_batch_norm_legit_no_training",
)  # fmt: skip
_KEPT = ("_scaled_dot_product_flash_attention_for_cpu", "embedding_dense_backward")
"""Operators whose own kernels are better than what they are written in."""


def is_aten(target: Any) -> bool:
    """True for the internal operators."""
    return str(getattr(target, "namespace", "")) == "aten"


def translated(node: Node) -> tuple[Any, dict[str, Any]]:
    """The function of torch in place of a node's operator, and its keywords.

    Raises ValueError for an unknown operator.
    """
    import torch

    kwargs = {key: value for key, value in node.kwargs.items() if key not in _OF_MEMORY}
    if node.all_input_nodes:
        kwargs.pop("device", None)  # that of the tensors, as of all in a piece
    name = node.target._schema.name.partition("::")[2]
    if name in OTHERS:
        return OTHERS[name], kwargs
    if name in SAME:
        return getattr(torch, name), kwargs
    raise ValueError("this internal operator of torch is not translated")


def decompositions() -> dict[Any, Any]:
    """How operators that are not translated are written in those that are."""
    import torch._decomp as known
    from torch import ops

    aten = ops.aten
    table = known.core_aten_decompositions()
    table.update(known.get_decompositions([getattr(aten, name) for name in _WRITTEN_OUT]))
    for name in _KEPT:
        table.pop(getattr(aten, name).default, None)
    return dict(table)
