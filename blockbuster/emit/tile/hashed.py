"""Hashes of large frozen values, taken once: caches ask for them again and again."""

from __future__ import annotations

from dataclasses import fields
from functools import cached_property
from typing import Any, ClassVar


class HashedOnce:
    """A frozen dataclass whose fields are hashed when its hash is first asked for.

    Subclasses write ``__hash__ = HashedOnce.__hash__``: else ``dataclass`` makes one of its own.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @cached_property
    def _hash(self) -> int:
        return hash(tuple(getattr(self, each.name) for each in fields(self) if each.compare))

    def __hash__(self) -> int:
        return self._hash

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone: hashes of names differ from process to process."""
        return {name: value for name, value in vars(self).items() if name != "_hash"}
