"""Programs that make larger values again instead of storing them: candidates beside the snapshots.

Attention's backward pass reads its scores in three products whose loops do not meet, so fusing
alone stores them. ``made_again`` (rules/made_again.py) copies them into each product. That saves
what storing moves and costs arithmetic: which is less depends on sizes, and is for choice.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from blockbuster.emit.tile.arithmetic import Arithmetic, arithmetic
from blockbuster.emit.tile.program import TileProgram
from blockbuster.emit.tile.result_dtypes import FLOAT
from blockbuster.ir.graph import Graph
from blockbuster.ir.types import Dim
from blockbuster.rules import REPEATING_RULES, RULES, Derivation, made_again
from blockbuster.selection.cost import in_elements

MOST_TIMES = 4
"""How often the arithmetic of a program may be done over: attention's backward pass as array code
does it 2.2 times, with statistics, dq, dk and dv each in a loop of its own."""


@dataclass(frozen=True)
class Again:
    """A program with larger values made again; ``derivation`` begins with the steps that copy them."""

    derivation: Derivation

    name: ClassVar[str] = "the program with larger values made again"

    @property
    def graph(self) -> Graph:
        """The program."""
        return self.derivation.final

    @property
    def copies(self) -> int:
        """How many copies it has."""
        return sum(step.rule == "copy-producer" for step in self.derivation.steps)


def values_again(derivation: Derivation) -> Again | None:
    """The program that makes larger values again, where there is anything to gain from it."""
    made = made_again(derivation, (*RULES, *REPEATING_RULES[-1:]))
    return None if made is None else Again(made)


@dataclass(frozen=True)
class Repeated:
    """The arithmetic of a program that makes values again, and of the one that makes each once.

    ``exact``: their dots are those of float32.
    """

    now: Arithmetic
    once: Arithmetic
    exact: bool

    @property
    def too_much(self) -> bool:
        """True if the work is done more than ``MOST_TIMES`` over."""
        now, once = (in_elements(work, exact=self.exact) for work in (self.now, self.once))
        return now > MOST_TIMES * once

    @property
    def words(self) -> str:
        """How much there is of it."""
        now, once = self.now.matrix + self.now.vector, self.once.matrix + self.once.vector
        return f"{now:.2g} operations instead of {once:.2g}"


def repeated(program: TileProgram, once: TileProgram, sizes: Mapping[Dim, int]) -> Repeated:
    """What ``program`` computes, which has its blocks, and ``once``, as it is before it is fused."""
    exact = program.dtype == FLOAT
    return Repeated(arithmetic(program, sizes), arithmetic(once, sizes), exact)
