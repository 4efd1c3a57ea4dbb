"""The launches of an emitted file for arrays of one layout: new arrays and kernel starts.

The first launches may compute of constants: what they write is kept from call to call (kept.py).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from math import prod
from operator import itemgetter
from typing import Any, NamedTuple, Protocol

from blockbuster.emit.target.gpu import Gpu, tensor_descriptor
from blockbuster.emit.target.starting import Starter
from blockbuster.runtime.kept import Pinned
from blockbuster.runtime.numbers import Made, Numbers, Started

Tensor = Any
Run = Callable[[Sequence[Tensor]], list[Tensor]]


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

    starter: Starter
    function: Any
    arrays: tuple[int, ...]
    constants: tuple[Any, ...]
    described: tuple[Described | None, ...] = ()


Begin = Callable[[Any, Sequence[int], Sequence[Tensor]], Any]
"""Starts a kernel on a stream, for arrays with these addresses."""

ENCODED = 64
"""Addresses for which a start of a kernel keeps its descriptors, at most."""


def beginning(kernel: Kernel, start: Started) -> Begin:
    """What starts ``kernel`` for arrays of one layout, for which ``start`` was computed."""
    grid, numbers = start
    if any(kernel.described):
        return _with_descriptors(kernel, start)
    begin, taken = kernel.starter.start, _several(kernel.arrays)
    rest = (*numbers, *kernel.described, *kernel.constants)

    def plain(stream: Any, addresses: Sequence[int], tensors: Sequence[Tensor]) -> Any:  # noqa: ARG001
        return begin(grid, stream, (*taken(addresses), *rest))

    return plain


def _with_descriptors(kernel: Kernel, start: Started) -> Begin:
    """The same for a kernel with descriptors. They are encoded once for the addresses of their
    arrays: shapes and strides are those of the layout, so an array that comes to lie where another
    one was has its descriptor.
    """
    (grid, numbers), (begin, expand) = start, kernel.starter
    taken, fixed = _several(kernel.arrays), len(kernel.arrays)
    based = _several([one.array for one in kernel.described if one])
    encoded: dict[Any, Sequence[Any]] = {}

    def given(addresses: Sequence[int], tensors: Sequence[Tensor]) -> tuple[Any, ...]:
        made = [one and one.of(tensors) for one in kernel.described]
        return (*taken(addresses), *numbers, *made, *kernel.constants)

    def plain(stream: Any, addresses: Sequence[int], tensors: Sequence[Tensor]) -> Any:
        return begin(grid, stream, given(addresses, tensors))

    def described(stream: Any, addresses: Sequence[int], tensors: Sequence[Tensor]) -> Any:
        bases = based(addresses)
        rest = encoded.get(bases)
        if rest is None:
            assert expand is not None
            rest = expand(given(addresses, tensors))[fixed:]
            if len(encoded) >= ENCODED:
                encoded.clear()
            encoded[bases] = rest
        return begin(grid, stream, (*taken(addresses), *rest))

    return described if expand else plain


def _several(places: Sequence[int]) -> Callable[[Sequence[int]], tuple[int, ...]]:
    """A function that takes the numbers at these places, as a tuple."""
    if len(places) > 1:
        return itemgetter(*places)
    return lambda numbers: tuple([numbers[place] for place in places])


Launches = Sequence[tuple[Kernel, Started]]


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

    def of(self, made: Sequence[Made], launches: Launches) -> Prepared:
        """The same part of the launches for another layout."""
        first = tuple([(kernel.function, start) for kernel, start in launches[: self.launches]])
        return self._replace(key=(tuple(made[: self.made]), first))


class Room(NamedTuple):
    """One array, ``space``, for the last arrays that a file makes.

    ``first`` is the first of them, ``offsets`` say at which bytes they begin.
    """

    first: int
    space: Made
    offsets: tuple[int, ...]


APART = 512  # bytes between arrays of a room, as between torch's own: all are aligned alike


def room_for(
    made: Sequence[Made], launches: Launches, results: Sequence[int], inputs: int, byte: Any
) -> Room | None:
    """One array of bytes for the arrays behind the last result; None if that saves nothing.

    None, too, if a kernel takes one by a descriptor, which is made of a tensor.
    """
    first = max(results) + 1 - inputs
    if len(made) - first < 2:
        return None
    described = [one.array for kernel, _ in launches for one in kernel.described if one]
    if described and max(described) >= inputs + first:
        return None
    offsets, size = [], 0
    for shape, _, dtype in made[first:]:
        offsets.append(size)
        size += -(-prod(shape) * dtype.itemsize // APART) * APART
    return Room(first, ((size,), (1,), byte), tuple(offsets))


class Laid(NamedTuple):
    """A file for arrays of one layout: its inputs are 0, 1, ..., then come the arrays it makes.

    ``results`` are the numbers of those that it returns, ``empty`` allocates, ``begins`` start the
    kernels of ``launches``. ``prepared``: the part that computes of constants, if there is one.
    ``room``: where arrays lie that are read by this file alone; None: each is allocated.
    """

    gpu: Gpu
    empty: Callable[..., Tensor]
    made: Sequence[Made]
    launches: Launches
    begins: Sequence[Begin]
    results: Sequence[int]
    prepared: Prepared | None = None
    room: Room | None = None

    @property
    def by_address(self) -> bool:
        """True if it reads nothing of tensors but their addresses: it makes no descriptors, and
        keeps nothing of constants.
        """
        return not (self.prepared or any(any(one.described) for one, _ in self.launches))

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
            self._run(tensors, self.made, self.begins, self.room)
        else:
            tensors += self._kept(part, [tensors[number] for number in part.constants])
            room = self.room and self.room._replace(first=self.room.first - part.made)
            made, begins = self.made[part.made :], self.begins[part.launches :]
            self._run(tensors, made, begins, room)
        return [tensors[number] for number in self.results]

    def _kept(self, part: Prepared, constants: list[Tensor]) -> list[Tensor]:
        """The first arrays that the file makes; of those that are read no more, another one."""

        def make() -> list[Tensor]:
            arrays = [constants[0]] * part.inputs  # the launches read no other inputs
            for number, tensor in zip(part.constants, constants, strict=True):
                arrays[number] = tensor
            self._run(arrays, self.made[: part.made], self.begins[: part.launches])
            found = arrays[part.inputs :]
            spare = found[part.later[0]]
            return [one if at in part.later else spare for at, one in enumerate(found)]

        return part.keeps.arrays(part.key, constants, self.gpu, make)

    def _run(
        self,
        tensors: list[Tensor],
        made: Sequence[Made],
        begins: Sequence[Begin],
        room: Room | None = None,
    ) -> None:
        gpu, empty = self.gpu, self.empty
        for shape, steps, dtype in made[: room.first] if room else made:
            tensors.append(empty(shape, steps, dtype))
        addresses = [array.data_ptr() for array in tensors]
        if room:  # it is free again when this returns: later work on the stream comes after it
            space = empty(*room.space)
            start = space.data_ptr()
            addresses += [start + offset for offset in room.offsets]
        stream = gpu.stream()
        for begin in begins:
            begin(stream, addresses, tensors)


def directly(laid: Laid, inputs: int, views: Mapping[int, Numbers]) -> Run | None:
    """``laid`` as one function of its inputs, whose results lie in rows with other extents: those
    of ``views``, by their places. None if it keeps something of constants, or does not make each
    result.

    Each function that a call goes through costs it half a microsecond, each view one and a half.
    """
    places = [number - inputs for number in laid.results]
    if laid.prepared or min(places) < 0 or len({*places}) < len(places):
        return None
    made = [*laid.made]
    for at, extents in views.items():
        made[places[at]] = extents, in_rows(extents), made[places[at]][2]
    gpu, results = laid.gpu, laid.results
    start, rest = laid._run, (made, laid.begins, laid.room)

    def run(tensors: Sequence[Tensor]) -> list[Tensor]:
        arrays = [*tensors]
        if gpu.elsewhere():
            with gpu.current():
                start(arrays, *rest)
        else:
            start(arrays, *rest)
        return [arrays[number] for number in results]

    return run


def in_rows(shape: Sequence[int]) -> Numbers:
    """The strides of a new array, as torch has them where there are no elements, too."""
    steps = [1]
    for extent in reversed(shape[1:]):
        steps.insert(0, steps[0] * max(extent, 1))
    return tuple(steps[: len(shape)])


def laid_out(
    gpu: Gpu,
    made: Sequence[Made],
    launches: Launches,
    results: Sequence[int],
    part: Prepared | None,
    inputs: int,
) -> Laid:
    """A file that reads so many ``inputs``, makes these arrays and starts these kernels."""
    begins = [beginning(kernel, start) for kernel, start in launches]
    room = room_for(made, launches, results, inputs, gpu.dtype("uint8"))
    return Laid(gpu, gpu.empty, made, launches, begins, results, part, room)
