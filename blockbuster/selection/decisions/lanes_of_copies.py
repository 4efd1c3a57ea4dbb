"""Which dims of a copy have lanes: those along which both of its arrays are dense.

before   forall b in range(B):               after   forall b in range(B):           (blocks of B)
          forall c in range(C):                       forall c in range(C):    (single elements)
           forall d in range(D):                       forall d in range(D):
            t = load(X[b,c,d])    [C, D]                t = load(X[b,c,d])    [B, D]
            store(t,Y[c,d,b])                           store(t,Y[c,d,b])

A transposed copy that cuts blocks of the last two axes of one array touches the other one element
by element: a line of memory for each. With lanes along the last axis of both, neighbours are moved
together on both sides. An axis of few elements makes no line full, so the axis before it counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from blockbuster.emit.schedule.block import LEAST
from blockbuster.emit.schedule.group_heads import GroupHeads
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import EVERYWHERE
from blockbuster.emit.tile.program import For, Load, Nest, Store, Tile, View, statements
from blockbuster.ir.types import Dim, size_class

GROUP = GroupHeads()


def dense_copies(scheduled: Scheduled, tiles: Mapping[Dim, int]) -> Scheduled:
    """``scheduled`` with lanes along the dense axes of both arrays, if it is one transposed copy.

    ``tiles``: lanes that are asked for, by dim or size class; then dims keep their lanes.
    """
    copy = _copy(scheduled)
    if copy is None or any(dim in tiles or size_class(dim) in tiles for dim in copy[0].view.runs):
        return scheduled
    load, store = copy
    wanted = dict.fromkeys((_dense(store.view, scheduled), _dense(load.view, scheduled)))
    for dim in wanted:
        tile = next(_tiles(scheduled.draft.nests[0]))
        if dim in tile.axes:
            continue
        for rows in (axis for axis in tile.axes if axis not in wanted):
            if not GROUP.why_not(scheduled, EVERYWHERE, heads=dim, rows=rows):
                scheduled = GROUP.apply(scheduled, EVERYWHERE, heads=dim, rows=rows)
                break
    return scheduled


def _copy(scheduled: Scheduled) -> tuple[Load, Store] | None:
    """The load and the store of a program that does nothing else, if they differ in their order."""
    found = [s for nest in scheduled.draft.nests for s in statements(nest.body)]
    match [stmt for stmt in found if not isinstance(stmt, For)]:
        case [Load(view=view) as load, Store() as store]:
            last = [dim for dim in view.runs if dim in store.view.runs]
            return (load, store) if last != list(store.view.runs) else None
    return None


def _tiles(nest: Nest) -> Iterator[Tile]:
    return (stmt.target for stmt in statements(nest.body) if isinstance(stmt, Load))


def _dense(view: View, scheduled: Scheduled) -> Dim:
    """The dim of the last axis of an array that has many elements, or else of its last one."""
    dims = view.runs[::-1]
    long = (dim for dim in dims if scheduled.sizes[size_class(dim)] >= LEAST)
    return next(long, dims[0])
