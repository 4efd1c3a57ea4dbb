"""How many iterations of a loop are under way: what a launch says, and what a loop says."""

from __future__ import annotations

from blockbuster.emit.tile.program import For, Issue, Nest, statements
from blockbuster.emit.tile.tiling import Tiling
from blockbuster.emit.tile.uses import is_matrix_dot


def launched_stages(nest: Nest, tiling: Tiling) -> int:
    """The stages that a launch says: those of the nest's first loop of dots with some; or 1."""
    loops = (stmt for stmt in statements(nest.body) if isinstance(stmt, For))
    found = (stages_of(loop) for loop in loops if holds_a_dot(loop, tiling))
    return next((number for number in found if number > 1), 1)


def stages_of(loop: For) -> int:
    """The iterations of ``loop`` that are under way: one where no load runs ahead."""
    ahead = {stmt.ahead for stmt in loop.body if isinstance(stmt, Issue)}
    return 1 + max(ahead, default=0)


def holds_a_dot(loop: For, tiling: Tiling) -> bool:
    """True if an iteration of ``loop`` itself has a matrix dot."""
    return any(is_matrix_dot(stmt, tiling) for stmt in loop.body)


def range_of(loop: For, bounds: str, launched: int, tiling: Tiling) -> str:
    """What a loop runs over, with its stages where those that are ``launched`` do not say them.

    A loop that says them has every load of it run ahead, those of a launch only those for dots.
    """
    number, usual = stages_of(loop), launched if holds_a_dot(loop, tiling) else 1
    if any(isinstance(stmt, For) for stmt in loop.body) or number == usual:
        return f"range({bounds})"
    return f"tl.range({bounds}, num_stages={number})"
