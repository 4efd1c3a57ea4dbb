"""Statements of nests that begin early: dependent launches between the kernels of one program.

A nest that holds a ``Wait`` may begin while the nest before it still runs. Until it waits, nothing
that earlier nests wrote is sure to be there, and what they read must not be written. A nest without
one begins when all nests before it have ended.

So nests form *chains*: one without a ``Wait``, and those behind it that hold one. As each of them
waits before it ends, and a wait ends when all of the nest before has ended, all earlier nests have
ended then, too.
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
