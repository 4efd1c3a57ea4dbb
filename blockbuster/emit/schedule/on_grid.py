"""The loops of a nest that its launch grid will run (``closing/bind.py`` puts them there)."""

from __future__ import annotations

from blockbuster.emit.closing.bind import outer_loop
from blockbuster.emit.tile.program import For, Nest, Stmt


def body_inside_grid(nest: Nest) -> tuple[list[For], tuple[Stmt, ...]]:
    """The parallel loops that hold all of ``nest``, outermost first, and what they hold."""
    loops, body = list[For](), nest.body
    while (loop := outer_loop(body)) is not None:
        loops.append(loop)
        body = loop.body
    return loops, body


def loops_of_programs(nest: Nest) -> list[For]:
    """The loops that each program of ``nest`` runs, in order, without those inside them."""
    return [stmt for stmt in body_inside_grid(nest)[1] if isinstance(stmt, For)]


def not_on_the_grid(loop: For, nest: Nest) -> str:
    """Why the grid of ``nest`` does not run ``loop``, or ""."""
    if any(loop is outer for outer in body_inside_grid(nest)[0]):
        return ""
    return f"the loop over {loop.dim} is not on the grid"
