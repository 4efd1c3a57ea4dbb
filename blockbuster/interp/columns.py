"""Columns: the items of a value in many iterations at once, those of one shape in one array.

A column is a sequence of items, in the order of iterations; a value that is a list gives one item
after the other. Blocks at the end of a dim are shorter, so items have few different shapes, and a
column keeps an array for each: the items stacked along a first axis. Equal columns of one
``Columns`` are one object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from blockbuster.interp.layout import Array
from blockbuster.ir.types import Dim

Places = NDArray[np.intp]
Shape = tuple[int, ...]


class Around:
    """The iterations around an equation: by dim the number of each one's block.

    One object wherever they are the same.
    """

    def __init__(self, count: int, numbers: Mapping[Dim, Places]) -> None:
        self.count, self.numbers = count, numbers

    def __len__(self) -> int:
        return self.count

    def inside(self, dim: Dim, blocks: range) -> Around:
        """The iterations around the body of a map over these blocks of ``dim``."""
        times = len(blocks)
        numbers = {other: np.repeat(held, times) for other, held in self.numbers.items()}
        own = np.tile(np.array(blocks, np.intp), self.count)
        return Around(self.count * times, {**numbers, dim: own})


class Pattern:
    """Which item of a column has which shape; equal patterns of one ``Columns`` are one object."""

    def __init__(self, length: int, shapes: tuple[Shape, ...], places: tuple[Places, ...]) -> None:
        self.length, self.shapes, self.places = length, shapes, places
        self.group = np.zeros(length, np.intp)
        """For each item the number of its shape, and below its row among those of the shape."""
        self.row = np.zeros(length, np.intp)
        for number, at in enumerate(places):
            self.group[at] = number
            self.row[at] = np.arange(len(at))


class Column:
    """The items of a pattern, stacked: ``stacks[i]`` are those of shape ``pattern.shapes[i]``."""

    __slots__ = ("pattern", "stacks")

    def __init__(self, pattern: Pattern, stacks: tuple[Array, ...]) -> None:
        self.pattern, self.stacks = pattern, stacks

    def __len__(self) -> int:
        return self.pattern.length

    def items(self) -> list[Array]:
        """The items in order."""
        found: list[Any] = [None] * len(self)
        for at, stack in zip(self.pattern.places, self.stacks, strict=True):
            for place, item in zip(at.tolist(), stack, strict=True):
                found[place] = np.asarray(item)
        return found


class Part(NamedTuple):
    """Places at which several columns have one shape each, and how to get at these items."""

    places: Places
    groups: tuple[int, ...]
    rows: tuple[Places | None, ...]
    """The rows of each column's stack; None for all of them in order."""

    def of(self, columns: Sequence[Column]) -> list[Array]:
        """The items of each column at these places, stacked; the last patterns have no column."""
        taken = zip(columns, self.groups, self.rows, strict=False)
        return [c.stacks[g] if rows is None else c.stacks[g][rows] for c, g, rows in taken]


@dataclass(frozen=True, eq=False)
class Stacked:
    """Items of one shape, on their way into a column."""

    places: Places
    items: Array


