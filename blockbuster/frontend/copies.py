"""Copies: functions of whole arrays that lowering inserts where a view is not free.

They are comparable, so that graphs with equal copies are equal. ``only_moves`` marks that they
compute nothing. The place of a copy must not change a number, so copies get arrays as they were
computed, not rounded as for a user's function. Tensors stay on their device: through the host, a
call would wait for the GPU.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from blockbuster.frontend.in_terms import in_terms
from blockbuster.frontend.numerics import windows
from blockbuster.frontend.source import Refused
from blockbuster.frontend.torch import is_tensor, on_tensors
from blockbuster.ir.extents import Lengths
from blockbuster.ir.lengths import ZERO, Length
from blockbuster.ir.types import Dim, size_class


class Copy(ABC):
    """A function that only moves elements."""

    only_moves: ClassVar[bool] = True

    @abstractmethod
    def __call__(self, array: Any) -> Any:
        """The copy."""


@dataclass(frozen=True)
class CopySlice(Copy):
    """Elements of an axis whose extent is the size of ``dim``."""

    axis: int
    dim: Dim
    start: Length
    length: Length
    step: int = 1

    def __str__(self) -> str:
        steps = "" if self.step == 1 else f" step {self.step}"
        return f"slice axis {self.axis} from {self.start} by {self.length}{steps}"

    def __call__(self, array: Any) -> Any:
        sizes = {size_class(self.dim): array.shape[self.axis]}
        start, length = self.start.value(sizes), self.length.value(sizes)
        stop = start + length * self.step  # in front of which there are as many, if any
        if is_tensor(array):
            return array[(slice(None),) * self.axis + (slice(start, stop, self.step),)]
        return array.take(np.arange(start, stop, self.step), self.axis)


@dataclass(frozen=True)
class CopySplit(Copy):
    """An axis as two, the outer one in front of all axes."""

    axis: int
    count: int

    def __str__(self) -> str:
        return f"split axis {self.axis} by {self.count}"

    def __call__(self, array: Any) -> Any:
        shape = list(array.shape)
        shape[self.axis : self.axis + 1] = [self.count, shape[self.axis] // self.count]
        return _moved(array.reshape(shape), self.axis, 0)


@dataclass(frozen=True)
class CopyWindows(Copy):
    """Windows of an axis whose extent is the size of ``dim``, in front of all axes.

    Zeros stand where a window reaches outside.
    """

    axis: int
    dim: Dim
    count: Length
    length: Length
    step: int
    dilation: int
    before: Length

    def __str__(self) -> str:
        steps = f"in steps of {self.step}, every {self.dilation} from {ZERO - self.before}"
        return f"windows axis {self.axis}: {self.count} of {self.length} {steps}"

    def __call__(self, array: Any) -> Any:
        sizes = {size_class(self.dim): array.shape[self.axis]}
        count, length = self.count.value(sizes), self.length.value(sizes)
        params: dict[str, Any] = {
            "axis": self.axis, "count": count, "length": length, "step": self.step,
            "dilation": self.dilation, "before": self.before.value(sizes),
        }  # fmt: skip
        on_host = not is_tensor(array)
        made = windows(array, **params) if on_host else on_tensors("windows", (array,), params)
        return _moved(_moved(made, -1, self.axis + 1), self.axis, 0)


@dataclass(frozen=True)
class CopyJoin(Copy):
    """Arrays one behind the other."""

    axis: int

    def __str__(self) -> str:
        return f"concat axis {self.axis}"

    def __call__(self, *arrays: Any) -> Any:
        if is_tensor(arrays[0]):
            return on_tensors("concat", arrays, {"axis": self.axis})
        return np.concatenate(arrays, self.axis)


@dataclass(frozen=True)
class CopyMerge(Copy):
    """Axis 0 and the one at ``axis`` + 1 as one axis."""

    axis: int

    def __str__(self) -> str:
        return f"merge axis {self.axis}"

    def __call__(self, array: Any) -> Any:
        moved = _moved(array, 0, self.axis)
        shape = list(moved.shape)
        shape[self.axis : self.axis + 2] = [shape[self.axis] * shape[self.axis + 1]]
        return moved.reshape(shape)


@dataclass(frozen=True)
class CopyReshape(Copy):
    """The elements in order under axes of these extents; ``|0|`` is that of axis 0, and so on."""

    shape: Lengths

    def __str__(self) -> str:
        return f"reshape to {self.shape}"

    def __call__(self, array: Any) -> Any:
        return array.reshape(self.shape.value({str(i): n for i, n in enumerate(array.shape)}))


def _moved(array: Any, source: int, destination: int) -> Any:
    """An array or tensor with one axis in another place."""
    if is_tensor(array):
        return array.movedim(source, destination)
    return np.moveaxis(array, source, destination)


def along(length: Length, dim: Dim, extent: Length) -> Length:
    """``length`` in terms of the size of ``dim`` alone, which is ``extent``. Raises Refused."""
    found = in_terms(length, [(dim, extent)])
    if found is None:
        hint = (
            "slice at numbers, x[n:], with an argument n that is no array: bb.jit fixes it\n"
            'or slice the parts before they are joined; bb.trace also takes fixed sizes, "M=64"'
        )
        raise Refused(f"a copy of {length} elements, out of {extent}", hint)
    return found


def in_axes(lengths: Sequence[Length], axes: Sequence[Length]) -> Lengths:
    """``lengths`` in terms of the extents of an array's axes: ``|0|``, ``|1|``, ...

    Raises Refused if they do not follow from these.
    """
    named = [(str(number), extent) for number, extent in enumerate(axes)]
    found = [in_terms(length, named) for length in lengths]
    if None in found:
        hint = 'bb.trace takes fixed sizes: "M=64"'
        words = f"({', '.join(map(str, lengths))}) of one of ({', '.join(map(str, axes))})"
        missing = lengths[found.index(None)]
        raise Refused(f"a copy of shape {words}: {missing} does not follow", hint)
    return Lengths(tuple(length for length in found if length is not None))
