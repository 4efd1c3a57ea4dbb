"""What kernels compute of constants, kept from call to call on one device.

An entry belongs to certain tensors and to their values. It is found by the tensors themselves, by
weak reference, with the number of changes that torch counts for each (``_version``) and its
address. A tensor that was changed in place, or another tensor, has no entry, so that its results
are computed anew; with the tensor the entry dies.

Torch does not count what is written through ``tensor.data``, or by libraries that write to a
tensor's memory themselves: ``clear`` forgets everything. Tensors made in inference mode have no
count. Their results are computed in every call.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

from blockbuster.emit.target.gpu import Gpu

Tensor = Any
Make = Callable[[], list[Tensor]]

UNCOUNTED = (
    "constants that were made in inference mode are computed from in every call: torch does not "
    "count changes of such tensors; make them outside of it, or clone them there"
)


class Entry(NamedTuple):
    """What was made of tensors: ``seen`` are weak references to these with versions and addresses.

    ``stream`` made the ``arrays``, which are complete where ``event`` is.
    """

    seen: tuple[tuple[weakref.ref[Any], int, int], ...]
    arrays: list[Tensor]
    stream: Any
    event: Any

    def is_of(self, constants: Sequence[Tensor]) -> bool:
        """True if these tensors are the same, and have not changed as far as torch knows."""
        return all(
            now._version == version and now.data_ptr() == address and tensor() is now
            for (tensor, version, address), now in zip(self.seen, constants, strict=True)
        )


class Kept:
    """The entries of a plan on one device."""

    def __init__(self) -> None:
        self.note = ""
        self._entries: dict[tuple[Hashable, ...], Entry] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._entries)

    def arrays(
        self, key: Hashable, constants: Sequence[Tensor], gpu: Gpu, make: Make
    ) -> list[Tensor]:
        """The arrays that ``make`` computes of constants; ``key`` says how. Kept if that is safe.

        What becomes part of a CUDA graph of the caller's is computed in the graph: nobody could see
        there that a constant has changed.
        """
        if gpu.is_capturing() or not self._counted(constants):
            return make()
        place = (key, *map(id, constants))
        entry = self._entries.get(place)
        if entry is None or not entry.is_of(constants):
            with self._lock:
                entry = self._entries.get(place)
                if entry is None or not entry.is_of(constants):
                    entry = self._entries[place] = self._made(place, constants, gpu, make)
        if entry.stream != gpu.stream():
            gpu.follow(entry.event, entry.arrays)
        return entry.arrays

    def clear(self) -> None:
        """Forget everything: the next calls compute it anew."""
        with self._lock:
            self._entries.clear()

    def _counted(self, constants: Sequence[Tensor]) -> bool:
        if any(tensor.is_inference() for tensor in constants):
            self.note = UNCOUNTED
            return False
        return True

    def _made(
        self, place: tuple[Hashable, ...], constants: Sequence[Tensor], gpu: Gpu, make: Make
    ) -> Entry:
        entries = self._entries

        def forget(_: object) -> None:
            entries.pop(place, None)

        # before it is made: a change meanwhile is one that the next call sees
        seen = [(weakref.ref(one, forget), one._version, one.data_ptr()) for one in constants]
        arrays = make()
        return Entry(tuple(seen), arrays, gpu.stream(), gpu.event())


class Pinned:
    """Arrays that were kept when a call was recorded as a graph, which reads them from then on."""

    def __init__(self, arrays: list[Tensor]) -> None:
        self._arrays = arrays

    def arrays(
        self, key: Hashable, constants: Sequence[Tensor], gpu: Gpu, make: Make
    ) -> list[Tensor]:
        """The arrays, whatever is asked for: whoever pinned them looks after changes."""
        del key, constants, gpu, make
        return self._arrays
