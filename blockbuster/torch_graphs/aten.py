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
    "abs", "add", "addmm", "amax", "amin", "any", "arange", "avg_pool2d", "baddbmm",
    "bitwise_and", "bitwise_not", "bitwise_or", "bmm", "cat", "ceil", "clamp", "clamp_max",
    "clamp_min", "clone", "cos", "cumsum", "detach", "div", "eq", "erf", "exp", "expm1",
    "floor", "full", "full_like", "gather", "ge", "gelu", "gt", "le", "log", "log1p",
    "logical_and", "logical_not", "logical_or", "lt", "maximum", "mean", "minimum", "mm", "mul",
    "ne", "neg", "ones_like", "permute", "pow", "reciprocal", "relu", "round", "rsqrt",
    "select", "sigmoid", "sign", "sin", "split", "split_with_sizes", "sqrt", "squeeze", "stack",
    "sub", "sum", "t", "tanh", "transpose", "tril", "triu", "unsqueeze", "var_mean", "where",
    "zeros_like",
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


def sliced(x: Tensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Tensor:
    """``aten.slice``; a large ``end`` stands for none."""
    cut = slice(start, None if isinstance(end, int) and end > 2**40 else end, step)
    return x[(*(slice(None) for _ in range(dim % len(x.shape))), cut)]


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
    "linalg_vector_norm": norm, "constant_pad_nd": padded,
    "max_pool2d_with_indices": pooled,
}  # fmt: skip

_OF_MEMORY = ("layout", "memory_format", "pin_memory")
"""Arguments that change no element: results get their strides where they leave a piece."""

_WRITTEN_OUT = (
    "native_layer_norm", "native_group_norm", "elu", "leaky_relu", "hardtanh",
    "_native_batch_norm_legit_functional",
)  # fmt: skip
"""Operators that are not translated, but whose decompositions are."""

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
    if name == "max_pool2d_with_indices" and any(user.args[1] == 1 for user in node.users):
        raise ValueError("its indices are read")
    if name in OTHERS:
        return OTHERS[name], kwargs
    if name in SAME or name in RENAMED:
        known = RENAMED.get(name, name)
        return getattr(torch, known, None) or getattr(torch.nn.functional, known), kwargs
    raise ValueError("this internal operator of torch is not translated")


def decompositions() -> dict[Any, Any]:
    """How operators that are not translated are written in those that are."""
    import torch._decomp as known
    from torch import ops

    aten = ops.aten
    table = known.core_aten_decompositions()
    table.update(known.get_decompositions([getattr(aten, name) for name in _WRITTEN_OUT]))
    table[aten._native_batch_norm_legit_no_training.default] = _with_known_statistics
    for name in _KEPT:
        table.pop(getattr(aten, name).default, None)
    return dict(table)


def _with_known_statistics(
    x: Tensor, weight: Any, bias: Any, mean: Tensor, variance: Tensor, _: float, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """A batch norm that is not trained: torch's own way writes it as one that changes its input."""
    shape = [-1] + [1] * (x.dim() - 2)
    factor = (variance + eps).rsqrt()
    factor = factor if weight is None else factor * weight
    made = (x - mean.view(shape)) * factor.view(shape)
    made = made if bias is None else made + bias.view(shape)
    return made.to(x.dtype), x.new_empty(0), x.new_empty(0)
