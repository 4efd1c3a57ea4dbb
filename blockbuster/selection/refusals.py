"""What is no choice, and why."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from blockbuster.errors import EmitError, shown_lines

if TYPE_CHECKING:
    from blockbuster.selection.choice import Choice


@dataclass
class Refusals:
    """What is no choice: errors by what is said of them, and whether a compiler refused any."""

    errors: dict[str, EmitError] = field(default_factory=dict)
    by_compiler: bool = False

    def note(self, name: str, error: EmitError) -> None:
        """``error`` is why ``name`` is no choice."""
        reason = shown_lines(str(error))[0]
        self.errors.setdefault(f"{name} is no choice: {reason}", error)

    def note_refused(self, choice: Choice, reason: str) -> None:
        """A compiler refused ``choice``."""
        tiles = ", ".join(f"{dim} {lanes}" for dim, lanes in choice.blocks.items())
        nests = choice.scheduled.draft.nests if choice.scheduled else ()
        counts = dict.fromkeys(str(nest.warps) for nest in nests)
        warps = f" and {' or '.join(counts)} warps" if counts else ""
        self.note(choice.name, EmitError(f"with tiles {tiles}{warps}, {reason}"))
        self.by_compiler = True
