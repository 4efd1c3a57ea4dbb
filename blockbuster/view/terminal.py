"""The only module that writes to a terminal: texts are shown literally and cannot control it.

Names of files, functions and dims may hold escape sequences, markup or emoji codes; they reach the
terminal as the characters that they consist of (see `errors.shown`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Timer
from typing import TextIO

from rich.console import Console
from rich.text import Text

from blockbuster.errors import shown, shown_lines

PATIENCE = 2.0  # seconds that work may take before a spinner says what it is


def say(text: object, *, to: TextIO | None = None) -> None:
    """Print the lines of ``text``, on standard output unless another file is given."""
    print("\n".join(shown_lines(str(text))), file=to)


def warn(text: object) -> None:
    """Print the lines of ``text`` on standard error."""
    say(text, to=sys.stderr)


def in_columns(rows: Sequence[Sequence[str]], *, between: str = " ") -> list[str]:
    """A line for each row, whose cells stand below each other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        between.join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


PIPE_CLOSED = 141
"""The exit code that shells give for a program that SIGPIPE ended: 128 and the signal's number."""


def close_quietly() -> int:
    """Write nothing more, since nobody reads it; returns the exit code for that."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):  # what is still in their buffers goes there
        with suppress(OSError, ValueError):  # no file stands behind a stream of a test
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
    return PIPE_CLOSED


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Leave a closed pipe to the command line: rich ends the process."""
        raise BrokenPipeError


class Screen:
    """A terminal with styles and spinners; nothing in a text is taken for markup."""

    def __init__(self, *, stderr: bool = False) -> None:
        self._console = _Console(
            stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=True
        )

    def print(self, text: str, *, style: str | None = None, end: str = "\n") -> None:
        """Print the lines of ``text`` in a style of rich's."""
        self._console.print(Text("\n".join(shown_lines(text))), style=style, end=end)

    @contextmanager
    def working(self, what: str, *, after: float = 0.0) -> Iterator[Callable[[str], None]]:
        """A spinner while something takes its time, and what names the next thing beside it.

        ``after``: it appears once the work has taken so many seconds. Nothing is printed where
        output is no terminal.
        """
        status = self._console.status(Text(shown(what)))
        timer = Timer(after, status.start)
        timer.daemon = True
        if after:
            timer.start()
        else:
            status.start()
        try:
            yield lambda text: status.update(Text(shown(text)))
        finally:
            if after:
                timer.cancel()
                timer.join()  # or it would start the spinner behind the end
            status.stop()


@contextmanager
def telling(progress: Callable[[str], None] | None, what: str) -> Iterator[Callable[[str], None]]:
    """A function that is told what is being done: ``progress``, or a spinner on a terminal."""
    if progress is not None:
        yield progress
    elif sys.stderr.isatty():
        with Screen(stderr=True).working(what, after=PATIENCE) as update:
            yield update
    else:  # a file, or a notebook, whose outputs are kept
        yield lambda _: None
