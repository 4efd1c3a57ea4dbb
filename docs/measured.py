"""The tables and plots of the results page, from the raw data in bench/results."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot as plt

ROOT = Path(__file__).parents[1]
RECORDED = ROOT / "bench" / "results"
FIGURES = ROOT / "docs" / "images" / "measured"
STYLE = {
    "svg.hashsalt": "blockbuster",  # the same bytes from every build
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
COLOURS = {"float16": "#1f77b4", "bfloat16": "#2ca02c", "float32": "#d62728"}
TICKS = {0.125: "⅛", 0.25: "¼", 0.5: "½", 1: "1", 2: "2", 4: "4", 8: "8"}
WAYS = {"us": "called one by one", "graph_us": "replayed in a captured graph"}
Record = dict[str, Any]


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _link(path: Path, text: str) -> str:
    return f"[{text}](/{path.relative_to(ROOT).as_posix()})"


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table, all columns but the first flush right."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines) + "\n"


def _figure(figure: Any, name: str, text: str) -> str:
    FIGURES.mkdir(parents=True, exist_ok=True)
    path = FIGURES / f"{name}.svg"
    with plt.rc_context(STYLE):
        figure.savefig(path, metadata={"Date": None}, facecolor="white", bbox_inches="tight")
    plt.close(figure)
    return "!" + _link(path, text)


# kernels on a GPU ----------------------------------------------------------------


def kernel_runs() -> str:
    """One section for each recorded run, the newest first."""
    paths = sorted(RECORDED.glob("*/programs.json"), reverse=True)
    return "\n".join(_kernel_run(path, _read(path)) for path in paths)


def _kernel_run(path: Path, run: Record) -> str:
    name = path.parent.name
    times = [record for record in run["times"] if "ours_us" in record]
    links = f"{_link(path.parent / 'README.md', 'remarks')}, {_link(path, 'raw data')}"
    parts = (
        f"### {name}",
        f"{run['machine']} ({links}).",
        "\n".join(_said(times, end) for end in WAYS),
        _speeds(times, name),
        _times(times),
        _errors(run["checks"]),
    )
    return "\n\n".join(parts) + "\n"


def ratio(record: Record, end: str) -> float | None:
    """Eager's time over ours, where both were measured."""
    ours, eager = record.get(f"ours_{end}"), record.get(f"eager_{end}")
    return eager / ours if ours and eager else None


def _said(times: Sequence[Record], end: str) -> str:
    ratios = [found for record in times if (found := ratio(record, end)) is not None]
    won = sum(found > 1 for found in ratios)
    return (
        f"- {WAYS[end].capitalize()}, {won} of {len(ratios)} kernels are faster than eager torch,"
        f" {len(ratios) - won} are not; the ratios go from {min(ratios):.2f} to {max(ratios):.1f}."
    )


def _speeds(times: Sequence[Record], name: str) -> str:
    programs = list(dict.fromkeys(record["program"] for record in times))[::-1]
    with plt.rc_context(STYLE):
        figure, panels = plt.subplots(1, 2, sharey=True, figsize=(9, 0.22 * len(programs) + 1.2))
        for panel, end in zip(panels, WAYS, strict=True):
            panel.axvline(1, color="0.4", linewidth=1)
            for lane, (dtype, colour) in enumerate(COLOURS.items()):
                mine = [r for r in times if r["dtype"] == dtype and ratio(r, end)]
                panel.plot(
                    [ratio(record, end) for record in mine],
                    [programs.index(record["program"]) + 0.25 * (1 - lane) for record in mine],
                    "o",
                    color=colour,
                    markersize=3.5,
                    label=dtype,
                )
            panel.set_xscale("log")
            panel.set_xticks(list(TICKS), list(TICKS.values()))
            panel.minorticks_off()
            panel.grid(color="0.9", linewidth=0.6)
            panel.set_title(WAYS[end])
            panel.set_xlabel("← slower    eager's time / ours    faster →")
        panels[0].set_yticks(range(len(programs)), programs)
        panels[0].set_ylim(-0.7, len(programs) - 0.3)
        panels[0].legend(loc="lower right", fontsize=8)
    return _figure(figure, f"speed-{name}", "Eager torch's time over ours, by program and dtype")


def _times(times: Sequence[Record]) -> str:
    head = ("program", "dtype", "ours", "eager", "ratio", "replayed", "eager replayed", "ratio")
    return _table(head, map(_time, times))


def _time(record: Record) -> list[str]:
    cells = [record["program"], record["dtype"]]
    for end in WAYS:
        cells += [_number(record.get(f"{who}_{end}"), ".1f") for who in ("ours", "eager")]
        cells.append(_number(ratio(record, end), ".2f"))
    return cells


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def _errors(checks: Sequence[Record]) -> str:
    failed = [record for record in checks if not record["passed"]]
    head = ("program", "dtype", "inputs", "largest error / eager's", "rms / eager's", "relative")
    rows = (
        (
            record["program"],
            record["dtype"],
            record["kind"],
            _number(record.get("ratio_max"), ".2f"),
            _number(record.get("ratio_rms"), ".2f"),
            _number(record.get("relative"), ".1e"),
        )
        for record in failed
    )
    said = f"Errors: {len(failed)} of {len(checks)} checks are above the limit."
    return f"{said}\n\n{_table(head, rows)}" if failed else said


# rules ---------------------------------------------------------------------------


def rules_checked() -> str:
    """The newest run of the thorough profile."""
    path = max(RECORDED.glob("prove/*-seed*.json"))
    run = _read(path)
    programs, steps = sum(run["programs"].values()), sum(run["steps"].values())
    said = (
        f"{run['date']}: {programs:,} random programs, {steps:,} rewrites, each compared exactly:"
        f" {len(run['failures'])} wrong, {run['unsettled']} unsettled"
        f" ({_link(path.with_suffix('.md'), 'the run')}, {_link(path, 'raw data')})."
    )
    rows = ((name, f"{count:,}") for name, count in run["steps"].items())
    return f"{said}\n\n{_table(('rule', 'rewrites checked'), rows)}"


def fusing_times() -> str:
    """How long fusing takes for programs of growing size."""
    path = RECORDED / "fusion_scale.json"
    run = _read(path)
    with plt.rc_context(STYLE):
        figure, panel = plt.subplots(figsize=(6, 3.4))
        for result in run["results"]:
            nodes = [row["nodes"] for row in result["rows"]]
            seconds = [row["seconds"] for row in result["rows"]]
            label = f"{result['family']}, {result['rules']} rules"
            panel.loglog(nodes, seconds, "o-", markersize=4, label=label)
        panel.set_xlabel("operators of the program")
        panel.set_ylabel("seconds to fuse")
        panel.grid(color="0.9", linewidth=0.6)
        panel.legend(fontsize=8)
    shown = _figure(figure, "fusion-scale", "Seconds to fuse, by the size of the program")
    keys = ("nodes", "steps", "buffered_edges_left", "seconds")
    rows = (
        (result["family"], result["rules"], *(result["rows"][-1][key] for key in keys),
         result["exponent"])
        for result in run["results"]
    )  # fmt: skip
    head = ("program", "rules", "operators", "steps", "edges left", "seconds", "exponent")
    said = f"{run['date']}, {run['machine']}, Python {run['python']} ({_link(path, 'raw data')})."
    return f"{said}\n\n{shown}\n\n{_table(head, rows)}"
