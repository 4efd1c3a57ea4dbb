"""A block program on its way to kernels: its safe form, and the tile program of that."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.program import TileProgram
from blockbuster.ir.graph import Graph
from blockbuster.rules import overflowing, safe


@dataclass(frozen=True)
class Lowered:
    """``graph`` became ``stable`` by the numerical-safety pass, and that became ``program``.

    ``program`` has no dtypes yet. ``unsafe`` names the exponentials that can overflow, ``notes``
    are further facts about its numbers.
    """

    graph: Graph = field(repr=False)
    stable: Graph = field(repr=False)
    program: TileProgram = field(repr=False)
    unsafe: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def lowered(graph: Graph, more: Iterable[str] = ()) -> Lowered:
    """``graph`` made safe and lowered, each once; ``more``: notes that are known of it."""
    said: list[str] = []
    stable = safe(graph, said.append)
    notes = tuple(dict.fromkeys((*said, *more)))
    return Lowered(graph, stable, lower_to_tiles(stable), overflowing(stable), notes)
