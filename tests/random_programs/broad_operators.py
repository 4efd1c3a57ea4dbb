"""The operators of broad random array programs: functions of arrays and of options (plain data).

Each works on NumPy arrays and on traced arrays alike.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from blockbuster import frontend as bb
from blockbuster.frontend.functions.windows import windowed

Operator = Callable[..., Any]

# results stay moderate for moderate arguments, and small errors stay small
POINTWISE: Mapping[str, Operator] = {
    "tanh": bb.tanh, "sigmoid": bb.sigmoid, "silu": bb.silu, "gelu": bb.gelu, "relu": bb.relu,
    "erf": bb.erf, "abs": bb.abs, "square": bb.square, "exp": bb.exp,
    "neg": operator.neg,
    "decayed": lambda x: bb.exp(-bb.abs(x)),
    "root": lambda x: bb.sqrt(bb.abs(x) + 0.5),
    "inverse_root": lambda x: bb.rsqrt(bb.square(x) + 0.5),
    "log": lambda x: bb.log(bb.abs(x) + 0.5),
    "reciprocal": lambda x: bb.reciprocal(bb.square(x) + 1),
    "power": lambda x: (bb.abs(x) + 0.5) ** 1.5,
}  # fmt: skip
PAIRS: Mapping[str, Operator] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul,
    "div": lambda x, y: x / (bb.abs(y) + 0.5),
    "maximum": bb.maximum, "minimum": bb.minimum,
}  # fmt: skip
RELATIONS: Mapping[str, Operator] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
REDUCTIONS: Mapping[str, Operator] = {
    "sum": bb.sum, "mean": bb.mean, "max": bb.max, "min": bb.min, "logsumexp": bb.logsumexp,
}  # fmt: skip
OPAQUE: Mapping[str, Operator] = {"sort": np.sort, "cumsum": np.cumsum}


def index(x: Any, axis: int) -> Any:
    """The positions along an axis of ``x``, as an array that broadcasts against ``x``."""
    behind = len(x.shape) - 1 - axis
    return bb.arange(x.shape[axis])[(..., *(None,) * behind)]


def affine(x: Any, axes: tuple[int, ...], factors: tuple[float, ...]) -> Any:
    """A sum of multiples of positions along axes of ``x``."""
    first, *rest = (
        index(x, axis) if factor == 1 else index(x, axis) * factor
        for axis, factor in zip(axes, factors, strict=True)
    )
    for term in rest:
        first = first + term
    return first


def condition(
    x: Any, axes: tuple[int, ...], factors: tuple[float, ...], relation: str, bound: float
) -> Any:
    """A mask: such a sum compared with a number, broadcast over the other axes."""
    return RELATIONS[relation](affine(x, axes, factors), bound)


def compared(x: Any, relation: str, bound: float) -> Any:
    """A mask of the data."""
    return RELATIONS[relation](x, bound)


def masked(x: Any, *where: Any) -> Any:
    """``x`` under a mask of positions, with a number elsewhere: the last of ``where``."""
    *mask, fill = where
    return bb.where(condition(x, *mask), x, fill)


def masked_softmax(x: Any, *where: Any) -> Any:
    """Softmax under a mask of positions; a row without any comes out as zero."""
    return bb.softmax(masked(x, *where, -np.inf))


def scaled(x: Any, factor: float, shift: float) -> Any:
    """A multiple of ``x`` plus a number."""
    return x * factor + shift


def by_size(x: Any, axis: int, power: float) -> Any:
    """``x`` times a power of the extent of an axis."""
    return x * (x.shape[axis] + 1) ** power


def halves(x: Any, axis: int, second: bool) -> Any:
    """The first or second half of an axis, in terms of its extent."""
    half = x.shape[axis] // 2
    return x[(*(slice(None),) * axis, slice(half, None) if second else slice(half))]


OPERATORS: Mapping[str, Operator] = {
    **POINTWISE, **PAIRS, **REDUCTIONS, **OPAQUE,
    "scaled": scaled, "divided": lambda x, by: by / (bb.square(x) + 1), "by_size": by_size,
    "affine": affine, "with_positions": lambda x, *where: x * 0.5 + affine(x, *where) * 0.125,
    "condition": condition, "compared": compared, "masked": masked,
    "masked_softmax": masked_softmax,
    "where": bb.where, "chosen": lambda m, x, other: bb.where(m, x, other),
    "chosen_not": lambda m, x, other: bb.where(m, other, x),
    "both": operator.and_, "either": operator.or_, "not": operator.invert,
    "softmax": bb.softmax, "log_softmax": bb.log_softmax,
    "rms_norm": lambda x, *w: bb.rms_norm(x, *w, eps=0.1),
    "layer_norm": lambda x, *w: bb.layer_norm(x, *w, eps=0.1),
    "matmul": lambda x, y: x @ y, "gram": lambda x: x @ x.swapaxes(-1, -2),
    "gram_of_columns": lambda x: x.swapaxes(-1, -2) @ x,
    "with_transpose": lambda x: x * x.swapaxes(-1, -2),
    "plus_transpose": lambda x: x + x.swapaxes(-1, -2),
    "attention": lambda q, k, v: bb.softmax(q @ k.swapaxes(-1, -2)) @ v,
    "matmul_transposed": lambda x, y: x @ y.swapaxes(-1, -2),
    "transpose": lambda x, axes: bb.transpose(x, axes),
    "swapaxes": lambda x, i, j: x.swapaxes(i, j), "reversed": lambda x: x.T,
    "indexed": lambda x, key: x[key], "halves": halves, "windowed": windowed,
    "concat": lambda *given: bb.concat(list(given[:-1]), axis=given[-1]),
    "split_heads": bb.split_heads, "merge_heads": bb.merge_heads,
    "astype": lambda x, dtype: bb.astype(x, dtype),
}  # fmt: skip
