"""The report on a compiled program: its kernels, what they store for one another, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from blockbuster.costs.report import in_us
from blockbuster.emit.schedule.factor import Factor
from blockbuster.emit.schedule.numbered_chunks import is_walked
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.steps import derived
from blockbuster.emit.tile.program import TileProgram
from blockbuster.errors import message, shown_lines
from blockbuster.frontend.program import Equation
from blockbuster.ir.types import Dim
from blockbuster.rules import explain
from blockbuster.rules.faults import FaultNotes
from blockbuster.selection.candidates.candidate import CPU, Choice
from blockbuster.selection.considered import NO_CHOICE, in_words
from blockbuster.selection.plans.at_sizes import at_sizes
from blockbuster.selection.plans.call_times import calls_of
from blockbuster.selection.plans.divided import Divided
from blockbuster.selection.plans.explanation import MEASURED, time_in_words
from blockbuster.selection.plans.kernel_lines import KernelLine, of_program, of_text
from blockbuster.selection.plans.layout import wrapped
from blockbuster.selection.plans.masked_loops import narrowed_loops, whole_loops
from blockbuster.selection.plans.pieces import Call
from blockbuster.selection.plans.plan import File, Plan, Sizes
from blockbuster.selection.plans.stored import (
    Stored,
    in_short,
    kernels_in_words,
    sizes_in_words,
    values_stored,
    what_is_stored,
)
from blockbuster.selection.plans.whole_part import WholePart

WHOLE = "on whole arrays, operator by operator"


@dataclass(frozen=True)
class Report:
    """Kernels in words. ``misc`` are the functions of whole arrays, ``notes`` what to know.

    ``text`` is short: a line for each kernel, with what it computes, its predicted time and what
    limits it; then the values that pass through memory, the largest first: what did not fuse, and
    what would fuse it. Its lines have at most 120 characters. ``details`` tells all candidates,
    their prices, tiles and schedules. ``stored``: a line with all reasons for each of the values.
    """

    kernels: int
    misc: tuple[str, ...]
    notes: tuple[str, ...]
    text: str
    stored: tuple[str, ...] = ()
    details: str = ""

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

    Times are those at these sizes; in the details, those at the sizes for which the plan was made,
    by which programs were compared. The details alone tell which programs were no choice.
    """
    at_hand = sizes or plan.sizes
    here = at_sizes(plan, at_hand)
    found = values_stored(plan, at_hand)
    time = time_in_words(here, here.divided) if isinstance(here.divided, Divided) else ""
    said = (*plan.notes, *notes)
    short = in_lines(
        head(plan.name, kernels_in_words(plan), plan.target, plan.dtype, time),
        kernels=plan_lines(here),
        stored=found,
        alone=alone(plan.kernels) if all(file.considered for file in plan.files) else "",
        sizes=[at_hand, *_made_for(plan, at_hand)],
        notes=[*_advice(plan), *(note for note in said if NO_CHOICE not in note)],
    )
    lines = [*_all(plan, at_hand), *_after(assemblers, said)]
    misc = tuple(call.name for call in plan.calls)
    details = indented(lines)
    return Report(plan.kernels, misc, said, short, what_is_stored(plan, at_hand), details)


def head(name: str, kernels: str, target: str, dtype: str, time: str) -> str:
    """The first line of a report."""
    return "; ".join(filter(None, (f"{name}: {kernels} for {target}, {dtype}", time)))


def in_lines(
    first: str,
    *,
    kernels: Iterable[str],
    stored: Sequence[Stored],
    alone: str,
    sizes: Sequence[Mapping[Dim, int]],
    notes: Iterable[str],
) -> str:
    """A report in short. ``alone``: the number of kernels if all that they store is known, else "".
    ``sizes``: those at hand, and those for which the kernels were chosen, if they are others.
    """
    lines = [*wrapped("", first), *kernels]
    for one in in_short(stored):
        lines += wrapped("  ", one)
    if not stored and alone:
        lines.append(f"  {alone}, no intermediate in memory")
    at_hand, *chosen = map(sizes_in_words, sizes)
    lines += wrapped("  ", f"for {at_hand}") if at_hand else []
    for made in chosen:
        lines += wrapped("  ", f"chosen for sizes of this class: {made}")
    for note in notes:
        lines += wrapped("  ", f"note: {note}")
    return "\n".join(lines) + "\n"


def alone(kernels: int) -> str:
    """How many kernels there are, where nothing passes between them."""
    return "one kernel" if kernels == 1 else f"{kernels} kernels"


def indented(lines: Iterable[str]) -> str:
    """Lines in lines of a report, each behind the blanks that it begins with."""
    marks = ((line, " " * (len(line) - len(line.lstrip()))) for line in lines)
    made = (part for line, mark in marks for part in wrapped(mark, line.strip()))
    return "".join(f"{line}\n" for line in made)


def plan_lines(plan: Plan) -> Iterator[str]:
    """The lines of a plan's kernels and calls, in order."""
    number = 0
    calls = dict(calls_of(plan))
    for step, lines in _by_step(plan):
        if isinstance(step, Call):
            us = calls.get(step.writes)
            time = f"; {in_us(us)} {MEASURED}" if step.is_library and us is not None else ""
            yield from wrapped("  ", _call(step) + time)
        for line in lines:
            count = step.kernels if isinstance(step, File) and len(lines) == 1 else 1
            yield line.text(f"  {numbered(number, count)}: ")
            number += count


def numbered(before: int, count: int = 1) -> str:
    """The numbers of ``count`` kernels behind ``before`` others: "kernel 3", "kernels 3 to 4"."""
    first = before + 1
    return f"kernel {first}" if count == 1 else f"kernels {first} to {before + count}"


