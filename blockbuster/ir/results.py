"""What becomes of the outputs of a map's body: lists, folds, and members of groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from blockbuster.ir.expr import Expr


@dataclass(frozen=True)
class Collect:
    """A result of a map that becomes a list."""


@dataclass(frozen=True)
class Accumulate:
    """A result of a map that is folded over the iterations."""

    monoid: str


@dataclass(frozen=True)
class Rescale:
    """A significand of a group: folded with ``monoid`` after it is repaired for its ``leads``.

    Leads are earlier results of the map: accumulated ones, or members of the group themselves.
    Before two partial results are folded, each is mapped by ``factor``, whose arguments are its own
    value x, its own leads, in their order, and the folded leads. The fold stays associative.
    """

    monoid: str
    leads: tuple[int, ...]
    factor: Expr

    def moved(self, place: Callable[[int], int]) -> Rescale:
        """The same member where the result ``port`` is at ``place(port)``."""
        return Rescale(self.monoid, tuple(map(place, self.leads)), self.factor)


Result = Collect | Accumulate | Rescale
