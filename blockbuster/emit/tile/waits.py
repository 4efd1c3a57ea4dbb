"""Waits: statements of nests that begin early (dependent launches between a program's kernels).

A nest that holds a ``Wait`` may begin while the nest before it still runs. Until it waits, arrays
that earlier nests write may be incomplete, and arrays that they read must not be written. A nest
without a ``Wait`` begins when all nests before it have ended.

So nests form *chains*: one nest without a ``Wait``, followed by nests that hold one. Each of them
waits before it ends, and a wait ends when the nest before has ended completely, so all earlier
nests have ended by then, too. If the first nest of a program holds a ``Wait``, its chain goes on
from whatever ran before the program, of which nothing is known: until then no array is touched.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Wait:
    """Wait until the nest before has ended: all that earlier nests wrote is there from here on."""


@dataclass(frozen=True)
class Release:
    """The next nest may begin as soon as all programs of this one have come this far, or ended."""


Between = Wait | Release
"""What is said to the nests around."""
