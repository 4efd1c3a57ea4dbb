"""The launches of an emitted file for arrays of one layout: new arrays and kernel starts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from blockbuster.emit.target.gpu import Gpu, tensor_descriptor
from blockbuster.runtime.numbers import Made, Start

Tensor = Any


class Described(NamedTuple):
    """A descriptor among a kernel's constants: of array ``array``, for tiles of shape ``tile``."""

    array: int
    tile: tuple[int, ...]

    def of(self, tensors: Sequence[Tensor]) -> Any:
        """The descriptor for the arrays of a call."""
        return tensor_descriptor(tensors[self.array], self.tile)


class Kernel(NamedTuple):
    """A compiled kernel: how to start it for any layout that it serves.

    ``arrays`` are the numbers of the arrays whose addresses are its first arguments; sizes and
    strides follow, then ``described`` arrays, or None for some, and then ``constants``.
    """

    start: Callable[..., None]
    function: Any
    metadata: Any
    arrays: tuple[int, ...]
    constants: tuple[Any, ...]
    described: tuple[Described | None, ...] = ()


class Laid(NamedTuple):
    """A file for arrays of one layout: its inputs are 0, 1, ..., then come the arrays it makes.

    ``results`` are the numbers of those that it returns, ``empty`` allocates.
    """

    gpu: Gpu
    empty: Callable[..., Tensor]
    made: Sequence[Made]
    launches: Sequence[tuple[Kernel, Start]]
    results: Sequence[int]

    def __call__(self, tensors: list[Tensor]) -> list[Tensor]:
        """The file's outputs for its inputs. What it makes is appended to ``tensors``."""
        gpu = self.gpu
        if gpu.elsewhere():
            with gpu.current():
                return self._play(tensors)
        return self._play(tensors)

    def _play(self, tensors: list[Tensor]) -> list[Tensor]:
        gpu, empty, made, launches, results = self
        for shape, steps, dtype in made:
            tensors.append(empty(shape, steps, dtype))
        addresses = [array.data_ptr() for array in tensors]
        stream = gpu.stream()
        for kernel, (grid, numbers) in launches:
            start, function, metadata, arrays, constants, described = kernel
            if described:
                constants = (*[one and one.of(tensors) for one in described], *constants)
            start(
                grid, 1, 1, stream, function, metadata, None, None, None,
                *[addresses[array] for array in arrays], *numbers, *constants,
            )  # fmt: skip
        return [tensors[number] for number in results]
