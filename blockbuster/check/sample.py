"""Which rows of a program's outputs a check computes again, and how.

An exact run of a whole program may take many times the memory of its result. If that is more than a
check may take, or too slow, only some rows are computed, along dims that no operator looks into. If
even these take too much, operators that fold a dim are computed a piece at a time
(frontend/in_pieces.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from blockbuster.frontend.in_pieces import foldable, run_in_pieces
from blockbuster.frontend.on_tensors import DOUBLE, Way, cost, run
from blockbuster.frontend.program import ArrayProgram
from blockbuster.frontend.rows import Rows, indices
from blockbuster.frontend.separable import separable_dims
from blockbuster.ir.types import Dim

Tensor = Any
Sizes = Mapping[Dim, int]

ELEMENTS, PRODUCTS = 5e9, 1e12
"""What an exact run may make before rows are sampled: some 30 ms of a large GPU, in float64."""
SAMPLED, ONE = (64, 8), (1,)
"""How many rows of a dim are sampled, fewer where these are still too many; a single one says
little, and is taken where nothing else has room."""
NOISY = 3
"""How many times the memory of an exact run one takes that changes the numbers it reads."""
KEPT = 24
"""How many numbers are held of each element that is compared: exact and eager results, some of
inputs nearby, and what their comparison makes."""


@dataclass(frozen=True)
class Sample:
    """The ``rows`` that are computed; ``folded`` is the dim that is cut into pieces of ``step``.

    ``needed``: about how many bytes that takes.
    """

    needed: int
    rows: Rows = field(default_factory=dict)
    folded: Dim = ""
    step: int = 0

    def of(
        self, program: ArrayProgram, tensors: Sequence[Tensor], sizes: Sizes, way: Way
    ) -> list[Tensor]:
        """The rows of the program's outputs for these inputs."""
        if not self.folded:
            return run(program, tensors, sizes, way=way, rows=self.rows)
        dim, step = self.folded, self.step
        return run_in_pieces(program, tensors, sizes, dim=dim, step=step, way=way, rows=self.rows)


def sample(program: ArrayProgram, sizes: Sizes, like: Tensor, room: int) -> Sample:
    """The rows to compute, as indices on the device of ``like``.

    All rows, or as many as take at most ``room`` bytes and little time. If no sample fits, the
    smallest one: its ``needed`` exceeds ``room``.
    """
    apart = sorted(separable_dims(program), key=lambda dim: -sizes[dim])
    for numbers in (SAMPLED, ONE):
        tried = [(c, _needed(program, sizes, c)) for c in _counts(apart, sizes, numbers)]
        fitting = [one for one in tried if one[1] <= room]
        quick = [one for one in fitting if _is_quick(program, sizes, one[0])]
        for counts, needed in quick[:1] or fitting[-1:]:
            return Sample(needed, _indices(sizes, counts, like))
        for found in _in_pieces(program, sizes, apart, numbers, like, room):
            return found
    counts, needed = min(tried, key=lambda one: one[1])
    return Sample(needed, _indices(sizes, counts, like))


def _counts(apart: Sequence[Dim], sizes: Sizes, numbers: Sequence[int]) -> Iterator[dict[Dim, int]]:
    """Numbers of rows by dim, fewer each time; dims that are not named are whole."""
    counts: dict[Dim, int] = {}
    yield {}
    for most in numbers:
        for dim in apart:
            counts = {**counts, dim: min(sizes[dim], most)}
            yield counts


def _in_pieces(
    program: ArrayProgram,
    sizes: Sizes,
    apart: Sequence[Dim],
    numbers: Sequence[int],
    like: Tensor,
    room: int,
) -> Iterator[Sample]:
    """The samples that fit where a dim that is folded is cut into pieces, largest first."""
    folded = [dim for dim in program.dims if dim not in apart and foldable(program, dim)]
    for most in numbers:
        for dim in sorted(folded, key=lambda dim: -sizes[dim]):
            counts = {d: min(sizes[d], most) for d in (*apart, dim)}
            step = 1 << max(sizes[dim], 1).bit_length()
            while step > 1:
                step //= 2
                needed = _needed(program, sizes, counts, {**counts, dim: step})
                if needed <= room:
                    yield Sample(needed, _indices(sizes, counts, like), dim, step)
                    break


def _needed(program: ArrayProgram, sizes: Sizes, counts: Sizes, piece: Sizes | None = None) -> int:
    """About how many bytes a comparison of these rows takes, or its pieces if these take more."""
    held = max(cost(program, {**sizes, **part}).held for part in (counts, piece or counts))
    full = {**sizes, **counts}
    shapes = (program.shape_of(output.value) for output in program.outputs)
    kept = sum(math.prod(full[a] if isinstance(a, str) else a for a in s) for s in shapes)
    return NOISY * held + KEPT * DOUBLE * kept


def _is_quick(program: ArrayProgram, sizes: Sizes, counts: Sizes) -> bool:
    needed = cost(program, {**sizes, **counts})
    return needed.elements <= ELEMENTS and needed.products <= PRODUCTS


def _indices(sizes: Sizes, counts: Sizes, like: Tensor) -> Rows:
    return {
        dim: indices(sampled(sizes[dim], count), like)
        for dim, count in counts.items()
        if count < sizes[dim]
    }


def sampled(size: int, count: int) -> list[int]:
    """Up to ``count`` indices in order, always the same: the first, the last and random ones."""
    found = {0, size - 1, *Random(size).sample(range(size), max(count - 2, 0))}
    return sorted(found)[:count]
