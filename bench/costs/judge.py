"""How well the cost models rank measured schedules: tables and scatter plots.

    python -m bench.costs.judge bench/results/2026-11-23-h200-costs

The folder has pairs.jsonl (see measure.py); table.md and scatter-*.png are written beside it. The
workloads of the part "judge" took no part in fitting. Kernels that spill, or run matrix
instructions one by one, rank last in the second stage. The correlation is over the other kernels;
of these, kernels that a model calls impossible rank last. Workloads with fewer than three of them
are not judged.

If a workload's schedules take about as long, the correlation says little. So two columns show which
part of all twos of pairs a model puts in the right order: of those that the clock can separate,
because all rounds of one were faster than all of the other, and of those at least 10% apart.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from bench.costs import binary_model
from bench.costs.measured import COLD, WARM, WAYS, Measured, measured
from bench.costs.ranking import both
from bench.costs.workloads import JUDGE, WORKLOADS
from blockbuster.costs import coefficients
from blockbuster.machines import Machine, machine

TOP = 8
FAR = 1.1  # times of pairs that lie far from each other
FIRST_REGRET, TOP_REGRET, TOP_US, LEAST = 0.15, 0.03, 0.15, 0.8
Model = Callable[[Measured, Machine, str], float]


def _closed(pair: Measured, on: Machine, way: str) -> float:
    return pair.closed(on, way, coefficients.FITTED)


def _compiled(pair: Measured, on: Machine, way: str) -> float:
    return pair.compiled(on, way, binary_model.FITTED_TO_BINARIES)


def _both(pair: Measured, on: Machine, way: str) -> float:
    return both(_closed(pair, on, way), _compiled(pair, on, way))


MODELS: Mapping[str, Model] = {"closed form": _closed, "binaries": _compiled, "both": _both}


@dataclass(frozen=True)
class Verdict:
    """A model on one workload: rank correlation, and what its choices cost.

    ``apart``: the part of the twos of pairs which the clock tells apart that the model puts in the
    right order; ``far``: of those that lie far from each other. ``first``: how much slower its
    first choice is than the best that was measured; ``top``: the best of its first eight;
    ``top_us``: the same in microseconds.
    """

    count: int
    spearman: float
    apart: float
    far: float
    first: float
    top: float
    top_us: float

    @property
    def is_judged(self) -> bool:
        """True if there are pairs enough to correlate."""
        return not np.isnan(self.spearman)

    @property
    def passes(self) -> bool:
        """True if it is as good as is asked of it."""
        near = self.top <= TOP_REGRET or self.top_us <= TOP_US
        return self.spearman >= LEAST and self.first <= FIRST_REGRET and near


def spearman(left: Sequence[float], right: Sequence[float]) -> float:
    """The correlation of ranks, equal values sharing theirs; nan for fewer than three values.

    >>> spearman([1, 2, 3, 4], [10, 20, 40, 30])
    0.8
    """
    if len(left) < 3:
        return float("nan")
    x, y = _ranks(left), _ranks(right)
    x, y = x - x.mean(), y - y.mean()
    spread = float(np.sqrt((x @ x) * (y @ y)))
    return round(float(x @ y) / spread, 6) if spread else 0.0


def _ranks(values: Sequence[float]) -> np.ndarray:
    given = np.asarray(values, float)
    below = (given[:, None] > given[None, :]).sum(1)
    equal = (given[:, None] == given[None, :]).sum(1)
    return np.asarray(below + (equal - 1) / 2)


def judged(pairs: Sequence[Measured], model: Model, on: Machine, way: str) -> Verdict:
    """How a model does on the pairs of one workload."""
    said = [model(pair, on, way) for pair in pairs]
    clean = [at for at, pair in enumerate(pairs) if pair.is_clean]
    rho = spearman([said[at] for at in clean], [pairs[at].times[way] for at in clean])
    right = [in_order(pairs, said, clean, way, told) for told in (are_apart, are_far)]
    ranked = sorted(range(len(pairs)), key=lambda at: (said[at], at))
    first = _excess(pairs, ranked[:1], way)
    top = _excess(pairs, ranked[:TOP], way)
    return Verdict(len(clean), rho, *right, first[0], *top)


Told = Callable[[Measured, Measured, str], bool]


def in_order(
    pairs: Sequence[Measured], said: Sequence[float], chosen: Sequence[int], way: str, told: Told
) -> float:
    """The part of the twos among ``chosen`` pairs that are ``told`` apart and that a model puts in
    the order of their times; nan if there are none. ``told`` gets the faster one first.
    """
    by_time = sorted(chosen, key=lambda at: pairs[at].times[way])
    twos = [two for two in combinations(by_time, 2) if told(pairs[two[0]], pairs[two[1]], way)]
    right = sum(said[fast] < said[slow] for fast, slow in twos)
    return right / len(twos) if twos else float("nan")


def are_apart(fast: Measured, slow: Measured, way: str) -> bool:
    """True if each round of one was faster than each of the other."""
    return max(fast.rounds[way]) < min(slow.rounds[way])


def are_far(fast: Measured, slow: Measured, way: str) -> bool:
    """True if one takes 10% longer than the other, or more."""
    return slow.times[way] >= FAR * fast.times[way]


def _excess(pairs: Sequence[Measured], chosen: Sequence[int], way: str) -> tuple[float, float]:
    """How much slower the best of the chosen is than the best of all: in parts, and microseconds.

    Where both were timed again, by these times.
    """
    best = min(pairs, key=lambda pair: pair.times[way])
    found = min((pairs[at] for at in chosen), key=lambda pair: pair.times[way])
    again = [pair.again[way] for pair in pairs if way in pair.again]
    if way in found.again:
        low, mine = min(again), min(p.again[way] for p in _of(pairs, chosen) if way in p.again)
    else:
        low, mine = best.times[way], found.times[way]
    return mine / low - 1.0, mine - low


def _of(pairs: Sequence[Measured], chosen: Sequence[int]) -> list[Measured]:
    return [pairs[at] for at in chosen]


def by_workload(pairs: Sequence[Measured]) -> dict[str, list[Measured]]:
    """The pairs of each workload, in the order of the workloads."""
    names = [w.name for w in WORKLOADS if any(pair.workload == w.name for pair in pairs)]
    return {name: [pair for pair in pairs if pair.workload == name] for name in names}


# what is written -------------------------------------------------------------------


def table(groups: Mapping[str, Sequence[Measured]], on: Machine) -> str:
    """A table for each way and model, in Markdown."""
    parts = {workload.name: workload.part for workload in WORKLOADS}
    sections = [f"# Predicted and measured ranks on {on.name}\n"]
    for way in WAYS:
        for name, model in MODELS.items():
            rows = {n: judged(pairs, model, on, way) for n, pairs in groups.items()}
            sections.append(f"## {way}, {name}\n\n{_rows(rows, parts)}")
    return "\n".join(sections)


def _rows(rows: Mapping[str, Verdict], parts: Mapping[str, str]) -> str:
    lines = [
        "| workload | part | pairs | Spearman | apart | 10% apart | first choice | best of 8 "
        "| best of 8, us | |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, v in rows.items():
        mark = ("" if v.passes else "below") if v.is_judged else "not judged"
        lines.append(
            f"| {name} | {parts[name]} | {v.count} | {v.spearman:.2f} | {_part(v.apart)} "
            f"| {_part(v.far)} | {v.first:+.1%} "
            f"| {v.top:+.1%} | {v.top_us:+.2f} | {mark} |"
        )
    for part in dict.fromkeys(parts[name] for name in rows):
        mine = [v for name, v in rows.items() if parts[name] == part and v.is_judged]
        if not mine:
            continue
        rho, apart, far, first, top, us = np.nanmedian(
            [(v.spearman, v.apart, v.far, v.first, v.top, v.top_us) for v in mine], axis=0
        )
        lines.append(
            f"| median of {part} | | {sum(v.count for v in mine)} | {rho:.2f} | {_part(apart)} "
            f"| {_part(far)} | {first:+.1%} "
            f"| {top:+.1%} | {us:+.2f} | {sum(v.passes for v in mine)} of {len(mine)} pass |"
        )
    return "\n".join(lines) + "\n"


def _part(fraction: float) -> str:
    return "–" if np.isnan(fraction) else f"{fraction:.0%}"


def scatter(
    groups: Mapping[str, Sequence[Measured]], on: Machine, way: str, model: Model, path: Path
) -> None:
    """Predicted against measured times, an axis for each workload; crosses are not modelled."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter

    columns = 6
    rows = -(-len(groups) // columns)
    figure = Figure(figsize=(2.6 * columns, 2.4 * rows), layout="constrained")
    parts = {workload.name: workload.part for workload in WORKLOADS}
    for at, (name, pairs) in enumerate(groups.items()):
        axes = figure.add_subplot(rows, columns, at + 1)
        said = np.array([model(pair, on, way) for pair in pairs])
        times = np.array([pair.times[way] for pair in pairs])
        known = np.isfinite(said)
        low, high = times.min() * 0.8, times.max() * 1.25
        axes.plot([low, high], [low, high], color="0.7", linewidth=0.8)
        color = "tab:blue" if parts[name] == JUDGE else "tab:green"
        axes.scatter(said[known], times[known], s=9, color=color)
        axes.scatter(
            np.full((~known).sum(), high), times[~known], s=14, color="tab:red", marker="x"
        )
        axes.set(xscale="log", yscale="log")
        axes.set_title(name, fontsize=8)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.set_major_formatter(ScalarFormatter())
            axis.set_minor_formatter(NullFormatter())
        axes.tick_params(labelsize=6, which="both")
    figure.suptitle(
        f"{way}: predicted (across) and measured microseconds; green: fitted, red: spills"
    )
    figure.savefig(path, dpi=80)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--machine", default="h200")
    parser.add_argument("--only", default="", help="workloads (a,b) to print, without files")
    options = parser.parse_args()
    if not (options.folder / "pairs.jsonl").exists():
        parser.error(f"{options.folder} has no pairs.jsonl: bench.costs.measure writes it")
    names = tuple(n for n in options.only.split(",") if n)
    groups = by_workload(list(measured(options.folder / "pairs.jsonl", names)))
    on = machine(options.machine)
    text = table(groups, on)
    print(text)
    if names:
        return 0
    (options.folder / "table.md").write_text(text, encoding="utf-8")
    for way in (COLD, WARM):
        scatter(groups, on, way, MODELS["both"], options.folder / f"scatter-{way}.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
