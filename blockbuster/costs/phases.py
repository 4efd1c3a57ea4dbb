"""Phases: the total work of the statements of one loop body, over all runs in all programs.

A nest is a body with loops in it, and each loop has a body: a *phase* is the work of the statements
of one body, without those of inner loops. Memory traffic counts the elements that exist; arithmetic
and instructions count all lanes of tiles, because lanes past the end of a dim run like others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from math import prod
from typing import Any

from blockbuster.costs import across, lines
from blockbuster.costs.across import Across, scanned
from blockbuster.costs.chains import chains_in
from blockbuster.costs.lines import LEAST_AHEAD, SECTOR, copied_at_once, is_across, pieces
from blockbuster.costs.operands import LANES, dot_of
from blockbuster.costs.scalars import Scalar, alone, of_numbered, scalar
from blockbuster.costs.waits import Waits
from blockbuster.emit.tile.dataflow import accessed, folded
from blockbuster.emit.tile.dtypes import MEMORY
from blockbuster.emit.tile.extents import Extents, Loops
from blockbuster.emit.tile.layouts import WORD, Layouts
from blockbuster.emit.tile.program import (
    Await,
    Fold,
    For,
    Guard,
    Issue,
    Let,
    Load,
    Stmt,
    Store,
    Tile,
    TileProgram,
    statements,
)
from blockbuster.emit.tile.rings import issues
from blockbuster.emit.tile.typed import arithmetic_of, takes_matrix_units
from blockbuster.ir.expr import Expr, calls_in
from blockbuster.ir.ops import Cast, Functional, Pointwise, Scan
from blockbuster.ir.types import Dim

Unit = tuple[str, str]
"""A unit and the dtype that it computes in: ("matrix", "float16"), ("vector", "float32")."""

COPIED = 4
"""Instructions of a lane to move what it moves at once, addresses included."""

PROGRAM, WITH_DOTS, LOOP, ITERATION = 50, 110, 120, 24
SHUFFLE, EXCHANGE, FLAT = 3, 6, 40
"""Instructions of each warp besides the work itself: of a program, more of one with dots, before
and behind a loop, of an iteration (indices, addresses, barriers); of a fold's shuffle, to pass
something from warp to warp, and to divide an iteration's number by those of loops that are one.
``python -m bench.costs.instructions`` fits them to machine code, the last to convolutions.
"""

LISTED = 1 << 15
"""Programs up to which each has its own number of runs: of more, the last ones matter little."""


@dataclass(frozen=True)
class Phase:
    """All runs of one body; mappings by the name of the array.

    ``dims``: of the loops around it inside a program, outermost first. ``runs``: over all programs.
    ``loaded``, ``stored``: bytes. ``operations``: by unit; ``apart``: those on matrix units by
    warps that multiply alone where four could multiply together. ``special``: of special units;
    ``repeated``: those of them that a compiler leaves out, since it has their results already.
    ``instructions``: of lanes, not of warps, that statements ask for; ``computing``: those of them
    that compute values; ``besides``: those that they do not ask for; ``places``: those of all that
    find places of windows. ``lines``: lines of memory that loads and stores touch, ``sectors``: the
    bytes of the touched parts of lines (lines.py).
    ``copied``: bytes that loads write to shared memory, or that folds pass through it; ``fetched``:
    bytes read from it. In one run: ``ahead``, how many iterations loads run ahead; ``waits``, how
    often others are waited for, and ``late``, instructions of statements before those of them that
    are asked for before dots (waits.py); ``dots``, ``folds`` and ``exchanges``: dots, shuffles that
    fold across lanes, and exchanges between warps, in sequence; ``chains``: as many sequences of
    them do not wait for one another (chains.py). ``across``: bytes of registers for tiles whose
    rows lie across those of memory.
    ``each``: the runs of each program in the order of the grid, if they differ and are not too
    many. ``flat``: how many of the loops around are one with the innermost.
    """

    dims: tuple[Dim, ...]
    runs: int
    loaded: Mapping[str, int] = field(hash=False)
    stored: Mapping[str, int] = field(hash=False)
    operations: Mapping[Unit, int] = field(hash=False)
    apart: int = 0
    special: int = 0
    repeated: int = 0
    instructions: int = 0
    computing: int = 0
    besides: int = 0
    places: int = 0
    copied: int = 0
    fetched: int = 0
    ahead: int = 0
    waits: int = 0
    late: int = 0
    dots: int = 0
    folds: int = 0
    exchanges: int = 0
    chains: int = 1
    turns: int = 0
    lines: int = 0
    sectors: int = 0
    across: int = 0
    each: tuple[float, ...] = ()
    flat: int = 0

    @property
    def outside(self) -> tuple[Dim, ...]:
        """The dims of the loops in which the loop of the body is entered anew."""
        return self.dims[: -1 - self.flat]

    def exposed(self, coming: float, own: float) -> float:
        """Seconds that a run waits for loads asked for before its dots; it takes ``own`` by itself.

        ``coming``: from when they are asked for until they are here. What stands before the first
        of them in the run passes meanwhile.
        """
        if not self.late:
            return 0.0
        return max(0.0, coming - own * self.late / self.instructions)

    def issued(self, crowded: int) -> int:
        """Instructions of lanes, where so many warps do the same work."""
        return self.instructions * crowded + self.besides


def besides(
    program: bool, dots: bool, loops: int, iteration: bool, shuffles: int, exchanges: int
) -> int:
    """Instructions of a warp besides the work itself, in one run of a body.

    ``program``: the body is a program's own, with ``dots`` in it or its loops; ``iteration``: it is
    a loop's. ``loops``: that stand in it; ``shuffles`` and ``exchanges``: of its folds.
    """
    found = PROGRAM * program + WITH_DOTS * dots + LOOP * loops + ITERATION * iteration
    return found + SHUFFLE * shuffles + EXCHANGE * exchanges


def phases(program: TileProgram, layouts: Layouts, extents: Extents) -> tuple[Phase, ...]:
    """The phases of a nest of ``program``, each before those of the loops in it."""
    return tuple(Counting(program, layouts, extents).body(layouts.nest.body, extents.grid, ()))


@dataclass
class Counts:
    """The numbers of a phase, or of one run of a statement, while they are added up.

    ``made``: what is computed of tiles, by their numbers: compilers compute it once.
    """

    loaded: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    stored: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    operations: dict[Unit, int] = field(default_factory=lambda: defaultdict(int))
    apart: int = 0
    special: int = 0
    repeated: int = 0
    instructions: int = 0
    computing: int = 0
    besides: int = 0
    places: int = 0
    copied: int = 0
    fetched: int = 0
    ahead: int = 0
    dots: int = 0
    folds: int = 0
    exchanges: int = 0
    chains: int = 1
    turns: int = 0
    lines: int = 0
    sectors: int = 0
    across: int = 0
    made: set[Expr] = field(default_factory=set)
    waiting: Waits = field(default_factory=Waits)

    def phase(self, dims: tuple[Dim, ...], runs: int, each: tuple[float, ...]) -> Phase:
        """The phase with these numbers."""
        counts: dict[str, Any] = dict(vars(self))
        del counts["made"]
        waiting = counts.pop("waiting").of(looped=bool(dims))
        for name in ("loaded", "stored", "operations"):
            counts[name] = dict(counts[name])
        return Phase(dims, runs, waits=waiting.turns, late=waiting.late, each=each, **counts)


class Counting:
    """A walk over the statements of a nest that adds up their work."""

    def __init__(self, program: TileProgram, layouts: Layouts, extents: Extents) -> None:
        self.extents = extents
        self.units, self.arithmetic = program.units, arithmetic_of(program)
        nest, self.tiling, self.uses = layouts.nest, layouts.held, layouts.uses
        self.layouts, self.accurate = layouts, bool(nest.accurate)
        lets = [stmt for stmt in statements(nest.body) if isinstance(stmt, Let)]
        self.has_dots = any(map(self._is_dot, lets))
        awaits = {s.token: s.target for s in statements(nest.body) if isinstance(s, Await)}
        self.arrived = {i.tile: awaits[token] for token, i in issues(nest.body).items()}
        loaded = (s for s in statements(nest.body) if isinstance(s, Load | Await))
        self.columns = {stmt.target for stmt in loaded if stmt.columns}
        self.joined = {stmt.target for stmt in lets if stmt.into is not None}
        self.numbers = defaultdict[Tile, int](count().__next__)  # of what each holds now

    def body(
        self, body: tuple[Stmt, ...], loops: Loops, dims: tuple[Dim, ...], flat: int = 0
    ) -> Iterator[Phase]:
        """The phase of a body, and those of its loops, which ``flat`` loops around are one with."""
        sums, runs = Counts(), self.extents.tiles(loops)
        for stmt in body:
            self._count(stmt, loops, runs, sums)
        sums.chains = chains_in(body, self.units)
        if not flat:
            sums.besides += runs * self._besides(body, dims, sums) * self.layouts.number * LANES
        few = self.extents.tiles(self.extents.grid) <= LISTED
        each = self.extents.tiles_of_programs(loops) if few else None
        yield sums.phase(dims, runs, () if each is None else tuple(each.tolist()))
        for stmt in body:
            if isinstance(stmt, For):
                inner, one = self.extents.inside(stmt, loops), flat + 1 if stmt.flat else 0
                found = self.body(stmt.body, inner, (*dims, stmt.dim), one)
                own = next(found)  # the innermost of loops that are one has all iterations
                more = FLAT * own.runs * self.layouts.number * LANES if flat > one else 0
                yield replace(own, flat=flat, besides=own.besides + more, places=own.places + more)
                yield from found

    def _is_dot(self, stmt: Stmt) -> bool:
        return isinstance(stmt, Let) and takes_matrix_units(stmt, self.units)

    def _besides(self, body: tuple[Stmt, ...], dims: tuple[Dim, ...], sums: Counts) -> int:
        """Instructions of a warp that no statement asks for, in one run of a body."""
        loops = sum(isinstance(stmt, For) for stmt in body)
        outside = not dims
        dots = outside and self.has_dots
        return besides(outside, dots, loops, not outside, sums.folds, sums.exchanges)

    def _count(self, stmt: Stmt, loops: Loops, runs: int, sums: Counts) -> None:
        match stmt:
            case Load() | Issue() | Store():
                self._moved(stmt, loops, sums)
            case Let(op=Functional("dot")) if takes_matrix_units(stmt, self.units):
                self._dot(stmt, runs, sums)
            case Let():
                self._let(stmt, runs, sums)
            case Guard():
                sums.instructions += runs * self.lanes(stmt.target)
            case Fold():
                self._fold(stmt, runs, sums)
            case For():
                sums.waiting.meet()

    def lanes(self, *tiles: Tile) -> int:
        """Lanes of a tile over the axes of all these."""
        if len(tiles) == 1:
            return self.tiling.elements(tiles[0])
        dims = dict.fromkeys([dim for tile in tiles for dim in tile.axes])
        return prod(map(self.tiling.block, dims))

    def _moved(self, stmt: Load | Issue | Store, loops: Loops, sums: Counts) -> None:
        tile, buffer, view = accessed(stmt), stmt.view.buffer, lines.in_rows(stmt.view)
        width = MEMORY[buffer.dtype].bytes
        moved = width * self.extents.elements(stmt.view.sliced(tile), loops)
        wide = copied_at_once(view, tile, self.tiling, self.extents)
        tiles = self.extents.tiles(loops)
        if not (isinstance(stmt, Load) and lines.is_near(view, self.extents)):
            turned = {"columns": self.arrived.get(tile, tile) in self.columns}
            sums.lines += tiles * lines.requests(view, tile, self.layouts, self.extents, **turned)
            sums.sectors += tiles * SECTOR * pieces(view, tile, self.extents, SECTOR, **turned)
        if not (isinstance(stmt, Issue) and stmt.described):  # a descriptor takes one lane's time
            inner = {loop.dim for loop in loops} - set(self.extents.nest.grid)
            asked = width * self.lanes(tile) // wide
            places = tiles * lines.places(view, tile, inner, self.layouts, asked)
            sums.places += places
            sums.instructions += COPIED * tiles * asked + places
            sums.instructions += tiles * lines.masks(tile, self.tiling, wide // width)
        if isinstance(stmt, Store):
            sums.stored[buffer.name] += moved
            return
        sums.loaded[buffer.name] += moved
        copied, fetched = self.through_shared(stmt)
        to_dots = copied > 0
        if is_across(view, tile, self.tiling) and not to_dots:
            sums.across += moved * WORD // min(wide, WORD)  # an element alone takes a register
        if isinstance(stmt, Issue) and wide >= LEAST_AHEAD:
            sums.ahead = max(sums.ahead, stmt.ahead)
        else:
            sums.waiting.load(sums.instructions, to_dots=to_dots)
        sums.copied += copied * tiles
        sums.fetched += fetched * tiles

    def through_shared(self, stmt: Load | Issue) -> tuple[int, int]:
        """Bytes of shared memory that one run of a load writes, and those that are read again."""
        tile = accessed(stmt)
        dots = self.uses.only_in_dots(self.arrived.get(tile, tile))
        if not (isinstance(stmt, Issue) or dots):
            return 0, 0
        copied = MEMORY[stmt.view.buffer.dtype].bytes * self.lanes(tile)
        return copied, 0 if dots else copied

    def computed(self, stmt: Stmt) -> Counts:
        """What one run of a statement, which is no access, computes."""
        once = Counts()
        self._count(stmt, (), 1, once)
        return once

    def _dot(self, stmt: Let, runs: int, sums: Counts) -> None:
        dot = dot_of(stmt, self.layouts)
        operations = 2 * runs * self.lanes(*stmt.args) * dot.products
        sums.operations[dot.unit, dot.dtype] += operations
        if dot.partial:
            sums.operations["vector", self.arithmetic] += runs * dot.partial
        sums.apart += operations if dot.apart else 0
        sums.fetched += runs * dot.fetched
        sums.copied += runs * dot.passed
        sums.exchanges += 1 if dot.passed else 0
        sums.instructions += runs * dot.instructions
        sums.turns += dot.turns
        sums.dots += 1
        sums.waiting.dot(passed=bool(dot.passed))

    def _let(self, stmt: Let, runs: int, sums: Counts) -> None:
        self._exchange(stmt, runs, sums)
        match stmt.op:
            case Functional(name):
                elements = runs * self.lanes(*stmt.args)
                products = name == "dot"  # summed along what both operands have
                self._vector((1 + products) * elements, elements, sums)
                self._folded(stmt, runs, sums)
            case Scan():
                elements = runs * self.lanes(stmt.target)
                self._vector(elements, 0, sums)
                self._handed_on(stmt, runs, sums, scanned(stmt, self.layouts))
            case Pointwise(expr):
                whole = of_numbered(expr, tuple(self.numbers[tile] for tile in stmt.args))
                elements = runs * self.lanes(stmt.target)
                left = scalar(whole, sums.made, accurate=self.accurate)
                self._scalars(alone(expr, self.accurate), elements, sums, left)
                sums.made.update(calls_in(whole))
            case Cast():
                sums.instructions += runs * self.lanes(stmt.target)

    def _exchange(self, stmt: Let, runs: int, sums: Counts) -> None:
        """Operands that meet others of another layout pass through shared memory."""
        to = self.layouts.known.get(stmt.target)
        for tile in stmt.args:
            layout, lanes = self.layouts.known.get(tile), self.tiling.lanes(tile)
            if layout and to and len(lanes) > 1 and layout.crosses(to, lanes):
                sums.copied += runs * WORD * self.lanes(tile)
                sums.fetched += runs * WORD * self.lanes(tile)
                sums.exchanges += layout.rounds(to, lanes)
                sums.waiting.meet()

    def _folded(self, stmt: Let, runs: int, sums: Counts) -> None:
        """The shuffles of a fold; warps that share rows exchange what each has, then the sum."""
        self._handed_on(stmt, runs, sums, across.folded(stmt, self.layouts))

    def _handed_on(self, stmt: Let, runs: int, sums: Counts, found: Across) -> None:
        sums.copied += runs * found.passed
        if stmt.beside:  # at the same time as the next
            sums.besides += runs * self.layouts.number * LANES * SHUFFLE * found.shuffles
            return
        sums.folds += found.shuffles
        sums.exchanges += found.exchanges
        sums.instructions += runs * found.instructions
        if found.exchanges:
            sums.waiting.meet()

    def _fold(self, stmt: Fold, runs: int, sums: Counts) -> None:
        """What the matrix units add up themselves is counted with their dot."""
        if not stmt.ahead and stmt.value not in self.joined:
            elements = runs * self.lanes(stmt.value)
            self._vector(elements, elements, sums)
        for tile in folded(stmt):
            self.numbers.pop(tile, None)
        for member in stmt.members:
            elements = runs * self.lanes(member.value)
            factor = scalar(member.factor, accurate=self.accurate)
            self._vector(elements, elements, sums)
            for _ in range(1 if stmt.ahead else 2):
                self._scalars(factor, elements, sums)

    def _scalars(self, each: Scalar, count: int, sums: Counts, new: Scalar | None = None) -> None:
        """``new``: what is left to compute where a compiler finds equal expressions."""
        left = new or each
        self._vector(each.calls * count, left.instructions * count, sums)
        sums.special += each.special * count
        sums.repeated += (each.special - left.special) * count

    def _vector(self, operations: int, instructions: int, sums: Counts) -> None:
        sums.operations["vector", self.arithmetic] += operations
        sums.instructions += instructions
        sums.computing += instructions
