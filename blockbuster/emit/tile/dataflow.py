"""The tiles and arrays that a statement defines, reads and writes; renaming of those it reads."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import count
from operator import is_
from typing import Any, TypeVar

from blockbuster.emit.tile.changed import changed
from blockbuster.emit.tile.next_block import Next
from blockbuster.emit.tile.program import (
    ACCESSES,
    READS,
    WORKSPACE,
    Await,
    BlockOf,
    Buffer,
    Fold,
    For,
    Guard,
    Init,
    Iota,
    Issue,
    Let,
    Load,
    Stmt,
    Store,
    Tile,
    TileProgram,
    View,
    statements,
)
from blockbuster.ir.types import Dim

MAKING = (Load, Await, Iota, BlockOf, Let, Guard, Init)

Part = TypeVar("Part")


def defined(stmt: Stmt) -> Tile | None:
    """The tile that ``stmt`` itself defines; a fold only updates one."""
    return stmt.target if isinstance(stmt, MAKING) else None


def accessed(access: Load | Issue | Store) -> Tile:
    """The tile that an access to global memory fills, or writes."""
    match access:
        case Load():
            return access.target
        case Issue():
            return access.tile
        case Store():
            return access.value


def operands(stmt: Stmt) -> tuple[Tile, ...]:
    """The tiles that ``stmt`` itself reads: a loop its bounds, a fold not its own targets."""
    match stmt:
        case Let():
            return stmt.args
        case Store() | Guard() | BlockOf() | Next():
            return (stmt.value,)
        case For():
            return stmt.bounds
        case Fold():
            onto = () if stmt.onto is None else (stmt.onto,)
            return (stmt.value, *(member.value for member in stmt.members), *onto)
        case _:
            return ()


def folded(stmt: Stmt) -> tuple[Tile, ...]:
    """The accumulators that ``stmt`` itself updates."""
    if not isinstance(stmt, Fold):
        return ()
    return (stmt.target, *(member.target for member in stmt.members))


def readers_of(body: tuple[Stmt, ...]) -> dict[Tile, list[Stmt]]:
    """The statements that read each tile, once per operand position."""
    found: dict[Tile, list[Stmt]] = {}
    for stmt in statements(body):
        for tile in operands(stmt):
            found.setdefault(tile, []).append(stmt)
    return found


def makes(stmt: Stmt) -> tuple[Tile, ...]:
    """The tiles that ``stmt`` itself defines or updates."""
    made = defined(stmt)
    return folded(stmt) if made is None else (made,)


def needed(before: Sequence[Stmt], part: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The statements of ``before``, which hold no loop, that make what ``part`` reads or folds."""
    used = dict.fromkeys((*reads(part), *(t for s in statements(part) for t in folded(s))))
    kept: list[Stmt] = []
    for stmt in reversed(before):
        if defined(stmt) in used:
            kept.append(stmt)
            used.update(dict.fromkeys(operands(stmt)))
    return tuple(reversed(kept))


def reads(body: tuple[Stmt, ...]) -> Iterator[Tile]:
    """All tiles read in ``body``, inner loops included, in order, with repetitions."""
    for stmt in statements(body):
        yield from operands(stmt)


def bounding(body: tuple[Stmt, ...]) -> dict[Tile, None]:
    """The tiles of ``body`` from which numbers of blocks, and bounds of its loops, are computed."""
    found = {t: None for s in statements(body) if isinstance(s, For | BlockOf) for t in operands(s)}
    if not found:
        return found
    for stmt in reversed(tuple(statements(body))):
        if defined(stmt) in found:
            found.update(dict.fromkeys(operands(stmt)))
    return found


def loaded(body: tuple[Stmt, ...]) -> dict[Buffer, None]:
    """The buffers that ``body`` reads, each once, in order."""
    return {s.view.buffer: None for s in statements(body) if isinstance(s, READS)}


def stored(body: tuple[Stmt, ...]) -> dict[Buffer, None]:
    """The buffers that ``body`` writes, each once, in order."""
    return {s.view.buffer: None for s in statements(body) if isinstance(s, Store)}


def conflicts(body: tuple[Stmt, ...]) -> tuple[Buffer, ...]:
    """The arrays that ``body`` both stores and loads."""
    written = stored(body)
    return tuple(buffer for buffer in loaded(body) if buffer in written)


