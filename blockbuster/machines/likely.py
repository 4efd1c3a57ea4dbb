"""The likely numbers of a GPU that nobody has measured: its own limits, and rates of a related one.

Drivers report how many processors a GPU has, how much memory of which kind, and how fast its
memory's clock is. All else is taken over from the built-in machine that it is most like.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from blockbuster.machines.catalog import built_in, known_device
from blockbuster.machines.data_file import numbers_of, with_numbers
from blockbuster.machines.machine import Machine

RELATED = {80: "a100", 86: "rtx3080", 89: "rtx6000ada", 90: "h200", 100: "b200"}
"""By compute capability: the machine that a GPU without built-in data is most like."""

REACHED = 0.9
"""The part of the bandwidth of its pins that a copy reaches, on GPUs that were measured."""

BUS = "bus"
"""The path under which the bandwidth of a GPU's memory pins is reported, which no machine has."""

EACH = ("special", "issue", "compute", "tiers.shared.bandwidth", "tiers.registers.bandwidth")
"""Rates, or tables of rates, that all processors have together."""

Numbers = Mapping[str, int | float]


def related(device: str, architecture: int) -> Machine:
    """The built-in machine of a GPU, or the one that it is most like, by its compute capability."""
    older = [capability for capability in RELATED if capability <= architecture]
    like = RELATED[max(older, default=min(RELATED))]
    return known_device(device) or built_in(like)


def likely(device: str, architecture: int, reported: Numbers) -> Machine:
    """The machine of a GPU by the numbers that its driver reports, by their paths in a data file.

    ``architecture``: its compute capability, 90 for 9.0. A GPU with built-in data has these. A
    number of 0 is none.

    >>> half = likely("NVIDIA L4", 89, {"processors": 71})
    >>> half.name, half.target, built_in("rtx6000ada").rate("matrix", "float16") / half.rate(
    ...     "matrix", "float16")
    ('NVIDIA L4', 'sm_80', 2.0)
    """
    known = known_device(device)
    if known is not None:
        return known
    base = related(device, architecture)
    own = {path: number for path, number in reported.items() if path != BUS and number > 0}
    share = own.get("processors", base.processors) / base.processors
    rates = {
        path: number * share for path, number in numbers_of(base).items() if path.startswith(EACH)
    }
    if reported.get(BUS):
        rates["tiers.hbm.bandwidth"] = REACHED * reported[BUS]
    sources = {
        **dict.fromkeys(own, "reported by the driver"),
        **dict.fromkeys(rates, f"as of {base.name} for each processor, not measured"),
    }
    if reported.get(BUS):
        sources["tiers.hbm.bandwidth"] = f"{REACHED} of what the driver reports of its memory"
    return replace(
        with_numbers(base, {**own, **rates}, sources), name=device, devices=(device,), choice=None
    )
