"""Inverse trigonometric functions, of the arctangent that kernels have.

Each keeps its digits at the ends of its range, where a plain formula cancels.
"""

from __future__ import annotations

import math
import operator

from blockbuster.frontend.array import as_floats
from blockbuster.frontend.functions.pointwise import atan, floats_together, sqrt, where
from blockbuster.frontend.functions.row import Array, Row, example


def asin(x: Array) -> Array:
    """The angle whose sine is ``x``, from -pi / 2 to pi / 2; NaN unless ``x`` is from -1 to 1."""
    x = as_floats(x, alone=True)
    return 2.0 * atan(x / (1.0 + sqrt((1.0 - x) * (1.0 + x))))


def acos(x: Array) -> Array:
    """The angle whose cosine is ``x``, from 0 to pi; NaN unless ``x`` is from -1 to 1."""
    x = as_floats(x, alone=True)
    return 2.0 * atan(sqrt((1.0 - x) / (1.0 + x)))


def atan2(x: Array, y: Array) -> Array:
    """The angle of ``x / y``, from -pi to pi: above pi / 2, or below -pi / 2, where ``y < 0``."""
    x, y = floats_together(x, y)
    up, along = map(operator.abs, (x, y))
    alike = up == along  # perhaps two infinities, or zeros, whose angle is 0
    angle = where(alike, 0.0, atan(up / along))
    angle = where(alike & (up > 0), math.pi / 4, angle)
    angle = where(y < 0, math.pi - angle, angle)
    return where(x < 0, -angle, angle)


_GROUP = "Of each element"
_UNIT = (example("unit: M N"),)

ROWS = (
    Row(asin, _GROUP, ("arcsin", "asin"), torch=(
        "asin", "arcsin", "Tensor.asin", "Tensor.arcsin"), examples=_UNIT, public=False),
    Row(acos, _GROUP, ("arccos", "acos"), torch=(
        "acos", "arccos", "Tensor.acos", "Tensor.arccos"), examples=_UNIT, public=False),
    Row(atan2, _GROUP, ("arctan2", "atan2"), torch=(
        "atan2", "arctan2", "Tensor.atan2", "Tensor.arctan2"), public=False,
        examples=(example("M N", "N"), example("int: M", "M")), note="-0 counts as 0."),
)  # fmt: skip
