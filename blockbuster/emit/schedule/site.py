"""Sites: the places in a program that a schedule's text names.

A place is a position, so that a text applies to every program of the same shape: ``nest 2`` is the
second nest, ``nest 2 N`` its loop over N, ``nest 2 N#2`` its second loop over N, and ``nest 2 @7``
its seventh statement, loops included, in program order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, wraps
from itertools import islice
from typing import Any, TypeAlias

from blockbuster.emit.tile.changed import changed
from blockbuster.emit.tile.each_nest import KEPT, Body, Same
from blockbuster.emit.tile.program import For, Nest, Stmt, TileProgram, statements
from blockbuster.ir.types import Dim


@dataclass(frozen=True)
class Site:
    """A place: the whole program, a nest, a loop or a statement. Numbers start at 1."""

    nest: int = 0
    loop: Dim = ""
    number: int = 1
    statement: int = 0

    def __str__(self) -> str:
        words = [f"nest {self.nest}"] if self.nest else []
        if self.loop:
            words.append(f"{self.loop}#{self.number}" if self.number > 1 else self.loop)
        if self.statement:
            words.append(f"@{self.statement}")
        return " ".join(words)


EVERYWHERE = Site()


@dataclass(frozen=True)
class Applied:
    """A move at a place, with its arguments as text: one line of a schedule."""

    move: str
    site: Site
    words: str = ""
    args: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def __str__(self) -> str:
        return " ".join(word for word in (self.move, str(self.site), self.words) if word)


def nest_at(program: TileProgram, site: Site) -> Nest | None:
    """The nest of a place, if there is one."""
    return program.nests[site.nest - 1] if 0 < site.nest <= len(program.nests) else None


def with_body(program: TileProgram, site: Site, body: tuple[Stmt, ...]) -> TileProgram:
    """``program`` with another body for the nest of a place."""
    return with_nest(program, site, changed(program.nests[site.nest - 1], body=body))


def with_nest(program: TileProgram, site: Site, nest: Nest) -> TileProgram:
    """``program`` with another nest at a place."""
    nests = list(program.nests)
    nests[site.nest - 1] = nest
    return changed(program, nests=tuple(nests))


def with_nests(program: TileProgram, site: Site, change: Callable[[Nest], Nest]) -> TileProgram:
    """``program`` with ``change(nest)`` for each nest of a place."""
    at = nests_at(program, site)
    nests = (change(nest) if n in at else nest for n, nest in enumerate(program.nests))
    return changed(program, nests=tuple(nests))


def of_body(reason: Callable[..., str]) -> Callable[..., str]:
    """``reason``, which is given a program and the site of a loop, remembered by the nest's body.

    It may read only that body, and the ``units`` of the program: a search for schedules asks it of
    the same bodies in many blocks. So it is given a program of one nest, without arrays and blocks.
    """

    @lru_cache(maxsize=KEPT)
    def known(
        body: Same[Body], grid: tuple[Dim, ...], units: tuple[Dim, ...], site: Site, **args: Any
    ) -> str:
        return reason(TileProgram((), (), (), (Nest(body.one, grid),), units), site, **args)

    @wraps(reason)
    def asked(program: TileProgram, site: Site, **args: Any) -> str:
        nest = program.nests[site.nest - 1]
        return known(Same(nest.body), nest.grid, program.units, changed(site, nest=1), **args)

    return asked


SitesIn: TypeAlias = "Callable[[Any, TileProgram], Iterator[Site]]"
"""The sites of a move in a program."""


def in_bodies(sites_in: SitesIn) -> SitesIn:
    """``sites_in``, remembered by each nest's body: it may read no more than ``of_body`` says."""

    @lru_cache(maxsize=KEPT)
    def known(
        kind: Callable[[], Any], body: Same[Body], grid: tuple[Dim, ...], units: tuple[Dim, ...]
    ) -> tuple[Site, ...]:
        return tuple(sites_in(kind(), TileProgram((), (), (), (Nest(body.one, grid),), units)))

    @wraps(sites_in)
    def asked(move: Any, program: TileProgram) -> Iterator[Site]:
        kind: Callable[[], Any] = type(move)
        for at, nest in enumerate(program.nests, start=1):
            for site in known(kind, Same(nest.body), nest.grid, program.units):
                yield changed(site, nest=at)

    return asked


def all_nests(program: TileProgram) -> tuple[Site, ...]:
    """All nests at once, and then each by itself."""
    return (EVERYWHERE, *map(Site, range(1, len(program.nests) + 1)))


def nests_at(program: TileProgram, site: Site) -> tuple[int, ...]:
    """The positions of the nests of a place: all of them for the whole program."""
    if not site.nest:
        return tuple(range(len(program.nests)))
    return (site.nest - 1,) if nest_at(program, site) else ()


def loops_of(program: TileProgram) -> Iterator[tuple[Site, For]]:
    """Every loop of ``program`` with its place."""
    for at, nest in enumerate(program.nests, start=1):
        for (dim, number), loop in _loops_in(Same(nest.body)).items():
            yield Site(at, dim, number), loop


@lru_cache(maxsize=KEPT)
def _loops_in(body: Same[Body]) -> Mapping[tuple[Dim, int], For]:
    """The loops of a body, by their dims and their numbers among those of a dim, in order."""
    found, seen = dict[tuple[Dim, int], For](), dict[Dim, int]()
    for stmt in statements(body.one):
        if isinstance(stmt, For):
            seen[stmt.dim] = seen.get(stmt.dim, 0) + 1
            found[stmt.dim, seen[stmt.dim]] = stmt
    return found


def loop_at(program: TileProgram, site: Site) -> For | None:
    """The loop of a place, if there is one."""
    nest = nest_at(program, site)
    if nest is None or site.statement:
        return None
    return _loops_in(Same(nest.body)).get((site.loop, site.number))


def known_loop(program: TileProgram, site: Site) -> For:
    """The loop of a place where there is one."""
    loop = loop_at(program, site)
    assert loop is not None, f"there is no {site}"
    return loop


def statements_of(program: TileProgram) -> Iterator[tuple[Site, Stmt]]:
    """Every statement of ``program`` with its place."""
    for at, nest in enumerate(program.nests, start=1):
        for number, stmt in enumerate(statements(nest.body), start=1):
            yield Site(at, statement=number), stmt


def statement_at(program: TileProgram, site: Site) -> Stmt | None:
    """The statement of a place, if there is one."""
    nest = nest_at(program, site)
    if nest is None or site.loop or site.number != 1 or site.statement < 1:
        return None
    return next(islice(statements(nest.body), site.statement - 1, None), None)
