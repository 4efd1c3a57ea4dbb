"""The launches of an emitted file for arrays of one layout: new arrays and kernel starts.

The first launches may compute of constants: what they write is kept from call to call (kept.py).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, Protocol

from blockbuster.emit.target.gpu import Gpu, tensor_descriptor
from blockbuster.runtime.kept import Pinned
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

    @property
    def reached(self) -> tuple[int, ...]:
        """The numbers of all arrays that it reads or writes."""
        return (*self.arrays, *(one.array for one in self.described if one))


class Keeps(Protocol):
    """Where arrays are kept that were made of constants: see kept.py."""

    def arrays(
        self, key: Hashable, constants: Sequence[Tensor], gpu: Gpu, make: Callable[[], list[Tensor]]
    ) -> list[Tensor]: ...


class Prepared(NamedTuple):
    """The part of a file's launches that computes of constants: the first ``launches``.

    They write the first ``made`` of the arrays that the file makes. ``constants``: which of its
    ``inputs``, by number, they read. ``later``: which of those arrays other launches read. ``key``
    tells them from others; ``keeps`` has what they wrote.
    """

    made: int
    launches: int
    inputs: int
    constants: tuple[int, ...]
    later: tuple[int, ...]
    key: Hashable
    keeps: Keeps


Launches = Sequence[tuple[Kernel, Start]]


def prepared(
    counts: tuple[int, int], inputs: int, made: Sequence[Made], launches: Launches, keeps: Keeps
) -> Prepared | None:
    """The part of launches that computes of constants; None if there is none.

    ``counts``: of the arrays and launches of that part. ``inputs``: how many arrays the file reads.
    """
    arrays, starts = counts
    if not starts:
        return None
    first, others = launches[:starts], launches[starts:]
    read = sorted({number for kernel, _ in first for number in kernel.reached})
    after = {number - inputs for kernel, _ in others for number in kernel.reached}
    return Prepared(
        arrays,
        starts,
        inputs,
        tuple(number for number in read if number < inputs),
        tuple(at for at in range(arrays) if at in after),
        (tuple(made[:arrays]), tuple((kernel.function, start) for kernel, start in first)),
        keeps,
    )


class Laid(NamedTuple):
    """A file for arrays of one layout: its inputs are 0, 1, ..., then come the arrays it makes.

    ``results`` are the numbers of those that it returns, ``empty`` allocates. ``prepared``: the
    part that computes of constants, if there is one.
    """

    gpu: Gpu
    empty: Callable[..., Tensor]
    made: Sequence[Made]
    launches: Launches
    results: Sequence[int]
    prepared: Prepared | None = None

    def __call__(self, tensors: list[Tensor]) -> list[Tensor]:
        """The file's outputs for its inputs. What it makes is appended to ``tensors``."""
        gpu = self.gpu
        if gpu.elsewhere():
            with gpu.current():
                return self._play(tensors)
        return self._play(tensors)

    def pinned(self, tensors: Sequence[Tensor]) -> tuple[Laid, list[Tensor]]:
        """The same for these constants as they are now, whatever becomes of them; and these."""
        part = self.prepared
        if part is None:
            return self, []
        constants = [tensors[number] for number in part.constants]
        with self.gpu.current():
            arrays = self._kept(part, constants)
        return self._replace(prepared=part._replace(keeps=Pinned(arrays))), constants

    def _play(self, tensors: list[Tensor]) -> list[Tensor]:
        part = self.prepared
        if part is None:
            self._run(tensors, self.made, self.launches)
        else:
            tensors += self._kept(part, [tensors[number] for number in part.constants])
            self._run(tensors, self.made[part.made :], self.launches[part.launches :])
        return [tensors[number] for number in self.results]

    def _kept(self, part: Prepared, constants: list[Tensor]) -> list[Tensor]:
        """The first arrays that the file makes; of those that are read no more, another one."""

        def make() -> list[Tensor]:
            arrays = [constants[0]] * part.inputs  # the launches read no other inputs
            for number, tensor in zip(part.constants, constants, strict=True):
                arrays[number] = tensor
            self._run(arrays, self.made[: part.made], self.launches[: part.launches])
            found = arrays[part.inputs :]
            spare = found[part.later[0]]
            return [one if at in part.later else spare for at, one in enumerate(found)]

        return part.keeps.arrays(part.key, constants, self.gpu, make)

    def _run(self, tensors: list[Tensor], made: Sequence[Made], launches: Launches) -> None:
        gpu, empty = self.gpu, self.empty
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
