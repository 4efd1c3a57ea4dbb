"""Tables that a function holds as arrays, recognized as distances of rows and columns.

``(i[:, None] - i).abs()``, where ``i = torch.arange(s)``, is an array of s * s integers. A bias of
attention that falls with the distance multiplies it by a slope for each head. A program that
computes the distance from positions reads no table, for any head.

A table is a distance if it equals a multiple of the row plus a multiple of the column plus a
number, or the absolute value of that, or its larger or smaller one with 0. Two corners tell which:
in one of them at least, the row and the column count. The table is compared with the answer,
element by element.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

EXACT = 2**24
"""Distances are below this: whole numbers that float32, in which kernels compute, tells apart."""
PIECE = 2**20
"""Elements of a table that are compared at once."""

_FORMS: Mapping[str, Callable[[Any], Any]] = {
    "{}": lambda x: x,
    "|{}|": abs,
    "-|{}|": lambda x: -abs(x),
    "max({}, 0)": lambda x: np.maximum(x, 0),
    "min({}, 0)": lambda x: np.minimum(x, 0),
}


@dataclass(frozen=True)
class Distance:
    """``row * i + column * j + offset`` at row ``i`` and column ``j``, in one of the forms."""

    row: int
    column: int
    offset: int
    form: str = "{}"

    def at(self, i: Any, j: Any) -> Any:
        """The distance at rows ``i`` and columns ``j``, arrays of NumPy's or traced ones."""
        made: Any = None
        for times, place in ((self.row, i), (self.column, j)):
            if times:
                term = place if abs(times) == 1 else place * abs(times)
                if made is None:
                    made = term if times > 0 else -term
                else:
                    made = made + term if times > 0 else made - term
        return _FORMS[self.form](made + self.offset if self.offset else made)

    def __str__(self) -> str:
        parts = [f"{n}{axis}" for n, axis in ((self.row, " i"), (self.column, " j")) if n]
        parts += [str(self.offset)] if self.offset else []
        return self.form.format(" + ".join(parts).replace("1 ", "").replace("+ -", "- "))


def distance_of(table: Any) -> Distance | None:
    """The distance that equals a table, a matrix of numbers; None if none of ours does.

    >>> i = np.arange(5)
    >>> print(distance_of(abs(i[:, None] - i)), distance_of(np.maximum(i[:, None] - i - 1, 0)))
    |i - j| max(i - j - 1, 0)
    """
    rows, columns = table.shape
    if min(rows, columns) < 2:
        return None
    for first, left in ((0, columns - 2), (rows - 2, 0)):
        corner = table[first : first + 2, left : left + 2].astype(float)
        if not np.all(np.abs(corner) < EXACT) or np.any(corner % 1):
            return None
        row, column = int(corner[1, 0] - corner[0, 0]), int(corner[0, 1] - corner[0, 0])
        offset = int(corner[0, 0]) - row * first - column * left
        reach = abs(row) * rows + abs(column) * columns + abs(offset)
        if (row or column) and reach < EXACT:
            for form in _FORMS:
                sign = -1 if "|" in form and row < 0 else 1  # |i - j| rather than |-i + j|
                found = Distance(sign * row, sign * column, sign * offset, form)
                if _equals(found, table):
                    return found
    return None


def _equals(distance: Distance, table: Any) -> bool:
    """Whether a table holds a distance: positions make no -0.0, as products of floats do."""
    rows, columns = table.shape
    step, every = max(1, PIECE // columns), np.arange(columns)[None]
    for at in range(0, rows, step):
        part = table[at : at + step]
        made = distance.at(np.arange(at, min(at + step, rows))[:, None], every)
        if not np.array_equal(np.broadcast_to(made, part.shape), part):
            return False
        if part.dtype.kind == "f" and np.signbit(part[part == 0]).any():
            return False
    return True
