"""NumPy functions of whole arrays along one axis, called as they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

OPAQUE = ("sort", "cumsum", "cumprod")
"""NumPy functions along an axis that keep the shape: recorded as ops that no rule looks into."""


@dataclass(frozen=True)
class AlongAxis:
    """A function of ``OPAQUE`` along one axis, comparable so that equal traces are equal."""

    name: str
    axis: int

    def __post_init__(self) -> None:
        if self.name not in OPAQUE:
            raise ValueError(f"np.{self.name} is not one of {', '.join(OPAQUE)}")

    def __str__(self) -> str:
        return f"np.{self.name}[{self.axis}]"

    def __call__(self, array: Any) -> Any:
        return getattr(np, self.name)(array, axis=self.axis)
