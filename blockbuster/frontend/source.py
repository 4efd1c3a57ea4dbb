"""The line of the traced function that called an operation."""

from __future__ import annotations

import inspect
import linecache
import sys
from pathlib import Path
from types import FrameType

import numpy as np

from blockbuster.errors import TraceError, message
from blockbuster.ir.origin import SourceLine

_HERE = Path(__file__).parent
_COMMANDS = str(_HERE.parent / "view")  # behind the command line there is no line of the user's
_LIBRARIES = ("torch",)
_CALLED = (str(_HERE.parent / name) for name in ("compile.py", "jitted.py"))
_NOT_THE_USER = (str(_HERE), *_CALLED, str(Path(np.__file__).parent))


class Refused(Exception):
    """Why an operation cannot be recorded; the boundary adds the user's line."""

    error: type[TraceError] = TraceError

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint


class NoSuchPosition(TraceError, IndexError):
    """A position is not on its axis: NumPy and torch raise an IndexError there, too."""


class OffAxis(Refused):
    """The same; the boundary adds the user's line."""

    error = NoSuchPosition


def user_line() -> SourceLine | None:
    """The innermost line outside this package, NumPy and torch: the one place that inspects frames.

    None if the command line called, and no function of the user's stands in between.
    """
    frame = sys._getframe(1)
    while frame is not None and is_ours(frame):
        frame = frame.f_back  # type: ignore[assignment]
    if frame is None or frame.f_code.co_filename.startswith(_COMMANDS):
        return None
    return SourceLine(frame.f_code.co_filename, frame.f_lineno)


def is_ours(frame: FrameType) -> bool:
    """True for a frame of the front end, of NumPy or of torch."""
    package = str(frame.f_globals.get("__name__", "")).split(".")[0]
    return package in _LIBRARIES or frame.f_code.co_filename.startswith(_NOT_THE_USER)


def definition(fn: object) -> SourceLine | None:
    """The place where a function begins; None for anything but a Python function."""
    code = getattr(inspect.unwrap(fn), "__code__", None) if callable(fn) else None
    return SourceLine(code.co_filename, code.co_firstlineno) if code else None


def text_of(where: SourceLine | None) -> str:
    """The text of a source line, or an empty one where the file cannot be read."""
    try:
        return linecache.getline(where.file, where.line).strip() if where else ""
    except ValueError:  # code may name a file that no file system can have
        return ""


def trace_error(
    reason: str, *, hint: str = "", where: SourceLine | None = None,
    error: type[TraceError] = TraceError,
) -> TraceError:  # fmt: skip
    """The error for an operation at ``where`` (the user's current line if none is given)."""
    line = where or user_line()
    origin = f"{line}: {text_of(line)}" if line else None
    return error(message(reason, origin=origin, hint=hint or None))
