"""The statement with which a loop goes on from block to block along a chain (chains.py)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from blockbuster.emit.tile.hashed import HashedOnce
from blockbuster.ir.types import Dim

if TYPE_CHECKING:
    from blockbuster.emit.tile.program import Tile


@dataclass(frozen=True)
class Next(HashedOnce):
    """The loop over ``dim`` goes on with the block of number ``value``: the end of its body."""

    dim: Dim
    value: Tile