def views(program: TileProgram) -> Iterator[View]:
    """The accesses of all loads and stores of ``program``, in order."""
    for nest in program.nests:
        yield from (s.view for s in statements(nest.body) if isinstance(s, ACCESSES))


def dim_along(body: tuple[Stmt, ...], buffer: Buffer, axis: int) -> Dim | None:
    """The dim by which ``body`` accesses an axis of ``buffer``; None for all others.

    An axis may have several: what is stored by blocks of N is loaded by blocks of N' after a
    relabel. Each nest has blocks for its own alone.
    """
    accesses = (s.view for s in statements(body) if isinstance(s, ACCESSES))
    dims = (view.dims[axis] for view in accesses if view.buffer == buffer)
    return next((dim for dim in dims if isinstance(dim, str)), None)


def with_parts(whole: Part, **parts: Any) -> Part:
    """A statement, or a part of one, with other ``parts``; itself where none is another object.

    Most passes change few statements: copies of the others would cost most of their time. A tuple
    of the same objects is left as it is, too.
    """
    other = dict[str, Any]()
    for name, part in parts.items():
        old = getattr(whole, name)
        if old is not part and not _is_same(old, part):
            other[name] = part
    return changed(whole, **other) if other else whole


def _is_same(old: Any, new: Any) -> bool:
    tuples = isinstance(old, tuple) and isinstance(new, tuple)
    return tuples and len(old) == len(new) and all(map(is_, old, new))


def renamed(stmt: Stmt, alias: Mapping[Tile, Tile]) -> Stmt:
    """``stmt`` reading ``alias[t]`` where it read t; the bodies of loops are left alone."""
    if not alias:  # as most often: a copy would cost time and be equal
        return stmt
    match stmt:
        case Let():
            return with_parts(stmt, args=tuple(alias.get(a, a) for a in stmt.args))
        case Store() | Guard() | BlockOf() | Next():
            return with_parts(stmt, value=alias.get(stmt.value, stmt.value))
        case For():
            return rebound(stmt, alias)
        case Fold():
            members = tuple(with_parts(m, value=alias.get(m.value, m.value)) for m in stmt.members)
            onto = None if stmt.onto is None else alias.get(stmt.onto, stmt.onto)
            value = alias.get(stmt.value, stmt.value)
            return with_parts(stmt, value=value, members=members, onto=onto)
        case _:
            return stmt


def rebound(loop: For, alias: Mapping[Tile, Tile]) -> For:
    """``loop`` with ``alias[t]`` where t bounds it; its body is left alone."""
    if loop.span is None:
        return loop
    begin, end = (None if tile is None else alias.get(tile, tile) for tile in loop.span)
    return with_parts(loop, span=(begin, end))


def retargeted(stmt: Stmt, new: Mapping[Tile, Tile]) -> Stmt:
    """``stmt`` with ``new[t]`` wherever it names t: made, read or folded; the bodies of
    loops are left alone.
    """
    stmt = renamed(stmt, new)
    match stmt:
        case Issue():
            return with_parts(stmt, tile=new.get(stmt.tile, stmt.tile))
        case Fold():
            members = tuple(with_parts(m, target=new.get(m.target, m.target)) for m in stmt.members)
            return with_parts(stmt, target=new.get(stmt.target, stmt.target), members=members)
        case Load() | Await() | Iota() | BlockOf() | Let() | Guard() | Init():
            return with_parts(stmt, target=new.get(stmt.target, stmt.target))
    return stmt


def folded_here(body: tuple[Stmt, ...]) -> dict[Tile, None]:
    """The accumulators that the loop with this ``body`` updates itself, inner loops apart."""
    return {tile: None for stmt in body if not isinstance(stmt, For) for tile in folded(stmt)}


def flat_loops(loop: For) -> tuple[For, ...]:
    """``loop`` and those that are one with it, outermost first."""
    if not loop.flat:
        return (loop,)
    (inner,) = loop.body
    assert isinstance(inner, For)
    return (loop, *flat_loops(inner))


def bodies(body: tuple[Stmt, ...]) -> Iterator[tuple[Stmt, ...]]:
    """``body``, and those of the loops inside, each before its inner ones."""
    yield body
    for stmt in body:
        if isinstance(stmt, For):
            yield from bodies(stmt.body)


def level_of(body: tuple[Stmt, ...], stmt: Stmt) -> tuple[Stmt, ...]:
    """The statements among which ``stmt`` stands, and no equal one: ``body``, or that of a loop."""
    return next(level for level in bodies(body) if any(one is stmt for one in level))


