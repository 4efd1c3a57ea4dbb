"""Arrangements: the schedules of a program before warps and stages, each made once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from blockbuster.emit.schedule.block import dims_of_dots
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.script import BY_NAME
from blockbuster.errors import EmitError
from blockbuster.ir.types import Dim
from blockbuster.selection.decisions.default_schedule import completed, divided
from blockbuster.selection.decisions.own_blocks import Own
from blockbuster.selection.nearby.edits import Lines
from blockbuster.selection.nearby.roles import Roles

Lanes = tuple[tuple[Dim, int], ...]
Chunks = tuple[tuple[Dim, int], ...] | None


@dataclass(frozen=True)
class Arrangement:
    """The facts on which the moves before warps and stages depend.

    ``lanes``: those that are asked for instead of the default ones. ``chunks``: in how many chunks
    loops over some dims are run; None: as many as the default schedule has. ``own``: lanes of
    single kernels, by their numbers before loops are run in chunks. ``later``: moves of single
    kernels after all that: other blocks, grids that few programs walk, two blocks to a program.
    """

    lanes: Lanes = ()
    chunks: Chunks = None
    own: tuple[tuple[int, Lanes], ...] = ()
    later: Lines = ()


class Arrangements:
    """The schedules of one program; ``bare``: it without any moves."""

    def __init__(self, bare: Scheduled, roles: Roles) -> None:
        self.bare, self.roles = bare, roles
        self._made: dict[Arrangement, Scheduled | None] = {}
        self._parts: dict[tuple[Lanes, tuple[tuple[int, Lanes], ...]], Scheduled] = {}

    def at(self, arrangement: Arrangement) -> Scheduled | None:
        """The schedule of an arrangement; None if its parts do not go together."""
        if arrangement not in self._made:
            self._made[arrangement] = self._make(arrangement)
        return self._made[arrangement]

    def _make(self, arrangement: Arrangement) -> Scheduled | None:
        if arrangement.later:
            *before, line = arrangement.later
            made = self.at(replace(arrangement, later=tuple(before)))
            return BY_NAME[line.move].tried(made, line.site, **line.args)[1] if made else None
        chunks = None if arrangement.chunks is None else dict(arrangement.chunks)
        try:
            return completed(self._divided(arrangement), chunks)
        except EmitError:  # these lanes do not go together, or no such loop can be in chunks
            return None

    def _divided(self, arrangement: Arrangement) -> Scheduled:
        """The schedule before loops are run in chunks. Raises EmitError if lanes do not fit."""
        key = arrangement.lanes, arrangement.own
        if key not in self._parts:
            self._parts[key] = divided(self.bare, *self._asked(arrangement))
        return self._parts[key]

    def _asked(self, arrangement: Arrangement) -> tuple[Mapping[Dim, int], Mapping[Dim, int], Own]:
        """The lanes of an arrangement: of all nests, of those with dots, and of single ones."""
        lanes = {**self.roles.usual, **dict(arrangement.lanes)} if arrangement.lanes else {}
        own = {number: dict(mine) for number, mine in arrangement.own}
        return (*((lanes, {}) if not self.roles.dots else ({}, lanes)), own)

    def lanes(self, arrangement: Arrangement) -> Lanes:
        """The lanes of the dims that vary, as they are in an arrangement."""
        made = self.at(arrangement)
        if made is None:
            return ()
        blocks: dict[Dim, int] = {}
        for nest in made.draft.nests:
            if not self.roles.dots or dims_of_dots(nest, made.draft.units):
                blocks |= {block.dim: block.lanes for block in nest.blocks}
        return tuple((dim, blocks[dim]) for dim in self.roles.varying if dim in blocks)

    def with_own(self, arrangement: Arrangement) -> Iterator[tuple[int, Arrangement]]:
        """The same with other lanes of one dim of one kernel, and the number of that kernel."""
        if len(self.bare.draft.nests) > 1 or self.at(arrangement) is None:
            return
        known = dict(arrangement.own)
        nests = self._divided(arrangement).draft.nests
        for number, nest in enumerate(nests if len(nests) > 1 else (), start=1):
            for lanes in self.roles.alone(nest):
                own = {**known, number: tuple({**dict(known.get(number, ())), **lanes}.items())}
                yield number, replace(arrangement, own=tuple(sorted(own.items())))

    def neighbours(self, arrangement: Arrangement) -> Iterator[Arrangement]:
        """The same with one dim doubled or halved."""
        lanes = self.lanes(arrangement)
        for at, (dim, count) in enumerate(lanes):
            for other in (2 * count, count // 2):
                if self.roles.least(dim) <= other <= self.roles.most(dim):
                    changed = (*lanes[:at], (dim, other), *lanes[at + 1 :])
                    yield replace(arrangement, lanes=changed)
