"""Other forms of a snapshot, used if a compiler refuses the usual one.

Compiler faults depend on how a kernel's threads and tiles are laid out. ptxas 12.8 is right if a
kernel has 8 warps, or if all its dots use one swizzle (shared_base.py); Triton exchanges no rows if
more threads leave each of them one block (exchanged_rows.py). No form here is better than the usual
one, so none is tried before that is refused; then cost decides between these and other snapshots
(choice.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.tile.uses import SWIZZLED, has_exact_dots
from blockbuster.ir.types import Dim
from blockbuster.selection.decisions.default_tiles import padded_dims
from blockbuster.selection.priors import PRIORS


@dataclass(frozen=True)
class Form:
    """A form of a snapshot's kernel: ``tiles`` and ``warps`` where they are not the default.

    ``words`` follow the snapshot's name.
    """

    tiles: Mapping[Dim, int] = field(default_factory=dict)
    warps: int | None = None
    words: str = ""


def alternatives(scheduled: Scheduled) -> Iterator[Form]:
    """The forms beside the usual one, which gave ``scheduled``; only those that differ from it."""
    more = 2 * PRIORS.usual_warps
    if all(nest.warps < more for nest in scheduled.draft.nests):
        yield Form(warps=more, words=f" with {more} warps")
    if has_exact_dots(scheduled.program):
        return  # no matrix unit takes them
    for padded in dict.fromkeys(_padded(scheduled, summed) for summed in (False, True)):
        if not padded:
            continue
        words = f" with {SWIZZLED} lanes for {', '.join(padded)}"
        yield Form(tiles=dict.fromkeys(padded, SWIZZLED), words=words)


def _padded(scheduled: Scheduled, summed: bool) -> tuple[Dim, ...]:
    dims = padded_dims(scheduled.program, summed=summed)
    return tuple(dim for dim in dims if dim in scheduled.blocks)
