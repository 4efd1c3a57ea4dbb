"""One object for all bodies that are written alike.

Schedules differ in the lanes of blocks, in warps and stages, far more often than in statements: in
a search of 900 schedules moves and passes made 3,671 bodies, of which 310 differed. What is
remembered of a body goes by the object, since equal bodies may differ in the user's words. So moves
and passes hand on the first body that was written so, and what is remembered of it is found again.
Only among programs that were made of one: these have the same tuple of inputs, and two functions
share nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cache, lru_cache
from operator import attrgetter
from types import NoneType
from typing import Any, TypeAlias

from blockbuster.emit.tile.program import Buffer, Stmt
from blockbuster.ir.expr import Arg, Call, Const, Size
from blockbuster.ir.origin import Origin

Written: TypeAlias = tuple[Stmt, ...]
Inputs: TypeAlias = tuple[Buffer, ...]

KEPT = 4096
"""Bodies that are remembered."""

TOLD_BY_EQUALITY = (str, int, bool, NoneType, Origin, Arg, Call, Const, Size)
"""Kinds whose values are written alike if they are equal. Numbers that are not whole are not among
them: 0.0 equals -0.0. ``Origin`` and ``Call`` compare large graphs without recursion."""


class _Key:
    """The key of a body of a program: equal to those of bodies that are written alike."""

    __slots__ = ("body", "inputs")

    def __init__(self, body: Written, inputs: Inputs) -> None:
        self.body, self.inputs = body, inputs

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Key) or self.inputs is not other.inputs:
            return False
        return are_alike(self.body, other.body)

    def __hash__(self) -> int:
        return hash(self.body)


def first_alike(body: Written, inputs: Inputs) -> Written:
    """The first body that was written as ``body`` is, in a program with these very ``inputs``."""
    return _first(_Key(body, inputs))


@lru_cache(maxsize=KEPT)
def _first(key: _Key) -> Written:
    return key.body


def are_alike(one: Any, other: Any) -> bool:
    """True if two values are equal in all their parts, those that equality leaves out included:
    the user's words, and where statements come from.
    """
    if one is other:
        return True
    kind = type(one)
    if kind is not type(other):
        return False
    if kind in TOLD_BY_EQUALITY:
        return bool(one == other)
    if kind is float:
        return bool(one.hex() == other.hex())
    if isinstance(one, tuple):
        return len(one) == len(other) and _all_alike(one, other)
    if not is_dataclass(kind):
        return False
    parts = _parts(kind)
    return _all_alike(parts(one), parts(other))


def _all_alike(some: tuple[Any, ...], others: tuple[Any, ...]) -> bool:
    """The same of each two values: most are the same objects."""
    pairs = zip(some, others, strict=True)
    return all(are_alike(one, other) for one, other in pairs if one is not other)


@cache
def _parts(kind: type) -> Callable[[Any], tuple[Any, ...]]:
    """The fields of values of a kind, as a tuple."""
    names = [each.name for each in fields(kind)]
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: tuple(getattr(value, name) for name in names)
