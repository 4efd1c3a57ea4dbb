"""keep: a tile that an iteration has stored is used again without a load.

before   forall m in range(M):                after   forall m in range(M):
          t1 = add(load(X[m,:]),load(R[m,:]))          t1 = add(load(X[m,:]),load(R[m,:]))
          store(t1,Y[m,:])                             store(t1,Y[m,:])
          t2 = load(Y[m,:])                            t3 = row_sum(t1)
          t3 = row_sum(t2)

The store of a result remains; a workspace that no other statement loads is removed. Saves the load,
and a separate kernel that would begin with it, because a kernel may not load what it stores. Costs
the registers of the tile between the store and its readers. The tile is not rounded to the array's
dtype, as the loaded one was.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from blockbuster.emit.schedule.base import BodyMove
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site, statement_at, with_body
from blockbuster.emit.tile.dataflow import (
    expanded,
    folded,
    holds,
    loaded,
    renamed,
    stored,
    with_loops,
    workspaces_in_order,
)
from blockbuster.emit.tile.program import (
    WORKSPACE,
    For,
    Load,
    Stmt,
    Store,
    Tile,
    TileProgram,
    statements,
)

Body = tuple[Stmt, ...]
COUNTED = ("int", "bool")


class Keep(BodyMove):
    """Read the tile that the same iteration has stored, in place of loading it."""

    name: ClassVar[str] = "keep"

    def not_in(self, program: TileProgram, site: Site, load: Stmt, /) -> str:
        """The statement is a load, and its own iteration has made all that it loads."""
        if not isinstance(load, Load):
            return "it is no load"
        return not_kept(load, program.nests[site.nest - 1].body)

    def rewritten(self, scheduled: Scheduled, site: Site, **args: Any) -> TileProgram:
        """The nest without the load, and without stores that nobody loads."""
        draft = scheduled.draft
        load, nest = statement_at(draft, site), draft.nests[site.nest - 1]
        assert isinstance(load, Load)
        made = made_before(load, nest.body)
        assert made is not None
        alias = {load.target: made.store.value}

        def change(stmt: Stmt) -> tuple[Stmt, ...]:
            return () if stmt is load else (renamed(stmt, alias),)

        body = expanded(nest.body, change)
        return workspaces_in_order(_without_dead_stores(with_body(draft, site, body)))


@dataclass(frozen=True)
class Made:
    """The store before a load, what runs from it to the load, and the loops around the load alone.

    All of it runs in one iteration of the loops around the store.
    """

    store: Store
    between: Body
    loops: tuple[For, ...]


def made_before(load: Load, body: Body) -> Made | None:
    """The last store of the array that ``load`` reads before it, in an iteration around it."""
    at = next((at for at, stmt in enumerate(body) if holds(stmt, load)), None)
    if at is None:
        return None
    inner = body[at]
    found = made_before(load, inner.body) if isinstance(inner, For) else None
    if found is not None and isinstance(inner, For):
        return found
    loops = next(around for stmt, around in with_loops((inner,)) if stmt is load)
    for place in range(at - 1, -1, -1):
        stmt = body[place]
        if isinstance(stmt, Store) and stmt.view.buffer == load.view.buffer:
            return Made(stmt, body[place + 1 : at + 1], loops)
    return None


# predicates ------------------------------------------------------------------------


def not_kept(load: Load, body: Body) -> str:
    """Why ``load``, in a nest with this ``body``, cannot be replaced by what was stored, or ""."""
    made = made_before(load, body)
    if made is None:
        return f"no iteration around it stores {load.view.buffer.name} before it"
    return (
        stored_since(made)
        or another_part(load, made)
        or of_another_iteration(load, made)
        or folded_since(made)
        or converted(made.store.value, load.target)
    )


def stored_since(made: Made) -> str:
    """Nothing else has been stored in the array since."""
    buffer = made.store.view.buffer
    return (
        f"{buffer.name} is stored again before the load" if buffer in stored(made.between) else ""
    )


def another_part(load: Load, made: Made) -> str:
    """The load reads what the store wrote: the same axes under the same dims, in one order."""
    name, value = load.view.buffer.name, made.store.value
    if load.view.dims != made.store.view.dims:
        return f"{name} is loaded under other dims than it is stored"
    if load.target.axes != value.axes or load.target.per_lane != value.per_lane:
        return f"{name} is loaded as a tile of other axes than is stored"
    return ""


def of_another_iteration(load: Load, made: Made) -> str:
    """No loop between the two walks along the array: its iterations load other parts of it."""
    for loop in made.loops:
        if loop.dim in load.view.runs or (loop.chunk is not None and loop.chunk in load.view.runs):
            name = load.view.buffer.name
            return f"each iteration over {loop.dim} loads another part of {name} than was stored"
    return ""


def folded_since(made: Made) -> str:
    """The stored tile has not been folded since."""
    value = made.store.value
    if any(value in folded(stmt) for stmt in statements(made.between)):
        return f"{value.name} is folded again before the load"
    return ""


def converted(value: Tile, target: Tile) -> str:
    """A store and a load round at most: a truth value or a position would stay one."""
    if value.dtype != target.dtype and (value.dtype in COUNTED or target.dtype in COUNTED):
        return f"{value.name} of {value.dtype} is loaded as {target.dtype}"
    return ""


# rewriting -------------------------------------------------------------------------


def _without_dead_stores(program: TileProgram) -> TileProgram:
    """``program`` without stores into workspaces that no nest loads."""
    read = {buffer for nest in program.nests for buffer in loaded(nest.body)}

    def kept(stmt: Stmt) -> tuple[Stmt, ...]:
        array = stmt.view.buffer if isinstance(stmt, Store) else None
        return () if array and array.space == WORKSPACE and array not in read else (stmt,)

    nests = tuple(replace(nest, body=expanded(nest.body, kept)) for nest in program.nests)
    return replace(program, nests=nests)
