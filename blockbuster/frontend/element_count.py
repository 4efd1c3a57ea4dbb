"""``x.size``: the number of elements, as in NumPy; it can also be called, as in torch."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from blockbuster.frontend.sizes import SizeExpr, bound
from blockbuster.ir.expr import Const

if TYPE_CHECKING:
    from blockbuster.frontend.array import TracedArray


class ElementCount(SizeExpr):
    """The product of the extents; called, the extents themselves, or one of them."""

    def __init__(self, array: TracedArray) -> None:
        self._shape = array.shape
        super().__init__(bound(math.prod(self._shape, start=1)) or Const(1.0), array.trace)

    def __call__(self, dim: int | None = None) -> Any:
        """``x.size()`` is the shape, ``x.size(-1)`` its last entry."""
        return self._shape if dim is None else self._shape[dim]
