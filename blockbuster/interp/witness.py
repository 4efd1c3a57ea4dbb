"""Witnesses: inputs in a case, for which comparisons have the stated outcomes.

If monomials are single unknowns, linear arithmetic finds one. Else a point climbs: from several
starts it follows the gradient of the constraint that it misses most, until it misses none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

import numpy as np

from blockbuster.interp.cells import Cell, Solver
from blockbuster.interp.domains import Domain, Inputs
from blockbuster.interp.laurent import Key, Monomial
from blockbuster.interp.unknowns import Unknowns

STARTS = (1.0, 1.0, 8.0, 64.0, 2048.0)
CLIMBS = 120
NUDGE = 1e-6
GRIDS = (4, 64, 2**10, 2**20)  # points are tried on coarse numbers first: they can be read
MARGINS = (1.0, 2.0**-4, 2.0**-10)

Point = dict[int, float]


def points(
    names: Unknowns, cell: Cell, solver: Solver, *, mild: float | None, whole: bool = False
) -> Iterator[Point]:
    """Values of the inputs that may lie in a case; ``mild`` bounds them.

    ``whole``: whole numbers are tried first.
    """
    random = np.random.default_rng(0)
    inputs = [n for n, kind in enumerate(names.kinds) if kind[0] == "input"]
    for atom, signs in cell.signs.items():
        if mild is not None and signs == {0} and names.functions(dict(atom)):
            return  # rounding decides whether exp(x) is 4
    linear = solver.point(cell) or {}
    for margin in MARGINS:
        for magnitude in STARTS:
            drawn = (random.integers(-8, 9, len(inputs)) * magnitude / 8).tolist()
            start = dict(zip(inputs, drawn, strict=True))
            if magnitude == STARTS[0]:
                start |= _singles(linear, inputs)
            start = _mildly(start, mild)
            point = _climbed(names, cell, start, margin, mild)
            if point is not None:
                yield from _rounded(names, cell, point, (1, *GRIDS) if whole else GRIDS)


def _singles(found: Mapping[Monomial, Fraction], inputs: list[int]) -> Point:
    return {m[0][0]: float(x) for m, x in found.items()
            if len(m) == 1 and m[0][1] == 1 and m[0][0] in inputs}  # fmt: skip


def _mildly(point: Point, mild: float | None) -> Point:
    return point if mild is None else {n: min(max(x, -mild), mild) for n, x in point.items()}


def _rounded(names: Unknowns, cell: Cell, point: Point, grids: Sequence[int]) -> Iterator[Point]:
    for grid in grids:
        rounded = {n: round(x * grid) / grid for n, x in point.items()}
        if _missed(names, cell, rounded, 0.0) is None:
            yield rounded
            break
    yield point


def _missed(
    names: Unknowns, cell: Cell, point: Point, margin: float
) -> tuple[Key, int, float] | None:
    """The constraint that is missed most, the sign that it should have, and its value."""
    worst, found = 0.0, None
    for atom, signs in cell.signs.items():
        value = names.value(dict(atom), point)
        sign = next(iter(signs))
        far = abs(value) if sign == 0 else margin - sign * value
        if far > worst or (sign and sign * value <= 0 and found is None):
            worst, found = max(far, worst), (atom, sign, value)
    return found


def _climbed(
    names: Unknowns, cell: Cell, point: Point, margin: float, mild: float | None
) -> Point | None:
    try:
        for _ in range(CLIMBS):
            missed = _missed(names, cell, point, margin)
            if missed is None:
                return point
            atom, sign, value = missed
            p = dict(atom)
            slope = {
                n: (names.value(p, {**point, n: x + NUDGE}) - value) / NUDGE
                for n, x in point.items()
            }
            steep = sum(s * s for s in slope.values())
            if not steep or not np.isfinite(steep):
                return None
            step = ((sign * margin * 1.5 if sign else 0.0) - value) / steep
            point = _mildly({n: x + step * slope[n] for n, x in point.items()}, mild)
        near = _missed(names, cell, point, 0.0)
    except (ArithmeticError, ValueError):
        return None
    if near is None or (near[1] == 0 and abs(near[2]) < NUDGE):
        return point
    return None


def arrays(domain: Domain, names: Unknowns, point: Point) -> Inputs:
    """Inputs with the values of a point, and other small numbers elsewhere.

    Where a dtype lacks a number, the nearest that it has stands for it.
    """
    random = np.random.default_rng(1)
    made = {
        name: random.integers(-8, 9, shape) / 4 + 0.125 for name, shape in domain.shapes.items()
    }
    for number, value in point.items():
        name, *at = names.kinds[number][1]
        made[name][tuple(at)] = value
    return domain.nearest(made)
