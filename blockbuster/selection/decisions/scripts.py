"""Schedules of one program by their scripts: the lines of a schedule, ``Scheduled.moves``."""

from __future__ import annotations

from dataclasses import replace

from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.script import BY_NAME
from blockbuster.emit.schedule.site import Applied

Script = tuple[Applied, ...]


class Scripts:
    """The schedules of the program of ``start``. What a prefix of a script makes is kept."""

    def __init__(self, start: Scheduled) -> None:
        self.bare = replace(start, draft=start.start, moves=())
        self._made: dict[Script, Scheduled | None] = {(): self.bare}

    def after(self, script: Script) -> Scheduled | None:
        """The schedule of a script; None if one of its lines does not apply."""
        if script not in self._made:
            before = self.after(script[:-1])
            line = script[-1]
            move = BY_NAME[line.move]
            made = move.tried(before, line.site, **line.args)[1] if before else None
            self._made[script] = made
        return self._made[script]
