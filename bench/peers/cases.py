"""All cases, in the order in which they are measured: short selections first."""

from __future__ import annotations

from bench.peers.case import Case
from bench.peers.suites import attention, constants, float8, matmuls, rows

CASES: tuple[Case, ...] = tuple(
    sorted(
        (*attention.CASES, *matmuls.CASES, *rows.CASES, *float8.CASES, *constants.CASES),
        key=lambda case: not case.quick,
    )
)
BY_KEY = {case.key: case for case in CASES}
SUITES = tuple(dict.fromkeys(case.suite for case in CASES))
assert len(BY_KEY) == len(CASES), "two cases have one name"
