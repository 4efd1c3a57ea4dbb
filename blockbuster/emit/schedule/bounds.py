"""Symbolic bounds of the positions along a dim where a mask can be true."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from blockbuster.ir.expr import Expr


@dataclass(frozen=True)
class Edge:
    """The largest position (or the least, where ``least``) that one comparison lets through.

    ``formula`` is what it is compared with, another number in each row; ``strict``: the position is
    not equal to it. ``open``: comparisons with NaN are true, as where one is negated.
    """

    formula: Expr
    least: bool
    strict: bool = False
    open: bool = False


@dataclass(frozen=True)
class Scan:
    """The first block (or the last, unless ``least``) in which some column compares with some row.

    ``columns`` are data along the dim, ``rows`` are not: found by looking at all blocks once.
    """

    columns: Expr
    fn: str
    rows: Expr
    least: bool


@dataclass(frozen=True)
class Outer:
    """Of several bounds the one that lets most through, or least."""

    parts: tuple[Bound, ...]
    most: bool


Bound: TypeAlias = Edge | Scan | Outer


@dataclass(frozen=True)
class Range:
    """Positions from ``low`` to ``high``; None if there is no bound."""

    low: Bound | None = None
    high: Bound | None = None

    @property
    def bounded(self) -> bool:
        """True if it leaves something out."""
        return self.low is not None or self.high is not None
