"""A simulation's report drawn with matplotlib: processors over time, and the use of resources.

Only this file loads matplotlib, and only when something is drawn.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from blockbuster.errors import DrawError, message
from blockbuster.extras import install_hint

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from blockbuster.costs.report import Event, Report

COLOURS: Mapping[str, str] = {
    "memory": "#4878a8", "cache": "#7fb3d5", "matrix": "#d98b3a", "issue": "#8d6bb0",
    "special": "#b0608f", "vector": "#6aa36f", "local": "#a7a13f", "launch": "#999999",
}  # fmt: skip
WIDTH, INCHES = 10.0, (4.2, 0.45)  # of the figure; of the timeline, and of each resource below


def figure(report: Report) -> Figure:
    """A figure of the timeline, processors upwards, and of the use of each resource below it.

    Raises DrawError if matplotlib is missing, ValueError for a report without a timeline.
    """
    if not report.timeline:
        raise ValueError("this report has no timeline: bb.simulate gives one, the closed form none")
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise DrawError(
            message("drawing a report needs matplotlib", hint=install_hint("plot"))
        ) from error
    rows = [name for name in report.use if any(report.use[name])]
    heights = [INCHES[0], *(INCHES[1] for _ in rows)]
    drawn = Figure(figsize=(WIDTH, sum(heights) + 1.0), layout="constrained")
    grid = drawn.subplots(len(heights), 1, sharex=True, height_ratios=heights, squeeze=False)
    top, *others = grid[:, 0]
    _processors(top, report)
    for axes, name in zip(others, rows, strict=True):
        _use(axes, name, report)
    drawn.supxlabel("microseconds")
    return drawn


def kind(resource: str) -> str:
    """The name of ``resource`` in ``COLOURS``: tiers are called otherwise on each machine."""
    tiers = {"hbm": "memory", "dram": "memory", "l2": "cache", "l3": "cache", "shared": "local"}
    return tiers.get(resource, resource if resource in COLOURS else "local")


def _processors(axes: Any, report: Report) -> None:
    bars: dict[str, list[Event]] = defaultdict(list)
    for event in report.timeline:
        if event.processor >= 0:
            bars[event.resource].append(event)
    for resource, events in bars.items():
        _bars(axes, events, resource)
    for event in report.timeline:
        if event.resource == "launch":
            axes.axvspan(event.start, event.end, color=COLOURS["launch"], alpha=0.35, linewidth=0)
    axes.set_xlim(0.0, report.time_us)
    axes.set_ylabel("processor")
    said = f"{report.time_us:,.1f} us on {report.machine}, limited by {report.critical}"
    axes.set_title(said, loc="left")
    axes.legend(
        loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=max(len(bars), 1), frameon=False,
        borderpad=0.1, fontsize="small", title="longest busy", title_fontsize="small",
    )  # above the bars, of which it would hide some


def _bars(axes: Any, events: Sequence[Event], resource: str) -> None:
    lanes = [event.processor for event in events]
    starts = [event.start for event in events]
    widths = [event.end - event.start for event in events]
    colour = COLOURS[kind(resource)]
    axes.barh(lanes, widths, left=starts, height=1.0, color=colour, alpha=0.6, label=resource)


def _use(axes: Any, name: str, report: Report) -> None:
    parts = report.use[name]
    edges = [report.time_us * at / len(parts) for at in range(len(parts) + 1)]
    axes.stairs(parts, edges, fill=True, color=COLOURS[kind(name)])
    axes.set_ylim(0.0, 1.0)
    axes.set_yticks([])
    axes.set_ylabel(
        f"{name}\n{report.busy.get(name, 0.0):.0%}", rotation=0, ha="right", va="center"
    )
