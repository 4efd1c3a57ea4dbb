"""The texts of a program: its text form and its listing, with the node behind each line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from blockbuster.emit.tile.listing import listing_lines
from blockbuster.errors import EmitError, shown_lines
from blockbuster.ir.graph import Graph
from blockbuster.ir.show import Printer
from blockbuster.view.explorer.places import MARK, filled, place_name, place_of, with_places

Span = tuple[int, int]
NUMBERED = re.compile(r"\b(t)\d+\b|(?<=[A-Za-z0-9])_\d+\b")


@dataclass(frozen=True)
class Text:
    """Lines, the place of the node behind each (or an empty text), and why there are no lines."""

    lines: tuple[str, ...]
    places: tuple[str, ...]
    missing: str = ""


def text_form(graph: Graph) -> Text:
    """The text form of a program."""
    printer = Printer()
    lines = shown_lines(printer.print(graph))
    own = {line: place_name((*path, at)) for (path, at), line in printer.line_of.items()}
    return Text(tuple(lines), tuple(filled(lines, [own.get(i, "") for i in range(len(lines))])))


def loop_form(graph: Graph) -> Text:
    """The listing of a program; ``missing`` says why where a program has none."""
    try:
        pairs = tuple(listing_lines(with_places(graph)))
    except EmitError as error:
        told = [line for line in shown_lines(str(error)) if MARK not in line]
        return Text((), (), "\n".join(told))
    lines = [text for text, _ in pairs]
    return Text(tuple(lines), tuple(filled(lines, [place_of(origin) for _, origin in pairs])))


def changed(before: Sequence[str], after: Sequence[str]) -> tuple[list[Span], list[Span]]:
    """The lines of ``before`` that go and the lines of ``after`` that come, as ranges.

    Numbers that only keep names apart are no change.
    """
    old, new = ([NUMBERED.sub(r"\1", line) for line in lines] for lines in (before, after))
    gone, come = [], []
    for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            gone += [(a, b)] * (b > a)
            come += [(c, d)] * (d > c)
    return gone, come
