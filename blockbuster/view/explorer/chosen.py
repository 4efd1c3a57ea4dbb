"""The kernels that the explorer shows: chosen by cost, as ``jit`` chooses, and worded alike.

The page's header, its kernel and its reasons for stored values all come from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, inf

from blockbuster.errors import EmitError
from blockbuster.ir.types import Dim, size_class
from blockbuster.machines import Machine
from blockbuster.rules import Derivation
from blockbuster.selection.choice import Fused
from blockbuster.selection.considered import Considered, in_words

LONG = 48
"""Operators of a program whose schedules take longer to compare than its page should: it gets the
best of the default ones."""


@dataclass(frozen=True)
class Chosen:
    """The choice at some sizes. ``derivation`` ends with its program.

    ``name`` is what the kernel's schedule calls the program, "" for the final one.
    ``compared``: schedules near the default one were compared, as ``jit`` does. Without
    ``considered`` there are no kernels, for the reason ``missing``.
    """

    derivation: Derivation
    considered: Considered | None
    compared: bool = True
    name: str = ""
    missing: str = ""

    @property
    def words(self) -> str:
        """The alternatives and the cost that decided, in words."""
        if self.considered is None:
            return ""
        told = self.considered.short or self.considered.best_alone
        return told if self.compared else f"{told} (by default schedules; jit compares more)"

    @property
    def kernels(self) -> int:
        """How many kernels run, one after the other."""
        return self.considered.best.kernels if self.considered else 0

    @property
    def passed_over(self) -> str:
        """Why a rule that applies to the chosen program was not applied."""
        if self.considered is None:
            return "applies, in a later snapshot"
        best, others = self.considered.best, self.considered.others
        more = [one for one in others if one.snapshot > best.snapshot]
        if not more:
            return "applies, but what it gives has no kernel at these sizes"
        other = min(more, key=lambda one: one.rank)
        names = in_words(other.name), in_words(best.name)
        return (
            f"applies, but {names[0]} ({other.amount}) is no faster than {names[1]} ({best.amount})"
        )

    def blocks(self, sizes: Mapping[Dim, int]) -> dict[Dim, int]:
        """The number of blocks of each dim that the schedule cuts."""
        best = self.considered.best if self.considered else None
        lanes: dict[Dim, int] = {}
        for dim, count in (best.blocks if best else {}).items():
            lanes.setdefault(size_class(dim), count)
        return {dim: ceil(sizes[dim] / n) for dim, n in lanes.items() if dim in sizes}


def chosen(
    derivation: Derivation, sizes: Mapping[Dim, int], dtype: str, target: str | Machine
) -> Chosen:
    """The choice among the snapshots of ``derivation`` and the programs beside them."""
    fused = Fused(derivation.start, derivation)
    short = derivation.start.size <= LONG
    try:
        limit = inf if short else 0.0  # of long programs, default schedules are compared
        considered = fused.consider(sizes, dtype, target, limit=limit)
    except EmitError as error:
        return Chosen(derivation, None, missing=str(error))
    best = considered.best
    return Chosen(fused.derivation_of(best), considered, short, fused.name_of(best))
