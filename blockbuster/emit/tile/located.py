"""A message about a statement of a tile program, with the line of the listing that shows it."""

from __future__ import annotations

from dataclasses import replace

from blockbuster.emit.tile.listing import listing_lines
from blockbuster.emit.tile.program import For, Init, Stmt, TileProgram
from blockbuster.errors import message
from blockbuster.ir.origin import Origin


def located(program: TileProgram, stmt: Stmt, what: str) -> str:
    """``what``, with the lines around that of ``stmt``, which is a statement of ``program``."""
    here = Origin("here")
    nests = (replace(nest, body=_marked(nest.body, stmt, here)) for nest in program.nests)
    lines = list(listing_lines(replace(program, nests=tuple(nests))))
    mark = next((at for at, (_, origin) in enumerate(lines) if origin is here), None)
    return message(what, listing="\n".join(text for text, _ in lines), mark=mark)


def _marked(body: tuple[Stmt, ...], stmt: Stmt, origin: Origin) -> tuple[Stmt, ...]:
    """``body`` with another origin for ``stmt`` itself, not for its equals."""
    out: list[Stmt] = []
    for other in body:
        if other is stmt and not isinstance(other, Init):
            other = replace(other, origin=origin)
        elif isinstance(other, For):
            other = replace(other, body=_marked(other.body, stmt, origin))
        out.append(other)
    return tuple(out)
