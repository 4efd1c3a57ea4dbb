"""Readers of untrusted JSON data: each value is checked by type, or refused with its place.

A reader is a function of a value that `json` returns. It returns a value of the requested type, or
raises Wrong. No reader calls, imports or makes anything that the data names.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any, TypeVar

from blockbuster.errors import shown

T = TypeVar("T")
K = TypeVar("K")
Read = Callable[[Any], T]

LARGEST = 2**63 - 1
"""Numbers in files are sizes and positions: what counts elements of arrays has 64 bits."""


class Wrong(ValueError):
    """A value that is not what stands there in a file of ours; ``place`` leads to it."""

    def __init__(self, reason: str, place: str = "") -> None:
        super().__init__(f"{place.removeprefix('.')} {reason}" if place else reason)
        self.reason, self.place = reason, place

    def inside(self, place: str) -> Wrong:
        """The same, seen from the value around it."""
        return Wrong(self.reason, place + self.place)


def parse_json(data: bytes) -> Any:
    """JSON in UTF-8, without the numbers and repeated names that Python would let pass."""
    try:
        return json.loads(
            data.decode("utf-8"), parse_constant=_no_constant, object_pairs_hook=_no_repeats
        )
    except Wrong:
        raise
    except UnicodeDecodeError as error:
        raise Wrong(f"it is no text in UTF-8: byte {error.start} is wrong") from error
    except RecursionError as error:
        raise Wrong("it is nested deeper than any file of ours") from error
    except ValueError as error:  # no JSON, or a number of thousands of digits
        raise Wrong(f"it is no JSON: {shown(str(error), 200)}") from error


def _no_constant(name: str) -> Any:
    raise Wrong(f"it is no JSON: {name} is no number")


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        again = next(name for name in names if names.count(name) > 1)
        raise Wrong(f"{shown(repr(again), 80)} stands twice in one object")
    return found


def expected(what: str, value: object) -> Wrong:
    """The error for a value that is not ``what`` is expected."""
    return Wrong(f"is {shown(repr(value), 80)}, expected {what}")


def text(value: Any) -> str:
    """A text that can be written as UTF-8."""
    if not isinstance(value, str):
        raise expected("a text", value)
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise expected("a text without halves of characters", value)
    return value


def flag(value: Any) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        raise expected("true or false", value)
    return value


def number(low: int, high: int = LARGEST) -> Read[int]:
    """Whole numbers from ``low`` to ``high``."""

    def read(value: Any) -> int:
        if type(value) is not int or not low <= value <= high:
            raise expected(f"a whole number from {low} to {high}", value)
        return value

    return read


def real(value: Any) -> float:
    """A finite number with a decimal point."""
    if type(value) is not float or not math.isfinite(value):
        raise expected("a finite number with a point", value)
    return value


def real_or_whole(value: Any) -> float:
    """A number with a decimal point, a whole number of 64 bits, or the word for one not finite."""
    if isinstance(value, str):
        return float(one_of(("inf", "-inf", "nan"))(value))
    return number(-(2**63))(value) if type(value) is int else real(value)


def one_of(words: tuple[str, ...]) -> Read[str]:
    """One of some words."""

    def read(value: Any) -> str:
        if not isinstance(value, str) or value not in words:
            raise expected(f"one of {', '.join(map(repr, words))}", value)
        return value

    return read


def maybe(read: Read[T]) -> Read[T | None]:
    """A reader of what ``read`` reads, or of null."""
    return lambda value: None if value is None else read(value)


def items(read: Read[T]) -> Read[tuple[T, ...]]:
    """A list, as a tuple."""

    def read_all(value: Any) -> tuple[T, ...]:
        if not isinstance(value, list):
            raise expected("a list", value)
        return tuple(_at(f"[{i}]", read, item) for i, item in enumerate(value))

    return read_all


def mapping(read: Read[T]) -> Read[dict[str, T]]:
    """An object with any names."""

    def read_all(value: Any) -> dict[str, T]:
        if not isinstance(value, dict):
            raise expected("an object", value)
        return {text(key): _at(f".{shown(key, 80)}", read, item) for key, item in value.items()}

    return read_all


def row(value: Any, *reads: Read[Any]) -> tuple[Any, ...]:
    """A list of as many values as there are readers."""
    if not isinstance(value, list) or len(value) != len(reads):
        raise expected(f"a list of {len(reads)}", value)
    return tuple(_at(f"[{i}]", r, v) for i, (r, v) in enumerate(zip(reads, value, strict=True)))


def record(value: Any, /, **reads: Read[Any]) -> dict[str, Any]:
    """An object with these names and no others."""
    if not isinstance(value, dict):
        raise expected("an object", value)
    for name in (*reads, *value):
        if name not in value or name not in reads:
            what = "is missing" if name in reads else "is nothing that a file of ours has"
            raise Wrong(what, f".{shown(name, 80)}")
    return {name: _at(f".{name}", read, value[name]) for name, read in reads.items()}


def _at(place: str, read: Read[T], value: Any) -> T:
    try:
        return read(value)
    except Wrong as wrong:
        raise wrong.inside(place) from None
