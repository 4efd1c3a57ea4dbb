"""The interpreter of tile programs: it runs one statement after the other, under any semantics.

``interp.semantics`` defines the meaning of operators, as for block programs. Parallel iterations
run in a random order, arrays start without values, and a load that runs ahead may complete at any
time that its tokens allow. A program that is right only by luck raises ``Hazard``, with the line of
the listing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count, product
from typing import Any

import numpy as np

from blockbuster.emit.interpret.bounds import Bounds, blocks_at
from blockbuster.emit.interpret.frame import Arrived, Frame, Lead, Total
from blockbuster.emit.interpret.located import located
from blockbuster.emit.interpret.memory import Hazard, Memory
from blockbuster.emit.interpret.observer import TileObserver
from blockbuster.emit.interpret.operators import applied, transposed
from blockbuster.emit.interpret.remembered import Remembered
from blockbuster.emit.interpret.scope import Scope
from blockbuster.emit.interpret.shapes import shape_of
from blockbuster.emit.interpret.side_by_side import side_by_side, spread
from blockbuster.emit.interpret.slots import Ring
from blockbuster.emit.tile.constants import kept_first, kept_nests
from blockbuster.emit.tile.next_block import Next
from blockbuster.emit.tile.program import (
    END,
    LAST,
    Await,
    BlockOf,
    Fold,
    For,
    Guard,
    Init,
    Iota,
    Issue,
    Let,
    Load,
    Member,
    Nest,
    Stmt,
    Store,
    Tile,
    TileProgram,
    View,
)
from blockbuster.emit.tile.result_dtypes import WIDTHS
from blockbuster.emit.tile.trips import blocks_in, bound_blocks, bound_sizes
from blockbuster.emit.tile.verify_waits import is_dependent
from blockbuster.emit.tile.waits import Release, Wait
from blockbuster.interp.accumulators import aligned
from blockbuster.interp.layout import Array
from blockbuster.interp.semantics import Float64, Floats, Semantics
from blockbuster.ir.types import Dim


def run_tiles(
    program: TileProgram,
    inputs: Mapping[str, Array],
    sizes: Mapping[Dim, int] | None = None,
    block_sizes: Mapping[Dim, int] | None = None,
    *,
    semantics: Semantics = Float64,
    seed: int | None = None,
    padded: bool = False,
    converts: bool = False,
    observer: TileObserver | None = None,
    known: Remembered | None = None,
) -> dict[str, Array]:
    """Outputs by name, for whole arrays by name.

    ``block_sizes`` are for dims whose blocks the program does not name itself; by default a dim is
    one block (and 1 for list-only dims). With a ``seed``, parallel iterations run in a random
    order. ``padded``: tiles have all lanes of their blocks, as on a GPU: loads put 0 past the end
    of a dim, stores cut. ``converts``: stores round to the dtypes that arrays have. ``known``:
    what nests gave under ``semantics``. Raises Hazard, with a line of the listing, where a
    statement reads what is not there; ValueError where sizes do not fit, or where lanes are to be
    padded with a semantics other than ``Floats``, whose arithmetic goes wrong on them (``lanes.py``
    checks guards instead).
    """
    if padded and not isinstance(semantics, Floats):
        raise ValueError(f"padded lanes need floats, not {semantics!r}: use check_lanes")
    arrays = {b.name: semantics.item(np.asarray(inputs[b.name])) for b in program.inputs}
    shapes = {name: array.shape for name, array in arrays.items()}
    bound = bound_sizes(program, shapes, sizes)
    blocks = bound_blocks(program, bound, block_sizes)
    walker = TileInterpreter(program, bound, blocks, semantics, seed, padded, converts)
    return walker.run(arrays, observer or TileObserver(), known)


class TileInterpreter:
    """A tile program with all numbers known: sizes by size class, block sizes by dim."""

    def __init__(
        self,
        program: TileProgram,
        sizes: Mapping[Dim, int],
        blocks: Mapping[Dim, int],
        semantics: Semantics,
        seed: int | None = None,
        padded: bool = False,
        converts: bool = False,
    ) -> None:
        self.program, self.semantics = program, semantics
        self.padded, self.converts = padded, converts
        self.wide = semantics.accumulator
        self.sizes, self.blocks = sizes, blocks
        self._random = None if seed is None else np.random.default_rng(seed)
        self._runs = count()
        self.bounds = Bounds(
            program,
            lambda tile, frame: semantics.numbers(self._read(tile, frame)),
            lambda *place: semantics.numbers(self.memory.load(*place)),
        )

    def run(
        self, arrays: Mapping[str, Array], observer: TileObserver, known: Remembered | None = None
    ) -> dict[str, Array]:
        """The outputs for arrays of the sizes given, made of the semantics' items."""
        zero, kept = self.semantics.item(np.zeros(())), len(kept_nests(self.program))
        self.observer, self.memory = observer, Memory(kept=kept, zero=zero)
        for buffer in self.program.inputs:
            self.memory.give(buffer, arrays[buffer.name])
        for buffer in (*self.program.outputs, *self.program.workspaces):
            shape = shape_of(self.program, buffer, self.sizes, self.blocks)
            self.memory.allocate(buffer, shape, self.semantics.dtype)
        with np.errstate(all="ignore"):
            for nest in kept_first(self.program):
                self.memory.new_nest(overlaps=is_dependent(nest))
                if known is None:
                    self._nest(nest)
                    continue
                own = blocks_in(nest, self.blocks)
                where = tuple(self.sizes.items()), tuple(own.items())
                known.run(nest, where, self.memory, partial(self._nest, nest))
        for buffer in self.program.outputs:
            missing = self.memory.unwritten(buffer)
            if missing is not None:
                raise Hazard(f"{buffer.name}{list(missing)} is never written")
        return {buffer.name: self.memory.arrays[buffer] for buffer in self.program.outputs}

    # loops -----------------------------------------------------------------------------

    def _nest(self, nest: Nest) -> None:
        blocks = blocks_in(nest, self.blocks)
        stacks = self.observer.stacks or type(self.observer) is TileObserver
        self.abreast = side_by_side(nest, blocks) if stacks else frozenset[Dim]()
        scope = Scope(self.sizes, blocks, self.padded)
        for dim in nest.grid:
            if dim in self.abreast:
                scope = scope.beside(dim, scope.steps(dim), next(self._runs))
        run, before = next(self._runs), scope.path
        dims = [dim for dim in nest.grid if dim not in self.abreast]
        cells = list(product(*(scope.steps(dim) for dim in dims))) if all(scope.stack) else []
        for number in self._order(len(cells), parallel=True):
            inner = scope
            for dim, start in zip(dims, cells[number], strict=True):
                inner = inner.inside(dim, start, (*before, (run, number, dim)))
            self.memory.waited = not is_dependent(nest)
            self._body(nest.body, Frame(inner))
            if not self.memory.waited:
                raise Hazard(f"a program of nest {self.program.nests.index(nest) + 1} never waits")

    def _order(self, trips: int, *, parallel: bool) -> list[int]:
        if not parallel or self._random is None:
            return list(range(trips))
        return [int(number) for number in self._random.permutation(trips)]

    def _loop(self, loop: For, frame: Frame) -> None:
        scope, run = frame.scope, next(self._runs)
        steps = scope.steps(loop.dim, loop.chunk, loop.within)
        if loop.parallel and loop.dim in self.abreast:
            if steps:
                beside = scope.beside(loop.dim, steps, run)
                self._body(loop.body, frame.inside(beside, {}, 0, lambda _: None))
            return
        steps = self._at(loop, partial(self.bounds.within, loop, steps, frame))
        order = self._order(len(steps), parallel=loop.parallel)[:: -1 if loop.down else 1]

        def later(iteration: int) -> Scope | None:
            if iteration >= len(order):
                return None
            number = order[iteration]
            own = ((run, number, loop.dim),) if loop.parallel else ()
            return scope.inside(loop.dim, steps[number], (*scope.path, *own))

        issues = [stmt for stmt in loop.body if type(stmt) is Issue]
        rings = {issue.token: Ring(issue) for issue in issues}
        for issue in issues:
            for iteration in range(issue.ahead):
                ahead = issue, rings[issue.token], iteration, later(iteration)
                self._at(issue, partial(self._start, *ahead))
        for iteration in range(len(order)):
            inner = later(iteration)
            assert inner is not None
            if loop.full and inner.real(loop.dim) < inner.blocks[loop.dim]:
                why = f"the last block of {loop.dim} is not full"
                raise Hazard(located(self.program, loop, why))
            self._body(loop.body, frame.inside(inner, rings, iteration, later))
        for issue in issues:
            self._at(issue, rings[issue.token].finish)

    def _body(self, body: tuple[Stmt, ...], frame: Frame) -> None:
        for stmt in body:
            if type(stmt) is For:
                self._loop(stmt, frame)
                continue
            try:
                MEANING[type(stmt)](self, stmt, frame)
            except Hazard as hazard:
                raise Hazard(located(self.program, stmt, str(hazard))) from None

    def _at(self, stmt: Stmt, act: Callable[[], Any]) -> Any:
        """What ``act`` gives; a hazard gets the line of ``stmt``."""
        try:
            return act()
        except Hazard as hazard:
            raise Hazard(located(self.program, stmt, str(hazard))) from None

    def _wait(self, _: Wait, __: Frame) -> None:
        self.memory.waited = True

    # loads and stores --------------------------------------------------------------------

    def _read(self, tile: Tile, frame: Frame) -> Array:
        held = frame.tiles.get(tile)
        if held is None:
            raise Hazard(f"{tile.name} is read before it is made")
        if type(held) is Total:
            held = self.semantics.item(held.array)
        elif type(held) is Arrived:
            held.ring.read(held.iteration)
            held = held.array
        stack = frame.scope.stack
        return spread(held, len(tile.axes), stack) if stack else held

    def _tile(self, elements: Array, view: View, tile: Tile, scope: Scope) -> Array:
        """Elements as they lie in an array, as a tile: transposed, with zeros past the end."""
        order = view.sliced(tile)
        array = transposed(elements, [order.index(dim) for dim in tile.axes])
        if not scope.padded:
            return array
        stack = array.shape[: array.ndim - len(order)]
        lanes = np.zeros((*stack, *scope.extents(tile)), array.dtype)
        lanes[tuple(map(slice, array.shape))] = array
        return lanes

    def _load(self, stmt: Load, frame: Frame) -> None:
        view, scope = stmt.view, frame.scope
        elements = self.memory.load(view.buffer, scope.place(view, stmt.target), scope.path)
        self.observer.load(view, elements)
        frame.tiles[stmt.target] = self._tile(elements, view, stmt.target, scope)

    def _issue(self, stmt: Issue, frame: Frame) -> None:
        if stmt.token not in frame.rings:
            raise Hazard(f"{stmt.token} runs ahead of no loop")
        iteration = frame.iteration + stmt.ahead
        self._start(stmt, frame.rings[stmt.token], iteration, frame.later(iteration))

    def _start(self, stmt: Issue, ring: Ring, iteration: int, scope: Scope | None) -> None:
        if scope is not None:
            place = scope.place(stmt.view, stmt.tile)
            elements = ring.start(iteration, place, self.memory, scope.path)
            self.observer.load(stmt.view, elements)

    def _await(self, stmt: Await, frame: Frame) -> None:
        ring = frame.rings.get(stmt.token)
        if ring is None:
            raise Hazard(f"{stmt.target.name} waits for {stmt.token}, which no load brings")
        elements = ring.wait(frame.iteration, self.memory, frame.scope.path)
        array = self._tile(elements, ring.issue.view, stmt.target, frame.scope)
        frame.tiles[stmt.target] = Arrived(array, ring, frame.iteration)

    def _store(self, stmt: Store, frame: Frame) -> None:
        view, tile, scope = stmt.view, stmt.value, frame.scope
        array = self._read(tile, frame)
        if scope.padded:
            inside: tuple[Any, ...] = (..., *(slice(scope.real(dim)) for dim in tile.axes))
            array = array[inside]
        array = transposed(array, [tile.axes.index(dim) for dim in view.sliced(tile)])
        dtype = view.buffer.dtype
        if self.converts and WIDTHS.get(tile.dtype, 0) > WIDTHS.get(dtype, 0) > 0:
            array = self.semantics.cast(array, dtype)
        self.memory.store(view.buffer, scope.place(view, tile), array, scope.path)
        self.observer.store(view, array)

    # operators ---------------------------------------------------------------------------

    def _iota(self, stmt: Iota, frame: Frame) -> None:
        scope = frame.scope
        if stmt.at == END:
            self._places(stmt.target, stmt.dim, scope.size(stmt.dim), frame)
            return
        last = scope.real(stmt.dim) - 1 if stmt.at == LAST else 0
        lanes = last if stmt.at else np.arange(*scope.extents(stmt.target))
        self._places(stmt.target, stmt.dim, scope.start(stmt.dim) + lanes, frame)

    def _places(self, tile: Tile, dim: Dim, numbers: Any, frame: Frame) -> None:
        places = np.asarray(numbers, float)
        frame.tiles[tile] = self.semantics.positions(dim, places)
        self.bounds.note(tile, places, frame)

    def _block_of(self, stmt: BlockOf, frame: Frame) -> None:
        positions = self.bounds.of(stmt.value, frame)
        numbers = blocks_at(positions, frame.scope.blocks[stmt.dim])
        self._places(stmt.target, stmt.dim, numbers, frame)

    def _guard(self, stmt: Guard, frame: Frame) -> None:
        value = self._read(stmt.value, frame)
        if frame.scope.padded:
            axes = stmt.value.axes
            lanes = np.arange(value.shape[axes.index(stmt.dim) - len(axes)])
            inside = lanes.reshape([-1 if dim == stmt.dim else 1 for dim in axes])
            fill = self.semantics.constant(stmt.fill)
            value = np.where(inside < frame.scope.real(stmt.dim), value, fill)
        frame.tiles[stmt.target] = value

    def _let(self, stmt: Let, frame: Frame) -> None:
        args = [self._read(arg, frame) for arg in stmt.args]
        made = applied(stmt, args, frame.scope, self.semantics)
        self.observer.let(stmt, args, made, frame.scope.real)
        frame.tiles[stmt.target] = made
        number = partial(applied, stmt, scope=frame.scope, semantics=Float64)
        self.bounds.note_let(stmt, frame, number)

    # accumulators --------------------------------------------------------------------------

    def _init(self, stmt: Init, frame: Frame) -> None:
        start = self.wide.identity(stmt.monoid, frame.scope.extents(stmt.target))
        frame.tiles[stmt.target] = Total(start, frame.scope.path)

    def _total(self, tile: Tile, frame: Frame) -> Total:
        held = frame.tiles.get(tile)
        if not isinstance(held, Total):
            raise Hazard(f"{tile.name} is folded into without an init")
        if held.path != frame.scope.path:
            raise Hazard(f"iterations of a parallel loop share the accumulator {tile.name}")
        return held

    def _fold(self, stmt: Fold, frame: Frame) -> None:
        lead, wide = self._total(stmt.target, frame), self.wide
        values = [self._read(v, frame) for v in (stmt.value, *(m.value for m in stmt.members))]
        self.observer.fold(stmt, values, frame.scope.real)
        value, *others = map(wide.item, values)
        stack, axes = frame.scope.stack, stmt.target.axes
        lanes = [
            slice(extent) if dim in stmt.target.per_lane else slice(None)
            for dim, extent in zip(axes, value.shape[len(stack) :], strict=True)
        ]
        here: tuple[Any, ...] = (..., *lanes)
        lead.array = np.array(spread(lead.array, len(axes), stack))
        old = np.array(lead.array[here])
        onto = old if stmt.onto is None else wide.item(self._read(stmt.onto, frame))
        new = value if stmt.ahead else wide.fold(stmt.monoid, onto, value)
        leads = [Lead(axes, old, value, new)]
        for member, other in zip(stmt.members, others, strict=True):
            leads.append(self._rescale(member, other, leads, frame, ahead=stmt.ahead))
        lead.array[here] = new

    def _rescale(
        self, member: Member, value: Array, leads: Sequence[Lead], frame: Frame, *, ahead: bool
    ) -> Lead:
        """The member as a lead of others, once it is folded."""
        total, wide, axes = self._total(member.target, frame), self.wide, member.target.axes
        read = [leads[number] for number in member.leads]
        old = [aligned(lead.old, lead.axes, axes) for lead in read]
        own = [aligned(lead.own, lead.axes, axes) for lead in read]
        new = [aligned(lead.new, lead.axes, axes) for lead in read]
        scope = frame.scope

        def rescaled(x: Array, r: Sequence[Array]) -> Array:
            made = wide.expression(member.factor, (x, *r, *new), scope.size, scope.stack)
            return np.asarray(made)

        value = aligned(value, member.value.axes, axes)
        added = value if ahead else rescaled(value, own)
        before = spread(total.array, len(axes), scope.stack)
        total.array = wide.fold(member.monoid, rescaled(before, old), added)
        return Lead(axes, before, value, total.array)


MEANING: dict[type, Callable[..., None]] = {
    Load: TileInterpreter._load,
    Issue: TileInterpreter._issue,
    Await: TileInterpreter._await,
    Iota: TileInterpreter._iota,
    BlockOf: TileInterpreter._block_of,
    Store: TileInterpreter._store,
    Let: TileInterpreter._let,
    Guard: TileInterpreter._guard,
    Init: TileInterpreter._init,
    Fold: TileInterpreter._fold,
    Wait: TileInterpreter._wait,
    **dict.fromkeys((Release, Next), lambda *_: None),  # the loop has gone along its chain before
}
