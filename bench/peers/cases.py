"""All cases, in the order in which they are measured: short selections first.

``CASES`` are those of the suites on which choices were tuned; ``OUTSIDE``, programs of other kinds,
and contractions at sums of letters are taken by a run that is asked for them.
"""

from __future__ import annotations

from bench.outside.cases import CASES as OUTSIDE
from bench.peers.case import Case
from bench.peers.suites import attention, constants, einsums, float8, matmuls, rows

CASES: tuple[Case, ...] = tuple(
    sorted(
        (*attention.CASES, *matmuls.CASES, *rows.CASES, *float8.CASES, *constants.CASES),
        key=lambda case: not case.quick,
    )
)
ALL = (*CASES, *OUTSIDE, *einsums.CASES)
BY_KEY = {case.key: case for case in ALL}
SUITES = tuple(dict.fromkeys(case.suite for case in ALL))
assert len(BY_KEY) == len(ALL), "two cases have one name"
