"""Replays of scripts that begin alike: the lines that two scripts share are applied once.

A search looks at thousands of schedules of one program, most of which differ in a line or two near
the end. ``Replays`` keeps the schedule after each line, so that a script costs what its own last
lines cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.script import Line, after_line, parsed

MOST = 4096
"""Schedules that are kept, unless said otherwise: some 20 kB each."""

Script = tuple[str, ...]
"""The lines of a schedule, one move in each."""


@lru_cache(maxsize=MOST)
def _lines(text: str, number: int) -> tuple[Line, ...]:
    """The moves of one line, as a rule a single one."""
    return tuple(parsed(text, first=number))


class Replays:
    """The schedules of one program by their scripts, as far as they have been asked for.

    ``bare``: the schedule before the first line. The ``most`` schedules that were asked for last
    are kept.
    """

    def __init__(self, bare: Scheduled, *, most: int = MOST) -> None:
        self.bare, self._most = bare, most
        self._known: dict[Script, Scheduled] = {}

    def after(self, lines: Sequence[str]) -> Scheduled:
        """``bare`` after these lines.

        Raises ParseError if a line cannot be read, EmitError if a move does not apply: it quotes
        the line and says why.
        """
        script = tuple(lines)
        known = next((n for n in range(len(script), 0, -1) if script[:n] in self._known), 0)
        made = self._kept(script[:known], self._known[script[:known]]) if known else self.bare
        for number in range(known + 1, len(script) + 1):
            for line in _lines(script[number - 1], number):
                made = after_line(made, line)
            self._kept(script[:number], made)
        return made

    def _kept(self, script: Script, made: Scheduled) -> Scheduled:
        """Keep ``made`` as the schedule asked for last, and drop the one of longest ago."""
        self._known.pop(script, None)
        self._known[script] = made
        if len(self._known) > self._most:
            del self._known[next(iter(self._known))]
        return made
