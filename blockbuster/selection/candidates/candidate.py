"""A candidate: a snapshot as a tile program, with a schedule for some sizes and its cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from math import inf, prod
from typing import Any

from blockbuster.costs.report import in_us
from blockbuster.emit.schedule.scheduled import Scheduled, unscheduled
from blockbuster.emit.schedule.script import replayed
from blockbuster.emit.schedule.split_nests import split_nests
from blockbuster.emit.target.targets import Target, target_of
from blockbuster.emit.tile.array_dtypes import Given
from blockbuster.emit.tile.constants import kept_nests, running_nests
from blockbuster.emit.tile.dataflow import defined, stored
from blockbuster.emit.tile.extents import extents_of
from blockbuster.emit.tile.lowered import Lowered
from blockbuster.emit.tile.program import Buffer, TileProgram, statements
from blockbuster.emit.tile.tiling import tiling_of
from blockbuster.emit.tile.traffic import elements_moved
from blockbuster.emit.tile.trips import dims_in, dims_of
from blockbuster.emit.tile.uses import Uses
from blockbuster.errors import EmitError, ParseError
from blockbuster.ir.graph import Graph
from blockbuster.ir.lengths import completed
from blockbuster.ir.types import Dim, size_class
from blockbuster.machines import Machine, built_in
from blockbuster.selection.candidates.again import Repeated
from blockbuster.selection.candidates.alternatives import Form
from blockbuster.selection.cost import Cost, launch_by_host
from blockbuster.selection.decisions.default_schedule import default_schedule
from blockbuster.selection.decisions.numpy_price import price_of_text
from blockbuster.selection.decisions.numpy_tiles import numpy_schedule, numpy_tiling
from blockbuster.selection.price import priced
from blockbuster.selection.priors import PRIORS

CPU = "cpu"
Key = tuple[Any, ...]


STORED = "what it stores between kernels is larger than all that it is given"


@dataclass(frozen=True)
class Candidate:
    """A program to print, with its tiles; ``key`` is equal for sizes that the same text serves.

    A GPU's kernel is printed from ``scheduled``, which holds its warps, too; ``cost`` has the
    details of ``price``, the cost in microseconds.
    """

    program: TileProgram = field(repr=False)
    blocks: Mapping[Dim, int]
    kernels: int
    moved: int
    price: float
    key: Key = field(repr=False)
    scheduled: Scheduled | None = field(default=None, repr=False)
    cost: Cost | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True)
class Choice(Candidate):
    """A snapshot with its tiles.

    ``lowered`` is the block program behind it. ``again``: the work that it repeats. ``usual``: it
    is not another form because a compiler refused one. ``weight``: a factor on its microseconds.
    ``schedules``: the schedules among which its own was chosen, or why it was not.
    """

    lowered: Lowered = field(repr=False)
    snapshot: int
    name: str
    again: Repeated | None = None
    usual: bool = False
    weight: float = 1.0
    schedules: str = ""

    def made_as(self, made: Candidate) -> Choice:
        """The same snapshot as another candidate."""
        price, key = made.price * self.weight, (self.snapshot, *made.key)
        return replace(self, **{**vars(made), "price": price, "key": key})

    @property
    def graph(self) -> Graph:
        """The block program."""
        return self.lowered.graph

    @property
    def stable(self) -> Graph:
        """Its safe form."""
        return self.lowered.stable

    @property
    def unsafe(self) -> tuple[str, ...]:
        """Names of exponentials that can overflow."""
        return self.lowered.unsafe

    @property
    def notes(self) -> tuple[str, ...]:
        """Further facts about its numbers."""
        return self.lowered.notes

    @cached_property
    def mixed(self) -> int:
        """How many kernels have a loop that reads an array for dots and for other arithmetic."""
        if self.scheduled is None:
            return 0
        draft = self.scheduled.draft
        nests = running_nests(draft)
        return sum(Uses(nest, tiling_of(draft, nest)).mixed() for nest in nests)

    @property
    def kept(self) -> int:
        """How many of its kernels compute of constants, and do not run in each call."""
        return len(kept_nests(self.scheduled.draft)) if self.scheduled else 0

    @property
    def rank(self) -> tuple[int, float, int, int, float, int]:
        """The sort key: the best choice has the least; values are made again only if that is
        better.
        """
        return len(self.unsafe), self.price, *self.tie

    @property
    def tie(self) -> tuple[int, int, float, int]:
        """The sort key among choices of equal cost: first kernels whose loops read an
        array for dots and otherwise, which the closed form has too fast. A gated network of 128
        rows and 512 columns took an H200 20.6 microseconds with such a kernel, and 14 without one.
        Not if that kernel is all there is: then the others store what it does not. Kernels of
        constants do not count. Beside them, estimates decide: what is left of a call differs less,
        and in three norms with products an H200 had the choices in their order.
        """
        running = self.kernels - self.kept
        mixed = self.mixed if running > 1 else 0
        constants = self.scheduled.draft.constants if self.scheduled else ()
        last = self.snapshot if self.again else -self.snapshot
        return mixed, running, self.price if constants else 0.0, last

    @property
    def least(self) -> float:
        """Microseconds that no schedule is expected to go below: the closed form's bound with
        launches by the host, of fewer kernels without chunks; or the price of the default schedule
        over the most that a search has gained, if that is higher.
        """
        if self.cost is None or self.scheduled is None:
            return self.price
        kernels = max(self.kernels - len(self.scheduled.draft.chunks), 1)
        least = self.cost.least * self.weight + kernels * launch_by_host(self.cost.machine)
        few = self.kernels <= PRIORS.searched_gain_kernels
        return max(least, self.price / (PRIORS.searched_gain if few else PRIORS.searched_gain_more))

    @property
    def predicted(self) -> float:
        """The microseconds that are told of it: no factor on them, each launch by the host."""
        return self.cost.predicted if self.cost is not None else self.price / self.weight

    @property
    def amount(self) -> str:
        """The cost by which it is compared, in words."""
        if self.cost is not None:
            counted = f", ranked as if it took {in_us(self.price)} ({STORED})"
            return f"{self.cost}{counted if self.weight > 1.0 else ''}"
        return in_us(self.price) if self.scheduled is None else "of no known time"


@dataclass(frozen=True)
class Setting:
    """The sizes, dtypes and target of a choice. ``in_chunks``: loops may be cut into chunks.

    ``target``: an architecture, the name of a GPU, or a machine; "cpu" for NumPy text.
    """

    sizes: Mapping[Dim, int]
    given: Given
    target: str | Machine
    in_chunks: bool

    @property
    def known(self) -> dict[Dim, int]:
        """The sizes, by size class."""
        return {size_class(d): size for d, size in self.sizes.items()}

    @property
    def device(self) -> Target:
        """The GPU that is chosen for."""
        return target_of(self.target)


def on_the_cpu(start: TileProgram, setting: Setting) -> Candidate:
    """The candidate for NumPy, by the numbers of the machine "cpu"."""
    blocks = numpy_tiling(start, setting.known)
    program = numpy_schedule(start, setting.known, blocks)
    looped = {d: n for d, n in blocks.items() if d not in map(size_class, program.whole)}
    kernels = len(split_nests(program).nests)
    sizes = completed(setting.known, program.rules)
    moved = sum(map(elements_moved, extents_of(program, sizes, blocks)))
    taken = price_of_text(program, sizes, blocks, built_in(CPU))
    made = (defined(stmt) for nest in program.nests for stmt in statements(nest.body))
    dtypes = tuple(sorted({tile.dtype for tile in made if tile}))
    key = (program.whole, tuple(looped.items()), dtypes)
    return Candidate(program, blocks, kernels, moved, taken, key)


def on_a_gpu(start: TileProgram, setting: Setting, form: Form) -> Candidate:
    """The candidate with the default schedule, or that of another form."""
    scheduled = default_schedule(
        start,
        setting.known,
        device=setting.device,
        tiles=form.tiles,
        warps=form.warps,
        chunks=None if setting.in_chunks else {},
    )
    return timed(scheduled)


def timed(scheduled: Scheduled) -> Candidate:
    """The candidate of a schedule, by the closed form."""
    try:
        return candidate(scheduled, priced(scheduled))
    except ValueError:  # it does not fit: compilers say more about that than the closed form
        return candidate(scheduled, None)


def candidate(scheduled: Scheduled, cost: Cost | None) -> Candidate:
    """The candidate of a schedule; one without a cost costs more than any other."""
    return Candidate(
        scheduled.program,
        scheduled.blocks,
        len(scheduled.program.nests),
        cost.moved if cost else 0,
        cost.microseconds if cost else inf,
        (scheduled.schedule, scheduled.facts),
        scheduled,
        cost,
    )


def replayed_candidate(
    start: TileProgram,
    sizes: Mapping[Dim, int],
    target: Target,
    text: str,
    then: Callable[[Scheduled], Scheduled] = lambda scheduled: scheduled,
) -> Candidate | None:
    """The candidate of a schedule's text on a program, for sizes by size class, after ``then``.

    None if the text or a move does not fit, or the machine has no price for it.
    """
    try:
        scheduled = then(replayed(unscheduled(start, sizes, target), text))
        return candidate(scheduled, priced(scheduled))
    except (EmitError, ParseError, ValueError):
        return None


def dims_of_equal(one: TileProgram, other: TileProgram) -> dict[Dim, Dim]:
    """The dims of a program, each with that of an equal one, whose arrays may come in another
    order: in that of statements, they are the same.
    """
    ours, theirs = (
        dict.fromkeys((*chain.from_iterable(map(dims_in, each.nests)), *dims_of(each)))
        for each in (one, other)
    )
    return dict(zip(ours, theirs, strict=False))


def classes_of_equal(one: TileProgram, other: TileProgram) -> dict[Dim, Dim]:
    """The same by size class."""
    pairs = dims_of_equal(one, other).items()
    return {size_class(dim): size_class(name) for dim, name in pairs}


def is_large(program: TileProgram, sizes: Mapping[Dim, int]) -> bool:
    """True if a program stores more between kernels than its inputs and outputs hold.

    That is one array larger than every one of those, or all larger than all of those together.
    Parts of chunks do not count, of which there are few, nor what is kept from call to call.
    ``sizes``: by size class.
    """

    def entries(buffer: Buffer) -> int:
        return prod(sizes[size_class(axis.dim)] for axis in buffer.axes if axis.dim is not None)

    given = [entries(buffer) for buffer in (*program.inputs, *program.outputs)]
    parts = {dim for chunks in program.chunks for dim in (chunks.number, chunks.lanes)}
    made = {buffer: None for nest in running_nests(program) for buffer in stored(nest.body)}
    spaces = (b for b in program.workspaces if b in made)
    inner = (b for b in spaces if parts.isdisjoint(axis.dim for axis in b.axes))
    held = [entries(buffer) for buffer in inner]
    return max(held, default=0) > max(given) or sum(held) > sum(given)
