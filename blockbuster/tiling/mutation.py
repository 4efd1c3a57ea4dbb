"""One step in a space of candidates: another value of one coordinate, such as a tile's size."""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from blockbuster.tiling.candidate import Candidate

C = TypeVar("C")


@dataclass(frozen=True)
class Mutations(Generic[C]):
    """The neighbours of every candidate of a space.

    ``coordinates``: a candidate's values, of which the first never changes. ``groups`` holds, for a
    coordinate and the values of all others, the candidates that differ in that coordinate alone.
    """

    coordinates: Callable[[C], tuple[Hashable, ...]]
    groups: Mapping[Hashable, Sequence[C]] = field(repr=False)

    def mutated(self, one: C, generator: random.Random) -> C:
        """``one`` with another value of one coordinate; itself if it has no neighbour."""
        around = [self.groups[key] for key in _keys(self.coordinates(one))]
        several = [group for group in around if len(group) > 1]
        if not several:
            return one
        return generator.choice([other for other in generator.choice(several) if other != one])


def mutations_of(
    candidates: Sequence[C], coordinates: Callable[[C], tuple[Hashable, ...]]
) -> Mutations[C]:
    """The neighbours among ``candidates``, told apart by ``coordinates``."""
    groups: dict[Hashable, list[C]] = {}
    for one in candidates:
        for key in _keys(coordinates(one)):
            groups.setdefault(key, []).append(one)
    return Mutations(coordinates, groups)


def of_tiles(candidates: Sequence[Candidate]) -> Mutations[Candidate]:
    """The source's mutation: the size of one tile changes, the loops stay."""
    return mutations_of(candidates, lambda one: (one.body, *one.tiles))


def _keys(values: tuple[Hashable, ...]) -> list[Hashable]:
    """For each coordinate but the first: which it is, and the values of all others."""
    return [(at, values[:at], values[at + 1 :]) for at in range(1, len(values))]
