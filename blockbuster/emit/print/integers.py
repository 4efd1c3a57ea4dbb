"""Integers as text."""

from __future__ import annotations

import math

import numpy as np


def integer_literal(value: float, dtype: str) -> str:
    """A whole number, or the end of a dtype's range in place of an infinity.

    >>> integer_literal(2.0, "int8"), integer_literal(float("-inf"), "int8")
    ('2', '-128')
    """
    ends = np.iinfo(dtype)
    return str(int(value) if math.isfinite(value) else ends.max if value > 0 else ends.min)
