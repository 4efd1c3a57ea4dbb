"""The report on an emitted file: ``Kernel.report``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from blockbuster.costs.report import CLOSED_FORM, in_us
from blockbuster.emit.kernel import Kernel
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.steps import KernelDerivation
from blockbuster.errors import message
from blockbuster.frontend.program import ArrayProgram, Equation
from blockbuster.frontend.reference_text import UserFunction
from blockbuster.ir.types import size_class
from blockbuster.selection.considered import Considered
from blockbuster.selection.cost import Cost
from blockbuster.selection.plans.kernel_lines import of_program
from blockbuster.selection.plans.report import (
    Report,
    advice,
    alone,
    head,
    in_lines,
    indented,
    numbered,
    of_schedule,
)
from blockbuster.selection.plans.stored import Stored, sizes_in_words, stored_by
from blockbuster.selection.price import priced


def kernel_report(kernel: Kernel) -> Report:
    """The report on a kernel of ``bb.emit``. Raises ValueError if it has no derivation."""
    made, considered = kernel.derivation, kernel.considered
    if made is None:
        what = "this kernel has forgotten how it was made"
        raise ValueError(message(what, hint="bb.emit makes it again, with a report"))
    cost, program = _cost(made.final), _traced(made)
    found = _stored(kernel, made, considered)
    name = program.name if program is not None else kernel.name
    equations = program.equations if program is not None else ()
    text = in_lines(
        head(name, _number(kernel), kernel.target, kernel.dtype, _time(cost)),
        kernels=_lines(made, cost, equations),
        stored=found,
        alone=alone(kernel.kernels),
        sizes=[kernel.sizes],
        notes=(*(advice(considered.best) if considered else ()), *kernel.notes),
    )
    stored = tuple(map(str, found))
    details = indented(_details(kernel, considered, stored))
    return Report(kernel.kernels, (), kernel.notes, text, stored, details)


def predicted_time(kernel: Kernel) -> str:
    """The predicted time of a kernel's file: "35.5 us predicted on h200 (closed form, cold cache)".

    Empty if the kernel does not fit the machine of its target.
    """
    return _time(_cost(kernel.derivation.final)) if kernel.derivation else ""


def _time(cost: Cost | None) -> str:
    if cost is None:
        return ""
    return f"{in_us(cost.predicted)} predicted on {cost.machine.name} ({CLOSED_FORM})"


def _cost(scheduled: Scheduled) -> Cost | None:
    """The closed form of a schedule; None if it does not fit the machine of its target."""
    try:
        return priced(scheduled)
    except ValueError:
        return None


def _number(kernel: Kernel) -> str:
    return "1 kernel" if kernel.kernels == 1 else f"{kernel.kernels} kernels"


def _traced(made: KernelDerivation) -> ArrayProgram | None:
    """The function that was traced, if the kernel was made from one."""
    start = made.fused.start if made.fused is not None else made.graph
    meaning = start.meaning if start is not None else None
    return meaning.program if isinstance(meaning, UserFunction) else None


def _lines(
    made: KernelDerivation, cost: Cost | None, equations: Sequence[Equation]
) -> Iterator[str]:
    each = of_program(made.final.draft, cost.each if cost else (), equations, whole=True)
    for at, line in enumerate(each):
        yield line.text(f"  {numbered(at)}: ")


def _stored(
    kernel: Kernel, made: KernelDerivation, considered: Considered | None
) -> tuple[Stored, ...]:
    """The values that pass from kernel to kernel."""
    program, graph = made.final.program, made.fused.final if made.fused else made.graph
    if graph is None:
        return ()
    sizes = {size_class(dim): size for dim, size in made.final.known.items()}
    return stored_by(program, kernel.tiles, graph, sizes, considered)


def _details(
    kernel: Kernel, considered: Considered | None, stored: tuple[str, ...]
) -> Iterator[str]:
    sizes = sizes_in_words(kernel.sizes)
    yield f"{kernel.name}: {_number(kernel)} for {kernel.target}, {kernel.dtype}, {sizes}"
    yield from (f"  {line}" for line in stored)
    if considered is None:
        tiles = ", ".join(f"{dim} {lanes}" for dim, lanes in kernel.tiles.items())
        yield f"  as given, nothing was chosen; tiles: {tiles}"
        return
    yield f"  chosen: {considered.short or considered.best_alone}"
    yield f"  {considered.reason}"
    yield from (f"  {said}" for said in of_schedule(considered.best, kernel.sizes))
