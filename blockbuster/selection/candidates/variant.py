"""A program that is made of a derivation, with the name by which schedules and reports know it."""

from __future__ import annotations

from dataclasses import dataclass

from blockbuster.ir.graph import Graph
from blockbuster.rules import Derivation


@dataclass(frozen=True)
class Variant:
    """``derivation`` ends with the program; ``notes``: what a user has to know of its numbers."""

    derivation: Derivation
    name: str = ""
    notes: tuple[str, ...] = ()

    @property
    def graph(self) -> Graph:
        """The program."""
        return self.derivation.final
