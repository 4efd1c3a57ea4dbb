"""A message about a statement of a tile program, with that statement's line of the listing."""

from __future__ import annotations

from dataclasses import replace

from blockbuster.emit.tile.dataflow import defined, mapped
from blockbuster.emit.tile.listing import listing_lines
from blockbuster.emit.tile.next_block import Next
from blockbuster.emit.tile.program import Fold, Init, Stmt, TileProgram, statements
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

    def mark(other: Stmt) -> Stmt:
        if id(other) not in same or isinstance(other, Init | Wait | Release | Next):
            return other
        return replace(other, origin=here)

    nests = (replace(nest, body=mapped(nest.body, mark)) for nest in program.nests)
    lines = list(listing_lines(replace(program, nests=tuple(nests))))
    marks = [at for at, (_, origin) in enumerate(lines) if origin is here]
    text = "\n".join(line for line, _ in lines)
    return message(what, listing=text, mark=marks[-1] if marks else None)
