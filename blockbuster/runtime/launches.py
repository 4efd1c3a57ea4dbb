"""An emitted file for arrays of one layout: the arrays that it makes, the kernels it starts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from blockbuster.emit.target.gpu import Gpu
from blockbuster.runtime.numbers import Made, Start

Tensor = Any


class Kernel(NamedTuple):
    """A compiled kernel: how to start it for any layout that it serves.

    ``arrays`` are the numbers of the arrays whose addresses are its first arguments; sizes and
    strides follow, then ``constants``.
    """

    start: Callable[..., None]
    function: Any
    metadata: Any
    arrays: tuple[int, ...]
    constants: tuple[Any, ...]


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
        for (start, function, metadata, arrays, constants), (grid, numbers) in launches:
            start(
                grid, 1, 1, stream, function, metadata, None, None, None,
                *[addresses[array] for array in arrays], *numbers, *constants,
            )  # fmt: skip
        return [tensors[number] for number in results]
