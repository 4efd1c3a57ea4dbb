"""The report on a compiled program: its kernels, their snapshots, and the calls between them."""

from __future__ import annotations

from dataclasses import dataclass

from blockbuster.emit.schedule.factor import Factor
from blockbuster.emit.schedule.numbered_chunks import is_walked
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.steps import derived
from blockbuster.emit.tile.program import TileProgram
from blockbuster.errors import message, shown, shown_lines
from blockbuster.rules import explain
from blockbuster.rules.faults import FaultNotes
from blockbuster.selection.candidates.candidate import CPU
from blockbuster.selection.plans.masked_loops import narrowed_loops, whole_loops
from blockbuster.selection.plans.plan import File, Plan, Sizes
from blockbuster.selection.plans.stored import kernels_in_words, sizes_in_words, what_is_stored


@dataclass(frozen=True)
class Report:
    """A plan in words. ``misc`` are the functions of whole arrays, ``notes`` what to know.

    ``stored``: a line for each value that is written to memory on the way, the largest first: what
    did not fuse, and what is stored by choice.
    """

    kernels: int
    misc: tuple[str, ...]
    notes: tuple[str, ...]
    text: str
    stored: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Report({shown_lines(self.text)[0]})"

    def _repr_html_(self) -> str:
        from blockbuster.view.notebook import report_html

        return report_html(self)


def report(
    plan: Plan,
    notes: tuple[str, ...] = (),
    assemblers: tuple[str, ...] = (),
    sizes: Sizes | None = None,
) -> Report:
    """The report on a plan; ``notes`` and ``assemblers`` are those of its use, for these ``sizes``.

    It begins with what did not fuse, the largest values first.
    """
    at_hand = sizes or plan.sizes
    kernels = kernels_in_words(plan)
    lines = [f"{plan.name}: {kernels} for {plan.target}, {plan.dtype}, {sizes_in_words(at_hand)}"]
    apart = what_is_stored(plan, at_hand)
    lines += [f"  {line}" for line in apart]
    if not apart and all(file.considered for file in plan.files):
        number = "one kernel" if kernels == "1 kernel" else kernels
        lines.append(f"  {number}, no intermediate in memory")
    if any(plan.sizes.get(dim) != size for dim, size in at_hand.items()):
        lines.append(f"  chosen for sizes of this class: {sizes_in_words(plan.sizes)}")
    for step in plan.steps:
        if isinstance(step, File):
            lines += _file(step, plan)
        else:
            where = f" ({step.where})" if step.where else ""
            what = (
                "a library's call" if step.is_library else "a function of whole arrays, not fused"
            )
            lines.append(f"  {step.name}{where}: {what}")
    lines += [f"  machine code by {assembler}" for assembler in assemblers]
    said = (*plan.notes, *notes)
    lines += [f"  note: {note}" for note in said]
    misc = tuple(call.name for call in plan.calls)
    return Report(plan.kernels, misc, said, "\n".join(map(shown, lines)) + "\n", apart)


def _with_groups(scheduled: Scheduled) -> TileProgram:
    """What the schedule made before exponentials in base 2 took its groups apart."""
    if not any(applied.move == Factor.name for applied in scheduled.moves):
        return scheduled.draft
    steps = derived(scheduled).steps
    return next(step.before.draft for step in steps if step.applied.move == Factor.name)


def _file(file: File, plan: Plan) -> list[str]:
    number = "" if file.kernels == 1 else f" in {file.kernels} kernels"
    lines = [f"  {', '.join(file.writes)} from {', '.join(file.reads)}{number}"]
    if file.considered is None:
        whole = plan.target == CPU and plan.divided is not None
        return [*lines, "    on whole arrays, operator by operator"] if whole else lines
    best = file.considered.best
    tiles = ", ".join(f"{dim} {lanes}" for dim, lanes in best.blocks.items())
    lines.append(f"    {best.name} ({file.considered.reason})")
    count = len(best.graph.nodes)
    operations = "1 top-level operation" if count == 1 else f"{count} top-level operations"
    lines.append(f"    {operations} after fusion; tiles: {tiles}")
    lines += [f"    schedule: {best.schedules}"] if best.schedules else []
    masks = list(narrowed_loops(best.program, plan.sizes, best.blocks))
    masks += whole_loops(_with_groups(best.scheduled)) if best.scheduled is not None else ()
    lines += [f"    {said}" for said in masks]
    if best.again is not None:
        lines.append(f"    {best.again.words}: stored, they would move more")
    walked = [c for c in best.program.chunks if is_walked(best.program, c)]
    for chunks in walked:
        lines.append(
            f"    {chunks.count} programs take the blocks of {chunks.dim} in turn:"
            " what all blocks share is loaded once for each program"
        )
    for chunks in (chunks for chunks in best.program.chunks if chunks not in walked):
        what = f"a loop over {chunks.dim} is run in {chunks.count} chunks, side by side"
        lines.append(f"    {what}: whole, it would leave most of {best.processors} processors idle")
    return lines


def not_one_kernel(plan: Plan, sizes: Sizes) -> str:
    """Why a plan is not one kernel, in words: every array between kernels and its reason."""
    reasons = [*what_is_stored(plan, sizes)]
    for file in plan.files:
        if file.considered is not None and file.kernels > 1:
            graph, said = file.considered.best.graph, FaultNotes()  # as the plan's notes say
            reasons += map(str, explain(graph, on_fault=said.keep))
            names = ", ".join(file.writes)
            reasons.append(f"{names}: {file.kernels} kernels, since one may not read what it wrote")
    return message(
        f"{plan.name} is {plan.kernels} kernels for {plan.target}, not one",
        origin="\n".join(reasons),
        hint="leave out one_kernel=True, or rewrite what is named above",
    )