def _by_step(plan: Plan) -> Iterator[tuple[File | Call, list[KernelLine]]]:
    """The steps of a plan, each with the lines of its kernels."""
    divided = plan.divided
    if not isinstance(divided, Divided):
        yield from ((step, _unknown(step)) for step in plan.steps)
        return
    steps, times = iter(plan.steps), divided.times(plan.sizes)
    for part, us in zip(divided.parts, times, strict=True):
        own = [next(steps) for _ in part.pieces.steps]
        files = [step for step in own if isinstance(step, File)]
        equations = part.program.equations
        for step in own:
            if isinstance(step, File) and isinstance(part, WholePart):
                yield step, [KernelLine(tuple(equations), us, more=(WHOLE,), writes=step.writes)]
            elif isinstance(step, File) and step.considered is not None:
                lines = _of_choice(step.considered.best, equations, alone=len(files) == 1)
                yield step, [line.renamed(step.names) for line in lines]
            else:
                yield step, _unknown(step)


def _of_choice(best: Choice, equations: Sequence[Equation], *, alone: bool) -> list[KernelLine]:
    if best.scheduled is None:
        return [of_text(best.program, best.predicted, equations, whole=alone)]
    times = best.cost.each if best.cost is not None else ()
    return [*of_program(best.scheduled.draft, times, equations, whole=alone)]


def _unknown(step: File | Call) -> list[KernelLine]:
    """The line of a file of which only its arrays are known."""
    if isinstance(step, Call):
        return []
    return [KernelLine((), inf, otherwise=f"reads {', '.join(step.reads)}", writes=step.writes)]


def _call(step: Call) -> str:
    where = f" ({step.where})" if step.where else ""
    what = "a library's call" if step.is_library else "runs on whole arrays, not fused"
    return f"{step.name}{where}: {what}"


def _made_for(plan: Plan, at_hand: Sizes) -> list[Sizes]:
    other = any(plan.sizes.get(dim) != size for dim, size in at_hand.items())
    return [plan.sizes] if other else []


def _all(plan: Plan, at_hand: Sizes) -> Iterator[str]:
    """All that is known of a plan's steps."""
    kernels = kernels_in_words(plan)
    yield f"{plan.name}: {kernels} for {plan.target}, {plan.dtype}, {sizes_in_words(at_hand)}"
    yield from (f"  {line}" for line in what_is_stored(plan, at_hand))
    for made in _made_for(plan, at_hand):
        yield f"  chosen for sizes of this class: {sizes_in_words(made)}"
    for step in plan.steps:
        yield from _file(step, plan) if isinstance(step, File) else (f"  {_call(step)}",)


def _after(assemblers: Iterable[str], notes: Iterable[str]) -> Iterator[str]:
    yield from (f"  machine code by {assembler}" for assembler in assemblers)
    yield from (f"  note: {note}" for note in notes)


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
        return [*lines, f"    {WHOLE}"] if whole else lines
    best = file.considered.best
    reason = f"    {in_words(best.name)} ({file.considered.reason})"
    return [*lines, reason, *(f"    {said}" for said in of_schedule(best, plan.sizes))]


def advice(best: Choice) -> Iterator[str]:
    """What keeps a mask from saving work, and what the user would write instead."""
    return whole_loops(_with_groups(best.scheduled)) if best.scheduled is not None else iter(())


def _advice(plan: Plan) -> Iterator[str]:
    for file in plan.files:
        yield from advice(file.considered.best) if file.considered is not None else ()


def of_schedule(best: Choice, sizes: Sizes) -> Iterator[str]:
    """The tiles and the schedule of a choice, and what they mean at these sizes."""
    tiles = ", ".join(f"{dim} {lanes}" for dim, lanes in best.blocks.items())
    count = len(best.graph.nodes)
    operations = "1 top-level operation" if count == 1 else f"{count} top-level operations"
    yield f"{operations} after fusion; tiles: {tiles}"
    if best.schedules:
        yield f"schedule: {best.schedules}"
    yield from narrowed_loops(best.program, sizes, best.blocks)
    yield from advice(best)
    if best.again is not None:
        yield f"{best.again.words}: stored, they would move more"
    processors = best.scheduled.target.processors if best.scheduled else 1
    for chunks in best.program.chunks:
        if is_walked(best.program, chunks):
            yield (
                f"{chunks.count} programs take the blocks of {chunks.dim} in turn:"
                " what all blocks share is loaded once for each program"
            )
        else:
            what = f"a loop over {chunks.dim} is run in {chunks.count} chunks, side by side"
            yield f"{what}: whole, it would leave most of {processors} processors idle"


def not_one_kernel(plan: Plan, sizes: Sizes) -> str:
    """Why a plan is not one kernel, in words: every array between kernels and its reason, and calls
    that no such array tells of, whose arrays are all outputs.
    """
    stored = what_is_stored(plan, sizes)
    untold = [call for call in plan.calls if not any(call.name in line for line in stored)]
    reasons = [*map(_call, untold), *stored]
    for file in plan.files:
        if file.considered is not None and file.kernels > 1:
            graph, said = file.considered.best.graph, FaultNotes()  # as the plan's notes say
            reasons += map(str, explain(graph, on_fault=said.keep))
            names = ", ".join(file.writes)
            reasons.append(f"{names}: {file.kernels} kernels, since one may not read what it wrote")
    kernels, calls = plan.kernels, len(plan.calls)
    counted = f"{kernels} kernel{'s' * (kernels != 1)}"
    counted += f" and {calls} call{'s' * (calls != 1)} on whole arrays" if calls else ""
    return message(
        f"{plan.name} is {counted} for {plan.target}, not one kernel",
        origin="\n".join(reasons),
        hint="leave out one_kernel=True, or rewrite what is named above",
    )
