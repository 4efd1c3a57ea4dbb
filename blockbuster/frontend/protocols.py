"""Library functions of whole arrays along axes, called between kernels.

Products are wide while they grow: float64 for NumPy arrays of any floats, as in the sums of NumPy
text, and at least float32 for tensors. Results are rounded once, to the array's dtype.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from blockbuster.frontend.torch import is_tensor, tensor_along_axis, tensor_product

OPAQUE = ("sort", "argsort", "logcumsumexp")
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
        if array.dtype.kind != "f":
            return np.prod(array, axis=self.axes)
        wide = np.prod(array, axis=self.axes, dtype=np.float64)
        return wide.astype(array.dtype, copy=False)


def array_along_axis(name: str, array: Any, axis: int) -> Any:
    """A function of ``OPAQUE`` of a NumPy array."""
    if name == "logcumsumexp":
        wide = np.logaddexp.accumulate(array.astype(np.float64, copy=False), axis)
        return wide.astype(array.dtype, copy=False)
    return np.argsort(array, axis, kind="stable") if name == "argsort" else np.sort(array, axis)