def holds(stmt: Stmt, one: Stmt) -> bool:
    """True if ``stmt`` is ``one``, or has it inside, and no equal one."""
    return any(inner is one for inner in statements((stmt,)))


def with_loops(
    body: tuple[Stmt, ...], loops: tuple[For, ...] = ()
) -> Iterator[tuple[Stmt, tuple[For, ...]]]:
    """All statements of ``body``, in order, each with the loops around it, behind ``loops``."""
    for stmt in body:
        yield stmt, loops
        if isinstance(stmt, For):
            yield from with_loops(stmt.body, (*loops, stmt))


def mapped(body: tuple[Stmt, ...], change: Callable[[Stmt], Stmt]) -> tuple[Stmt, ...]:
    """``body`` with every statement replaced by ``change(statement)``, from first to last.

    A loop is changed before the statements in its body, which ``change`` leaves alone. Where it
    gives every statement back, the result is ``body`` itself.
    """
    out: list[Stmt] = []
    for stmt in body:
        made = change(stmt)
        if isinstance(made, For):
            made = with_parts(made, body=mapped(made.body, change))
        out.append(made)
    return same_or(body, tuple(out))


def expanded(body: tuple[Stmt, ...], change: Callable[[Stmt], Iterable[Stmt]]) -> tuple[Stmt, ...]:
    """``body`` with the statements ``change(statement)`` in the place of each, none or several.

    Loops as in ``mapped``: changed before the statements in their bodies.
    """
    out: list[Stmt] = []
    for stmt in body:
        for made in change(stmt):
            if isinstance(made, For):
                made = with_parts(made, body=expanded(made.body, change))
            out.append(made)
    return same_or(body, tuple(out))


def replaced_by(body: tuple[Stmt, ...], loop: For, made: Iterable[Stmt]) -> tuple[Stmt, ...]:
    """``body`` with ``made`` in the place of ``loop``, and of no equal one."""
    return expanded(body, lambda stmt: made if stmt is loop else (stmt,))


def same_or(body: tuple[Stmt, ...], made: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """``made``, or ``body`` if both hold the same objects."""
    return body if body is made or _is_same(body, made) else made


def with_buffers(body: tuple[Stmt, ...], other: Mapping[Buffer, Buffer]) -> tuple[Stmt, ...]:
    """``body`` with ``other[buffer]`` where it accesses such a buffer."""

    def change(stmt: Stmt) -> Stmt:
        if isinstance(stmt, ACCESSES) and stmt.view.buffer in other:
            return changed(stmt, view=changed(stmt.view, buffer=other[stmt.view.buffer]))
        return stmt

    return mapped(body, change)


def workspaces_in_order(program: TileProgram) -> TileProgram:
    """The workspaces that are used, renumbered in the order of their first store."""
    written = (b for nest in program.nests for b in stored(nest.body) if b.space == WORKSPACE)
    old = tuple(dict.fromkeys(written))
    names = workspace_names({b.name for b in (*program.inputs, *program.outputs)})
    new = {buffer: changed(buffer, name=name) for buffer, name in zip(old, names, strict=False)}
    other = {buffer: made for buffer, made in new.items() if made != buffer}
    nests = program.nests
    if other:
        nests = tuple(with_parts(nest, body=with_buffers(nest.body, other)) for nest in nests)
    return changed(program, nests=nests, workspaces=tuple(new.values()))


def workspace_names(taken: Container[str]) -> Iterator[str]:
    """I1, I2 and so on, without names that are ``taken`` when the next one is asked for."""
    return (name for number in count(1) if (name := f"I{number}") not in taken)


def fresh_workspace_names(program: TileProgram) -> Iterator[str]:
    """Names of workspaces that no array of ``program`` has."""
    arrays = (*program.inputs, *program.outputs, *program.workspaces)
    return workspace_names({buffer.name for buffer in arrays})


def fresh_names(program: TileProgram) -> Iterator[str]:
    """Names of tiles that ``program`` does not have."""
    taken = {
        tile.name
        for nest in program.nests
        for stmt in statements(nest.body)
        if (tile := defined(stmt)) is not None
    }
    yield from names_beside(taken)


def names_beside(taken: Container[str]) -> Iterator[str]:
    """t1, t2 and so on, without those that are ``taken``."""
    return (name for number in count(1) if (name := f"t{number}") not in taken)
