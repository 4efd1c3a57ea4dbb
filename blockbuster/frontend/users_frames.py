"""Tracebacks of a traced function that fails: they lead from its caller to its own lines.

Between the two are frames of Blockbuster, which tell the author nothing, so the entry points remove
them. An error that was not raised in a traced function keeps its traceback.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from traceback import walk_tb
from types import TracebackType
from typing import Any

from blockbuster.frontend.source import is_ours, text_of
from blockbuster.ir.origin import SourceLine


def called(fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call ``fn``. In a traceback, the frames after this call's are the user's."""
    return fn(*args, **kwargs)


class UsersFrames:
    """An entry point runs ``with UsersFrames()``: errors of a traced function begin there."""

    def __enter__(self) -> None:
        """Nothing is prepared."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: object
    ) -> None:
        if error is not None:
            error.__traceback__ = _inside(error.__traceback__) or error.__traceback__


def lines_of(error: BaseException) -> list[str]:
    """The user's lines in the traceback of an error, as ``model.py:8: return y + z``.

    Nothing unless the error comes out of a traced function.
    """
    frames = walk_tb(_inside(error.__traceback__))
    found = [SourceLine(f.f_code.co_filename, line) for f, line in frames if not is_ours(f)]
    return [f"{line}: {text_of(line)}" for line in found]


def _inside(traceback: TracebackType | None) -> TracebackType | None:
    """The part of a traceback inside the outermost traced function; None if there is none."""
    while traceback is not None and traceback.tb_frame.f_code is not called.__code__:
        traceback = traceback.tb_next
    while traceback is not None and is_ours(traceback.tb_frame):
        traceback = traceback.tb_next
    return traceback
