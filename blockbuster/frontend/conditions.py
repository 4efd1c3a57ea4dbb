"""Masks that a function holds as arrays, recognized as conditions on positions.

``torch.ones(s, s, dtype=torch.bool).tril()`` is an array of s * s elements, and says no more than
``j <= i``. A program that computes the condition reads no mask, and a kernel skips the blocks where
the condition fails everywhere.

The true elements of a mask lie between bounds: least and largest row ``i``, column ``j`` and
diagonal ``j - i``. The mask is a condition if it is true everywhere between these bounds: a
triangle, a band, a prefix, a rectangle. Otherwise the same is tried for the false elements, and
then with rows and columns counted in blocks, which gives block-diagonal masks and causal ones of
blocks. At last the false elements between these bounds may lie between bounds of their own: a band
with the first columns, or with some rows and columns that see all. Every answer is compared with
the mask, element by element.

A mask of floats has two numbers: 0 and -inf, as ``torch.triu(torch.full((s, s), -inf), 1)`` has, 0
and the least number of a dtype, or 1 and 0.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

MOST = 2**28
"""Elements of a mask that is looked at: some seconds."""
SIDE = 64
"""Rows and columns of blocks that are looked at as a whole: those of usual tiles."""


@dataclass(frozen=True)
class Bound:
    """A row, a column or a diagonal, by its place in ``i``, ``j`` and ``j - i``, that is at least
    or at most ``limit``; rows and columns are counted in blocks of ``block``.
    """

    term: int
    is_least: bool
    limit: int
    block: int = 1

    def holds(self, i: Any, j: Any) -> Any:
        """The bound at rows ``i`` and columns ``j``, arrays of NumPy's or traced ones.

        It compares two sides instead of a difference, as people write such masks.
        """
        i, j = (i // self.block, j // self.block) if self.block > 1 else (i, j)
        left = i if self.term == 0 else j
        right = (i + self.limit if self.limit else i) if self.term == 2 else self.limit
        return left >= right if self.is_least else left <= right

    def __str__(self) -> str:
        i, j = (f"{axis} // {self.block}" if self.block > 1 else axis for axis in "ij")
        term = (i, j, f"{j} - {i}")[self.term]
        return f"{term} {'>=' if self.is_least else '<='} {self.limit}"


Bounds = tuple[Bound, ...]
Ends = tuple[float, float]
"""What a mask holds where its condition holds, and elsewhere."""


@dataclass(frozen=True)
class Condition:
    """The conjunction of bounds, or its opposite where ``negated``.

    Where ``but_not`` has bounds, they do not hold all at once.
    """

    bounds: Bounds
    negated: bool
    but_not: Bounds = ()

    def holds(self, i: Any, j: Any) -> Any:
        """The condition at rows ``i`` and columns ``j``."""
        parts = [_all_hold(self.bounds, i, j)] if self.bounds else []
        parts += [~_all_hold(self.but_not, i, j)] if self.but_not else []
        found = functools.reduce(operator.and_, parts)
        return ~found if self.negated else found

    def __str__(self) -> str:
        parts = [*map(str, self.bounds)]
        if self.but_not:
            parts.append(f"not ({' and '.join(map(str, self.but_not))})")
        text = " and ".join(parts)
        return f"not ({text})" if self.negated else text


def condition_of(mask: Any) -> Condition | None:
    """The condition that equals a mask, a matrix of truth values; None if none of ours does.

    A mask that is the same everywhere has no condition.

    >>> print(condition_of(np.tri(5, dtype=bool)))
    j - i <= 0
    >>> print(condition_of(np.arange(6)[None] < 4), condition_of(np.eye(4, 6, 1, dtype=bool)))
    j <= 3 j - i >= 1 and j - i <= 1
    >>> print(condition_of(np.kron(np.eye(3), np.ones((2, 2))) == 1))
    j // 2 - i // 2 >= 0 and j // 2 - i // 2 <= 0
    >>> j, i = np.arange(9), np.arange(9)[:, None]
    >>> print(condition_of((j <= i) & ((j > i - 3) | (j < 2))))  # a band and the first columns
    j - i <= 0 and not (j >= 2 and j - i <= -3)
    """
    if not 0 < mask.size <= MOST or mask.all() or not mask.any():
        return None
    for negated in (False, True):
        chosen = ~mask if negated else mask
        for bounds in _candidates(chosen):
            needed = _needed(bounds, chosen)
            if needed is not None:
                return Condition(needed, negated)
    for negated in (False, True):
        bounds, but_not = _with_exception(~mask if negated else mask)
        if but_not:
            return Condition(bounds, negated, but_not)
    return None


def blocks_of_one_value(mask: Any) -> tuple[int, int, int]:
    """How many blocks of a matrix of truth values are false, and true, throughout; and how many
    there are.

    >>> blocks_of_one_value(np.kron(np.eye(3), np.ones((64, 64))) == 1)
    (6, 3, 9)
    """
    some, none = _in_blocks(mask, SIDE), _in_blocks(~mask, SIDE)
    return int(np.count_nonzero(~some)), int(np.count_nonzero(~none)), some.size


def truth_of(array: Any) -> tuple[Any, Ends] | None:
    """Where an array holds the larger one of its two numbers, and both; a mask holds True and
    False. None for an array of more numbers.

    >>> truth_of(np.array([0.0, -np.inf])), truth_of(np.array([0.0, 1.0, 2.0]))
    ((array([ True, False]), (0.0, -inf)), None)
    """
    if array.dtype == bool:
        return array, (True, False)
    if array.dtype.kind != "f" or not array.size:
        return None
    ends = float(array.max()), float(array.min())
    found = [(array == end) & (np.signbit(array) == np.signbit(end)) for end in ends]
    is_either = ends[0] < math.inf and bool(np.all(found[0] | found[1]))  # not if -0.0 is beside 0
    return (found[0], ends) if is_either else None


def _candidates(mask: Any) -> Iterator[Bounds]:
    fine = _bounds(mask, 1)
    yield fine
    runs = (_run(mask[0]), _run(mask[:, 0]))
    for block in dict.fromkeys(run for run in runs if 1 < run < max(mask.shape)):
        yield (*fine, *_bounds(_in_blocks(mask, block), block))


def _with_exception(mask: Any) -> tuple[Bounds, Bounds]:
    """Bounds, and others that do not hold all at once, which give the mask; () and () if none do.

    The false elements between the tightest bounds of the true ones have tightest bounds, too.
    """
    i, j = np.arange(mask.shape[0])[:, None], np.arange(mask.shape[1])[None]
    bounds = _bounds(mask, 1)
    inside = np.broadcast_to(_all_hold(bounds, i, j), mask.shape) if bounds else ~mask | mask
    left_out = inside & ~mask
    if not left_out.any():
        return (), ()
    but_not = _bounds(left_out, 1)
    if not but_not or not np.array_equal(inside & ~_all_hold(but_not, i, j), mask):
        return (), ()
    but_not = _fewest(but_not, lambda fewer: np.array_equal(inside & ~_all_hold(fewer, i, j), mask))
    outside = ~_all_hold(but_not, i, j)
    bounds = _fewest(bounds, lambda fewer: np.array_equal(_all_hold(fewer, i, j) & outside, mask))
    return bounds, but_not


def _fewest(bounds: Bounds, give: Callable[[Bounds], bool]) -> Bounds:
    """The bounds without those that others make needless: as long as they ``give`` a mask."""
    for bound in sorted(bounds, key=lambda bound: (bound.block, -bound.term)):
        fewer = tuple(one for one in bounds if one != bound)
        bounds = fewer if fewer and give(fewer) else bounds
    return bounds


def _all_hold(bounds: Bounds, i: Any, j: Any) -> Any:
    return functools.reduce(operator.and_, (bound.holds(i, j) for bound in bounds))


def _run(line: Any) -> int:
    """How many elements are true from the first on."""
    return int(np.argmin(line)) if not line.all() else line.size


def _in_blocks(mask: Any, block: int) -> Any:
    """Which blocks of a mask have a true element."""
    for axis in (0, 1):
        mask = np.logical_or.reduceat(mask, np.arange(0, mask.shape[axis], block), axis=axis)
    return mask


def _bounds(mask: Any, block: int) -> Bounds:
    """The tightest bounds of the true elements, without those that every element keeps."""
    rows, columns = mask.shape
    first = np.argmax(mask, axis=1)
    last = columns - 1 - np.argmax(mask[:, ::-1], axis=1)
    i = np.flatnonzero(mask.any(axis=1))
    first, last = first[i], last[i]
    spans = [
        (i[0], i[-1], 0, rows - 1),
        (first.min(), last.max(), 0, columns - 1),
        ((first - i).min(), (last - i).max(), 1 - rows, columns - 1),
    ]
    found = []
    for term, (low, high, least, most) in enumerate(spans):
        found += [Bound(term, True, int(low), block)] if low > least else []
        found += [Bound(term, False, int(high), block)] if high < most else []
    return tuple(found)


def _needed(bounds: Bounds, mask: Any) -> Bounds | None:
    """The bounds without which others would not give the mask; None if all together do not."""
    i, j = np.arange(mask.shape[0])[:, None], np.arange(mask.shape[1])[None]

    def gives(chosen: Bounds) -> bool:
        return bool(np.array_equal(np.broadcast_to(_all_hold(chosen, i, j), mask.shape), mask))

    return _fewest(bounds, gives) if bounds and gives(bounds) else None
