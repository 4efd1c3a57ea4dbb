"""The space of a program's schedules: the scripts that its moves offer, and their edits.

A script is the lines of a schedule, ``Scheduled.moves``. It is in the space if each of its lines is
a move at one of the places, and with some of the arguments, that the move offers behind the lines
before it. An *edit* changes, inserts or drops one line, and the rest is replayed: a search steps
from a schedule to its neighbours, whatever the moves are.

The rest may name nests by other numbers behind an edit: a loop in chunks is two nests where it was
one. A line follows its nest, and is left out if that nest is gone or the move has become illegal.
A nest that an edit has made gets the usual number of warps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from blockbuster.emit.schedule.base import Move
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.script import BY_NAME, MOVES, missing_blocks, not_complete
from blockbuster.emit.schedule.site import Site
from blockbuster.emit.schedule.warps import Warps
from blockbuster.emit.tile.dataflow import loaded, stored
from blockbuster.emit.tile.program import Nest
from blockbuster.selection.decisions.scripts import Script, Scripts
from blockbuster.selection.decisions.usual_warps import usual_warps

RANK = {move.name: rank for rank, move in enumerate(MOVES)}
WARPS = Warps()


@dataclass(frozen=True)
class Neighbour:
    """A schedule one edit away. ``edit`` says in words which line was changed, and to what."""

    edit: str
    scheduled: Scheduled


class Space(Scripts):
    """The schedules of the program of a start."""

    def neighbours(self, scheduled: Scheduled) -> Iterator[Neighbour]:
        """The complete schedules one edit away, in a fixed order; of equal programs the first."""
        seen = {scheduled.draft}
        for edit, made in self._edited(scheduled.moves):
            if made is not None and made.draft not in seen:
                seen.add(made.draft)
                yield Neighbour(edit, made)

    def _edited(self, script: Script) -> Iterator[tuple[str, Scheduled | None]]:
        for at in reversed(range(len(script))):
            yield from self._changed(script, at)
        for move in MOVES:
            yield from self._inserted(script, move)
        for at in reversed(range(len(script))):
            yield f"drop {script[at]}", self._with(script, at, at + 1, ())

    def _changed(self, script: Script, at: int) -> Iterator[tuple[str, Scheduled | None]]:
        """The line at a position with other arguments near its own."""
        before, line = self.after(script[:at]), script[at]
        move = BY_NAME[line.move]
        for args in move.near(before, line.site, line.args) if before else ():
            other = move.line(line.site, **args)
            yield f"{line} -> {other}", self._with(script, at, at + 1, (other,))

    def _inserted(self, script: Script, move: Move) -> Iterator[tuple[str, Scheduled | None]]:
        """A line more, behind those that usually come before it."""
        ranks = [RANK[line.move] for line in script]
        behind = (at for at, rank in enumerate(ranks, start=1) if rank <= RANK[move.name])
        at = max(behind, default=0)
        before = self.after(script[:at])
        if before is None:
            return
        for site in list(move.sites(before)):
            for args in move.first(before, site):
                line = move.line(site, **args)
                yield f"insert {line}", self._with(script, at, at, (line,))

    def _with(self, script: Script, at: int, end: int, lines: Script) -> Scheduled | None:
        """The script with other ``lines`` from ``at`` to ``end``, and what applies of the rest."""
        here, before = self.after((*script[:at], *lines)), self.after(script[:end])
        if here is None or before is None:
            return None
        for number in range(end, len(script)):
            old, line = self.after(script[:number]), script[number]
            assert old is not None, "it is a prefix of a schedule"
            site = _followed(line.site, old.draft.nests, here.draft.nests)
            made = None if site is None else self.after((*here.moves, replace(line, site=site)))
            here = made or here
        return _completed(here)


def _completed(scheduled: Scheduled) -> Scheduled | None:
    """``scheduled`` with warps for every nest; None if something else is missing."""
    draft = scheduled.draft
    if any(missing_blocks(nest, draft.units) for nest in draft.nests):
        return None
    for number, nest in enumerate(draft.nests, start=1):
        if not nest.warps:
            count = usual_warps(scheduled, nest)
            if WARPS.why_not(scheduled, Site(number), count=count):
                return None  # its tiles are too large for the most warps
            scheduled = WARPS.apply(scheduled, Site(number), count=count)
    return None if not_complete(scheduled) else scheduled


def _followed(site: Site, old: Sequence[Nest], new: Sequence[Nest]) -> Site | None:
    """The place in ``new`` nests of a place in ``old`` ones; None if its nest is gone.

    Where there are as many nests, they are those at the same positions. Otherwise a nest is the one
    with which it has most arrays in common.
    """
    if len(old) == len(new) or not site.nest:
        return site
    pairs = [(_shared(a, b), -i, -j) for i, a in enumerate(old) for j, b in enumerate(new)]
    taken: dict[int, int] = {}
    for shared, i, j in sorted(pairs, reverse=True):
        if shared and -i not in taken and -j not in taken.values():
            taken[-i] = -j
    number = taken.get(site.nest - 1)
    return None if number is None else replace(site, nest=number + 1)


def _shared(one: Nest, other: Nest) -> int:
    """How many arrays both nests load, or both store."""
    return sum(
        len({b.name for b in touched(one.body)} & {b.name for b in touched(other.body)})
        for touched in (loaded, stored)
    )
