"""Loads that run ahead: which issue belongs to which await, and when such a pair is legal.

A ring is the slots of one token. In iteration i an ``Issue`` starts to fill the slot of iteration
i + ahead, and the ``Await`` of the same token reads that of iteration i.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from blockbuster.emit.tile.dataflow import bodies, operands, stored
from blockbuster.emit.tile.program import Await, Issue, Load, Nest, Stmt, Tile, View, statements


def issues(body: tuple[Stmt, ...]) -> dict[str, Issue]:
    """The issues of ``body``, inner loops included, by token."""
    return {stmt.token: stmt for stmt in statements(body) if isinstance(stmt, Issue)}


def arrivals(body: tuple[Stmt, ...]) -> Iterator[tuple[Tile, View]]:
    """The tiles of ``body`` that come from memory, each with how the array is read.

    They are loaded where they are defined, or were issued before and are awaited there.
    """
    started = issues(body)
    for stmt in statements(body):
        match stmt:
            case Load(target, view):
                yield target, view
            case Await(target, token):
                yield target, started[token].view


def issues_are_awaited(nest: Nest) -> Iterator[str]:
    """Each token has one issue and one await, of one shape, in the body of one loop."""
    found = Counter(
        stmt.token for stmt in statements(nest.body) if isinstance(stmt, Issue | Await)
    )
    for body in bodies(nest.body):
        started = {stmt.token: stmt for stmt in body if isinstance(stmt, Issue)}
        awaited = {stmt.token: stmt for stmt in body if isinstance(stmt, Await)}
        for token in dict.fromkeys((*started, *awaited)):
            if token not in started or token not in awaited or found[token] != 2:
                yield f"{token} is not issued once and awaited once in one loop"
            elif body == nest.body:
                yield f"{token} is issued outside any loop: no iteration is ahead"
            elif started[token].tile.axes != awaited[token].target.axes:
                yield f"{token} is awaited with other axes than it is issued with"


def slots_are_free(nest: Nest) -> Iterator[str]:
    """No load arrives in a slot that is still read, or that another load on its way has.

    In iteration i the loads of i to i + ahead are under way or being read: as many slots as that,
    or one less where the issue stands behind all that reads the slot of iteration i.
    """
    for body in bodies(nest.body):
        for at, stmt in enumerate(body):
            if not isinstance(stmt, Issue):
                continue
            if stmt.ahead < 1:
                yield f"{stmt.token} runs {stmt.ahead} iterations ahead, expected at least 1"
            needed = stmt.ahead + (0 if _is_done(body[at + 1 :], body, stmt.token) else 1)
            if stmt.slots < needed:
                yield f"{stmt.token} has {stmt.slots} slots, and {needed} are in use at once"


def _is_done(behind: tuple[Stmt, ...], body: tuple[Stmt, ...], token: str) -> bool:
    """True if nothing ``behind`` awaits or reads what was awaited under ``token``."""
    targets = {s.target for s in body if isinstance(s, Await) and s.token == token}
    return not any(
        (isinstance(stmt, Await) and stmt.token == token) or targets & set(operands(stmt))
        for stmt in statements(behind)
    )


def loops_run_ahead_evenly(nest: Nest) -> Iterator[str]:
    """The issues of one loop run equally far ahead: Triton has one number for a loop."""
    for body in bodies(nest.body):
        numbers = {stmt.token: stmt.ahead for stmt in body if isinstance(stmt, Issue)}
        if len(set(numbers.values())) > 1:
            shown = ", ".join(f"{token} {ahead}" for token, ahead in numbers.items())
            yield f"loads of one loop run ahead by several numbers of iterations: {shown}"


def nothing_is_loaded_too_early(nest: Nest) -> Iterator[str]:
    """A loop does not store arrays that it loads ahead."""
    for body in bodies(nest.body):
        for stmt in body:
            if isinstance(stmt, Issue) and stmt.view.buffer in stored(body):
                yield f"{stmt.view.buffer.name} is loaded ahead in a loop that stores it"


CHECKS = (
    issues_are_awaited,
    slots_are_free,
    loops_run_ahead_evenly,
    nothing_is_loaded_too_early,
)
