"""Recursive functions over long programs, run without nested Python calls.

Python allows 1,000 nested calls. Such a function is written as a generator: where it would call
itself, it yields the call, and receives the call's result.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar, cast

T = TypeVar("T")
Task = Generator[Any, Any, T]
"""Yields tasks, is sent their results, returns its own."""


def done(task: Task[T]) -> T:
    """The result of ``task``; each task that it yields is done where it yields it."""
    waiting: list[Task[Any]] = [task]
    result: Any = None
    while waiting:
        try:
            asked = waiting[-1].send(result)
        except StopIteration as stop:
            waiting.pop()
            result = stop.value
        else:
            waiting.append(asked)
            result = None
    return cast(T, result)
