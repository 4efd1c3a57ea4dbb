"""What was decided for a program at some sizes, in words that another process can follow.

Choosing takes seconds: many programs are fused, scheduled and priced, and one of them is kept. A
decision says which: the parts, the form of each, and of each kernel file the program and the moves
of its schedule. Whoever follows it makes the same plan without a search. Every move checks that it
applies, and the program has to be the one that was decided for, so a decision that does not fit is
found out, and the search decides anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Protocol

from blockbuster.emit.schedule.script import checked_complete
from blockbuster.emit.tile.array_dtypes import Given
from blockbuster.emit.tile.fingerprint import Fingerprint
from blockbuster.emit.tile.program import TileProgram
from blockbuster.ir.reading import Read, items, mapping, number, record, row, text
from blockbuster.ir.types import Dim
from blockbuster.machines import Machine
from blockbuster.selection.candidates.alternatives import Form
from blockbuster.selection.candidates.candidate import (
    Candidate,
    Choice,
    Setting,
    replayed_candidate,
)
from blockbuster.selection.considered import Considered, MadeLater

if TYPE_CHECKING:
    from blockbuster.selection.choice import Fused


@dataclass(frozen=True)
class Kernel:
    """The choice for a piece: a candidate by number and name, and the moves of its schedule.

    ``program``: the digest of the candidate before its schedule, whose dims have numbers in
    ``schedule``. ``among``: among how many schedules it was chosen, in words. ``blocks``: the lanes
    by which all candidates cut dims. ``refused``: which candidates were no choice, and why.
    """

    snapshot: int
    name: str
    program: str
    schedule: str
    among: str
    blocks: Mapping[str, tuple[int, ...]]
    refused: tuple[str, ...]


@dataclass(frozen=True)
class Decision:
    """The parts of a plan in order, each by its units (as bits) and the number of its form; and the
    choice for each of their pieces. ``notes``: which forms of parts were left out, and why.
    """

    parts: tuple[tuple[int, int], ...]
    kernels: tuple[Kernel, ...]
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The decision as JSON."""
        kernels = [{one.name: getattr(k, one.name) for one in fields(k)} for k in self.kernels]
        return {"parts": self.parts, "kernels": kernels, "notes": self.notes}


_COUNT = number(0)
_KERNEL: dict[str, Read[Any]] = {
    "snapshot": number(1), "name": text, "program": text, "schedule": text, "among": text,
    "blocks": mapping(items(number(1))), "refused": items(text),
}  # fmt: skip


def read_decision(data: Any) -> Decision:
    """A decision from JSON. Raises Wrong, with the place, for other data."""
    found = record(
        data,
        parts=items(lambda pair: row(pair, _COUNT, _COUNT)),
        kernels=items(lambda one: Kernel(**record(one, **_KERNEL))),
        notes=items(text),
    )
    return Decision(**found)


class Memory(Protocol):
    """Keeps decisions for a program's sizes, from process to process."""

    def recall(self, sizes: Mapping[Dim, int]) -> Decision | None:
        """What was decided at these sizes, if that is known."""

    def keep(self, sizes: Mapping[Dim, int], decision: Decision) -> None:
        """Remember a decision."""

    def forget(self) -> None:
        """Forget all decisions for the program."""


def kernel_of(considered: Considered) -> Kernel | None:
    """The choice for a piece as a decision.

    None for what only this process can make, after a compiler refused others.
    """
    best = considered.best
    if best.scheduled is None or not best.usual or considered.instead:
        return None
    found = Fingerprint(best.scheduled.start)
    blocks = considered.blocks.items()
    own = {found.dims[dim]: tuple(lanes) for dim, lanes in blocks if dim in found.dims}
    schedule = found.numbered(best.scheduled.schedule)
    named = best.snapshot, best.name, found.digest
    return Kernel(*named, schedule, best.schedules, own, (*considered.refused,))


def recalled(
    kernel: Kernel,
    fused: Fused,
    sizes: Mapping[Dim, int],
    given: Given,
    target: str | Machine,
    search: Callable[[], Considered | None],
) -> Considered | None:
    """The choice for a piece as it was decided earlier; None if it does not fit the piece. Its
    others are those that ``search`` considers for the piece, if it finds the same parts.
    """
    setting = Setting(sizes, given, target, in_chunks=True)
    start = fused.start(kernel.snapshot, kernel.name, setting)
    found = _followed(kernel, start, setting) if start else None
    if start is None or found is None:
        return None
    best = replace(fused.made(found, kernel.snapshot, Form()), schedules=kernel.among)

    def others() -> list[Choice]:
        found = search()
        every = (found.best, *found.others) if found else ()
        return [one for one in every if one.key != best.key]

    names = {number: dim for dim, number in Fingerprint(start).dims.items()}
    blocks = {names[dim]: lanes for dim, lanes in kernel.blocks.items() if dim in names}
    return Considered(best, MadeLater(others, blocks), kernel.refused)


def _followed(kernel: Kernel, start: TileProgram, setting: Setting) -> Candidate | None:
    """The candidate that a decision makes of a program; None if it was for another one, or if a
    move does not apply.
    """
    found = Fingerprint(start)
    if found.digest != kernel.program:
        return None
    text = found.named(kernel.schedule)
    return replayed_candidate(start, setting.known, setting.device, text, checked_complete)
