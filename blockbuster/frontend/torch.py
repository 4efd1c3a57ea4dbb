"""The array functions on torch tensors: torch's own, in the tensors' dtype, on their device.

Numbers and NumPy arrays beside a tensor are sent to its device. Softmax has our one meaning: zero
on a row of only -inf, where torch has NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

Tensor = Any
Torch = Any
"""The module: it need not be installed, so it is imported where a tensor shows that it is."""

_EXCHANGED = ("zeros", "ones", "full", "empty", "arange")

POINTWISE = (
    "exp", "log", "sqrt", "rsqrt", "tanh", "sigmoid", "relu", "erf", "abs", "square", "reciprocal",
    "floor", "round", "sin", "cos", "log1p", "expm1", "atan", "pow", "maximum", "minimum", "where",
    "matmul",
)  # fmt: skip
"""Functions of tensors alone that torch has under our names."""

NOT_NUMPYS = ("torch.bfloat16", "torch.float8_e4m3fn")


def is_tensor(value: object) -> bool:
    """True for torch tensors; torch need not be there."""
    return hasattr(value, "data_ptr") and hasattr(value, "requires_grad")


def one_element(value: Any) -> Any:
    """A tensor of one element on the CPU, which no gradient is recorded of, as a NumPy array.

    One of a dtype that NumPy lacks stays a tensor: beside integers, its dtype is the result's.
    """
    if not is_tensor(value) or value.numel() != 1 or value.device.type != "cpu":
        return value
    return value if value.requires_grad or str(value.dtype) in NOT_NUMPYS else on_host(value)


def state_of(tensor: Tensor) -> tuple[Any, ...] | None:
    """A state that changes with a tensor: its form, its memory, the number of changes in place.

    Changes through ``tensor.data``, or through a NumPy array of the same memory, are not counted.
    None for a tensor of inference mode, which counts none.
    """
    if tensor.is_inference():
        return None
    import torch

    recorded = tensor.requires_grad and torch.is_grad_enabled()
    form = tuple(tensor.shape), tensor.stride(), tensor.dtype, tensor.device
    return (*form, tensor.data_ptr(), recorded, tensor._version)


def exchanging(made: Callable[[Tensor], Any]) -> Any:
    """A context in which ``made`` gives what stands for each new tensor of one number or of
    positions; one of no number in particular holds zeros.
    """
    import torch
    from torch.overrides import TorchFunctionMode

    makers = {getattr(torch, name) for name in _EXCHANGED}

    class Exchanging(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            found = function(*args, **(kwargs or {}))
            if function not in makers or not is_tensor(found):
                return found
            return made(found.zero_() if function is torch.empty else found)

    return Exchanging()


def on_tensors(op: str, operands: Sequence[Any], params: Mapping[str, Any]) -> Tensor:
    """The result of an array function, of whose operands at least one is a tensor."""
    import torch

    like = _leading(operands)
    given = [x if x is None else _tensor(torch, x, like) for x in operands]
    if op in POINTWISE:
        return getattr(torch, op)(*given)
    return TENSORS[op](torch, *given, **params)


def custom_on_tensors(fn: Callable[..., Any], tensors: Sequence[Any]) -> Tensor:
    """``fn`` of the values as NumPy arrays, its result on the device of the tensors."""
    import torch

    like = _leading(tensors)
    found = fn(*(on_host(x) for x in tensors))
    return torch.as_tensor(np.asarray(found), device=like.device)


def as_tensors(arrays: Sequence[Any]) -> list[Tensor]:
    """Tensors as they are; NumPy arrays as tensors on the host, halves of them in float32."""
    if all(map(is_tensor, arrays)):
        return list(arrays)
    import torch

    return [torch.from_numpy(np.array(array, dtype=np.float32)) for array in arrays]


def multiplied(x: Tensor, w: Tensor, *row: Tensor) -> Tensor:
    """``x @ w``, and a row added to each of its rows; ``w`` is a matrix then.

    Products of float32 are not rounded to tf32, whatever the user allows torch.
    """
    import torch

    allowed = torch.get_float32_matmul_precision() if x.dtype is torch.float32 else EXACT
    if allowed != EXACT:
        torch.set_float32_matmul_precision(EXACT)
        try:
            return multiplied(x, w, *row)
        finally:
            torch.set_float32_matmul_precision(allowed)
    if not row:
        return x @ w
    return torch.addmm(*row, x, w) if x.ndim == 2 else torch.nn.functional.linear(x, w.mT, *row)


EXACT = "highest"
"""How precise torch calls products of float32 that are not rounded to tf32."""


def scaled_product(
    x: Tensor, w: Tensor, x_scale: Tensor, w_scale: Tensor, *row: Tensor, by_rows: bool, dtype: str
) -> Tensor:
    """``x @ w.T`` times scales, and a row added: of float8 by ``_scaled_mm``, rounded to ``dtype``;
    of other tensors in their own dtype, which holds every number of float8.
    """
    import torch

    rows = x.reshape(-1, x.shape[-1])
    scales = (x_scale.reshape(-1, 1), w_scale.reshape(1, -1))
    if "float8" not in str(x.dtype):
        found = multiplied(rows, w.mT) * scales[0] * scales[1]
        made = found + row[0] if row else found
    else:
        given = scales if by_rows else (x_scale.reshape(()), w_scale.reshape(()))
        rounded: dict[str, Any] = dict(out_dtype=getattr(torch, dtype), use_fast_accum=False)
        made = torch._scaled_mm(rows, w.t(), *given, *row, **rounded)
    return made.reshape(*x.shape[:-1], len(w))


def convolved(
    name: str, x: Tensor, w: Tensor, groups: int, given: Mapping[str, tuple[int, ...]]
) -> Tensor:
    """``torch.conv1d`` and the like, by name."""
    import torch

    made: Tensor = getattr(torch, name.removeprefix("torch."))(x, w, groups=groups, **given)
    return made


def attended(q: Tensor, k: Tensor, v: Tensor, *, is_causal: bool, scale: float | None) -> Tensor:
    """``scaled_dot_product_attention`` over the last two axes, by cuDNN's kernel where it can be.

    At most two axes in front of these. ``is_causal``: row m sees keys 0 to m, however many there
    are; torch's kernels do not agree on that where there are more keys than rows, or fewer.
    """
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    mask = None
    if is_causal and q.shape[-2] != k.shape[-2]:
        mask = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool, device=q.device).tril()
    given = [x[(None,) * (4 - x.ndim)] for x in (q, k, v)]
    fastest_first = [getattr(SDPBackend, name) for name in BACKENDS]
    with sdpa_kernel(fastest_first, set_priority=True):
        made: Tensor = torch.nn.functional.scaled_dot_product_attention(
            *given, attn_mask=mask, is_causal=is_causal and mask is None, scale=scale
        )
    return made[(0,) * (4 - q.ndim)]


def recurrent_on_tensors(
    kind: str, x: Tensor, states: Sequence[Tensor], weights: Sequence[Tensor], biases: bool,
    layers: int, both_ways: bool,
) -> Tensor:  # fmt: skip
    """``torch.lstm`` and its kin in inference: all states, then the last ones of each layer."""
    import torch

    first = tuple(states) if len(states) > 1 else states[0]
    made, *last = getattr(torch, kind)(
        x, first, list(weights), biases, layers, 0.0, False, both_ways, False
    )
    ways = made.unflatten(-1, (1 + both_ways, -1)).transpose(1, 2)
    return torch.cat((ways.flatten(0, 1), *last))


def resampled_tensor(x: Any, given: Mapping[str, Any]) -> Tensor:
    """``torch.nn.functional.interpolate`` of a tensor, or of a NumPy array in float64."""
    import torch

    wide = x if is_tensor(x) else torch.from_numpy(np.array(x, dtype=np.float64))
    return torch.nn.functional.interpolate(wide, **given)


def resampled_shape(given: Sequence[int], named: Mapping[str, Any]) -> tuple[int, ...]:
    """The shape of what ``interpolate`` makes of a tensor of a shape, by torch's own rules."""
    import torch

    nothing = torch.empty(given, device="meta")
    return tuple(torch.nn.functional.interpolate(nothing, **named).shape)


