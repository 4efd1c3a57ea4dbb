"""Measured results of kernels as text, one line each, or as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence

from blockbuster.tuning.entry import Entry
from blockbuster.view.terminal import in_columns, say

TITLES = ("kernel", "sizes", "device", "model us", "best us", "ratio", "measured", "seconds")


def show(entries: Sequence[Entry], *, as_json: bool) -> None:
    """Print entries as JSON or as a table."""
    if as_json:
        say(json.dumps([entry.to_json() for entry in entries], indent=1))
    else:
        say(as_table(entries) if entries else "no kernel has been measured yet")


def as_table(entries: Sequence[Entry]) -> str:
    """A line for each kernel: the model's choice beside the best, in aligned columns."""
    return "\n".join(in_columns([TITLES, *map(_row, entries)], between="  "))


def _row(entry: Entry) -> tuple[str, ...]:
    best = entry.ranked[0].us if entry.ranked else None
    usual = entry.usual.us if entry.usual else None
    ratio = f"{usual / best:.2f}" if usual and best else "-"
    times = (f"{us:.1f}" if us else "-" for us in (usual, best))
    count = f"{len(entry.ranked)} of {len(entry.found)}"
    sizes = " ".join(entry.key.sizes)
    return (entry.kernel, sizes, entry.key.device, *times, ratio, count, f"{entry.seconds:.1f}")
