"""The work of a scheduled program's kernels, from trip counts, before anything runs.

Bytes count elements, ragged ends included; arithmetic counts whole tiles. The oracle of both is a
counting run of the tile interpreter (tests/costs/test_work.py).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from math import prod
from typing import TypeVar

import numpy as np

from blockbuster.costs.footprint import Footprint, footprint
from blockbuster.costs.lines import layouts_at
from blockbuster.costs.operands import crowding
from blockbuster.costs.phases import Phase, Unit, phases
from blockbuster.costs.sizes import fitting, own_sizes
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.tile.constants import kept_nests
from blockbuster.emit.tile.dataflow import with_parts
from blockbuster.emit.tile.dtypes import MEMORY
from blockbuster.emit.tile.each_nest import KEPT, Body, Same
from blockbuster.emit.tile.extents import Extents
from blockbuster.emit.tile.grid_order import programs_in_order, walked
from blockbuster.emit.tile.other_arrays import accessed_in
from blockbuster.emit.tile.program import (
    ACCESSES,
    For,
    Issue,
    Let,
    Nest,
    TileProgram,
    View,
    statements,
)
from blockbuster.emit.tile.tiling import tiling_of
from blockbuster.emit.tile.trips import blocks_in, bound_blocks, dims_in
from blockbuster.emit.tile.uses import is_matrix_dot
from blockbuster.emit.tile.verify_waits import is_dependent
from blockbuster.emit.tile.waits import Wait
from blockbuster.ir.types import Dim, size_class
from blockbuster.ir.views import array_dim

Name = TypeVar("Name")
Number = TypeVar("Number", int, float)

ByDim = tuple[tuple[Dim, int], ...]
"""A number for each dim."""


@dataclass(frozen=True)
class Work:
    """The work of one nest, which is one kernel, for given sizes.

    ``programs``: of its grid. ``warps``: of a program. ``phases``: the work of its bodies, the
    nest's first. ``unique``: bytes of each array that are touched at least once, by name. ``grid``:
    the blocks of each of its dims, the last of which changes first; a dim that is walked in groups
    stands there twice, with its groups and with the blocks of one. ``varying``: for each array the
    dims of the grid along which programs read, or write, other parts of it; ``along``: all dims
    that the places of its accesses depend on, those of loops too. ``crowded``: how many warps do
    the same work, if warps have too few rows of chained dots. ``workspaces``: the arrays that users
    do not see. ``target``: the target of the kernel. ``overlaps``: it begins before the kernel
    before it has ended. ``kept``: it computes of constants, and not in each call. ``fixed``: so
    many programs take the places of the grid, one after the other, and ``programs`` counts places;
    0: one program for each. Their loads run ``ahead`` by so many places. ``in_turn``: the places
    and the loop of dots inside are one loop for the compiler, whose loads run ahead across places.
    ``early``: it runs a loop, with loads ahead, before it waits for the kernel before.
    """

    programs: int
    warps: int
    phases: tuple[Phase, ...]
    unique: Mapping[str, int] = field(hash=False)
    footprint: Footprint
    grid: tuple[tuple[Dim, int], ...]
    varying: Mapping[str, tuple[Dim, ...]] = field(hash=False)
    target: str
    crowded: int = 1
    workspaces: tuple[str, ...] = ()
    overlaps: bool = False
    kept: bool = False
    in_turn: bool = False
    fixed: int = 0
    ahead: int = 0
    early: bool = False
    along: Mapping[str, frozenset[Dim]] = field(default_factory=dict, hash=False)

    @cached_property
    def loaded(self) -> Mapping[str, int]:
        """Bytes that programs load from global memory, each its own, by array."""
        return summed(phase.loaded for phase in self.phases)

    @cached_property
    def stored(self) -> Mapping[str, int]:
        """Bytes that programs store, by array."""
        return summed(phase.stored for phase in self.phases)

    @cached_property
    def operations(self) -> Mapping[Unit, int]:
        """Operations by unit and dtype; a multiplication and an addition of a dot are two."""
        return summed(phase.operations for phase in self.phases)

    @property
    def special(self) -> int:
        """Exponentials, logarithms, roots and quotients of special-function units."""
        return sum(phase.special for phase in self.phases)

    @property
    def moved(self) -> int:
        """Bytes that all programs load and store."""
        return sum(self.loaded.values()) + sum(self.stored.values())


def work(scheduled: Scheduled, sizes: Mapping[Dim, int] | None = None) -> tuple[Work, ...]:
    """The work of each kernel, in order, at ``sizes`` (by default those it is made for).

    Raises ValueError for sizes that are missing, below one, or do not fit the kernels.
    """
    if sizes is None:
        return _at_own_sizes(scheduled)
    return work_of(scheduled.program, sizes, scheduled.target.name)


@lru_cache(maxsize=512)  # whoever varies, prices and ranks schedules asks of each
def _at_own_sizes(scheduled: Scheduled) -> tuple[Work, ...]:
    program = scheduled.program
    return work_of(program, own_sizes(program, scheduled.known), scheduled.target.name)


def work_of(program: TileProgram, sizes: Mapping[Dim, int], target: str) -> tuple[Work, ...]:
    """The same for a closed tile program with dtypes, compiled for ``target``."""
    known = fitting(program, sizes)
    blocks = bound_blocks(program, known)
    kept = kept_nests(program)
    works = (_of_nest(program, nest, known, blocks, target) for nest in program.nests)
    return tuple(replace(w, kept=True) if at in kept else w for at, w in enumerate(works))


def running(works: Iterable[Work]) -> tuple[Work, ...]:
    """The kernels of each call: those that compute of constants cost nothing there."""
    return tuple(work for work in works if not work.kept)


def _of_nest(
    program: TileProgram,
    nest: Nest,
    sizes: Mapping[Dim, int],
    blocks: Mapping[Dim, int],
    target: str,
) -> Work:
    dims, arrays = _named_in(Same(nest.body))
    beside = (*nest.grid, *(block.dim for block in nest.blocks))
    chunks = [dim for chunk in program.chunks for dim in (chunk.number, chunk.lanes)]
    others = set(chunks).difference(dims, beside, map(size_class, beside))
    own, cut = (
        tuple([(dim, count) for dim, count in counts.items() if dim not in others])
        for counts in (sizes, blocks)
    )
    spaces = tuple([b.name for b in program.workspaces if b.name in arrays])
    row_by_row = with_parts(nest, group=None)
    found = _of_one(row_by_row, program.units, program.dtype, spaces, own, cut, target)
    return _in_groups(Same(found), row_by_row, nest) if nest.group else found


@lru_cache(maxsize=KEPT)
def _in_groups(alone: Same[Work], row_by_row: Nest, nest: Nest) -> Work:
    """The work of ``nest``: that of ``row_by_row``, whose programs come in another order."""
    phases, counts = alone.one.phases, dict(alone.one.grid)
    if any(phase.each for phase in phases):
        shape = [counts[dim] for dim in nest.grid]
        before, after = (
            np.ravel_multi_index(tuple(programs_in_order(one, shape).T), shape)
            for one in (row_by_row, nest)
        )
        places = np.argsort(before)[after]
        each = ([phase.each[at] for at in places] if phase.each else () for phase in phases)
        pairs = zip(phases, map(tuple, each), strict=True)
        phases = tuple(replace(phase, each=own) for phase, own in pairs)
    return replace(alone.one, phases=phases, grid=walked(nest, counts))


@lru_cache(maxsize=KEPT)
def _named_in(body: Same[Body]) -> tuple[frozenset[Dim], frozenset[str]]:
    """The dims of a body and of its arrays, by size class too, and the names of those."""
    buffers = accessed_in(body)
    axes = (axis.dim for buffer in buffers for axis in buffer.axes if axis.dim is not None)
    dims = {*dims_in(Nest(body.one)), *axes}
    return frozenset(dims | {*map(size_class, dims)}), frozenset(b.name for b in buffers)


@lru_cache(maxsize=2048)  # schedules of several kernels differ in some of them
def _of_one(
    nest: Nest,
    units: tuple[Dim, ...],
    dtype: str,
    spaces: tuple[str, ...],
    sizes: ByDim,
    blocks: ByDim,
    target: str,
) -> Work:
    """The work of a nest: all that it depends on is given. ``spaces``: its workspaces."""
    program = TileProgram((), (), (), (nest,), units, dtype=dtype)
    extents = Extents(nest, dict(sizes), blocks_in(nest, dict(blocks)))
    layouts = layouts_at(program, nest, target, extents)
    flat = is_product(program, nest)
    found = phases(program, layouts, extents)
    if nest.programs and not flat:
        found = tuple(map(not_ahead, found))
    unique = _unique(nest, extents, found)
    return Work(
        programs=prod(map(extents.trips, nest.grid)),
        warps=nest.warps,
        phases=found,
        unique=unique,
        footprint=footprint(layouts),
        grid=walked(nest, {dim: extents.trips(dim) for dim in nest.grid}),
        varying=_varying(nest),
        target=target,
        crowded=crowding(layouts),
        workspaces=spaces,
        overlaps=is_dependent(nest),
        in_turn=bool(nest.programs) and flat,
        fixed=nest.programs,
        ahead=max(nest.stages - 1, 0),
        early=_begins_with_a_product(nest),
        along=_along(nest),
    )


def is_product(program: TileProgram, nest: Nest) -> bool:
    """True if all that the programs of a closed nest repeat is one loop of described loads and
    one dot.
    """
    tiling, loops = tiling_of(program, nest), repeating(nest)
    inside = tuple(statements(loops[0].body)) if len(loops) == 1 else ()
    issues = [stmt for stmt in inside if isinstance(stmt, Issue)]
    described = bool(issues) and all(issue.described for issue in issues)
    lets = [stmt for stmt in inside if isinstance(stmt, Let)]
    return described and len(lets) == 1 and is_matrix_dot(lets[0], tiling)


def repeating(nest: Nest) -> list[For]:
    """The loops of a closed nest, but for those of one iteration."""
    return [s for s in statements(nest.body) if isinstance(s, For) and not s.within]


def loops_before_it_waits(nest: Nest) -> list[For]:
    """The loops that a closed nest runs before it waits for the nest before; none if it does not
    wait.
    """
    kinds = [type(stmt) for stmt in nest.body]
    early = nest.body[: kinds.index(Wait)] if Wait in kinds else ()
    return [stmt for stmt in early if isinstance(stmt, For)]


def _begins_with_a_product(nest: Nest) -> bool:
    """True if a closed nest runs a loop before it waits in which loads run ahead.

    Other loops would share with the kernel before what both wait for, the bandwidth of memory.
    """
    early = (stmt for loop in loops_before_it_waits(nest) for stmt in statements(loop.body))
    return any(isinstance(stmt, Issue) for stmt in early)


def not_ahead(phase: Phase) -> Phase:
    """A phase in a loop over places that Triton does not make one with the loop inside: it lets no
    loads run ahead there. A product of 1024 x 8192 x 8192 by 132 programs took an H100 224
    microseconds with descriptors, and with loads by pointers 566.
    """
    return replace(phase, ahead=0, waits=phase.waits + 1) if phase.ahead else phase


def _varying(nest: Nest) -> dict[str, tuple[Dim, ...]]:
    """The dims of the grid that an access depends on: its own, and chunks of its own."""
    chunks = {s.dim: s.chunk for s in statements(nest.body) if isinstance(s, For) and s.chunk}
    found: dict[str, tuple[Dim, ...]] = {}
    for stmt in statements(nest.body):
        if isinstance(stmt, ACCESSES):
            name, runs = stmt.view.buffer.name, stmt.view.runs
            parts = {*runs, *(chunks[dim] for dim in runs if dim in chunks)}
            known = found.get(name, ())
            found[name] = tuple(dim for dim in nest.grid if dim in parts or dim in known)
    return found


def _along(nest: Nest) -> dict[str, frozenset[Dim]]:
    """The dims that the place of an access depends on, by array."""
    found: dict[str, frozenset[Dim]] = defaultdict(frozenset)
    for stmt in statements(nest.body):
        if isinstance(stmt, ACCESSES):
            found[stmt.view.buffer.name] |= frozenset(stmt.view.runs)
    return dict(found)


def _unique(nest: Nest, extents: Extents, found: tuple[Phase, ...]) -> dict[str, int]:
    """Bytes of each array that are touched: at most all of it, and at most what is moved."""
    accesses = (s for s in statements(nest.body) if isinstance(s, ACCESSES))
    views = dict.fromkeys(stmt.view for stmt in accesses)
    touched: dict[str, int] = defaultdict(int)
    for view in views:
        touched[view.buffer.name] += prod([_entries(dim, view, extents) for dim in view.runs])
    moved = summed((*(phase.loaded for phase in found), *(phase.stored for phase in found)))
    for view in views:
        name, width = view.buffer.name, MEMORY[view.buffer.dtype].bytes
        moved[name] = min(moved[name], width * min(touched[name], entries(view, extents)))
    return moved


def _entries(dim: Dim, view: View, extents: Extents) -> int:
    """How many entries along ``dim`` an access has: elements, or blocks."""
    for axis, entry in zip(view.dims, view.buffer.axes, strict=True):
        if entry.per_block and axis == dim:
            return extents.trips(dim)
    return extents.size(dim)


def entries(view: View, extents: Extents) -> int:
    """The entries of the whole array that is looked at: elements, or one for each block."""
    found = 1
    for axis, entry in zip(view.dims, view.buffer.axes, strict=True):
        dim = array_dim(axis)
        if dim is not None:
            found *= extents.trips(dim) if entry.per_block else extents.size(dim)
    return found


def summed(parts: Iterable[Mapping[Name, Number]]) -> dict[Name, Number]:
    """The sum of the numbers of each name."""
    found: dict[Name, Number] = {}
    for part in parts:
        for name, number in part.items():
            found[name] = found[name] + number if name in found else number
    return found