BACKENDS = ("CUDNN_ATTENTION", "FLASH_ATTENTION", "EFFICIENT_ATTENTION", "MATH")
"""What computes torch's attention, the fastest on Hopper first."""


def tensor_along_axis(name: str, x: Tensor, axis: int | None) -> Tensor:
    """A function of ``protocols.OPAQUE``."""
    over = -1 if axis is None and x.ndim == 1 else axis
    if name == "argsort":
        return x.argsort(over, stable=True)
    made = getattr(x, name)(over)
    return made.values if name in ("sort", "cummax", "cummin") else made


def tensor_product(x: Tensor, axes: Sequence[int]) -> Tensor:
    """The product over axes, rounded once: two products of halves could overflow between them."""
    wide = x.float() if x.is_floating_point() and x.dtype.itemsize < 4 else x
    for axis in sorted(axes, reverse=True):
        wide = wide.prod(axis)
    return wide.to(x.dtype) if x.is_floating_point() else wide


def tensor_einsum(subscripts: str, operands: Sequence[Any]) -> Tensor:
    """``torch.einsum`` of operands of which at least one is a tensor."""
    import torch

    like = _leading(operands)
    return torch.einsum(subscripts, *(_tensor(torch, x, like) for x in operands))


def _leading(operands: Sequence[Any]) -> Tensor:
    """The first tensor of numbers; where all are masks, the first."""
    tensors = [x for x in operands if is_tensor(x)]
    return next((x for x in tensors if x.is_floating_point()), tensors[0])


