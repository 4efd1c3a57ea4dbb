"""Default tiles: which dims are one block, and how many lanes the other dims have.

A starting point that compiles and runs everywhere; selection and tuning replace it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from blockbuster.emit.schedule.block import one_dim
from blockbuster.emit.schedule.warps import MOST as MOST_WARPS
from blockbuster.emit.target.targets import Target
from blockbuster.emit.tile.dtypes import Dtype
from blockbuster.emit.tile.layouts import ROWS, WARP
from blockbuster.emit.tile.program import (
    Fold,
    For,
    Let,
    Load,
    Nest,
    Stmt,
    TileProgram,
    statements,
)
from blockbuster.emit.tile.tiling import Tiling, fitted, power_of_two, tiling_of
from blockbuster.emit.tile.trips import dims_of, pieces_in
from blockbuster.emit.tile.uses import (
    SWIZZLED,
    Uses,
    has_exact_dots,
    is_matrix_dot,
    matrix_dots,
)
from blockbuster.errors import EmitError, message
from blockbuster.ir.types import Dim, size_class
from blockbuster.selection.decisions.roles_of_dims import Shape, shape_of
from blockbuster.selection.priors import PRIORS


@dataclass(frozen=True)
class _Start:
    """What is known before any block is chosen: sizes by size class, list-only dims, processors."""

    sizes: Mapping[Dim, int]
    units: tuple[Dim, ...]
    processors: int

    @property
    def tiling(self) -> Tiling:
        return Tiling({}, self.units)

    def size(self, dim: Dim) -> int:
        return self.sizes[size_class(dim)]


def choose_tiling(
    program: TileProgram,
    sizes: Mapping[Dim, int],
    tiles: Mapping[Dim, int],
    dtype: Dtype,
    device: Target,
) -> Tiling:
    """Lanes for every dim: as ``tiles`` says, by dim or size class, and defaults for the others.

    Defaults shrink until the copies that a loop keeps of what its dots read fit in the device's
    shared memory, and are large only where that leaves a program for each of its processors.
    """
    start = _Start(sizes, program.units, device.processors)
    shape = shape_of(program, start.tiling)
    chosen = {d: tiles.get(d, tiles.get(size_class(d), 0)) for d in dims_of(program)}
    cut = {block.dim: block.lanes for nest in program.nests for block in nest.blocks}
    pieces = {found[0]: found[1:] for nest in program.nests for found in pieces_in(nest)}
    chosen |= cut | dict.fromkeys(pieces, 1)
    usual = _usual(program, shape, start)
    blocks = {d: lanes or _default(d, shape, start, usual(d)) for d, lanes in chosen.items()}
    blocks |= {of: max(blocks[of], cut[each]) for of, each in pieces.values()}
    _narrow(program, start, shape, blocks, chosen)
    least = {d: shape.least(d) for d in blocks} | {of: cut[each] for of, each in pieces.values()}
    whole_rows = [d for d in shape.unlooped if d not in cut]
    while True:
        blocks |= {d: max(1, blocks[of] // blocks[each]) for d, (of, each) in pieces.items()}
        tiling = _with_whole(start, blocks, shape, chosen)
        free = [d for d in blocks if not chosen[d] and blocks[d] > least[d] > 1]
        if footprint(program, tiling, dtype, PRIORS.usual_stages) <= device.shared:
            wide = wide_lanes(program, tiling) if whole_rows else ()
            free = [d for d in free if d in wide and d not in shape.unlooped]
        if not free:
            break
        largest = max(free, key=lambda d: (d not in tiling.whole, blocks[d]))
        blocks[largest] //= 2
    return tiling


def wide_lanes(program: TileProgram, tiling: Tiling) -> tuple[Dim, ...]:
    """The dims of the first tile that is computed and leaves others no room in the registers.

    Whole pieces of columns leave as much as the product does: threads fold them as they come.
    """
    for nest in (nest for nest in program.nests if not pieces_in(nest)):
        most = PRIORS.widest_lanes_per_thread * WARP * choose_warps(nest, tiling)
        for stmt in statements(nest.body):
            if isinstance(stmt, Let) and tiling.elements(stmt.target) > most:
                return tiling.lanes(stmt.target)
    return ()


def halved_tiles(program: TileProgram, blocks: Mapping[Dim, int], times: int) -> dict[Dim, int]:
    """The tiles of the dims that loops walk, halved so many times as they can be."""
    shape = shape_of(program, Tiling({}, program.units))
    dims = [dim for dim in blocks if dim not in shape.unlooped]
    return {dim: max(blocks[dim] >> times, shape.least(dim)) for dim in dims}


def padded_dims(program: TileProgram, *, summed: bool) -> tuple[Dim, ...]:
    """The narrow dims of dots that swizzle in several ways: with ``SWIZZLED`` lanes, all do alike.

    Of each dot, that is the last dim of its result; with ``summed`` also what it sums over, for
    operands that are transposed in memory. ``program`` is scheduled.
    """
    padded: dict[Dim, None] = {}
    for nest in program.nests:
        tiling = tiling_of(program, nest)
        if not Uses(nest, tiling).dots_of_several_widths():
            continue
        for stmt in statements(nest.body):
            if isinstance(stmt, Let) and is_matrix_dot(stmt, tiling):
                dims = tiling.lanes(stmt.args[1]) if summed else tiling.lanes(stmt.target)[1:]
                narrow = (dim for dim in dims if tiling.blocks[dim] < SWIZZLED)
                padded.update(dict.fromkeys(narrow))
    pairs = [
        pair for nest in program.nests for stmt in statements(nest.body) for pair in one_dim(stmt)
    ]
    while more := [d for a, b in pairs for d in (a, b) if (a in padded) != (b in padded)]:
        padded.update(dict.fromkeys(more))
    return tuple(padded)


def dot_dims(program: TileProgram) -> tuple[Dim, ...]:
    """The dims that take part in a matrix dot."""
    return tuple(shape_of(program, Tiling({}, program.units)).dots)


def repeated_dims(program: TileProgram) -> tuple[Dim, ...]:
    """The dims that, cut into blocks, have a matrix dot done again for each block."""
    return tuple(shape_of(program, Tiling({}, program.units)).repeated)


def choose_warps(nest: Nest, tiling: Tiling) -> int:
    """Twice the usual number of warps where the accumulators would fill the registers of four.

    Warps that share the rows of a matrix instruction issue nearly all of it each: they are taken
    only where the accumulators fill twice as many registers, all that a thread can have.
    Rows that are whole have more warps, the wider they are: ``row_lanes_per_thread``.
    """
    warps = PRIORS.usual_warps
    if not matrix_dots(nest.body, tiling):
        lanes = WARP * PRIORS.row_lanes_per_thread
        wanted = power_of_two(-(-widest_computed(nest, tiling) // lanes))
        return min(max(wanted, warps), MOST_WARPS)
    share = Uses(nest, tiling).fewest_rows() < 2 * warps * ROWS
    most = warps * WARP * PRIORS.filled_registers * (2 if share else 1)
    return 2 * warps if _live_lanes(nest, tiling) > most else warps


def widest_computed(nest: Nest, tiling: Tiling) -> int:
    """The lanes of the widest tile that a nest computes."""
    lets = (stmt.target for stmt in statements(nest.body) if isinstance(stmt, Let))
    return max(map(tiling.elements, lets), default=0)


def _live_lanes(nest: Nest, tiling: Tiling) -> int:
    """Lanes of the accumulators at one time, twice those that are rescaled, and of the widest tile.

    Loops that follow each other have the same registers. An entry per lane does not count: it dies
    behind its loop, and there are few (``deferred_lanes``).
    """

    def accumulated(body: tuple[Stmt, ...]) -> int:
        own, most = 0, 0
        for stmt in body:
            if isinstance(stmt, For):
                most = max(most, accumulated(stmt.body))
            elif isinstance(stmt, Fold) and not stmt.target.per_lane:
                own += tiling.elements(stmt.target)
                own += 2 * sum(tiling.elements(member.target) for member in stmt.members)
        return own + most

    lets = (stmt.target for stmt in statements(nest.body) if isinstance(stmt, Let))
    return accumulated(nest.body) + max(map(tiling.elements, lets), default=0)


def footprint(program: TileProgram, tiling: Tiling, dtype: Dtype, stages: int) -> int:
    """Bytes of shared memory, roughly: what matrix dots read, several times where in a loop."""
    return max((_nest_footprint(nest, tiling, dtype, stages) for nest in program.nests), default=0)


def _nest_footprint(nest: Nest, tiling: Tiling, dtype: Dtype, stages: int) -> int:
    uses = Uses(nest, tiling)

    def bytes_in(body: tuple[Stmt, ...], copies: int) -> int:
        """Loops that follow each other have the same memory."""
        own, most = 0, 0
        for stmt in body:
            if isinstance(stmt, For):
                inside = copies if stmt.parallel else stages
                most = max(most, bytes_in(stmt.body, inside))
            elif isinstance(stmt, Load):
                readers = (use for use, _ in uses.behind_casts(stmt.target))
                if any(is_matrix_dot(use, tiling) for use in readers):
                    own += tiling.elements(stmt.target) * dtype.bytes * copies
        return own + most

    return bytes_in(nest.body, 1)


def _usual(program: TileProgram, shape: Shape, start: _Start) -> Callable[[Dim], int]:
    """Lanes of the dims of dots: fewer for exact ones of float32.

    Those of a product alone get more: not where a dot is in another's loop, so that it may sum over
    a whole dim, nor where one reads what another made.
    """
    lets = (s for n in program.nests for s in statements(n.body) if isinstance(s, Let))
    if not has_exact_dots(program) or any(let.split for let in lets):
        return lambda _: PRIORS.usual_lanes
    programs = math.prod(-(-start.size(d) // PRIORS.usual_lanes) for d in shape.kept)
    chained = shape.summed.keys() & shape.kept.keys()
    if shape.repeated or chained or programs < start.processors:
        return lambda _: PRIORS.float32_lanes
    return lambda dim: PRIORS.float32_summed_lanes if dim in shape.summed else PRIORS.usual_lanes


def _default(dim: Dim, shape: Shape, start: _Start, usual: int) -> int:
    if start.tiling.is_unit(dim):
        return 1
    lanes = power_of_two(start.size(dim), shape.least(dim))
    if dim in shape.unlooped:
        return lanes
    if dim in shape.dots:
        return lanes if lanes <= (PRIORS.whole_lanes if dim in shape.repeated else usual) else usual
    if dim in shape.read_again:
        return min(lanes, PRIORS.whole_lanes)
    if dim in shape.columns:
        return _columns(dim, shape, start)
    if dim in shape.rows:
        return _rows(dim, shape, start)
    return min(lanes, PRIORS.usual_vector)


def _rows(dim: Dim, shape: Shape, start: _Start) -> int:
    """Rows of a tile of usual size; no more rows that are whole than leave no processor idle."""
    size, widest = start.size(dim), max(_columns(d, shape, start) for d in shape.columns)
    most = max(PRIORS.usual_elements // widest, 1)
    whole = (d for d in shape.columns if widest >= start.size(d))
    if any(d in shape.unlooped or shape.is_line(d) for d in whole):
        most = min(most, power_of_two(max(size // start.processors, 1)))
    return min(power_of_two(size), most)


def _columns(dim: Dim, shape: Shape, start: _Start) -> int:
    lanes = power_of_two(start.size(dim))
    if dim in shape.unlooped:
        return lanes
    if dim in shape.across:
        return min(lanes, PRIORS.lanes_across)
    is_whole = lanes <= PRIORS.longest_line and shape.is_line(dim)
    return lanes if is_whole else min(lanes, PRIORS.usual_columns)


def _of_deep_tiles(program: TileProgram) -> Iterator[Dim]:
    """The dims of tiles of more than two axes: some are neither columns nor rows."""
    for nest in program.nests:
        for stmt in statements(nest.body):
            if isinstance(stmt, Let | Load) and len(stmt.target.axes) > 2:
                yield from stmt.target.axes


def _narrow(
    program: TileProgram,
    start: _Start,
    shape: Shape,
    blocks: dict[Dim, int],
    chosen: Mapping[Dim, int],
) -> None:
    """Halve ``blocks`` of dims that are columns here and rows there, or are of deep tiles, where
    such dims meet in a tile. Or where one meets a dim that is one block. ``chosen`` ones stay.
    """
    fixed = [d for d in (*shape.unlooped, *shape.read_again) if d not in shape.dots]
    both = (d for d in shape.columns if d in shape.rows)
    free = [d for d in dict.fromkeys((*both, *_of_deep_tiles(program))) if not chosen[d]]
    free = [d for d in free if d not in (*shape.dots, *fixed)]
    for nest in program.nests:
        for stmt in statements(nest.body):
            lanes = start.tiling.lanes(stmt.target) if isinstance(stmt, Let | Load) else ()
            if not set(lanes) <= {*free, *fixed}:
                continue
            while _product(lanes, blocks) > PRIORS.usual_elements:
                wide = [dim for dim in lanes if dim in free and blocks[dim] > 1]
                if not wide:
                    break
                blocks[max(wide, key=blocks.__getitem__)] //= 2


def _product(dims: Sequence[Dim], blocks: Mapping[Dim, int]) -> int:
    return math.prod(blocks[dim] for dim in dims)


def _with_whole(
    start: _Start, blocks: Mapping[Dim, int], shape: Shape, chosen: Mapping[Dim, int]
) -> Tiling:
    """The tiling whose one-block dims are those that must be, and those that gain from it."""
    whole = [
        dim
        for dim, lanes in blocks.items()
        if not start.tiling.is_unit(dim)
        and lanes >= start.size(dim)
        and (
            dim in shape.unlooped
            or dim in shape.repeated
            or (dim in shape.serial and (chosen[dim] > 0 or shape.is_line(dim)))
        )
    ]
    for dim in shape.unlooped:
        if dim not in whole and not start.tiling.is_unit(dim):
            raise EmitError(
                message(
                    f"{dim} has size {start.size(dim)} and no loop runs over it",
                    hint=f"it is one block: give it a tile of at least its size, not {blocks[dim]}",
                )
            )
    return fitted(start.sizes, dict(blocks), tuple(whole), start.units)
