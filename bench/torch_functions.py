"""The array functions of Blockbuster on torch tensors: what eager PyTorch would run."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

Tensor = Any


class TorchFunctions:
    """Stands where a program says ``bb``; ``device`` is where index vectors are made."""

    def __init__(self, device: str | None = None) -> None:
        self._device = device or ("cuda" if torch.cuda.is_available() else "cpu")

    exp, log, sqrt, rsqrt, tanh = torch.exp, torch.log, torch.sqrt, torch.rsqrt, torch.tanh
    sigmoid, gelu, relu, silu = torch.sigmoid, F.gelu, torch.relu, staticmethod(F.silu)
    erf, abs, square, reciprocal = torch.erf, torch.abs, torch.square, torch.reciprocal
    matmul, maximum, minimum = torch.matmul, torch.maximum, torch.minimum

    def arange(self, n: int) -> Tensor:
        return torch.arange(n, device=self._device)

    @staticmethod
    def where(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
        return torch.where(condition, x, y)

    @staticmethod
    def transpose(x: Tensor, axes: Any = None) -> Tensor:
        return x.permute(tuple(axes) if axes else tuple(reversed(range(x.ndim))))

    @staticmethod
    def sum(x: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
        return torch.sum(x) if axis is None else torch.sum(x, dim=axis, keepdim=keepdims)

    @staticmethod
    def mean(x: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
        return torch.mean(x) if axis is None else torch.mean(x, dim=axis, keepdim=keepdims)

    @staticmethod
    def max(x: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
        return torch.amax(x) if axis is None else torch.amax(x, dim=axis, keepdim=keepdims)

    @staticmethod
    def min(x: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
        return torch.amin(x) if axis is None else torch.amin(x, dim=axis, keepdim=keepdims)

    @staticmethod
    def softmax(x: Tensor, axis: int = -1, safe: bool = False) -> Tensor:  # noqa: ARG004
        return torch.softmax(x, dim=axis)

    @staticmethod
    def log_softmax(x: Tensor, axis: int = -1) -> Tensor:
        return torch.log_softmax(x, dim=axis)

    @staticmethod
    def logsumexp(x: Tensor, axis: int = -1, keepdims: bool = False) -> Tensor:
        return torch.logsumexp(x, dim=axis, keepdim=keepdims)

    @staticmethod
    def layer_norm(
        x: Tensor, gamma: Tensor | None = None, beta: Tensor | None = None, *, eps: float = 1e-5
    ) -> Tensor:
        return F.layer_norm(x, x.shape[-1:], gamma, beta, eps)

    @staticmethod
    def rms_norm(x: Tensor, weight: Tensor | None = None, *, eps: float = 1e-6) -> Tensor:
        return F.rms_norm(x, x.shape[-1:], weight, eps)

    @staticmethod
    def concat(arrays: list[Tensor], axis: int = 0) -> Tensor:
        return torch.cat(arrays, dim=axis)

    @staticmethod
    def astype(x: Tensor, dtype: str) -> Tensor:
        """Rounded to ``dtype``, in the tensor's own dtype: arithmetic goes on in that."""
        return x.to(getattr(torch, dtype)).to(x.dtype)
