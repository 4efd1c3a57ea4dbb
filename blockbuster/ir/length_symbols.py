"""The symbols of lengths (lengths.py): sizes, clamped lengths, and 1 over a length."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from blockbuster.ir.expr import Expr, call
from blockbuster.ir.types import Dim

if TYPE_CHECKING:
    from blockbuster.ir.lengths import Length


@dataclass(frozen=True)
class Clamp:
    """``of``, and 0 where it is negative; rounded up if it ``rounds``, else ``of`` has to be whole.

    ``x[1:-1]`` has max(|A| - 2, 0) elements, ``x[::2]`` has ceil(|A| / 2). ``clamped`` makes one
    only where a polynomial in sizes cannot say the same.
    """

    of: Length
    rounds: bool = False

    def __lt__(self, other: Symbol) -> bool:
        mine = self.of.terms, self.rounds
        return isinstance(other, Clamp) and mine < (other.of.terms, other.rounds)

    def __gt__(self, other: Symbol) -> bool:
        return not isinstance(other, Clamp) or other < self

    @property
    def most(self) -> Length:
        """A length that it never exceeds, without what is subtracted in ``of``."""
        return self.of.added + self.of.rounding if self.rounds else self.of.added

    def value(self, sizes: Mapping[Dim, int]) -> int:
        """The number for these sizes (by size class). Raises ValueError if it is not whole."""
        if not self.rounds:
            return max(self.of.value(sizes), 0)
        total, divisor = self.of.total(sizes)
        return max(-(-total // divisor), 0)

    def python(self, name: Callable[[Dim], str]) -> str:
        """A Python expression. Its quotients round up correctly: none that counts is negative."""
        top, under = self.of.rounded_up if self.rounds else self.of.fraction
        text = top.undivided(name)
        return f"max({text if under.constant == 1 else f'({text}) // {under.python(name)}'}, 0)"

    @property
    def expr(self) -> Expr:
        """The scalar expression of this number."""
        if not self.rounds:
            return call("maximum", self.of.expr, 0)
        top, under = self.of.rounded_up
        rounded = call("floor", call("div", top.expr, under.expr))
        counted = (self.of + self.of.rounding).never_negative
        return rounded if counted else call("maximum", rounded, 0)


@dataclass(frozen=True)
class Inverse:
    """1 over ``of``: one symbol, or a sum without a common divisor. ``inverse`` makes it."""

    of: Length

    def __lt__(self, other: Symbol) -> bool:
        less = isinstance(other, Inverse) and self.of.terms < other.of.terms
        return less or isinstance(other, Clamp)

    def __gt__(self, other: Symbol) -> bool:
        return not isinstance(other, Clamp) and (not isinstance(other, Inverse) or other < self)


Symbol = Dim | Clamp | Inverse
"""A size, a clamped length, or 1 over a length."""

Product = tuple[Symbol, ...]
"""A product of sizes, of clamped lengths and of inverses; the empty one is 1."""
