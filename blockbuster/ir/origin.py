"""Where a node comes from: lines of the user's file, and the rule or pass that made it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from blockbuster.errors import shown


@dataclass(frozen=True)
class SourceLine:
    """A line of the user's program."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{shown(self.file.rsplit('/', 1)[-1])}:{self.line}"


Entry = tuple[str, tuple[int, ...], SourceLine | None]
"""An origin with numbers for its parents."""


@dataclass(frozen=True, eq=False)
class Origin:
    """The origin of a node: a user's line, or a rule applied to parents.

    Fusion makes chains of parents as long as a derivation, so nothing here recurses.
    """

    rule: str = ""
    parents: tuple[Origin, ...] = field(default=(), repr=False)
    where: SourceLine | None = None

    def __eq__(self, other: object) -> bool:
        if self is other or not isinstance(other, Origin):
            return self is other
        return self._entries() == other._entries()

    def __hash__(self) -> int:
        return hash((self.rule, len(self.parents), self.where))

    def __reduce__(self) -> tuple[Callable[..., Origin], tuple[tuple[Entry, ...]]]:
        return _from_entries, (self._entries(),)

    def _entries(self) -> tuple[Entry, ...]:
        """This origin and all behind it, each once, parents first: equal for equal origins."""
        numbers: dict[int, int] = {}
        entries: dict[Entry, int] = {}
        stack = [self]
        while stack:
            top = stack[-1]
            waiting = [p for p in reversed(top.parents) if id(p) not in numbers]
            if waiting:
                stack += waiting
                continue
            entry = (top.rule, tuple(numbers[id(p)] for p in top.parents), top.where)
            numbers[id(top)] = entries.setdefault(entry, len(entries))
            stack.pop()
        return tuple(entries)

    def lines(self) -> tuple[SourceLine, ...]:
        """The user's lines this node descends from, in order, each once."""
        found: dict[SourceLine, None] = {}
        stack, seen = [self], {id(self)}
        while stack:
            origin = stack.pop()
            if origin.where is not None:
                found.setdefault(origin.where)
            for parent in reversed(origin.parents):
                if id(parent) not in seen:
                    seen.add(id(parent))
                    stack.append(parent)
        return tuple(found)


def _from_entries(entries: tuple[Entry, ...]) -> Origin:
    made: list[Origin] = []
    for rule, parents, where in entries:
        made.append(Origin(rule, tuple(made[number] for number in parents), where))
    return made[-1]
