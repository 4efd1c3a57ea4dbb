"""Library functions of whole arrays along axes, called between kernels.

Sums and products are wide while they grow: float64 for NumPy arrays of any floats, as in the sums
of NumPy text, and at least float32 for tensors. Results are rounded once, to the array's dtype.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from blockbuster.frontend.torch import is_tensor, tensor_along_axis, tensor_product

OPAQUE = ("sort", "argsort", "cumsum", "cumprod", "cummax", "cummin")
"""Functions along an axis that keep the shape: recorded as ops that no rule looks into."""


@dataclass(frozen=True)
class AlongAxis:
    """A function of ``OPAQUE`` along one axis, comparable so that equal traces are equal."""

    name: str
    axis: int

    def __post_init__(self) -> None:
        if self.name not in OPAQUE:
            raise ValueError(f"{self.name} is not one of {', '.join(OPAQUE)}")

    def __str__(self) -> str:
        return f"np.{self.name}[{self.axis}]"

    def __call__(self, array: Any) -> Any:
        if is_tensor(array):
            return tensor_along_axis(self.name, array, self.axis)
        return array_along_axis(self.name, array, self.axis)


@dataclass(frozen=True)
class Product:
    """The product over axes, which are gone in the result."""

    axes: tuple[int, ...]

    def __str__(self) -> str:
        return f"np.prod{[*self.axes]}"

    def __call__(self, array: Any) -> Any:
        if is_tensor(array):
            return tensor_product(array, self.axes)
        return _rounded_once(np.prod, array, self.axes)


def array_along_axis(name: str, array: Any, axis: int) -> Any:
    """A function of ``OPAQUE`` of a NumPy array."""
    match name:
        case "argsort":
            return np.argsort(array, axis, kind="stable")
        case "cummax" | "cummin":
            return (np.maximum if name == "cummax" else np.minimum).accumulate(array, axis)
        case "sort":
            return np.sort(array, axis)
    return _rounded_once(getattr(np, name), array, axis)


def _rounded_once(function: Any, array: Any, axis: Any) -> Any:
    """A function of NumPy's along axes that accumulates floats in float64."""
    if array.dtype.kind != "f":
        return function(array, axis=axis)
    return function(array, axis=axis, dtype=np.float64).astype(array.dtype, copy=False)
