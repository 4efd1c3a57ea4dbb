"""What the kernels of a candidate compute, in whatever order they are written.

Two snapshots of an attention differ in whether sums begin before or behind loads: the schedule that
suits one suits the other.
"""

from __future__ import annotations

import hashlib
import re

from blockbuster.emit.tile.fingerprint import numbered_tiles
from blockbuster.emit.tile.program import TileProgram

TILE = re.compile(r"%\d+")
MADE = re.compile(r"(%\d+): ")


def lines_in_any_order(program: TileProgram) -> tuple[str, ...]:
    """The lines of a program's text, sorted, with each tile named after the line that makes it.

    Programs that have the same may still differ, in which of several loops a line stands.
    """
    names: dict[str, str] = {}

    def named(line: str) -> str:
        return TILE.sub(lambda tile: names.get(tile[0], "%"), line)

    found = list[str]()
    for line in numbered_tiles(program).splitlines():
        if made := MADE.search(line):
            names.pop(made[1], None)  # nests number their own tiles
            names[made[1]] = f"%{hashlib.sha256(named(line).encode()).hexdigest()[:12]}"
        found.append(named(line))
    return tuple(sorted(found))
