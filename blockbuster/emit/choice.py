"""Which snapshot becomes the kernel: the one that moves least, at the default tiles.

Until selection exists: every snapshot of a piece is lowered to tiles for the sizes at hand, and the
one with the least tile traffic wins; fewer kernels, then more fusion, break a tie.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from blockbuster.emit.dtypes import dtype_of
from blockbuster.emit.kernel import STAGES, apply_passes
from blockbuster.emit.lower import lower_to_tiles
from blockbuster.emit.numpy_tiles import moved, numpy_schedule, numpy_tiling
from blockbuster.emit.split_nests import split_nests
from blockbuster.emit.target import target_of
from blockbuster.emit.tile import TileProgram
from blockbuster.emit.tiles import choose_tiling
from blockbuster.errors import EmitError
from blockbuster.ir.graph import Graph
from blockbuster.ir.types import Dim, size_class
from blockbuster.rules import Derivation, fuse, safe

CPU = "cpu"
Key = tuple[Any, ...]


@dataclass(frozen=True)
class Choice:
    """A snapshot with its tiles. ``key`` is equal for sizes that the same text serves.

    ``notes``: what to know about its numbers.
    """

    graph: Graph = field(repr=False)
    snapshot: int
    program: TileProgram = field(repr=False)
    blocks: Mapping[Dim, int]
    moved: int
    kernels: int
    key: Key = field(repr=False)
    notes: tuple[str, ...] = ()

    @property
    def cost(self) -> tuple[int, int, int]:
        """What the best choice has least of."""
        return self.moved, self.kernels, -self.snapshot


@dataclass(frozen=True)
class Considered:
    """The best choice for some sizes, the others, and why some snapshots are none."""

    best: Choice
    others: tuple[Choice, ...]
    refused: tuple[str, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know about the choice."""
        return (*self.refused, *self.best.notes)

    @property
    def reason(self) -> str:
        """Why the best is the best, in words."""
        ranked = sorted((self.best, *self.others), key=lambda choice: choice.snapshot)
        if len(ranked) == 1:
            return "no other choice"
        amounts = ", ".join(f"snapshot {c.snapshot} moves {c.moved}" for c in ranked)
        return f"least tile traffic in elements: {amounts}"


class Fused:
    """A block program, fused once; choices for any sizes, dtype and target."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._lowered: dict[int, tuple[TileProgram, tuple[str, ...]]] = {}

    @cached_property
    def derivation(self) -> Derivation:
        """How the program was fused."""
        return fuse(self.graph)

    @cached_property
    def snapshots(self) -> tuple[Graph, ...]:
        """What may be chosen, least fused first; the unfused program is the last resort."""
        return self.derivation.snapshots

    def consider(
        self, sizes: Mapping[Dim, int], dtype: str, target: str, *, one_kernel: bool = False
    ) -> Considered:
        """The choice for these sizes. ``one_kernel``: one that is a single kernel, if any is.

        Raises EmitError where no snapshot, nor the unfused program, has a form for the target.
        """
        choices: list[Choice] = []
        refused: list[str] = []
        error: EmitError | None = None
        for number in range(1, len(self.snapshots) + 2):
            last_resort = number > len(self.snapshots)
            if last_resort and choices:
                break
            try:
                choices.append(self._choice(number, sizes, dtype, target))
            except EmitError as refusal:
                error = error or refusal
                what = "the unfused program" if last_resort else f"snapshot {number}"
                refused.append(f"{what} is no choice: {str(refusal).splitlines()[0]}")
        if not choices:
            assert error is not None
            raise error
        single = [choice for choice in choices if choice.kernels == 1] if one_kernel else []
        best = min(single or choices, key=lambda choice: choice.cost)
        others = tuple(choice for choice in choices if choice is not best)
        return Considered(best, others, tuple(refused))

    def _choice(self, number: int, sizes: Mapping[Dim, int], dtype: str, target: str) -> Choice:
        graph = (*self.snapshots, self.graph)[number - 1]
        if number not in self._lowered:
            said: list[str] = []
            program = lower_to_tiles(safe(graph, said.append))
            self._lowered[number] = program, tuple(dict.fromkeys(said))
        lowered, notes = self._lowered[number]
        known = {size_class(d): size for d, size in sizes.items()}
        if target == CPU:
            blocks = numpy_tiling(lowered, known)
            program = numpy_schedule(lowered, known, blocks)
            looped = {d: n for d, n in blocks.items() if d not in map(size_class, program.whole)}
            key: Key = (number, program.whole, tuple(looped.items()))
            kernels = _kernels(program)
        else:
            shared = target_of(target).shared
            tiling = choose_tiling(
                lowered, known, {}, dtype_of(dtype), shared=shared, stages=STAGES
            )
            program, blocks = apply_passes(lowered, tiling), dict(tiling.blocks)
            lanes = [d for d in blocks if not tiling.is_unit(d)]
            ragged = tuple(d for d in lanes if tiling.ragged(d))
            key = (number, tuple(blocks.items()), tiling.whole, ragged)
            kernels = len(program.nests)
        cost = moved(program, known, blocks)
        return Choice(graph, number, program, blocks, cost, kernels, key, notes)


def _kernels(program: TileProgram) -> int:
    """How many kernels a tile program would be on a GPU; where it would be none, one per nest."""
    try:
        return len(split_nests(program).nests)
    except EmitError:
        return len(program.nests)
