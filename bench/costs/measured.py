"""The measurements of pairs, with the data that models need to predict them.

A file of records has a line for each pair; see measure.py. Times are medians over rounds.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from bench.costs.binary import Binary, from_data
from bench.costs.binary_model import BinaryCoefficients, time_of_binary
from bench.costs.variations import scheduled
from bench.costs.workloads import BY_NAME
from blockbuster.costs.coefficients import Coefficients
from blockbuster.costs.cost import cost
from blockbuster.costs.tiered import time_of
from blockbuster.costs.work import Work, work
from blockbuster.errors import BlockbusterError
from blockbuster.machines import Machine

Record = Mapping[str, Any]
COLD, WARM = "cold", "warm"
WAYS = (COLD, WARM)
LAUNCH = {COLD: "plain", WARM: "graph"}


@dataclass(frozen=True)
class Measured:
    """A pair that was timed: ``times`` in microseconds by way, ``again`` those of winners.

    ``rounds``: the times of each round, of which ``times`` are the medians.
    """

    key: str
    workload: str
    schedule: str
    works: tuple[Work, ...]
    binaries: tuple[Binary, ...]
    times: Mapping[str, float] = field(hash=False)
    again: Mapping[str, float] = field(hash=False)
    rounds: Mapping[str, tuple[float, ...]] = field(hash=False)

    @property
    def is_clean(self) -> bool:
        """True if no kernel spills or has matrix instructions run one by one in a loop."""
        return not any(binary.spilled or binary.serialized for binary in self.binaries)

    def closed(self, machine: Machine, way: str, coefficients: Coefficients) -> float:
        """Microseconds by the closed form; infinite where it says that no program fits."""
        timers = [partial(time_of, coefficients=coefficients)] * len(self.works)
        try:
            for each in self.works:
                each.footprint.resident(machine)
        except ValueError:
            return float("inf")
        return self._cost(machine, way, timers)

    def compiled(self, machine: Machine, way: str, coefficients: BinaryCoefficients) -> float:
        """Microseconds by what the binaries say; infinite where they are not modelled."""
        if not self.is_clean:
            return float("inf")
        timers = [partial(time_of_binary, b, coefficients=coefficients) for b in self.binaries]
        return self._cost(machine, way, timers)

    def _cost(self, machine: Machine, way: str, timers: list[Any]) -> float:
        report = cost(self.works, machine, launch=LAUNCH[way], warm=way == WARM, timers=timers)
        return report.time_us


def records_of(path: Path) -> dict[str, Record]:
    """The records of a file by key; later lines of a key add to earlier ones."""
    found: dict[str, dict[str, Any]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        found.setdefault(record["key"], {}).update(record)
    return dict(found)


def measured(path: Path, names: tuple[str, ...] = ()) -> Iterator[Measured]:
    """The pairs of a file that were timed, of some workloads or all.

    Those whose schedules are no longer legal are left out; their number is printed to stderr.
    """
    illegal = 0
    for key, record in records_of(path).items():
        name = record["workload"]
        if record["state"] != "timed" or (names and name not in names):
            continue
        workload = BY_NAME[name]
        try:
            made = scheduled(workload, record["snapshot"], record["schedule"], workload.sizes)
        except BlockbusterError:
            illegal += 1
            continue
        yield Measured(
            key=key,
            workload=name,
            schedule=record["schedule"],
            works=work(made),
            binaries=tuple(from_data(data) for data in record["kernels"]),
            times={way: statistics.median(record[way]) for way in WAYS},
            again={
                way: statistics.median(record[f"{way}_again"])
                for way in WAYS
                if f"{way}_again" in record
            },
            rounds={way: tuple(record[way]) for way in WAYS},
        )
    if illegal:
        print(f"left out, because their schedules are not legal now: {illegal}", file=sys.stderr)
