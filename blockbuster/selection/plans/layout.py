"""How much of a plan a report tells, and how wide its lines are. Nothing is chosen by it."""

from __future__ import annotations

from textwrap import wrap

from blockbuster.errors import shown

WIDTH = 118
"""Characters of a line: a terminal of 120 columns, with a margin."""

KERNEL_WIDTH = 120
"""Characters of the line of a kernel, which is not wrapped."""

ARRAYS, NAMES = 2, 40
"""Arrays that a kernel's line names, and the characters of their names."""

MANY_OPERATORS, SHOWN_OPERATORS = 10, 6
"""From more operators than the first on, as many as the second are named."""

VALUES, VALUES_IN_SHORT, REASONS = 8, 3, 2
"""Stored values that are told one by one, in details and in a short report; reasons of each."""

REFUSALS = 4
"""Refused parts that are told one by one."""

GAP = 0.0005
"""The part of a plan's time up to which its distance from the bound is not told."""


def wrapped(mark: str, text: str) -> list[str]:
    """A sentence in lines of a report, ``mark`` in front of the first."""
    behind = " " * len(mark) + "  "
    return wrap(
        shown(text), WIDTH, initial_indent=mark, subsequent_indent=behind, break_on_hyphens=False
    )
