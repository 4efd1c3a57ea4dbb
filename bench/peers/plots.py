"""Plots of measurements: the ratio of each case by family, and times by size."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bench.peers.report import families, geometric_mean, ratio
from bench.records import Record


def draw(records: Sequence[Record], folder: Path) -> Path:
    """Draw the best peer's time over ours: a dot for each case, a bar and a number for the
    geometric mean of a family, in the order of these.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    found = families([r for r in records if r.get("state") == "timed" and ratio(r)])
    ratios = {name: [x for r in members if (x := ratio(r))] for name, members in found.items()}
    means = {name: geometric_mean(each) or 1.0 for name, each in ratios.items()}
    names = sorted(means, key=lambda name: -means[name])
    figure, axes = pyplot.subplots(figsize=(9, 1.2 + 0.34 * len(names)), layout="constrained")
    for at, name in enumerate(names):
        mean = means[name]
        axes.barh(at, mean - 1.0, left=1.0, height=0.6, color="#7aa6c2" if mean >= 1 else "#d98b73")
        axes.plot(ratios[name], [at] * len(ratios[name]), "o", color="#333333", markersize=3)
    axes.set_yticks(range(len(names)), [f"{name}  {means[name]:.2f}" for name in names])
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_xlabel("time of the best peer / ours (above 1: ours is faster)")
    path = folder / "ratios.png"
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
    return path
