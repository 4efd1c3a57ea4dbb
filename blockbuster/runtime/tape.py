"""A plan's steps, with numbers in place of the names of arrays: calls of any layout run these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from blockbuster.selection.plans.pieces import Seen
from blockbuster.selection.plans.plan import shown

Tensor = Any


class Play(Protocol):
    """The arrays that a step makes of those it reads, a list of its own."""

    def __call__(self, tensors: list[Tensor], /) -> list[Tensor]: ...


Casts = Sequence[tuple[int, Any]]
Move = tuple[Play, Sequence[int], Casts]
"""A step: what plays it, the numbers of the arrays it reads, and which are cast first, to what."""


class Tape(NamedTuple):
    """A plan with numbers for names: the inputs are 0, 1, ..., then comes what each step makes."""

    moves: Sequence[Move]
    results: Sequence[int]
    finishes: Sequence[tuple[int, Finish]]

    def played(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """The outputs for these inputs."""
        arrays = [*tensors]
        for play, reads, casts in self.moves:
            given = [arrays[number] for number in reads]
            arrays += play(cast(given, casts) if casts else given)
        return self.finished(arrays) if self.finishes else [arrays[n] for n in self.results]

    def finished(self, arrays: Sequence[Tensor]) -> list[Tensor]:
        """The outputs, of all arrays."""
        results = [arrays[number] for number in self.results]
        for position, finish in self.finishes:
            results[position] = finish(results[position])
        return results


def taken(arrays: Sequence[Tensor], reads: Sequence[int], casts: Casts) -> list[Tensor]:
    """The arrays that a step reads, as it takes them."""
    return cast([arrays[number] for number in reads], casts)


def cast(given: list[Tensor], casts: Casts) -> list[Tensor]:
    """These arrays, of which some are cast."""
    for place, dtype in casts:
        given[place] = given[place].to(dtype)
    return given


@dataclass(frozen=True)
class Finish:
    """The last steps of a result: its axes in order, and a cast."""

    seen: Seen
    dtype: Any

    def __call__(self, tensor: Tensor) -> Tensor:
        return shown(tensor, self.seen).to(self.dtype)

    def is_identity(self, tensor: Tensor) -> bool:
        """True if this does nothing to tensors like this one."""
        plain = self.seen.order == tuple(range(tensor.dim()))
        return plain and self.dtype == tensor.dtype
