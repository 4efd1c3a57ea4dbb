"""A scheduled program: a tile program, all decisions about its kernels, and the moves so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from blockbuster.emit.closing.order import closed
from blockbuster.emit.schedule.site import Applied
from blockbuster.emit.target.targets import Target, reads_float8
from blockbuster.emit.tile.hashed import HashedOnce
from blockbuster.emit.tile.program import TileProgram
from blockbuster.emit.tile.tiling import ragged_dims
from blockbuster.errors import EmitError, message
from blockbuster.ir.dtypes import FLOAT8
from blockbuster.ir.lengths import Rule, completed
from blockbuster.ir.types import Dim


@dataclass(frozen=True)
class Scheduled(HashedOnce):
    """All that is decided about a kernel before it is printed; printers decide nothing.

    Moves rewrite ``draft``; ``start`` is the program that the first of them took. ``known`` has the
    sizes, by size class, for which it is made: they decide which blocks may be ragged.
    """

    start: TileProgram
    draft: TileProgram
    known: Mapping[Dim, int] = field(hash=False)
    target: Target
    moves: tuple[Applied, ...] = ()

    @cached_property
    def program(self) -> TileProgram:
        """The printed program: the draft with leads folded first, guards, and loops on the grid."""
        return closed(self.draft)

    @cached_property
    def sizes(self) -> Mapping[Dim, int]:
        """The size of each size class, chunks included, for which the kernel is made."""
        return completed(dict(self.known), self.draft.rules)

    @property
    def made(self) -> tuple[Rule, ...]:
        """The sizes of dims that its moves made of others (jam)."""
        return tuple(rule for rule in self.draft.rules if rule not in self.start.rules)

    @property
    def blocks(self) -> dict[Dim, int]:
        """The most lanes that a nest gives each dim of the program, chunks apart."""
        counted = [chunks.lanes for chunks in self.draft.chunks]
        found: dict[Dim, int] = {}
        for nest in self.draft.nests:
            for block in nest.blocks:
                if block.dim not in counted:
                    found[block.dim] = max(found.get(block.dim, 0), block.lanes)
        return found

    @property
    def facts(self) -> tuple[tuple[Dim, ...], ...]:
        """The assumptions about sizes: for each nest the dims whose blocks may be ragged.

        With the text of the schedule it says for which sizes the kernel is the same.
        """
        return tuple(map(ragged_dims, self.draft.nests))

    @cached_property
    def schedule(self) -> str:
        """The moves as text, one to a line: ``replayed`` gives an equal value for it."""
        return "".join(f"{applied}\n" for applied in self.moves)


def unscheduled(program: TileProgram, sizes: Mapping[Dim, int], target: Target) -> Scheduled:
    """``program``, which has dtypes, before the first move, for these sizes (by size class).

    Raises EmitError if kernels for the target cannot read one of its arrays.
    """
    for buffer in program.inputs:
        if buffer.dtype == FLOAT8 and not reads_float8(target):
            hint = f"cast {buffer.name} to float16, which holds all its numbers, before the call"
            raise EmitError(message(f"kernels for {target.name} do not read {FLOAT8}", hint=hint))
    return Scheduled(program, program, sizes, target)
