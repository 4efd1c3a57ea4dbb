"""How much a choice of kernels may take: what ``bb.select(effort=...)`` means."""

from __future__ import annotations

from blockbuster.errors import among, message

USUAL, EXHAUSTIVE, OVERLAPPING = "usual", "exhaustive", "overlapping"
EFFORTS = {
    USUAL: "few parts are priced; the plan says how much better others could be",
    EXHAUSTIVE: "all parts are priced; no plan of them takes less",
    OVERLAPPING: "parts may compute the same again; no plan of them takes less",
}
"""What each effort means."""


def check_effort(effort: str) -> None:
    """Raise ValueError for an effort that there is not."""
    if effort not in EFFORTS:
        raise ValueError(message(f"unknown effort {effort!r}", hint=among(str(effort), EFFORTS)))
