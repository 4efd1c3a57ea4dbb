"""A schedule as text: one move per line, replayed on a program without a schedule.

    block M 64, N 64, D 128 whole, L 128 whole
    warps 4
    stage nest 1 N 3        # the loads of the loop over N run two iterations ahead

A line is the name of a move, a place (site.py) and the move's arguments. Lines may be joined by
``;``. A comment begins at the start of a line or after a blank.

Before the first move a line may name the program that the moves are for, among those of a
derivation: ``for snapshot 1``. ``bb.emit`` reads it; moves know nothing of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from blockbuster.emit.schedule.base import LOOP, NEST, STATEMENT, Args, Move
from blockbuster.emit.schedule.block import BlockDims
from blockbuster.emit.schedule.chunk_loops import ChunkLoop
from blockbuster.emit.schedule.defer_lane_sums import DeferLaneSums
from blockbuster.emit.schedule.factor import Factor
from blockbuster.emit.schedule.fill import Fill
from blockbuster.emit.schedule.finish_rows import FinishRows
from blockbuster.emit.schedule.group_blocks import GroupBlocks
from blockbuster.emit.schedule.group_heads import GroupHeads
from blockbuster.emit.schedule.inline import Inline
from blockbuster.emit.schedule.jam import Jam
from blockbuster.emit.schedule.join import Join
from blockbuster.emit.schedule.keep import Keep
from blockbuster.emit.schedule.narrow import Narrow
from blockbuster.emit.schedule.order_blocks import OrderBlocks
from blockbuster.emit.schedule.overlap import Overlap
from blockbuster.emit.schedule.pack import Pack
from blockbuster.emit.schedule.part import Part
from blockbuster.emit.schedule.persist import Persist
from blockbuster.emit.schedule.recut import Recut
from blockbuster.emit.schedule.regroup import Regroup
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.sink import Sink
from blockbuster.emit.schedule.site import Site, loops_of
from blockbuster.emit.schedule.skip import Skip
from blockbuster.emit.schedule.spell import Spell
from blockbuster.emit.schedule.split import Split
from blockbuster.emit.schedule.split_float import SplitFloat
from blockbuster.emit.schedule.split_lanes import SplitLanes
from blockbuster.emit.schedule.spread import Spread
from blockbuster.emit.schedule.stage import Stage
from blockbuster.emit.schedule.turn import Turn
from blockbuster.emit.schedule.unroll import Unroll
from blockbuster.emit.schedule.walk import Walk
from blockbuster.emit.schedule.warps import Warps
from blockbuster.emit.tile.dataflow import conflicts
from blockbuster.emit.tile.program import Nest
from blockbuster.emit.tile.trips import walked_in
from blockbuster.errors import EmitError, ParseError, among, message
from blockbuster.ir.types import Dim, size_class

MOVES: tuple[Move, ...] = (
    Join(), GroupHeads(), Regroup(), Unroll(), Spread(), BlockDims(), SplitLanes(), FinishRows(),
    Keep(), Split(), Turn(), Skip(), Narrow(), Fill(), ChunkLoop(), Sink(), Recut(),
    DeferLaneSums(), Part(), Spell(), Factor(), SplitFloat(), OrderBlocks(), Inline(), Walk(),
    GroupBlocks(), Persist(), Warps(), Stage(), Jam(), Pack(), Overlap(),
)  # fmt: skip
"""All moves, in the order in which a schedule usually applies them."""

BY_NAME: Mapping[str, Move] = {move.name: move for move in MOVES}

_NUMBER = re.compile(r"[1-9][0-9]{,8}")  # of a nest, a loop or a statement
_STATEMENT = re.compile(rf"@({_NUMBER.pattern})")
_LOOP = re.compile(rf"([^\s#@,;]+)(?:#({_NUMBER.pattern}))?")
_COMMENT = re.compile(r"(?:^|(?<=\s))#.*")
FOR = "for"
_FOR = re.compile(rf"(?:[\s;]|#[^\n]*\n)*(?P<line>{FOR}\b(?P<name>[^\n;#]*))")


@dataclass(frozen=True)
class Line:
    """One move of a text: where it stands, what it is applied to, with which arguments."""

    number: int
    text: str
    move: Move
    site: Site
    args: Args


@dataclass(frozen=True)
class _Word:
    text: str
    column: int


def parsed(text: str, *, first: int = 1) -> Iterator[Line]:
    """The moves of a schedule's text, the ``first`` line of which has this number.

    Raises ParseError, with a caret, if one cannot be read.
    """
    for number, whole in enumerate(text.split("\n"), start=first):
        kept = _COMMENT.sub("", whole)
        start = 0
        for part in kept.split(";"):
            words = [_Word(m[0], start + m.start()) for m in re.finditer(r"[^\s,]+|,", part)]
            start += len(part) + 1
            if words:
                yield _line(number, whole, part.strip(), words)


def for_program(name: str, moves: str) -> str:
    """The text of a schedule whose first line names its program; without a name, the moves alone.

    >>> for_program("snapshot 1", "warps 4")
    'for snapshot 1\\nwarps 4'
    """
    return f"{FOR} {name}\n{moves}" if name else moves


def program_of(text: str) -> tuple[str, str]:
    """The name of the program that ``text`` is for, or "", and the text with blanks in its place.

    Raises ParseError for a line without a name.

    >>> program_of("for snapshot 1; warps 4")
    ('snapshot 1', '              ; warps 4')
    """
    found = _FOR.match(text)
    if found is None:
        return "", text
    start, end = found.span("line")
    name = " ".join(found["name"].split())
    if not name:
        number = text.count("\n", 0, start) + 1
        line = text.split("\n")[number - 1]
        column = start - (text.rfind("\n", 0, start) + 1) + len(FOR)
        raise _error("expected the name of a program, such as snapshot 1", number, line, column)
    return name, f"{text[:start]}{' ' * (end - start)}{text[end:]}"


def replayed(scheduled: Scheduled, text: str) -> Scheduled:
    """``scheduled`` after the moves of ``text``.

    Raises ParseError if a line cannot be read, EmitError if a move does not apply: it quotes the
    line and says why.
    """
    for line in parsed(text):
        scheduled = after_line(scheduled, line)
    return scheduled


def after_line(scheduled: Scheduled, line: Line) -> Scheduled:
    """``scheduled`` after one more line. Raises EmitError as ``replayed`` does."""
    reason, made = line.move.tried(scheduled, line.site, **line.args)
    if made is None:
        what = f"line {line.number} of the schedule, '{line.text}': {reason}"
        raise EmitError(message(what, hint=_places(scheduled, line)))
    return made


def checked_complete(scheduled: Scheduled) -> Scheduled:
    """``scheduled``, if it says all that a kernel needs; EmitError with what is missing."""
    if reason := not_complete(scheduled):
        raise EmitError(message(f"the schedule is not complete: {reason}"))
    return scheduled


def not_complete(scheduled: Scheduled) -> str:
    """What is missing in a schedule to print Triton kernels, or ""."""
    draft = scheduled.draft
    for number, nest in enumerate(draft.nests, start=1):
        if missing := missing_blocks(nest, draft.units):
            return f"nest {number} does not cut {', '.join(missing)}: add 'block {missing[0]} 64'"
        if conflicts(nest.body):
            return f"nest {number} loads what it stores: add 'split'"
        if not nest.warps:
            return f"nest {number} has no number of warps: add 'warps 4'"
    return ""


def missing_blocks(nest: Nest, units: tuple[Dim, ...]) -> list[Dim]:
    """The dims that a nest walks and has not cut into blocks."""
    known = [block.dim for block in nest.blocks]
    dims = (dim for dim in walked_in(nest) if size_class(dim) not in units)
    return [dim for dim in dims if dim not in known]


def _places(scheduled: Scheduled, line: Line) -> str | None:
    """The loops of the program, for a line that names one that is not there."""
    loops = [str(site) for site, _ in loops_of(scheduled.draft)]
    if line.move.takes != LOOP or str(line.site) in loops:
        return None
    return f"the loops are {', '.join(loops)}" if loops else "the program has no loop"


def _line(number: int, whole: str, text: str, words: list[_Word]) -> Line:
    name, rest = words[0], words[1:]
    move = BY_NAME.get(name.text)
    if move is None:
        early = "the line that names the program comes before all moves, and once"
        hint = early if name.text == FOR else among(name.text, BY_NAME)
        raise _error(f"unknown move {name.text!r}", number, whole, name.column, hint=hint)
    site, rest = _site(move, number, whole, name, rest)
    column = rest[0].column if rest else len(whole.rstrip())
    try:
        args = move.read([word.text for word in rest])
    except ValueError as error:
        raise _error(str(error), number, whole, column) from None
    return Line(number, text, move, site, args)


def _site(
    move: Move, number: int, whole: str, name: _Word, words: list[_Word]
) -> tuple[Site, list[_Word]]:
    """The place that ``words`` begin with, and the others."""
    nest = 0
    if words and words[0].text == "nest":
        if len(words) < 2 or not _NUMBER.fullmatch(words[1].text):
            raise _error("expected the number of a nest", number, whole, words[0].column + 5)
        nest, words = int(words[1].text), words[2:]
    if move.takes not in (LOOP, STATEMENT):
        if nest and move.takes != NEST:
            raise _error(f"{move.name} takes no place", number, whole, name.column)
        return Site(nest), words
    pattern = _LOOP if move.takes == LOOP else _STATEMENT
    found = pattern.fullmatch(words[0].text) if nest and words else None
    if found is None:
        example = "nest 1 N" if move.takes == LOOP else "nest 1 @7"
        column = words[0].column if words else len(whole.rstrip())
        raise _error(f"{move.name} takes {move.takes}, such as {example}", number, whole, column)
    if move.takes == LOOP:
        return Site(nest, found[1], int(found[2] or 1)), words[1:]
    return Site(nest, statement=int(found[1])), words[1:]


def _error(
    reason: str, number: int, line: str, column: int, *, hint: str | None = None
) -> ParseError:
    where = f"{line}\n{' ' * column}^"
    return ParseError(message(f"line {number} of the schedule: {reason}", listing=where, hint=hint))
