"""Hashes of frozen values, taken once: dicts and caches ask for them again and again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import Any, ClassVar


class HashedOnce:
    """A frozen dataclass whose fields are hashed when its hash is first asked for."""

    __dataclass_fields__: ClassVar[dict[str, Any]]
    _hash: int

    def __init_subclass__(cls) -> None:
        """``dataclass`` gives a class a hash of its own if the class itself has none."""
        cls.__hash__ = HashedOnce.__hash__  # type: ignore[method-assign]

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:  # the first time
            kind: Any = type(self)
            object.__setattr__(self, "_hash", hash(_compared(kind)(self)))
            return self._hash

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone: hashes of names differ from process to process."""
        return {name: value for name, value in vars(self).items() if name != "_hash"}


@cache
def _compared(kind: type) -> Callable[[HashedOnce], Any]:
    """What tells values of a kind apart: the fields that are compared, but for ``hash=False``."""
    parts = (each for each in fields(kind) if each.compare and each.hash is not False)
    return attrgetter(*(each.name for each in parts))
