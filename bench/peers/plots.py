"""Plots of measurements: the ratio of each case by family, and times by size."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bench.peers.report import families, geometric_mean, ratio
from bench.records import Record


def draw(records: Sequence[Record], folder: Path) -> Path:
    """Draw the best peer's time over ours, a dot for each case, a bar for the geometric mean."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    found = families([r for r in records if r.get("state") == "timed" and ratio(r)])
    figure, axes = pyplot.subplots(figsize=(9, 1.2 + 0.4 * len(found)), layout="constrained")
    for at, members in enumerate(found.values()):
        ratios = [x for r in members if (x := ratio(r))]
        mean = geometric_mean(ratios) or 1.0
        axes.barh(at, mean - 1.0, left=1.0, height=0.6, color="#7aa6c2" if mean >= 1 else "#d98b73")
        axes.plot(ratios, [at] * len(ratios), "o", color="#333333", markersize=3)
        axes.annotate(f"{mean:.2f}", (mean, at), (4, -3), textcoords="offset points", fontsize=8)
    axes.set_yticks(range(len(found)), list(found))
    axes.invert_yaxis()
    axes.set_xscale("log", base=2)
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_xlabel("time of the best peer / ours (above 1: ours is faster)")
    path = folder / "ratios.png"
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
    return path