def _tensor(torch: Torch, x: Any, like: Tensor) -> Tensor:
    if is_tensor(x):
        return x
    number = isinstance(x, int | float) and not isinstance(x, bool)
    dtype = like.dtype if number and like.is_floating_point() else None
    return torch.as_tensor(x, dtype=dtype, device=like.device)


def on_host(x: Any) -> Any:
    """A tensor as a NumPy array; another value as it is."""
    if not is_tensor(x):
        return x
    wide = x.float() if str(x.dtype) in NOT_NUMPYS else x
    return wide.detach().cpu().numpy()


def _of_nothing(torch: Torch, name: str, dtype: Any) -> float:
    """What a program has as the maximum or minimum of no elements; torch raises there."""
    ends: tuple[float, float] = (-math.inf, math.inf)
    if dtype == torch.bool:
        ends = (False, True)
    elif not dtype.is_floating_point:
        ends = (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
    return ends[name == "amin"]


def _reduced(name: str) -> Callable[..., Tensor]:
    """A reduction over one axis, several, or all (None), as NumPy has it."""

    def reduce(torch: Torch, x: Tensor, *, axis: Any, keepdims: bool) -> Tensor:
        axes = tuple(range(x.ndim)) if axis is None else axis
        if axes == ():
            return x
        if name in ("amax", "amin") and not x.numel():
            shape = torch.sum(x, dim=axes, keepdim=keepdims).shape
            return x.new_full(shape, _of_nothing(torch, name, x.dtype))
        return getattr(torch, name)(x, dim=axes, keepdim=keepdims)

    return reduce


def _softmax(torch: Torch, x: Tensor, *, axis: int, safe: bool = False) -> Tensor:  # noqa: ARG001
    absent = torch.isneginf(x).all(dim=axis, keepdim=True)
    return torch.softmax(x, dim=axis).masked_fill(absent, 0.0)


def _logsumexp(torch: Torch, x: Tensor, *, axis: int, keepdims: bool = False) -> Tensor:
    return torch.logsumexp(x, dim=axis, keepdim=keepdims)


def _layer_norm(
    torch: Torch, x: Tensor, gamma: Tensor | None, beta: Tensor | None, *, eps: float
) -> Tensor:
    return torch.nn.functional.layer_norm(x, x.shape[-1:], gamma, beta, eps)


def _rms_norm(torch: Torch, x: Tensor, weight: Tensor | None, *, eps: float) -> Tensor:
    return torch.nn.functional.rms_norm(x, x.shape[-1:], weight, eps)


def _windows(
    torch: Torch,  # noqa: ARG001
    x: Tensor, *, axis: int, count: int, length: int, step: int, dilation: int, before: int,
    padded: bool = True,
) -> Tensor:  # fmt: skip
    rows, width = x.movedim(axis, -1), abs(dilation) * (length - 1) + 1
    if dilation < 0:
        before += width - 1  # of the last element, which lies first
    if before < 0:
        rows, before = rows[..., -before:], 0
    if padded:
        far = max((count - 1) * step + width - before - rows.shape[-1], 0)
        zeros = rows.new_zeros((*rows.shape[:-1], before + rows.shape[-1] + far))
        zeros[..., before : before + rows.shape[-1]] = rows
        rows = zeros
    made = rows.unfold(-1, width, step)[..., :count, :: abs(dilation)]
    return (made if dilation > 0 else made.flip(-1)).movedim(-2, axis)


def _multiplied(_: Torch, x: Tensor, *, axis: int, keepdims: bool) -> Tensor:
    made = tensor_product(x, (axis % x.ndim,))
    return made.unsqueeze(axis % x.ndim) if keepdims else made


def _scanned(name: str) -> Callable[..., Tensor]:
    """torch's function along an axis; its values, where it gives positions, too."""
    return lambda _, x, *, axis: tensor_along_axis(name, x, axis)


TENSORS: Mapping[str, Callable[..., Tensor]] = {
    "sum": _reduced("sum"), "mean": _reduced("mean"),
    "max": _reduced("amax"), "min": _reduced("amin"), "prod": _multiplied,
    **{name: _scanned(name) for name in ("cumsum", "cumprod", "cummax", "cummin")},
    "softmax": _softmax, "logsumexp": _logsumexp,
    "log_softmax": lambda torch, x, *, axis: torch.log_softmax(x, dim=axis),
    "layer_norm": _layer_norm, "rms_norm": _rms_norm,
    "silu": lambda torch, x: torch.nn.functional.silu(x),
    "gelu": lambda torch, x: torch.nn.functional.gelu(x),
    "transpose": lambda torch, x, *, axes: x.permute(axes or tuple(reversed(range(x.ndim)))),
    "concat": lambda torch, *tensors, axis: torch.cat(tensors, dim=axis),
    "windows": _windows,
    "reshape": lambda torch, x, *, shape: x.reshape(shape),
    "cast": lambda torch, x, *, dtype: x.to(getattr(torch, dtype)),
}  # fmt: skip
