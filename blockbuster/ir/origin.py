"""Where a node comes from: lines of the user's file, and the rule or pass that made it."""

from __future__ import annotations

from dataclasses import dataclass, field

from blockbuster.errors import shown


@dataclass(frozen=True)
class SourceLine:
    """A line of the user's program."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{shown(self.file.rsplit('/', 1)[-1])}:{self.line}"


@dataclass(frozen=True)
class Origin:
    """Where a node came from: a user's line, or a rule applied to parents."""

    rule: str = ""
    parents: tuple[Origin, ...] = field(default=(), repr=False)
    where: SourceLine | None = None

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
