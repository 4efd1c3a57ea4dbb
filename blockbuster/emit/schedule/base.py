"""The base class of moves: named rewrites of tile programs, of the order, place or time of work.

A move takes no decision and holds no number of a machine. It says where it can be applied, with
which arguments, and why it cannot be applied elsewhere. ``selection`` chooses which moves are worth
applying.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from blockbuster.emit.closing.order import tidied
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import (
    EVERYWHERE,
    Applied,
    Site,
    all_nests,
    in_bodies,
    loop_at,
    loops_of,
    nest_at,
    nests_at,
    statement_at,
    statements_of,
)
from blockbuster.emit.schedule.words import Form
from blockbuster.emit.tile.changed import changed
from blockbuster.emit.tile.program import Nest, Stmt, TileProgram
from blockbuster.emit.tile.scans import why_broken
from blockbuster.errors import EmitError, message

Args = Mapping[str, Any]

PROGRAM, NEST, LOOP, STATEMENT = "the program", "a nest", "a loop", "a statement"
PLACES: Mapping[str, Callable[[TileProgram], Iterable[Site]]] = {
    PROGRAM: lambda _: (EVERYWHERE,),
    NEST: all_nests,
    LOOP: lambda program: (site for site, _ in loops_of(program)),
    STATEMENT: lambda program: (site for site, _ in statements_of(program)),
}
"""All places of a kind, in the order of the program."""

FOUND: Mapping[str, Callable[[TileProgram, Site], Any]] = {
    PROGRAM: lambda program, site: program if site == EVERYWHERE else None,
    NEST: lambda program, site: tuple(program.nests[at] for at in nests_at(program, site)),
    LOOP: loop_at,
    STATEMENT: statement_at,
}
"""What stands at a place of a kind: several nests, if it leaves out the nest; empty for nothing."""

Attempt = tuple[str, TileProgram | None]
"""Why a move cannot be applied, or "" and the draft after it."""


class Move(ABC):
    """One kind of move. ``takes``: the kind of place at which it is applied.

    Where that is ``NEST``, a place may leave out the nest: the move is then applied to all nests.
    """

    name: ClassVar[str]
    takes: ClassVar[str]
    form: ClassVar[Form] = Form("")
    """The words that follow the place in a schedule's text."""

    number: ClassVar[str] = ""
    """The argument that is a number, which a search halves and doubles."""

    starts: ClassVar[tuple[int, ...]] = ()
    """The numbers with which a search begins; all, if there are none here."""

    looks_after: ClassVar[bool] = False
    """Whether ``not_after`` has to look at the draft after the move to say why not."""

    def sites(self, scheduled: Scheduled) -> Iterator[Site]:
        """The places where it may be applied with some of its arguments."""
        for site in PLACES[self.takes](scheduled.draft):
            found = self.arguments(scheduled, site)
            if any(not self.why_not(scheduled, site, **args) for args in found):
                yield site

    def why_not(self, scheduled: Scheduled, site: Site, **args: Any) -> str:
        """Why it cannot be applied there with these arguments, or ""."""
        if self.looks_after:
            return self.attempted(scheduled, site, **args)[0]
        return self._not_before(scheduled, site, **args)

    def _not_before(self, scheduled: Scheduled, site: Site, **args: Any) -> str:
        """Why not, as far as the draft before it tells."""
        found = self.found(scheduled.draft, site)
        return self.not_here(scheduled, site, found, **args) if found else no_such_place(self, site)

    def found(self, program: TileProgram, site: Site) -> Any:
        """What stands at a place; empty for nothing."""
        return FOUND[self.takes](program, site)

    @abstractmethod
    def not_here(self, scheduled: Scheduled, site: Site, found: Any, /, **args: Any) -> str:
        """Why it cannot be applied to what was ``found`` there with these arguments, or ""."""

    def not_after(self, made: TileProgram, **args: Any) -> str:
        """Why it cannot be applied with these arguments, as the draft after it shows, or ""."""
        return ""

    def arguments(self, scheduled: Scheduled, site: Site) -> Iterator[Args]:
        """The arguments with which it can be applied there, in a fixed order."""
        yield {}

    def first(self, scheduled: Scheduled, site: Site) -> Iterator[Args]:
        """Those of ``arguments`` from which a search goes on to all others by ``near``."""
        for args in self.arguments(scheduled, site):
            if not self.starts or args[self.number] in self.starts:
                yield args

    def near(self, scheduled: Scheduled, site: Site, args: Args) -> Iterator[Args]:
        """Those of ``arguments`` that differ little from ``args``: where they have no number, all
        others. Else the number is half or twice that in ``args``, and the other arguments are the
        same; or the number is the same, and the others differ.
        """
        now = args.get(self.number, 0)
        for other in self.arguments(scheduled, site):
            if not self.number:
                found = other != args
            elif {**other, self.number: now} == args:
                found = other[self.number] in (now // 2, 2 * now)
            else:
                found = other[self.number] == now
            if found:
                yield other

    @abstractmethod
    def rewritten(self, scheduled: Scheduled, site: Site, **args: Any) -> TileProgram:
        """The draft after the move; to be asked for only if ``why_not`` says ""."""

    def line(self, site: Site, **args: Any) -> Applied:
        """The move at a place, with arguments, as a line of a schedule."""
        return Applied(self.name, site, self.show(**args), args)

    def attempted(self, scheduled: Scheduled, site: Site, **args: Any) -> Attempt:
        """Why it cannot be applied there, or "" and the draft after it.

        A move that has to look at that draft to say why not rewrites it here, once for both.
        """
        if reason := self._not_before(scheduled, site, **args):
            return reason, None
        made = self.rewritten(scheduled, site, **args)
        reason = self.not_after(made, **args)
        return reason, None if reason else made

    def tried(self, scheduled: Scheduled, site: Site, **args: Any) -> tuple[str, Scheduled | None]:
        """Why it cannot be applied there, or "" and ``scheduled`` after it.

        Loads and invariant operators move out of loops, and repeats are merged, after every move.
        """
        reason, made = self.attempted(scheduled, site, **args)
        if made is None:
            return reason, None
        draft = tidied(made, scheduled.draft if scheduled.moves else None)
        if broken := next(filter(None, map(why_broken, draft.nests)), ""):
            return broken, None
        moves = (*scheduled.moves, self.line(site, **args))
        return "", changed(scheduled, draft=draft, moves=moves)

    def apply(self, scheduled: Scheduled, site: Site, **args: Any) -> Scheduled:
        """``scheduled`` after the move. Raises EmitError, with the reason, if it is not legal."""
        reason, made = self.tried(scheduled, site, **args)
        if made is None:
            line = self.line(site, **args)
            raise EmitError(message(f"the move '{line}' does not apply: {reason}"))
        return made

    def show(self, **args: Any) -> str:
        """Its arguments as words of a schedule's text."""
        return self.form.show(args)

    def read(self, words: Sequence[str]) -> Args:
        """The arguments that ``words`` say. Raises ValueError if they say none."""
        if words and not self.form.text:
            raise ValueError(f"nothing follows the place of {self.name}")
        return self.form.read(words)


def not_a_power_of_two(number: int, what: str, least: int = 1) -> str:
    """Why ``number`` is no power of two of at least ``least``, or ""."""
    if number < least or number & (number - 1):
        return f"{what} is {number}, expected a power of two of at least {least}"
    return ""


def no_such_place(move: Move, site: Site) -> str:
    """Why ``move`` does not apply: the program has no such place."""
    where = f"there is no {site}" if str(site) else "it names no place"
    return f"{where}: {move.name} takes {move.takes}"


class LoopMove(Move):
    """A move of a loop."""

    takes: ClassVar[str] = LOOP


class NestMove(Move):
    """A move of one nest, which a place has to name."""

    takes: ClassVar[str] = NEST

    def found(self, program: TileProgram, site: Site) -> Nest | None:
        return nest_at(program, site)


class BodyMove(Move):
    """A move of a statement: ``not_in`` says why not, by the nest's body and the units alone."""

    takes: ClassVar[str] = STATEMENT

    def sites(self, scheduled: Scheduled) -> Iterator[Site]:
        return self._sites_in(scheduled.draft)

    @in_bodies
    def _sites_in(self, program: TileProgram) -> Iterator[Site]:
        found = statements_of(program)
        return (site for site, stmt in found if not self.not_in(program, site, stmt))

    def not_here(self, scheduled: Scheduled, site: Site, found: Stmt, /, **args: Any) -> str:
        return self.not_in(scheduled.draft, site, found)

    @abstractmethod
    def not_in(self, program: TileProgram, site: Site, stmt: Stmt, /) -> str:
        """Why it cannot be applied to ``stmt``, or "". Reads no arrays or blocks of ``program``."""
