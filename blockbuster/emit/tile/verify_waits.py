"""Invariants of nests that begin early: where they wait, and what they may access before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

from blockbuster.emit.tile.constants import kept_nests, running_nests
from blockbuster.emit.tile.dataflow import loaded, stored
from blockbuster.emit.tile.each_nest import Same
from blockbuster.emit.tile.program import (
    Buffer,
    Issue,
    Load,
    Nest,
    Stmt,
    Store,
    TileProgram,
    statements,
)
from blockbuster.emit.tile.waits import Release, Wait


def is_dependent(nest: Nest) -> bool:
    """True if ``nest`` may begin before the nest before it has ended."""
    return _waits(Same(nest.body))


@lru_cache(maxsize=1024)
def _waits(body: Same[tuple[Stmt, ...]]) -> bool:
    return any(isinstance(stmt, Wait) for stmt in statements(body.one))


def waits(program: TileProgram) -> bool:
    """True if some nest may begin before the one before it has ended."""
    return any(map(is_dependent, program.nests))


def unfinished(
    nests: tuple[Nest, ...], dependent: Callable[[Nest], bool]
) -> Iterator[tuple[Nest, dict[Buffer, None]]]:
    """Each nest with the arrays that the nests before it in its chain write.

    What runs before the first nest may write each of its arrays.
    """
    written: dict[Buffer, None] = {}
    for number, nest in enumerate(nests):
        if not dependent(nest):
            written = {}
        leads = not number and dependent(nest)
        yield nest, {**loaded(nest.body), **stored(nest.body)} if leads else written
        written = {**written, **stored(nest.body)}


def touching(stmt: Stmt, written: dict[Buffer, None]) -> str:
    """What ``stmt``, or a statement in it, does that has to wait for nests which write these
    arrays, in words; "" if it need not wait.
    """
    for inner in statements((stmt,)):
        if isinstance(inner, Store):
            return f"{inner.view.buffer.name} is stored"
        if isinstance(inner, Load | Issue) and inner.view.buffer in written:
            return f"{inner.view.buffer.name} is loaded"
    return ""


def nests_wait_in_time(program: TileProgram) -> Iterator[str]:
    """A nest waits once, in each program, before it stores or loads what earlier nests store."""
    for nest, written in unfinished(running_nests(program), is_dependent):
        number = program.nests.index(nest) + 1
        found = sum(isinstance(stmt, Wait) for stmt in statements(nest.body))
        if not found:
            continue
        if found > 1:
            yield f"nest {number} waits {found} times"
        if not any(isinstance(stmt, Wait) for stmt in nest.body):
            yield f"nest {number} waits inside a loop, which may have no iteration"
            continue
        for stmt in nest.body:
            if isinstance(stmt, Wait):
                break
            if reason := touching(stmt, written):
                yield f"{reason} in nest {number} before it waits for the nest before"


def releases_are_of_use(program: TileProgram) -> Iterator[str]:
    """A nest lets the next one begin once it waited itself, if that one waits for it."""
    running = running_nests(program)
    following = (*map(is_dependent, running[1:]), False)
    for nest, next_waits in zip(running, following, strict=True):
        number = program.nests.index(nest) + 1
        order = [type(stmt) for stmt in statements(nest.body) if isinstance(stmt, Wait | Release)]
        if Release in order and not next_waits:
            yield f"nest {number} releases a nest that does not wait for it"
        if order not in ([], [Wait], [Release], [Wait, Release]):
            yield f"nest {number} releases the next nest twice, or before it waits itself"


def kept_nests_are_no_link(program: TileProgram) -> Iterator[str]:
    """A nest that runs before the call neither waits nor releases: no chain goes through it."""
    for at in kept_nests(program):
        if any(isinstance(stmt, Wait | Release) for stmt in statements(program.nests[at].body)):
            yield f"nest {at + 1}, which is kept from call to call, is part of a chain"


CHECKS = (nests_wait_in_time, releases_are_of_use, kept_nests_are_no_link)
