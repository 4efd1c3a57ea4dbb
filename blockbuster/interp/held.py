"""The interpreter's state: the values that are alive, and the place of the current equation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from blockbuster.interp.layout import Nested
from blockbuster.interp.observers import Path, Tensor
from blockbuster.ir.graph import Node
from blockbuster.ir.types import Dim, Type

Spans = Mapping[Dim, range]


class Held(NamedTuple):
    """A value while it is interpreted, and the tensor behind it (none for a local result)."""

    type: Type
    data: Nested
    home: Tensor | None = None

    def element(self, at: int) -> Held:
        """Entry ``at`` of a list."""
        return Held(self.type.element(), self.data[at], self.home)


class Site(NamedTuple):
    """The place of an equation: its path, and the current block of each map around it."""

    node: Node
    path: Path
    spans: Spans

    def tensor(self, port: int) -> Tensor:
        """The tensor that result ``port`` is, if it is stored."""
        return Tensor(self.node.hints[port] if self.node.hints else "", self.path, port)
