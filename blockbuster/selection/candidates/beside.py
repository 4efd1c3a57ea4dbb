"""All candidates beside the snapshots, in the order of their numbers."""

from __future__ import annotations

from collections.abc import Sequence

from blockbuster.rules import Derivation
from blockbuster.selection.candidates.again import Again, programs_again
from blockbuster.selection.candidates.operands_apart import operands_apart
from blockbuster.selection.candidates.over_ancestors import over_ancestors
from blockbuster.selection.candidates.variant import Variant

Beside = Variant | Again


def beside_snapshots(derivation: Derivation, apart: Sequence[Variant]) -> tuple[Beside, ...]:
    """Snapshots with statistics ``apart``, or operands of dots, programs that take in ancestors
    alone, and those that make values again, where there are any.
    """
    stored = operands_apart(derivation)
    return (*apart, *stored, *over_ancestors(derivation), *programs_again(derivation))
