"""split: nests that load what they store are split into several kernels (see split_nests.py).

A Triton kernel may not read what another of its programs or threads has written, so a program with
such a nest has to be split before it is printed.
"""

from __future__ import annotations

from typing import Any, ClassVar

from blockbuster.emit.schedule.base import PROGRAM, Move
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site
from blockbuster.emit.schedule.split_nests import split_nests
from blockbuster.emit.tile.dataflow import conflicts
from blockbuster.emit.tile.program import TileProgram


class Split(Move):
    """Distribute the loops of nests that load what they store."""

    name: ClassVar[str] = "split"
    takes: ClassVar[str] = PROGRAM

    def not_here(
        self, scheduled: Scheduled, site: Site, program: TileProgram, /, **args: Any
    ) -> str:
        """Some nest loads what it stores."""
        found = any(conflicts(nest.body) for nest in program.nests)
        return "" if found else "no nest loads what it stores"

    def rewritten(self, scheduled: Scheduled, site: Site, **args: Any) -> TileProgram:
        """The nests in parts."""
        return split_nests(scheduled.draft)
