"""Functions of whole arrays that users call by name and that only move elements.

They are comparable, so that equal traces are equal. Tensors stay on their device, as in the copies
that lowering inserts (``copies.py``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from blockbuster.frontend.torch import is_tensor


@dataclass(frozen=True)
class Flip:
    """The elements of axes in the opposite order."""

    only_moves: ClassVar[bool] = True
    axes: tuple[int, ...]

    def __str__(self) -> str:
        return f"flip{[*self.axes]}"

    def __call__(self, array: Any) -> Any:
        return array.flip(self.axes) if is_tensor(array) else np.flip(array, self.axes)


@dataclass(frozen=True)
class Ranked:
    """The ``count`` elements of an axis that come first ``from_end``, "largest" or "smallest", in
    order; ``gives`` "values" or their "places".

    NaN counts as larger than infinity. Of equal elements NumPy's come in the order of their places;
    torch does not say which come first.
    """

    axis: int
    count: int
    from_end: str
    gives: str

    def __str__(self) -> str:
        return f"{self.gives} of the {self.count} {self.from_end}[{self.axis}]"

    def __call__(self, array: Any) -> Any:
        largest, places = self.from_end == "largest", self.gives == "places"
        if is_tensor(array):
            found = array.topk(self.count, self.axis, largest)
            return found.indices if places else found.values
        seen = np.flip(array, self.axis) if largest else array
        order = np.argsort(seen, self.axis, "stable")
        if largest:
            order = array.shape[self.axis] - 1 - np.flip(order, self.axis)
        order = order.take(np.arange(self.count), self.axis)
        return order if places else np.take_along_axis(array, order, self.axis)


@dataclass(frozen=True)
class Take:
    """The elements along an axis at the positions that an array of integers names.

    It says not that it only moves, since positions are not what it moves: each operand comes in its
    own dtype.
    """

    axis: int

    def __str__(self) -> str:
        return f"take[{self.axis}]"

    def __call__(self, array: Any, indices: Any) -> Any:
        if not is_tensor(array):
            return np.take(array, np.asarray(indices, dtype=np.int64), self.axis)
        # Not index_select: it takes no negative positions, and fails on the device for them.
        places = indices.long() if is_tensor(indices) else indices
        return array[(slice(None),) * self.axis + (places,)]


@dataclass(frozen=True)
class Scattered:
    """``x`` with elements of ``source`` at positions along an axis: ``how`` is torch's name.

    ``value``: one number in place of a source, which is cast to the dtype of ``x``. Like ``Take``,
    it says not that it only moves.
    """

    how: str
    axis: int
    value: float | None = None

    def __str__(self) -> str:
        return f"torch.{self.how}[{self.axis}]"

    def __call__(self, array: Any, indices: Any, *source: Any) -> Any:
        if is_tensor(array):
            return self._of_tensors(array, indices.long(), *source)
        given: Any = source[0] if source else np.asarray(self.value).astype(array.dtype)
        made, at = array.copy(), np.asarray(indices, dtype=np.int64)
        if self.how == "index_add":
            along: Any = (*(slice(None),) * self.axis, at)
            np.add.at(made, along, given)
            return made
        key: list[Any] = [*np.indices(at.shape, sparse=True)]
        key[self.axis] = at
        if source:
            given = given[tuple(map(slice, at.shape))]
        if self.how == "scatter_add":
            np.add.at(made, tuple(key), given)
        else:
            made[tuple(key)] = given
        return made

    def _of_tensors(self, array: Any, indices: Any, *source: Any) -> Any:
        if source or self.how == "scatter":
            return getattr(array, self.how)(self.axis, indices, *source or (self.value,))
        return array.scatter(self.axis, indices, self.value, reduce="add")
