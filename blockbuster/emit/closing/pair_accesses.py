"""pair-accesses: the elements at even and at odd places of rows are one access of whole rows.

before   t1 = load(X[m,2*e])              after   t1 = load(X[m,2*e]) paired
         t3 = mul(t1,t2)                          t4 = load(X[m,2*e+1]) paired
         t4 = load(X[m,2*e+1])                    t3 = mul(t1,t2)

Alone, each of them takes single elements, and a warp may run across the rows: where no elements of
a tile are neighbours, Triton 3.6 gives the lanes of a warp to its first axis. Together they are
rows, which are copied 16 bytes at a time and taken apart in registers; stores likewise. Rotated
pairs of 4 x 8 x 512 x 64 elements took an H100 4.5 microseconds so, and `torch.compile` 2.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from blockbuster.emit.closing.hoist import MOVING
from blockbuster.emit.tile.changed import changed
from blockbuster.emit.tile.dataflow import accessed, same_or, with_parts
from blockbuster.emit.tile.each_nest import Around, each_body
from blockbuster.emit.tile.program import For, Load, Nest, Stmt, Store, View
from blockbuster.emit.tile.tiling import Tiling, tiling_in
from blockbuster.ir.dtypes import TRUTH
from blockbuster.ir.lengths import ONE, ZERO, whole
from blockbuster.ir.views import Run, Strided

TWO = whole(2)


@each_body()
def pair_accesses(nest: Nest, around: Around) -> Nest:
    """A nest with such accesses beside each other, and marked."""
    return with_parts(nest, body=_paired(nest.body, tiling_in(nest, around.units)))


def not_a_pair(one: Load | Store, other: Stmt, between: Sequence[Stmt], tiling: Tiling) -> str:
    """Why two accesses, with statements between them, are no access of whole rows, or ""."""
    if not isinstance(other, type(one)) or one.view.buffer != other.view.buffer:
        return "they are not two loads or two stores of one array"
    view, tile = one.view, accessed(one)
    if view.buffer.dtype == TRUTH or any(isinstance(s, Load) and s.columns for s in (one, other)):
        return f"{view.buffer.name} is loaded in a way of its own"
    places = {_place(view, tiling.lanes(tile)), _place(other.view, tiling.lanes(accessed(other)))}
    if places != {0, 1}:
        return "they are not at even and at odd places"
    if (view.dims[:-1], tile.axes) != (other.view.dims[:-1], accessed(other).axes):
        return "they are in other rows"
    moved = (*MOVING, Store)
    if any(not isinstance(s, moved) or _touches(s, view, isinstance(one, Load)) for s in between):
        return f"what stands between them may change {view.buffer.name}, or has an order of its own"
    return ""


def _place(view: View, lanes: Sequence[str]) -> int | None:
    """0 or 1 for the even or the odd places of an axis that the last of ``lanes`` runs along."""
    match view.dims[-1:]:
        case (Strided(runs=(Run(dim=dim, share=None, step=step),), start=start, padded=False),):
            if step == TWO and lanes and dim == lanes[-1]:
                return {ZERO: 0, ONE: 1}.get(start)
    return None


def _touches(stmt: Stmt, view: View, loads: bool) -> bool:
    """True if a statement stores to the array of ``view``, or reads it, where a store is moved."""
    kinds = (Store,) if loads else (Load, Store)
    return isinstance(stmt, kinds) and stmt.view.buffer == view.buffer


def _paired(body: tuple[Stmt, ...], tiling: Tiling) -> tuple[Stmt, ...]:
    out = list(body)
    for stmt in body:
        if isinstance(stmt, For):
            out[out.index(stmt)] = with_parts(stmt, body=_paired(stmt.body, tiling))
        elif isinstance(stmt, Load | Store) and stmt in out and not stmt.view.paired:
            first = out.index(stmt)
            found = (n for n in range(first + 1, len(out)) if _is_pair(out, first, n, tiling))
            second = next(found, None)
            if second is not None:
                pair = [_marked(out[first]), _marked(out[second])]
                between = out[first + 1 : second]
                both = [*pair, *between] if isinstance(stmt, Load) else [*between, *pair]
                out[first : second + 1] = both
    return same_or(body, tuple(out))


def _is_pair(body: Sequence[Stmt], first: int, second: int, tiling: Tiling) -> bool:
    one = body[first]
    assert isinstance(one, Load | Store)
    return not not_a_pair(one, body[second], body[first + 1 : second], tiling)


def _marked(stmt: Stmt) -> Stmt:
    assert isinstance(stmt, Load | Store)
    return changed(stmt, view=replace(stmt.view, paired=True))
