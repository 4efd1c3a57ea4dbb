"""Groups of blocks in a grid: programs that run at the same time share operands."""

from __future__ import annotations

from dataclasses import dataclass

from blockbuster.ir.types import Dim


@dataclass(frozen=True)
class Group:
    """So many blocks of ``dim``, taken for each block of the next dim of a grid.

    The grid walks the blocks of a group for the first block of the next dim, then for the second,
    up to its last; the next group follows. The last group may have fewer blocks.
    """

    dim: Dim
    blocks: int
