"""Numbers for positions and sizes, and the outcomes of comparisons of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from blockbuster.interp.layout import Array
from blockbuster.interp.terms import Term, below
from blockbuster.ir.types import Dim, size_class

Place = tuple[Any, ...]
"""(dim, number) for a position, (size class,) for a size."""
Sizes = Mapping[Dim, int]
Outcome = tuple[int, ...]
UNSEEN = (9,)  # the outcome of what is not computed
ROUNDS = 2  # of looking for thresholds next to thresholds
ENOUGH = 40  # places of interest along a dim
MOST_POINTS = 400_000

NUMERIC: dict[str, Callable[..., Any]] = {
    "inverse": lambda x: 1 / x, "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "tanh": np.tanh,
    "lt": np.less, "eq": np.equal, "not": lambda x: x == 0,
    "and": lambda x, y: (x != 0) & (y != 0), "or": lambda x, y: (x != 0) | (y != 0),
    "where": lambda c, x, y: np.where(c != 0, x, y), "pow": np.power,
    "floor": np.floor, "round": np.rint, "sin": np.sin, "cos": np.cos, "log1p": np.log1p,
    "expm1": np.expm1, "atan": np.arctan,
}  # fmt: skip
FOLDED = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


class Compared(Protocol):
    """Two terms that are compared."""

    @property
    def left(self) -> Term: ...
    @property
    def right(self) -> Term: ...
    @property
    def places(self) -> tuple[Place, ...]: ...


def outcomes(
    group: Sequence[Compared], sizes: Sizes, along: Mapping[Place, Array] | None
) -> set[Outcome]:
    """The signs that comparisons have together, at all positions or at those ``along`` each dim."""
    known = {place for one in group for place in one.places}
    if along is None:
        along = {p: np.arange(sizes[size_class(p[0])]) for p in known if len(p) > 1}
    if not all(map(len, along.values())):
        return set()
    while np.prod([len(held) for held in along.values()], dtype=float) > MOST_POINTS:
        along = {p: held[::2] if len(held) > 3 else held for p, held in along.items()}
    held = sorted(along)
    grid = np.meshgrid(*(along[p] for p in held), indexing="ij") if held else []
    point: dict[Place, Any] = {p: g.ravel().astype(float) for p, g in zip(held, grid, strict=True)}
    point |= {p: float(sizes[p[0]]) for p in known if len(p) == 1}
    rows = []
    for one in group:
        sign = _signs(one, point)
        if sign is None:
            return {UNSEEN}
        rows.append(np.broadcast_to(sign, (grid[0].size if grid else 1,)))
    return set(map(tuple, np.unique(np.array(rows), axis=1).T.astype(int).tolist()))


def places(group: Sequence[Compared], sizes: Sizes) -> dict[Place, Array]:
    """Positions of interest along each dim: the ends, and both sides of every threshold."""
    known = sorted({p for one in group for p in one.places if len(p) > 1})
    found = {p: _ends(sizes[size_class(p[0])]) for p in known}
    fixed = {p: float(sizes[p[0]]) for one in group for p in one.places if len(p) == 1}
    for _ in range(ROUNDS):
        more = {p: set(found[p]) for p in known}
        for one in group:
            own = [p for p in one.places if len(p) > 1]
            for place in own:
                others = [p for p in own if p != place]
                for point in _corners(found, others):
                    more[place] |= _thresholds(one, place, point | fixed, found[place][-1])
        found = {p: _few(more[p]) for p in known}
    return {p: np.array(held) for p, held in found.items()}


def _ends(size: int) -> list[int]:
    return sorted({n for n in (0, 1, 2, size // 2, size - 2, size - 1) if 0 <= n < size})


def _few(held: set[int]) -> list[int]:
    ordered = sorted(held)
    return ordered if len(ordered) <= ENOUGH else [*ordered[: ENOUGH - 3], *ordered[-3:]]


def _corners(found: Mapping[Place, list[int]], others: Sequence[Place]) -> list[dict[Place, float]]:
    points: list[dict[Place, float]] = [{}]
    for place in others:
        points = [point | {place: float(n)} for point in points for n in found[place]]
        points = points[:: max(1, len(points) // 64)]
    return points


def _thresholds(one: Compared, place: Place, point: Mapping[Place, float], last: int) -> set[int]:
    """The positions on both sides of where the sign changes, and their neighbours."""
    steps = {0, 1, 2, 3, last, *(n for n in _steps() if n < last)}
    line = np.array(sorted(n for n in steps if n <= last))
    signs = _signs(one, {**point, place: line.astype(float)})
    if signs is None or np.ndim(signs) == 0:
        return set()
    found: set[int] = set()
    for (low, before), (high, after) in pairwise(zip(line.tolist(), signs.tolist(), strict=True)):
        if before == after:
            continue
        while high - low > 1:
            middle = (low + high) // 2
            sign = _signs(one, {**point, place: np.array([float(middle)])})
            assert sign is not None
            low, high = (middle, high) if sign[0] == before else (low, middle)
        found |= {n for n in range(low - 1, high + 3) if 0 <= n <= last}
    return found


def _steps() -> list[int]:
    return [*range(4, 40, 3), *(int(40 * 1.25**k) for k in range(80))]


def _signs(one: Compared, point: Mapping[Place, Any]) -> Any:
    """The signs of left - right, or None if they are not computed."""
    values: dict[int, Any] = {}
    with np.errstate(all="ignore"):
        for term in sorted(below(one.left, one.right), key=lambda term: term.number):
            args = [values[part.number] for part in term.parts]
            if term.fn == "input":
                values[term.number] = point.get(term.args[0], 1.0)  # data, which cancel
            elif term.fn == "number":
                values[term.number] = float(term.args[0])
            elif term.fn in FOLDED:
                made = args[0]
                for other in args[1:]:
                    made = FOLDED[term.fn](made, other)
                values[term.number] = made
            elif term.fn in NUMERIC:
                values[term.number] = NUMERIC[term.fn](*args)
            else:
                return None
        x, y = values[one.left.number], values[one.right.number]
        return np.greater(x, y).astype(int) - np.less(x, y).astype(int)
