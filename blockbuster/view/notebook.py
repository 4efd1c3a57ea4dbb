"""Representations of objects in notebooks: short tables and texts, without scripts.

All text from a program is escaped. Colors are those of the surrounding page, so dark and light
notebooks are both readable; long texts are folded behind a line that opens them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from blockbuster.errors import shown_lines
from blockbuster.interp.proof import NOT_SHOWN, WORDS
from blockbuster.view.dot import escape

if TYPE_CHECKING:
    from blockbuster.emit.kernel import Kernel
    from blockbuster.frontend import ArrayProgram
    from blockbuster.interp.proof import Proof
    from blockbuster.interp.report import ProofReport
    from blockbuster.rules import Derivation
    from blockbuster.selection.plans.plan import Plan
    from blockbuster.selection.plans.report import Report

GOOD, BAD, OPEN = "#18794e", "#b42318", "#b97a00"
PRE = "style='text-align:left;line-height:1.35;margin:.3em 0;background:transparent'"


def program_html(program: ArrayProgram) -> str:
    """An array program: its equations."""
    return _block(_head(program.name, f"{len(program.equations)} operators"), _text(str(program)))


def derivation_html(derivation: Derivation) -> str:
    """A derivation: its steps in groups, with what is born at those that matter."""
    from blockbuster.view.explorer.frames import frames
    from blockbuster.view.explorer.milestones import milestones

    found = [frame for frame in frames(derivation) if frame.application is not None]
    born = milestones(found, {})
    rows = []
    numbered = enumerate(zip(derivation.steps, born, strict=False), 1)
    for (rule, told), group in groupby(numbered, lambda one: (one[1][0].rule, one[1][1])):
        steps = [at for at, _ in group]
        edges = len(found[steps[-1] - 1].after.buffered_edges())
        times = f" × {len(steps)}" if len(steps) > 1 else ""
        name = f"◆ {rule}" if told else f"{rule}{times}"
        snapshots = [at for at in steps if at in derivation.snapshots_after]
        marks = [f"snapshot {derivation.snapshots_after.index(at) + 1}" for at in snapshots]
        span = f"{steps[0]}–{steps[-1]}" if len(steps) > 1 else str(steps[0])
        rows.append((span, name, told, str(edges), ", ".join(marks)))
    head = _head("derivation", repr(derivation).removeprefix("Derivation"))
    columns = ("step", "rule", "what is born", "edges left", "")
    final = _hidden("the final program", derivation.final.show())
    return _block(head, _table(columns, rows), final)


def kernel_html(kernel: Kernel) -> str:
    """A kernel: what it was written for, why it is this one, its schedule and its text."""
    from blockbuster.selection.plans.kernel_report import predicted_time

    sizes = ", ".join(f"{dim} = {size}" for dim, size in kernel.sizes.items())
    tiles = ", ".join(f"{dim} {lanes}" for dim, lanes in kernel.tiles.items())
    number = "one kernel" if kernel.kernels == 1 else f"{kernel.kernels} kernels"
    rows = [
        ("runs as", f"{number} for {kernel.target}, {kernel.dtype}"),
        ("from", f"{', '.join(kernel.inputs)} to {', '.join(kernel.outputs)}"),
        ("written for", sizes),
        ("tiles", tiles),
        ("time", predicted_time(kernel)),
        ("chosen", kernel.chosen),
        *(("note", note) for note in kernel.notes),
    ]
    told = _table((), [row for row in rows if row[1]])
    schedule = _hidden("the schedule", kernel.schedule)
    return _block(_head(kernel.name, ""), told, schedule, _hidden("the file", kernel.source))


def proof_html(proof: Proof) -> str:
    """A proof: the verdict, what it says, what it takes for granted."""
    told = [proof.bound_in_words, f"shown: {proof.scope}", NOT_SHOWN] if proof.equal else []
    told += [f"assumed: {text}" for text in proof.assumptions] if proof.equal else []
    lines = [f"tier {proof.tier}: {proof.reason}", *told]
    found = [_text(str(proof.counterexample))] if proof.counterexample else []
    return _block(_verdict(proof.equal), *map(_line, lines), *found)


def proofs_html(report: ProofReport) -> str:
    """Proofs of several pairs of programs, a row each."""
    rows = [
        (e.name, WORDS[e.proof.equal], e.proof.tier,
         e.proof.bound_in_words if e.proof.equal else e.proof.reason)
        for e in report.entries
    ]  # fmt: skip
    head = f"{_verdict(report.equal)} {escape(f'{len(rows)} comparisons')}"
    return _block(head, _table(("programs", "", "tier", ""), rows))


def report_html(report: Report) -> str:
    """A report as HTML: the first line in bold, the others below it, the details folded."""
    first, *rest = shown_lines(report.text)
    details = _hidden("details", report.details)
    return _block(f"<b>{escape(first)}</b>", _text("\n".join(rest)), details)


def plan_html(plan: Plan) -> str:
    """A plan: its picture where one can be drawn, and below it why it became these kernels."""
    first, *rest = shown_lines(plan.explain())
    picture = plan.draw()._repr_svg_() or ""
    return _block(f"<b>{escape(first)}</b>", picture, _text("\n".join(rest)))


def _block(*parts: str) -> str:
    return f"<div>{''.join(part for part in parts if part)}</div>"


def _head(name: str, more: str) -> str:
    return f"<b>{escape(name)}</b> {escape(more)}"


def _line(text: str) -> str:
    return f"<div>{escape(text)}</div>"


def _text(text: str) -> str:
    return f"<pre {PRE}>{chr(10).join(map(escape, shown_lines(text)))}</pre>"


def _hidden(title: str, text: str) -> str:
    return f"<details><summary>{escape(title)}</summary>{_text(text)}</details>" if text else ""


def _verdict(equal: bool | None) -> str:
    color = {True: GOOD, False: BAD, None: OPEN}[equal]
    return f"<b style='color:{color}'>{escape(WORDS[equal])}</b>"


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    def row(cells: Sequence[str], tag: str) -> str:
        made = (f"<{tag} style='text-align:left'>{escape(cell)}</{tag}>" for cell in cells)
        return f"<tr>{''.join(made)}</tr>"

    head = row(columns, "th") if columns else ""
    return f"<table>{head}{''.join(row(cells, 'td') for cells in rows)}</table>"
