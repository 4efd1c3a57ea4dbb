"""Images of other sizes as a function of whole arrays, which torch computes.

Each place of the result reads a few places near it. In kernels of ours these would be looked for
along the whole axis: 8 x 64 images of 224 x 224 pixels to 336 x 336 would take 18 ms on an H200.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from blockbuster.frontend.torch import is_tensor, resampled_shape, resampled_tensor


@dataclass(frozen=True)
class Resampled:
    """``torch.nn.functional.interpolate`` with these arguments."""

    size: tuple[int, ...] | None
    scale_factor: tuple[float, ...] | None
    mode: str
    align_corners: bool | None
    recompute_scale_factor: bool | None
    antialias: bool

    def __str__(self) -> str:
        return f"torch.nn.functional.interpolate[{self.mode}]"

    def __call__(self, x: Any) -> Any:
        made = resampled_tensor(x, vars(self))
        return made if is_tensor(x) else np.asarray(made).astype(x.dtype, copy=False)

    def shape(self, given: Sequence[int]) -> tuple[int, ...]:
        """The shape of the result for images of a shape. Raises torch's errors for arguments that
        it refuses.
        """
        return resampled_shape(given, vars(self))
