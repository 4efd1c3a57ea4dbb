"""The operators of a program in words, with the lines of the user's file."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from blockbuster.errors import shown
from blockbuster.frontend.kinds import MOVES
from blockbuster.frontend.program import Equation
from blockbuster.selection.plans import layout


def computes(equations: Sequence[Equation], room: int | None = None) -> str:
    """The operators of equations in order, views left out, and the lines of the user's file.

    ``room``: characters; as many operators are named as it has room for, at least one.
    """
    own = [one for one in equations if one.op not in MOVES] or equations
    words = (str(one.param("name")) if one.op == "custom" else one.op for one in own)
    counted = [(word, len([*same])) for word, same in groupby(words)]
    number = len(counted) if len(counted) <= layout.MANY_OPERATORS else layout.SHOWN_OPERATORS
    where = _where(own)
    text = _named(counted, number) + where
    while room is not None and len(text) > room and number > 1:
        number -= 1
        text = _named(counted, number) + where
    return text


def _named(counted: Sequence[tuple[str, int]], number: int) -> str:
    """The first ``number`` words, each with its count, and how many more operators there are."""
    said = [word if count == 1 else f"{count} {word}" for word, count in counted[:number]]
    left = sum(count for _, count in counted[number:])
    more = [f"{left} more operator{'s' * (left > 1)}"] if left else []
    return ", ".join([*said, *more]) or "a copy"


def _where(equations: Sequence[Equation]) -> str:
    """The lines that equations come from, if they are of one file."""
    lines = sorted({(one.where.file, one.where.line) for one in equations if one.where})
    if not lines or len({file for file, _ in lines}) > 1:
        return ""
    (file, first), (_, last) = lines[0], lines[-1]
    where = shown(file.rsplit("/", 1)[-1])
    return f" ({where}:{first})" if first == last else f" ({where}:{first} to {last})"
