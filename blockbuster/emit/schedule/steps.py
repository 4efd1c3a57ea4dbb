"""Kernel derivations: the moves that made a kernel, step by step, with the program after each.

They are the second half of a derivation; the first half are the rules that fused the block program
(rules/derivation.py). Both are lists of named steps that can be replayed. The first state is the
lowered program, before any move.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from blockbuster.emit.schedule.base import Move
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.script import BY_NAME
from blockbuster.emit.schedule.site import Applied
from blockbuster.emit.tile.extents import extents_of
from blockbuster.emit.tile.names import comment
from blockbuster.emit.tile.program import Nest, TileProgram
from blockbuster.emit.tile.shared_memory import shared_bytes
from blockbuster.emit.tile.tiling import tiling_of
from blockbuster.emit.tile.traffic import elements_moved
from blockbuster.emit.tile.trips import walked_in
from blockbuster.errors import EmitError, message
from blockbuster.ir.graph import Graph
from blockbuster.ir.types import size_class
from blockbuster.rules import Derivation

if TYPE_CHECKING:
    from blockbuster.interp.report import Progress, ProofReport

CLOSED = "leads first, guards, grid"
"""What a proof calls the passes that follow the last move."""


@dataclass(frozen=True)
class Cost:
    """The needs of a tile program on a device, at the sizes for which it is made.

    ``elements``: moved between global memory and tiles by all kernels. ``programs``: in the grid of
    each kernel, in order. ``shared``: bytes of shared memory that a program of each takes, roughly.
    """

    elements: int
    programs: tuple[int, ...]
    shared: tuple[int, ...]

    def __str__(self) -> str:
        programs = " + ".join(f"{count:,}" for count in self.programs)
        return (
            f"{self.elements:,} elements, {programs} programs, "
            f"{max(self.shared, default=0):,} bytes of shared memory"
        )


def cost_of(scheduled: Scheduled) -> Cost | None:
    """The cost of what is printed; None if some dim is not cut into blocks yet."""
    draft = scheduled.draft
    if any(not _is_cut(draft, nest) for nest in draft.nests):
        return None  # such a draft cannot be closed either
    program = scheduled.program
    found = [_of_nest(program, nest, scheduled) for nest in program.nests]
    return Cost(
        sum(elements for elements, _, _ in found),
        tuple(programs for _, programs, _ in found),
        tuple(shared for _, _, shared in found),
    )


def _of_nest(program: TileProgram, nest: Nest, scheduled: Scheduled) -> tuple[int, int, int]:
    """Elements, programs, bytes: each nest may cut dims in its own way."""
    alone = replace(program, nests=(nest,))
    (extents,) = extents_of(alone, scheduled.sizes, tiling_of(program, nest).blocks)
    programs = max(1, extents.tiles(extents.grid))
    return elements_moved(extents), programs, shared_bytes(program, nest, scheduled.target.name)


def _is_cut(program: TileProgram, nest: Nest) -> bool:
    cut = tiling_of(program, nest).blocks
    return all(dim in cut for dim in walked_in(nest) if size_class(dim) not in program.units)


@dataclass(frozen=True)
class TileStep:
    """A move within its derivation. ``before`` and ``after``: all that is decided around it."""

    index: int
    applied: Applied
    before: Scheduled = field(repr=False)
    after: Scheduled = field(repr=False)

    @property
    def move(self) -> Move:
        """The move that was applied."""
        return BY_NAME[self.applied.move]

    @property
    def line(self) -> str:
        """The line of the schedule's text."""
        return str(self.applied)

    @cached_property
    def costs(self) -> tuple[Cost | None, Cost | None]:
        """The needs of the program on a device, before the move and after it."""
        return cost_of(self.before), cost_of(self.after)


@dataclass(frozen=True)
class KernelDerivation:
    """The derivation of a kernel: how its block program was fused, and the moves after that.

    ``fused`` is None if the kernel was emitted from a program alone; ``graph`` is the block program
    that was lowered.
    """

    start: Scheduled = field(repr=False)
    moves: tuple[Applied, ...]
    final: Scheduled = field(repr=False)
    fused: Derivation | None = None
    graph: Graph | None = field(default=None, repr=False)

    @cached_property
    def steps(self) -> tuple[TileStep, ...]:
        """The moves in order, replayed from the start."""
        found: list[TileStep] = []
        before = self.start
        for index, applied in enumerate(self.moves):
            after = BY_NAME[applied.move].apply(before, applied.site, **applied.args)
            found.append(TileStep(index, applied, before, after))
            before = after
        return tuple(found)

    def replay(self) -> Scheduled:
        """Apply every move again. Raises EmitError if another program comes of it."""
        made = self.steps[-1].after if self.steps else self.start
        if made.draft != self.final.draft:
            listing = f"{self.final.draft.show()}---\n{made.draft.show()}"
            raise EmitError(message("replaying the moves gives another program", listing=listing))
        return made

    def prove(
        self, *, trials: int = 8, seed: int = 0, progress: Progress | None = None
    ) -> ProofReport:
        """A proof of every step: rules, lowering, moves, and what follows them before printing.

        Each compares the program before with the program after on random inputs, sizes and blocks,
        by the tiers of ``prove_equal``; the last one checks padded lanes, too. Where roundings to
        dtypes depend on the order, they are left out, and the proof says so. ``progress`` is told
        the name of each step before; without it, a terminal shows the names after two seconds.
        """
        from blockbuster.emit.interpret.draws import Draws
        from blockbuster.emit.interpret.proof import prove_tiles
        from blockbuster.interp.report import Entry, ProofReport
        from blockbuster.view.terminal import telling

        drafts = (self.start.draft, *(step.after.draft for step in self.steps))
        entries, draws = list[Entry](), Draws((*drafts, self.final.program))
        with telling(progress, "proving") as tell:
            if self.fused:
                entries += self.fused.prove(trials=trials, seed=seed, progress=tell).entries
            for name, before, after in self._pairs():
                tell(name)
                proof = prove_tiles(
                    before, after, trials=trials, seed=seed, lanes=name == CLOSED, draws=draws
                )
                entries.append(Entry(name, proof))
        return ProofReport(tuple(entries))

    def _pairs(self) -> Iterator[tuple[str, Graph | TileProgram, TileProgram]]:
        if self.graph is not None:
            yield "lowered to tiles", self.graph, self.start.draft
        for step in self.steps:
            yield step.line, step.before.draft, step.after.draft
        yield CLOSED, self.final.draft, self.final.program

    def show(self) -> str:
        """A line for each step: its number, what was applied, and what the program then asks."""
        lines = list[str]()
        rules = len(self.fused.steps) if self.fused else 0
        for rule in self.fused.steps if self.fused else ():
            lines.append(f"{rule.index + 1:3}  {rule.rule}: {rule.description}")
        for step in self.steps:
            after = step.costs[1]
            gives = str(after) if after and after != step.costs[0] else ""
            lines.append(f"{rules + step.index + 1:3}  {step.line}{comment(gives)}")
        return "".join(f"{line}\n" for line in lines)

    def __str__(self) -> str:
        return self.show()


def derived(
    scheduled: Scheduled, fused: Derivation | None = None, graph: Graph | None = None
) -> KernelDerivation:
    """The derivation of ``scheduled``; ``fused`` is that of its block program ``graph``."""
    start = replace(scheduled, draft=scheduled.start, moves=())
    return KernelDerivation(start, scheduled.moves, scheduled, fused, graph)
