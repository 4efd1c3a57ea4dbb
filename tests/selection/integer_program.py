"""Plans whose parts may overlap, as an integer program for HiGHS: an oracle for the search.

Each part is taken or not. Every output is stored by a part, every value that a taken part reads is
stored by another, and none is stored twice. Taken parts that read each other's values in a circle
cannot run: a condition forbids to take them together, and the program is solved again.
"""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from blockbuster.selection.parts.overlapping import Making, Values


def solved(values: Values, found: list[Making], lengths: list[float]) -> float:
    """The least sum of ``lengths`` of the parts ``found`` that are a plan."""
    scipy = pytest.importorskip("scipy.optimize", reason="scipy is not installed: make test")
    rows, ranges = [], []
    for value in range(len(values.makers)):
        stored = np.array([float(one.stores >> value & 1) for one in found])
        rows.append(stored)
        ranges.append((float(values.shown >> value & 1), 1.0))
        for at, one in enumerate(found):
            if one.reads >> value & 1:
                row = stored.copy()
                row[at] = -1.0
                rows.append(row)
                ranges.append((0.0, inf))
    while True:
        result = scipy.milp(
            np.array(lengths),
            integrality=np.ones(len(found)),
            bounds=scipy.Bounds(0.0, 1.0),
            constraints=scipy.LinearConstraint(np.array(rows), *np.array(ranges).T),
            options={"mip_rel_gap": 0.0},
        )
        assert result.status == 0, result.message
        taken = [at for at, share in enumerate(result.x) if share > 0.5]
        stuck = those_that_cannot_run(found, taken)
        if not stuck:
            return sum(lengths[at] for at in taken)
        rows.append(np.isin(np.arange(len(found)), stuck).astype(float))
        ranges.append((0.0, len(stuck) - 1.0))


def those_that_cannot_run(found: list[Making], taken: list[int]) -> list[int]:
    """Parts that wait for each other's values, whatever runs first."""
    left, stored = [*taken], 0
    while ready := [at for at in left if not found[at].reads & ~stored]:
        left = [at for at in left if at not in ready]
        for at in ready:
            stored |= found[at].stores
    return left
