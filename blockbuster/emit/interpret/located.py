"""A message about a statement of a tile program, with that statement's line of the listing."""

from __future__ import annotations

from dataclasses import replace

from blockbuster.emit.tile.dataflow import defined
from blockbuster.emit.tile.listing import listing_lines
from blockbuster.emit.tile.next_block import Next
from blockbuster.emit.tile.program import Fold, For, Init, Stmt, TileProgram, statements
from blockbuster.emit.tile.waits import Release, Wait
from blockbuster.errors import message
from blockbuster.ir.origin import Origin


def located(program: TileProgram, stmt: Stmt, what: str) -> str:
    """``what``, with the lines around that of ``stmt``, which is a statement of ``program``.

    A fold stands in one line with the operator whose value only it reads.
    """
    same = {id(stmt)}
    if isinstance(stmt, Fold):
        made = (s for nest in program.nests for s in statements(nest.body))
        same.update(id(other) for other in made if defined(other) == stmt.value)
    here = Origin("here")
    nests = (replace(nest, body=_marked(nest.body, same, here)) for nest in program.nests)
    lines = list(listing_lines(replace(program, nests=tuple(nests))))
    marks = [at for at, (_, origin) in enumerate(lines) if origin is here]
    text = "\n".join(line for line, _ in lines)
    return message(what, listing=text, mark=marks[-1] if marks else None)


def _marked(body: tuple[Stmt, ...], same: set[int], origin: Origin) -> tuple[Stmt, ...]:
    """``body`` with another origin for the statements with these ids, not for their equals."""
    out: list[Stmt] = []
    for other in body:
        if id(other) in same and not isinstance(other, Init | Wait | Release | Next):
            other = replace(other, origin=origin)
        elif isinstance(other, For):
            other = replace(other, body=_marked(other.body, same, origin))
        out.append(other)
    return tuple(out)
