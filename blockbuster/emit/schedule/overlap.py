"""overlap: a kernel begins before the kernel before it has ended.

before   nest 1: ...                      after   nest 1: release; ...
          store(t2,I1[m])                          store(t2,I1[m])
         nest 2:                                  nest 2:
          t1 = load(I1[m])                         wait
          ...                                      t1 = load(I1[m])
                                                   ...

A dependent launch: programs of a kernel start while the last programs of the kernel before still
run. They do the work that does not depend on that kernel, and wait. Hides most of the time between
two kernels, and the loads at the second one's beginning. Costs nothing, unless waiting programs
take the place of others.

The place of the wait follows from the arrays that a nest reads and writes
(``closing/place_waits.py``), so the move is legal on every nest. The first nest, if it is named,
overlaps whatever was launched before this program: it waits before it touches any array, since a
kernel before may still write or read each of them. Otherwise it begins when everything launched
before has ended. Either way all memory that the program may write is free behind its first wait. A
later nest waits for the one before, which has waited itself, so all earlier nests have ended by
then, too. The last nest releases nothing: measured, programs of the next call that begin beside its
own take up to a microsecond from them, and what follows gains no more than from its end.
"""

from __future__ import annotations

from typing import Any, ClassVar

from blockbuster.emit.schedule.base import NEST, Move
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import EVERYWHERE, Site, nests_at
from blockbuster.emit.target.targets import Target
from blockbuster.emit.tile.changed import changed
from blockbuster.emit.tile.constants import kept_nests
from blockbuster.emit.tile.program import TileProgram


class Overlap(Move):
    """Let a nest begin before the one before it has ended; everywhere: all nests but the first."""

    name: ClassVar[str] = "overlap"
    takes: ClassVar[str] = NEST

    def not_here(self, scheduled: Scheduled, site: Site, nests: object, /, **args: Any) -> str:
        """The nest does not overlap yet, and the device has dependent launches."""
        found = _overlapping(scheduled.draft, site)
        if not found:
            return "nest 1 is the only one: name it to overlap what runs before this program"
        if reason := kept_from_call_to_call(scheduled.draft, found):
            return reason
        if all(scheduled.draft.nests[at].overlaps for at in found):
            return f"{'every nest' if site == EVERYWHERE else site} overlaps the one before already"
        return no_dependent_launch(scheduled.target)

    def rewritten(self, scheduled: Scheduled, site: Site, **args: Any) -> TileProgram:
        """The draft in which these nests overlap."""
        draft, found = scheduled.draft, _overlapping(scheduled.draft, site)
        nests = (
            changed(nest, overlaps=nest.overlaps or at in found)
            for at, nest in enumerate(draft.nests)
        )
        return changed(draft, nests=tuple(nests))


def _overlapping(draft: TileProgram, site: Site) -> tuple[int, ...]:
    """Positions of the nests that are to overlap: without a number, all but the first that run
    in each call.
    """
    found = tuple(nests_at(draft, site))
    if site != EVERYWHERE:
        return found
    kept = kept_nests(draft)
    return tuple(at for at in found if at not in kept)[1:]


def kept_from_call_to_call(draft: TileProgram, found: tuple[int, ...]) -> str:
    """Why a nest overlaps nothing, or "": it runs apart from calls, for constants alone."""
    kept = (at for at in kept_nests(draft) if at in found)
    return next((f"nest {at + 1} is kept from call to call: it runs before any" for at in kept), "")


def no_dependent_launch(target: Target) -> str:
    """Why no kernel for ``target`` begins before another has ended, or "": a target predicate."""
    if target.overlaps:
        return ""
    return f"{target.name} has no dependent launches: a kernel begins when those before have ended"
