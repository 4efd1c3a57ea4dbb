"""Which systems of linear inequalities have solutions: exactly, by the simplex method.

Strict inequalities p > 0 become p >= t for the largest t up to 1: there is a solution if t > 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from blockbuster.interp.work import Work

Row = dict[int, Fraction]
"""Coefficients of unknowns; that of unknown -1 is the constant."""
CONSTANT = -1


def solution(
    strict: Sequence[Row], weak: Sequence[Row], equal: Sequence[Row], work: Work | None = None
) -> dict[int, Fraction] | None:
    """Unknowns with each of ``strict`` above zero, ``weak`` not below, ``equal`` zero; or None.

    Strict ones are kept away from zero as far as they can be, up to 1. Raises TooLarge if that
    takes more than ``work``.
    """
    solved: list[tuple[int, Row]] = []
    for row in equal:
        reduced = _replaced(row, solved)
        pivot = next((u for u in reduced if u != CONSTANT), None)
        if pivot is None:
            if reduced.get(CONSTANT):
                return None
            continue
        by = {u: -c / reduced[pivot] for u, c in reduced.items() if u != pivot}
        solved = [(u, _replaced(r, [(pivot, by)])) for u, r in solved]
        solved.append((pivot, by))
    rows = [(_replaced(row, solved), 1) for row in strict]
    rows += [(_replaced(row, solved), 0) for row in weak]
    found = _maximized(rows, work or Work(math.inf))
    if found is None:
        return None
    for unknown, by in solved:
        found[unknown] = sum(
            (c * (1 if u == CONSTANT else found.setdefault(u, Fraction(0))) for u, c in by.items()),
            Fraction(0),
        )
    return found


def _replaced(row: Row, solved: Sequence[tuple[int, Row]]) -> Row:
    made = dict(row)
    for unknown, by in solved:
        factor = made.pop(unknown, None)
        if factor:
            for u, c in by.items():
                made[u] = made.get(u, Fraction(0)) + factor * c
    return {u: c for u, c in made.items() if c}


def _maximized(rows: Sequence[tuple[Row, int]], work: Work) -> dict[int, Fraction] | None:
    """Unknowns that keep weak rows from falling below zero and strict ones above it, or None.

    Unknowns are differences of two that are not negative. All rows may fall below zero by ``fall``,
    at first so far that all at zero is where to start; it is made as small as can be, and then the
    margin of the strict rows as large.
    """
    unknowns = sorted({u for row, _ in rows for u in row if u != CONSTANT})
    low = min([row.get(CONSTANT, Fraction(0)) for row, _ in rows], default=Fraction(0))
    depth = max(-low, Fraction(0))
    width = 2 * len(unknowns) + 2  # ..., depth - fall, margin
    table, bounds = [], []
    for row, strict in rows:
        line = [Fraction(0)] * width
        for at, u in enumerate(unknowns):
            line[2 * at], line[2 * at + 1] = -row.get(u, Fraction(0)), row.get(u, Fraction(0))
        line[-2:] = Fraction(1), Fraction(strict)
        table.append(line)
        bounds.append(row.get(CONSTANT, Fraction(0)) + depth)
    for at, most in ((-2, depth), (-1, Fraction(1))):
        line = [Fraction(0)] * width
        line[at] = Fraction(1)
        table.append(line)
        bounds.append(most)
    values = _simplex(table, bounds, work)
    if values[-2] < depth or (any(strict for _, strict in rows) and values[-1] <= 0):
        return None
    return {u: values[2 * at] - values[2 * at + 1] for at, u in enumerate(unknowns)}


def _simplex(table: list[list[Fraction]], bounds: list[Fraction], work: Work) -> list[Fraction]:
    """Unknowns, none negative, with table @ x <= bounds (none negative).

    The last but one is as large as can be, and with that the last. Bland's rule: of several columns
    or rows the first, so that it ends. Each row is an equation with its bound at the end: a
    positive multiple says the same, so all rows are kept in whole numbers.
    """
    height, width = len(table), len(table[0])
    size = width + height
    goals = [[int(c == at) for c in range(size + 1)] for at in (width - 2, width - 1)]
    basis = [*range(width, size)]
    rows = [
        _whole([*line, *(Fraction(i == at) for i in range(height)), bounds[at]])
        for at, line in enumerate(table)
    ]
    while True:
        gains = zip(range(size), *goals, strict=False)
        column = next((c for c, *gain in gains if gain > [0, 0]), None)
        if column is None:
            break
        held = [r for r in range(height) if rows[r][column] > 0]
        pivot = min(held, key=lambda r: (Fraction(rows[r][-1], rows[r][column]), basis[r]))
        by = rows[pivot]
        work.spend((1 + sum(1 for row in rows if row[column])) * sum(map(bool, by[:-1])))
        rows = [row if row is by else _without(row, by, column) for row in rows]
        goals = [_without(goal, by, column) for goal in goals]
        basis[pivot] = column
    values = [Fraction(0)] * size
    for row, unknown in zip(rows, basis, strict=True):
        values[unknown] = Fraction(row[-1], row[unknown])
    return values[:width]


def _whole(row: list[Fraction]) -> list[int]:
    """A positive multiple of a row, in whole numbers."""
    least = math.lcm(*(c.denominator for c in row))
    return [c.numerator * (least // c.denominator) for c in row]


def _without(row: list[int], by: list[int], column: int) -> list[int]:
    """A positive multiple of a row, less what makes ``column`` zero of ``by``, which has it above.

    Common divisors are taken out, so that numbers stay small.
    """
    share = row[column]
    if not share:
        return row
    factor = by[column]
    made = [c * factor - share * d for c, d in zip(row, by, strict=True)]
    common = math.gcd(*made)
    return [c // common for c in made] if common > 1 else made
