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
    or rows the first, so that it ends.
    """
    height, width = len(table), len(table[0])
    zeros = [Fraction(0)] * (height + width)
    goals = [[*zeros], [*zeros]]
    goals[0][width - 2] = goals[1][width - 1] = Fraction(1)
    basis = [width + at for at in range(height)]
    rows = [line + [Fraction(int(i == at)) for i in range(height)] for at, line in enumerate(table)]
    while True:
        gains = enumerate(zip(*goals, strict=True))
        column = next((c for c, gain in gains if gain > (0, 0)), None)
        if column is None:
            break
        held = [r for r in range(height) if rows[r][column] > 0]
        pivot = min(held, key=lambda r: (bounds[r] / rows[r][column], basis[r]))
        factor = rows[pivot][column]
        work.spend((1 + sum(1 for row in rows if row[column])) * sum(map(bool, rows[pivot])))
        rows[pivot] = [c / factor if c else c for c in rows[pivot]]
        bounds[pivot] /= factor
        for r, row in enumerate(rows):
            if r != pivot and row[column]:
                bounds[r] -= row[column] * bounds[pivot]
                rows[r] = _less(row, row[column], rows[pivot])
        goals = [_less(goal, goal[column], rows[pivot]) for goal in goals]
        basis[pivot] = column
    values = [*zeros]
    for r, unknown in enumerate(basis):
        values[unknown] = bounds[r]
    return values[:width]


def _less(row: list[Fraction], share: Fraction, pivot: list[Fraction]) -> list[Fraction]:
    return [c - share * d if d else c for c, d in zip(row, pivot, strict=True)] if share else row
