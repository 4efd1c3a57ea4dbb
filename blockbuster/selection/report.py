"""What became of a program: which kernels, from which snapshots, and what runs between them."""

from __future__ import annotations

from dataclasses import dataclass

from blockbuster.errors import message, shown
from blockbuster.rules import explain
from blockbuster.selection.masked_loops import narrowed_loops, whole_loops
from blockbuster.selection.plan import File, Plan


@dataclass(frozen=True)
class Report:
    """A plan in words. ``misc`` are the functions of whole arrays, ``notes`` what to know."""

    kernels: int
    misc: tuple[str, ...]
    notes: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return self.text


def report(plan: Plan, notes: tuple[str, ...] = (), assemblers: tuple[str, ...] = ()) -> Report:
    """The report on a plan; ``notes`` and ``assemblers`` are those of its use."""
    sizes = ", ".join(f"{dim} = {size}" for dim, size in plan.sizes.items())
    kernels = "1 kernel" if plan.kernels == 1 else f"{plan.kernels} kernels"
    lines = [f"{plan.name}: {kernels} for {plan.target}, {plan.dtype}, {sizes}"]
    for step in plan.steps:
        if isinstance(step, File):
            lines += _file(step, plan)
        else:
            where = f" ({step.where})" if step.where else ""
            lines.append(f"  {step.name}{where}: a function of whole arrays, not fused")
    lines += [f"  machine code by {assembler}" for assembler in assemblers]
    said = (*plan.notes, *notes)
    lines += [f"  note: {note}" for note in said]
    misc = tuple(call.name for call in plan.calls)
    return Report(plan.kernels, misc, said, "\n".join(map(shown, lines)) + "\n")


def _file(file: File, plan: Plan) -> list[str]:
    number = "" if file.kernels == 1 else f" in {file.kernels} kernels"
    lines = [f"  {', '.join(file.writes)} from {', '.join(file.reads)}{number}"]
    if file.considered is None:
        return lines
    best = file.considered.best
    tiles = ", ".join(f"{dim} {lanes}" for dim, lanes in best.blocks.items())
    lines.append(f"    {best.name} ({file.considered.reason})")
    lines.append(f"    {len(best.graph.nodes)} top-level operations after fusion; tiles: {tiles}")
    masks = list(narrowed_loops(best.program, plan.sizes, best.blocks))
    masks += whole_loops(best.scheduled.draft) if best.scheduled is not None else ()
    lines += [f"    {said}" for said in masks]
    for chunks in best.program.chunks:
        what = f"a loop over {chunks.dim} is run in {chunks.count} chunks, side by side"
        lines.append(f"    {what}: whole, it would leave most of {best.processors} processors idle")
    return lines


def not_one_kernel(plan: Plan) -> str:
    """Why a plan is not one kernel, in words: every array between kernels and its reason."""
    reasons = [
        f"{call.name} ({call.where}) is a function of whole arrays: rules do not look inside it"
        for call in plan.calls
    ]
    for file in plan.files:
        if file.considered is not None and file.kernels > 1:
            reasons += map(str, explain(file.considered.best.graph))
            names = ", ".join(file.writes)
            reasons.append(f"{names}: {file.kernels} kernels, since one may not read what it wrote")
    return message(
        f"{plan.name} is {plan.kernels} kernels for {plan.target}, not one",
        origin="\n".join(reasons),
        hint="leave out one_kernel=True, or rewrite what is named above",
    )
