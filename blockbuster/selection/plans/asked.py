"""Measured schedules in place of modelled ones: the question to ``tuning``, and use of its answer.

``tuning`` is asked once per class of sizes and kernel file. Its answer is the choices considered,
with another best one in front if a measured schedule exists, else unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.tile.array_dtypes import Given, typed_for_gpu
from blockbuster.emit.tile.fingerprint import Fingerprint
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.ir.graph import Graph
from blockbuster.ir.lengths import completed
from blockbuster.ir.types import size_class
from blockbuster.rules import safe
from blockbuster.selection.candidates.candidate import Choice, Key, timed
from blockbuster.selection.considered import Considered
from blockbuster.selection.contest import at_other_sizes
from blockbuster.selection.plans.size_classes import Sizes


@dataclass(frozen=True)
class Subject:
    """The computation of a file, for any sizes. ``given``: the dtypes of its arrays."""

    graph: Graph
    given: Given

    @cached_property
    def unfused(self) -> Fingerprint:
        """The tile program before any fusion. Raises EmitError if there is none."""
        program = lower_to_tiles(safe(self.graph))
        return Fingerprint(typed_for_gpu(self.graph, program, self.given))


@dataclass(frozen=True)
class Asked:
    """The choices considered for a file, for some sizes.

    ``refused``: keys of choices that a compiler refused or broke. ``one_kernel``: only single
    kernels may be the answer.
    """

    subject: Subject
    sizes: Sizes
    considered: Considered
    refused: Collection[Key] = ()
    one_kernel: bool = False

    @property
    def program_sizes(self) -> tuple[int, ...]:
        """The sizes of the program's dims, in the order of its fingerprint."""
        known = {size_class(dim): size for dim, size in self.sizes.items()}
        fingerprint = self.subject.unfused
        found = completed(known, fingerprint.program.rules)
        return tuple(found[dim] for dim in fingerprint.dims)

    def choices(self) -> Iterator[Choice]:
        """The choices whose schedules may be changed: those as safe as the best, best first.

        All are for the sizes at hand: the others may have been considered at larger ones of the
        class (plan_classes.py), which blocks may divide that do not divide these.
        """
        best = self.considered.best
        for choice in (best, *sorted(self.considered.others, key=lambda other: other.rank)):
            single = choice.kernels == 1 or not self.one_kernel
            if choice.scheduled and len(choice.unsafe) <= len(best.unsafe) and single:
                here = self._at_these_sizes(choice)
                if here is not None:
                    yield here

    def _at_these_sizes(self, choice: Choice) -> Choice | None:
        """A choice with its schedule at these sizes; None where a move does not apply to them."""
        assert choice.scheduled is not None
        known = {size_class(dim): size for dim, size in self.sizes.items()}
        same = all(known.get(dim) == size for dim, size in choice.scheduled.known.items())
        return choice if same else at_other_sizes(choice, known)


Known = Callable[[Asked], Considered]
"""Gives what was considered, with a measured choice as the best if one is known."""


def measured(considered: Considered, best: Choice, said: str) -> Considered:
    """``considered`` with another best, known from measurements; the one before is not lost."""
    others = [one for one in (considered.best, *considered.others) if one.key != best.key]
    return Considered(best, tuple(others), considered.refused, considered.instead, said=said)


def rescheduled(choice: Choice, scheduled: Scheduled) -> Choice:
    """``choice`` with another schedule of its program."""
    assert choice.scheduled is not None, "a choice for a GPU"
    assert scheduled.start == choice.scheduled.start, "a schedule of the same program"
    return replace(choice.made_as(timed(scheduled)), schedules="")
