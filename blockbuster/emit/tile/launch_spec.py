"""What a launch of an emitted file does: the arrays it makes, the kernels it starts, how often.

It is made of the tile program with the file. The file's launcher is printed from it, and replay
(runtime/file_launches.py) computes the same from it for the arrays of a call. An array is named by
its variable in the launcher, a size by its dim.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import prod
from typing import Any, NamedTuple, TypeAlias

from blockbuster.ir.types import Dim

SIZE, STRIDE, TIMES, BLOCKS, OVER, LEAST = "size", "stride", "times", "blocks", "over", "least"


class Formula(NamedTuple):
    """A whole number that a launch computes.

    SIZE: of the dim ``one``; STRIDE: of the array ``one`` along the axis ``other``, in elements;
    TIMES: the product; OVER: the quotient, rounded down; BLOCKS: the quotient, rounded up; LEAST:
    the lesser one.
    """

    kind: str
    one: Any
    other: Any = 0


Number: TypeAlias = int | Formula


def product(factors: list[Number]) -> Number:
    """The factors multiplied, from the left; 1 of none."""
    found, *others = factors or [1]
    for factor in others:
        found = Formula(TIMES, found, factor)
    return found


class Array(NamedTuple):
    """An array: its variable, its extents and its dtype in memory."""

    name: str
    shape: tuple[Number, ...]
    dtype: str


def value(number: Number, sizes: Mapping[Dim, int], arrays: Mapping[str, Array]) -> int:
    """The number for these sizes, where all arrays lie in rows without gaps."""
    if isinstance(number, int):
        return number
    kind, one, other = number
    if kind == SIZE:
        return sizes[one]
    if kind == STRIDE:
        return prod(value(extent, sizes, arrays) for extent in arrays[one].shape[other + 1 :])
    left, right = value(one, sizes, arrays), value(other, sizes, arrays)
    if kind == TIMES:
        return left * right
    if kind == LEAST:
        return min(left, right)
    return left // right if kind == OVER else -(-left // right)


class Descriptor(NamedTuple):
    """The descriptor of an array for tiles of a shape, as a kernel's ``parameter``.

    It is None for an array whose layout has no descriptor.
    """

    parameter: str
    array: str
    tile: tuple[int, ...]


class Start(NamedTuple):
    """The start of a kernel, which takes arrays, sizes, strides, descriptors, then constants.

    A ``grid`` of 0 programs is not started. ``strides`` are pairs of arrays and axes. Of the
    constants, ``lanes`` are known, each of ``even`` is the largest power of two, up to 16, that
    divides its numbers, and each of ``told`` is a size; then come the index type and, if it
    ``asks``, whether the device has dependent launches. ``options`` are Triton's. ``waits``: on
    such devices it begins before the kernel before it has ended. ``leaves_room``: see tile/room.py.
    """

    kernel: str
    grid: Number
    arrays: tuple[str, ...]
    sizes: tuple[Dim, ...]
    strides: tuple[tuple[str, int], ...]
    descriptors: tuple[Descriptor, ...]
    lanes: tuple[tuple[str, int], ...]
    even: tuple[tuple[str, tuple[Number, ...]], ...]
    told: tuple[tuple[str, Number], ...]
    asks: bool
    options: tuple[tuple[str, int], ...]
    waits: bool
    leaves_room: bool

    @property
    def numbers(self) -> tuple[Number, ...]:
        """The sizes and strides that the kernel takes."""
        sizes = [Formula(SIZE, dim) for dim in self.sizes]
        return (*sizes, *(Formula(STRIDE, array, axis) for array, axis in self.strides))


class Section(NamedTuple):
    """A function of the file: it takes ``inputs``, makes arrays and starts kernels, in order.

    ``dims`` are those whose sizes it uses, ``free`` those of them that no input shows. Offsets are
    of 64 bits if one of the arrays of ``spans`` is so large.
    """

    inputs: tuple[Array, ...]
    free: tuple[Dim, ...]
    dims: tuple[Dim, ...]
    makes: tuple[Array, ...]
    spans: tuple[str, ...]
    starts: tuple[Start, ...]


class LaunchSpec(NamedTuple):
    """What ``launch`` of a file does, and ``prepare``, whose arrays are kept from call to call.

    ``outputs`` are made first by ``launch``, which returns ``results``. ``prepare``: None in a file
    that keeps nothing; ``keeps``: the arrays of it that ``launch`` reads. ``chunks``: how many
    there are of dims that count chunks. ``guarded``: the file looks at the assembler before it
    launches.
    """

    launch: Section
    outputs: tuple[Array, ...]
    results: tuple[str, ...]
    prepare: Section | None
    keeps: tuple[Array, ...]
    chunks: tuple[tuple[Dim, int], ...]
    guarded: bool

    @property
    def starts(self) -> tuple[Start, ...]:
        """All starts of kernels, in order."""
        return (*(self.prepare.starts if self.prepare else ()), *self.launch.starts)

    @property
    def made(self) -> tuple[Array, ...]:
        """All arrays that are made, in order."""
        first = self.prepare.makes if self.prepare else ()
        return (*first, *self.outputs, *self.launch.makes)

    def given(self, names: Collection[str], *, prepared: bool = False) -> LaunchSpec:
        """The same where outputs of these names are given, and what is kept if it is ``prepared``:
        they are inputs, behind the others.
        """
        given = tuple(array for array in self.outputs if array.name in names)
        made = tuple(array for array in self.outputs if array.name not in names)
        given += self.keeps if prepared else ()
        launch = self.launch._replace(inputs=(*self.launch.inputs, *given))
        prepare = None if prepared else self.prepare
        return self._replace(launch=launch, outputs=made, prepare=prepare)
