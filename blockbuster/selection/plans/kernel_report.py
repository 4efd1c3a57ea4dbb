"""The report on an emitted file: ``Kernel.report``."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from blockbuster.costs.report import CLOSED_FORM, in_us
from blockbuster.emit.kernel import Kernel
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.steps import KernelDerivation
from blockbuster.errors import message, shown
from blockbuster.frontend.program import Equation
from blockbuster.frontend.reference_text import UserFunction
from blockbuster.ir.graph import Graph
from blockbuster.ir.types import size_class
from blockbuster.selection.considered import Considered
from blockbuster.selection.cost import Cost
from blockbuster.selection.plans.kernel_lines import of_program
from blockbuster.selection.plans.report import (
    Report,
    alone,
    head,
    in_lines,
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
    cost = _cost(made.final)
    found = _stored(kernel, made, considered)
    time = ""
    if cost is not None:
        time = f"{in_us(cost.predicted)} predicted on {cost.machine.name} ({CLOSED_FORM})"
    text = in_lines(
        head(kernel.name, _number(kernel), kernel.target, kernel.dtype, time),
        kernels=_lines(made, cost),
        stored=found,
        alone=alone(kernel.kernels),
        sizes=[kernel.sizes],
        notes=kernel.notes,
    )
    stored = tuple(map(str, found))
    details = "".join(f"{shown(line)}\n" for line in _details(kernel, considered, stored))
    return Report(kernel.kernels, (), kernel.notes, text, stored, details)


def predicted_time(kernel: Kernel) -> float:
    """The predicted microseconds of a kernel's file, infinite if none are known."""
    cost = _cost(kernel.derivation.final) if kernel.derivation else None
    return cost.predicted if cost else inf


def _cost(scheduled: Scheduled) -> Cost | None:
    """The closed form of a schedule; None if it does not fit the machine of its target."""
    try:
        return priced(scheduled)
    except ValueError:
        return None


def _number(kernel: Kernel) -> str:
    return "1 kernel" if kernel.kernels == 1 else f"{kernel.kernels} kernels"


def _start(made: KernelDerivation) -> Graph | None:
    return made.fused.start if made.fused is not None else made.graph


def _lines(made: KernelDerivation, cost: Cost | None) -> Iterator[str]:
    start, equations = _start(made), list[Equation]()
    if start is not None and isinstance(start.meaning, UserFunction):
        equations += start.meaning.program.equations
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
    yield f"  chosen: {considered.short or considered.best.name}"
    yield f"  {considered.reason}"
    yield from (f"  {said}" for said in of_schedule(considered.best, kernel.sizes))
