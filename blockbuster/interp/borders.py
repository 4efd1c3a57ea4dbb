"""Inputs near which a comparison changes its outcome: programs that rarely differ may differ there.

Random inputs rarely take a narrow branch (x * x == 9, or 4000 < x * x < 4001). So the straight line
between two random inputs is searched: along it, each comparison with different outcomes at the two
ends has a border, found by bisection. The borders of both programs cut the line into stretches, and
the middle of each is tried. On a border itself rounding decides the outcome, so exact arithmetic
has to decide what programs do there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from blockbuster.interp.constants import COMPARISONS, LARGE, constants_of
from blockbuster.interp.domains import Inputs
from blockbuster.interp.layout import Array
from blockbuster.interp.semantics import Floats
from blockbuster.interp.setting import Setting
from blockbuster.ir.graph import Graph

MAGNITUDES = (2.0, 4.0, 64.0, 2.0**11, LARGE)  # of the far end of a line
MOST_CONSTANTS = 8  # of those that are larger, and gone beyond
MILD = 4  # exponentials of what is larger are lost beside others
MOST_BORDERS = 12  # of one program along one line
HALVINGS = 80
STRETCH = 1e-6  # of a line: shorter ones may come from rounding


class Comparing(Floats):
    """Double precision that notes the sign of x - y wherever x and y are compared."""

    def __init__(self) -> None:
        super().__init__("float64", "float64")
        self.signs: list[Array] = []
        self.scalars = {**self.scalars, **{n: self._noting(self.scalars[n]) for n in COMPARISONS}}

    def _noting(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        def noting(x: Any, y: Any) -> Any:
            self.signs.append(np.sign(np.subtract(x, y)).ravel())
            return fn(x, y)

        return noting


def crossings(
    graphs: Sequence[Graph], setting: Setting, random: np.random.Generator, *, literal: bool
) -> Iterator[tuple[Inputs, bool]]:
    """Inputs between the borders of the programs' comparisons, on random lines, and on borders.

    With each stands whether it is on a border. Programs that are not ``literal`` (with exp, or what
    is made of it) are tried near zero only.
    """
    larger = [2 * abs(c) for c in constants_of(*graphs) if abs(c) >= LARGE][:MOST_CONSTANTS]
    for magnitude in (m for m in (*MAGNITUDES, *larger) if literal or m <= MILD):
        domain = setting.domain(*graphs)
        near = {n: x.astype(float) for n, x in domain.small(random, lowest=-8, parts=4).items()}
        far = {
            n: magnitude * random.choice((-1.0, 1.0), shape) for n, shape in domain.shapes.items()
        }
        yield domain.nearest(far), False
        yield domain.nearest({name: -x for name, x in far.items()}), False
        found = [t for graph in graphs for t in borders(graph, setting, near, far)]
        for a, b in pairwise(sorted((0.0, *found, 1.0))):
            if b - a > STRETCH:
                yield domain.nearest(between(near, far, (a + b) / 2)), False
        for t in found:
            yield domain.nearest(between(near, far, t)), True


def between(near: Mapping[str, Array], far: Mapping[str, Array], t: float) -> Inputs:
    """The point at ``t`` of the way."""
    return {name: x + t * (far[name] - x) for name, x in near.items()}


def borders(
    graph: Graph, setting: Setting, near: Mapping[str, Array], far: Mapping[str, Array]
) -> list[float]:
    """The positions along the line at which comparisons change, one for each that changes."""
    domain = setting.domain(graph)

    def signs(t: float) -> Array:
        comparing = Comparing()
        setting.run(graph, domain.nearest(between(near, far, t)), comparing)
        return np.concatenate([np.zeros(0), *comparing.signs])

    first, last = signs(0.0), signs(1.0)
    found = []
    for at in np.flatnonzero(first * last < 0)[:MOST_BORDERS]:
        low, high = 0.0, 1.0
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            sign = signs(middle)[at]
            if sign == 0 or middle in (low, high):
                break
            low, high = (middle, high) if sign == first[at] else (low, middle)
        found.append(middle)
    return found
