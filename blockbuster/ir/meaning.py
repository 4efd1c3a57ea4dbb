"""The function that a block program was lowered from, as a reference for checks.

A reference must not share the faults of lowering, rules and the safety pass, so a graph remembers
the user's function, and an emitted file compares its kernels with that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from blockbuster.ir.types import Dim


@dataclass(frozen=True)
class Reference:
    """The text of a NumPy module with a function ``reference`` of inputs and sizes.

    ``held``: the bytes that it holds at once, in float64 and for the sizes that were asked for.
    ``apart``: dims whose indices it computes independently, so that it can be called with a part of
    the inputs along them. ``in_dtypes``: it takes a ``dtype`` in which to compute, operator by
    operator. ``over_zero``: it takes what a quotient of integers over 0 is to be. ``fixed``: the
    sizes for which alone the function was traced, and may hold as numbers.
    """

    text: str
    held: int = 0
    apart: tuple[Dim, ...] = ()
    in_dtypes: bool = False
    over_zero: bool = False
    fixed: Mapping[Dim, int] = field(default_factory=dict)


class Meaning(Protocol):
    """The function that a graph was lowered from."""

    @property
    def sizes(self) -> Mapping[Dim, int]:
        """The sizes for which alone it was traced."""
        ...

    def reference(
        self,
        inputs: Sequence[str],
        outputs: Sequence[str],
        *,
        sizes: Mapping[Dim, int],
        free: Sequence[Dim],
    ) -> Reference | None:
        """A function of these arrays, in order, and of the sizes of ``free`` dims.

        None if it reads other arrays, or calls a function that has no text.
        """
        ...