class Columns:
    """Makes columns. What is looked up by its id stays alive here, so that its id stays its own."""

    def __init__(self) -> None:
        self._patterns: dict[tuple[Any, ...], Pattern] = {}
        self._columns: dict[tuple[Any, ...], Column] = {}
        self._parts: dict[tuple[int, ...], tuple[Part, ...]] = {}
        self._taken: dict[tuple[int, int], tuple[Places, Column]] = {}

    def of_items(self, items: Sequence[Array]) -> Column:
        """The column of these items."""
        by_shape: dict[Shape, list[int]] = {}
        for at, item in enumerate(items):
            by_shape.setdefault(np.shape(item), []).append(at)
        parts = [
            Stacked(np.array(at, np.intp), np.stack([items[place] for place in at]))
            for at in by_shape.values()
        ]
        return self.of_parts(len(items), parts)

    def of_parts(self, length: int, parts: Sequence[Stacked]) -> Column:
        """The column that has all of these items."""
        by_shape: dict[Shape, list[Stacked]] = {}
        for part in parts:
            by_shape.setdefault(part.items.shape[1:], []).append(part)
        places, stacks = [], []
        for shape in sorted(by_shape):
            held = by_shape[shape]
            at, items = held[0].places, held[0].items
            if len(held) > 1:
                at = np.concatenate([part.places for part in held])
                order = np.argsort(at)
                at, items = at[order], np.concatenate([part.items for part in held])[order]
            places.append(at)
            stacks.append(np.ascontiguousarray(items))
        pattern = self.pattern(length, tuple(sorted(by_shape)), places)
        key = (id(pattern), *map(_digest, stacks))
        return self._columns.setdefault(key, Column(pattern, tuple(stacks)))

    def pattern(self, length: int, shapes: Sequence[Shape], places: Sequence[Places]) -> Pattern:
        """The pattern in which items at ``places[i]`` have the shape ``shapes[i]``."""
        key = (length, *shapes, *(at.tobytes() for at in places))
        found = self._patterns.get(key)
        if found is None:
            found = self._patterns[key] = Pattern(length, tuple(shapes), tuple(places))
        return found

    def of_extents(self, extents: Places) -> Pattern:
        """The pattern of items whose shapes are the rows of ``extents``."""
        shapes, held = np.unique(extents, axis=0, return_inverse=True)
        places = [np.flatnonzero(held.ravel() == at) for at in range(len(shapes))]
        return self.pattern(len(extents), [*map(tuple, shapes.tolist())], places)

    def parts(self, patterns: Sequence[Pattern]) -> tuple[Part, ...]:
        """The places of columns of one length, grouped by the shapes of the items there."""
        key = tuple(map(id, patterns))
        found = self._parts.get(key)
        if found is None:
            found = self._parts[key] = tuple(_parts(patterns))
        return found

    def mapped(
        self, columns: Sequence[Column], make: Callable[..., Array], *more: Pattern
    ) -> Column:
        """A column whose items are made of those of ``columns``: ``make`` of stacked items.

        ``more`` are patterns that make a difference; ``make`` is told their shapes.
        """
        patterns = (*(column.pattern for column in columns), *more)
        made = []
        for part in self.parts(patterns):
            told = [p.shapes[g] for p, g in zip(more, part.groups[len(columns) :], strict=True)]
            items = make(part.of(columns), (len(part.places),), *told)
            made.append(Stacked(part.places, items))
        return self.of_parts(patterns[0].length, made)

    def taken(self, column: Column, places: Places) -> Column:
        """The items of a column at ``places``, an array that the caller keeps."""
        key = (id(column), id(places))
        known = self._taken.get(key)
        if known is None:
            groups, rows = column.pattern.group[places], column.pattern.row[places]
            parts = []
            for number, stack in enumerate(column.stacks):
                at = np.flatnonzero(groups == number)
                if len(at):
                    parts.append(Stacked(at, stack[rows[at]]))
            known = self._taken[key] = places, self.of_parts(len(places), parts)
        return known[1]

    def joined(self, columns: Sequence[Column]) -> Column:
        """One column after the other."""
        parts, before = [], 0
        for column in columns:
            for at, stack in zip(column.pattern.places, column.stacks, strict=True):
                parts.append(Stacked(at + before, stack))
            before += len(column)
        return self.of_parts(before, parts)


def _parts(patterns: Sequence[Pattern]) -> list[Part]:
    if len(patterns) == 1:
        (pattern,) = patterns
        return [Part(at, (g,), (None,)) for g, at in enumerate(pattern.places)]
    number = np.zeros(patterns[0].length, np.intp)
    for pattern in patterns:
        number = number * max(len(pattern.shapes), 1) + pattern.group
    found = []
    for value in np.unique(number).tolist():
        at = np.flatnonzero(number == value)
        groups = tuple(int(pattern.group[at[0]]) for pattern in patterns)
        rows = tuple(
            None if len(at) == len(pattern.places[g]) else pattern.row[at]
            for pattern, g in zip(patterns, groups, strict=True)
        )
        found.append(Part(at, groups, rows))
    return found


def _digest(array: Array) -> bytes:
    """A hash of 128 bits of the content of an array."""
    return blake2b(array.reshape(-1).view(np.uint8).data, digest_size=16).digest()
