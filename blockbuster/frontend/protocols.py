"""NumPy's own functions on traced arrays: which of ours each one is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

UFUNCS: Mapping[Any, str] = {
    np.add: "add", np.subtract: "sub", np.multiply: "mul", np.true_divide: "div",
    np.floor_divide: "floordiv", np.remainder: "mod",
    np.power: "pow", np.float_power: "pow", np.negative: "neg",
    np.exp: "exp", np.log: "log", np.sqrt: "sqrt", np.tanh: "tanh", np.absolute: "abs",
    np.fabs: "abs", np.square: "square", np.reciprocal: "reciprocal",
    np.maximum: "maximum", np.minimum: "minimum",
    np.less: "lt", np.less_equal: "le", np.greater: "gt", np.greater_equal: "ge",
    np.equal: "eq", np.not_equal: "ne",
    np.logical_and: "and", np.logical_or: "or", np.logical_not: "not",
    np.bitwise_and: "and", np.bitwise_or: "or", np.invert: "not",
    np.matmul: "matmul",
}  # fmt: skip

REDUCTIONS: Mapping[Any, str] = {np.add: "sum", np.maximum: "max", np.minimum: "min"}
"""``ufunc.reduce`` of these is one of our reductions."""


def _sum(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    return a.sum(axis, keepdims)


def _max(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    return a.max(axis, keepdims)


def _min(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    return a.min(axis, keepdims)


def _mean(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    return a.mean(axis, keepdims)


def _transpose(a: Any, axes: Any = None) -> Any:
    return a.transpose(axes)


def _swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    return a.swapaxes(axis1, axis2)


def _expand_dims(a: Any, axis: int) -> Any:
    before = axis if axis >= 0 else axis + a.ndim + 1
    return a[(*(slice(None),) * before, None)]


def _concatenate(arrays: Any, axis: Any = 0) -> Any:
    traced = next(a for a in arrays if hasattr(a, "trace"))
    return traced.trace.record("concat", tuple(arrays), {"axis": axis})


METHODS: Mapping[Any, Callable[..., Any]] = {
    np.sum: _sum, np.max: _max, np.amax: _max, np.min: _min, np.amin: _min, np.mean: _mean,
    np.transpose: _transpose, np.permute_dims: _transpose, np.swapaxes: _swapaxes,
    np.expand_dims: _expand_dims, np.concatenate: _concatenate, np.concat: _concatenate,
}  # fmt: skip
"""NumPy functions that are methods of a traced array."""

OPAQUE: Mapping[Any, str] = {np.sort: "sort", np.cumsum: "cumsum", np.cumprod: "cumprod"}
"""NumPy functions along an axis that keep the shape: recorded as ops that no rule looks into."""


@dataclass(frozen=True)
class AlongAxis:
    """A function of ``OPAQUE`` along one axis, comparable so that equal traces are equal."""

    name: str
    axis: int

    def __post_init__(self) -> None:
        if self.name not in OPAQUE.values():
            raise ValueError(f"np.{self.name} is not one of {', '.join(OPAQUE.values())}")

    def __str__(self) -> str:
        return f"np.{self.name}[{self.axis}]"

    def __call__(self, array: Any) -> Any:
        return getattr(np, self.name)(array, axis=self.axis)
