"""An estimate of a thread's registers: accumulators, other tiles alive at once, and data movement.

The estimate is linear in these quantities, but no less than what dots leave in registers: matrix
units write a result whole, whatever becomes of it then. It is fitted to kernels that were compiled
for sm_90 and sm_80 and do not spill (tests/golden/footprints.json); two of three are within a
quarter of the assembler's number. It only serves to tell how many programs run side by side.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache

from blockbuster.costs.operands import LANES
from blockbuster.emit.tile.dataflow import accessed, defined, folded, operands
from blockbuster.emit.tile.each_nest import KEPT, Body, Same
from blockbuster.emit.tile.float8_dots import in_float8
from blockbuster.emit.tile.layouts import VECTOR, WORD, Layouts
from blockbuster.emit.tile.program import (
    Await,
    Fold,
    For,
    Init,
    Issue,
    Let,
    Load,
    Nest,
    Stmt,
    Store,
    Tile,
    statements,
)
from blockbuster.emit.tile.shared_memory import tile_bytes
from blockbuster.emit.tile.tiling import Tiling, blocked
from blockbuster.emit.tile.typed import takes_matrix_units
from blockbuster.emit.tile.uses import Uses, matrix_dots
from blockbuster.ir.dtypes import FLOAT8
from blockbuster.ir.ops import Cast, Pointwise
from blockbuster.ir.regroup import Regroup
from blockbuster.ir.types import Dim

ALWAYS, WITH_DOTS = 16, 10
"""Registers for indices and loops, and more of them where there are dots."""

TOTALS, OTHERS, FRAGMENTS, PLACES = 1.2, 0.51, 0.24, 0.94
"""Registers for each word of accumulators, of other tiles that live at once, of operands that warps
hold themselves, and for each 16 bytes that a thread loads.
"""

STRAIGHT, ALONE = 12, 0.58
"""The same of kernels without dots and loops: for indices, and for each word of tiles that live at
once; what they load needs no addresses then. Of 116 such kernels that do not spill (compiled for
sm_90, bench/results/2026-11-23-h200-costs) most want a sixth less than others of such tiles.
"""

SPLIT = 2.2, 0.6
"""Registers for each word that a thread has of the left and of the right operand of a split dot, to
take it apart: parts of the left one stay in registers, the others go to shared memory. Fitted to
nine products that were compiled for sm_90: 64 and 128 rows, 32 to 256 columns, sums of 32 and 64.
"""

COPIES = 2
"""Tiles that a thread holds more where one is taken in another layout and lives on in its own: its
copy, and what is made of that, which goes back.
"""

HELD = 128
"""Words of operands that count at most: the rest is read from shared memory step by step."""

WORDS = {FLOAT8: 0.25, "float16": 0.5, "bfloat16": 0.5, "bool": 0.25, "float64": 2.0}
"""Words of 32 bits for an element; one for dtypes that are not here."""

FEWEST = 16


SURE, DOUBT = 5, 0.4
"""The standard deviation of the estimate: ``SURE`` registers, and ``DOUBT`` of those that are not
accumulators, indices or loops. Of 184 kernels with dots for sm_90 that do not spill it was 6
registers where that part is below 5, 13 between 5 and 20, 30 between 40 and 80, 42 above.
"""


def registers(layouts: Layouts) -> tuple[int, int]:
    """Registers that a thread of a nest's programs wants; it may get fewer, and spill.

    The second number is how far the first may be off, as a standard deviation. It is 0 without
    dots: choices of kernels of rows got slower by up to 16% on an H100 where their registers were
    in doubt, since most want fewer than estimated (bench/results/2026-11-25-h100).
    """
    nest, tiling = layouts.nest, layouts.held
    threads = nest.warps * LANES
    dots = matrix_dots(nest.body, tiling)
    inits = (stmt.target for stmt in statements(nest.body) if isinstance(stmt, Init))
    totals = sum(_words(tile, tiling) for tile in inits) / threads
    others = max(0.0, _peak(layouts) / threads - totals)
    if not dots and not any(isinstance(stmt, For) for stmt in nest.body):
        return int(max(FEWEST, STRAIGHT + ALONE * (totals + others))), 0
    made = max((_words(dot.target, tiling) for dot in dots if not dot.into), default=0) / threads
    known = ALWAYS + (WITH_DOTS if dots else 0) + TOTALS * totals
    found = (
        known
        + OTHERS * others
        + FRAGMENTS * min(HELD, _fragments(dots, layouts))
        + max((_to_split(dot, tiling) / threads for dot in dots), default=0.0)
        + PLACES * _places(nest.body, tiling, threads)
    )
    found = max(FEWEST, found, known + TOTALS * made)
    return int(found), int(SURE + DOUBT * max(0.0, found - known)) if dots else 0


def _places(body: tuple[Stmt, ...], tiling: Tiling, threads: int) -> float:
    """What a thread loads in ``body``, in units of 16 bytes, at least 1 for a tile.

    Of loops that follow each other the largest counts: each has addresses of its own.
    """
    tiles = (accessed(stmt) for stmt in body if isinstance(stmt, Load | Issue))
    own = sum(max(1.0, tile_bytes(tile, tiling) / VECTOR / threads) for tile in tiles)
    inner = (_places(stmt.body, tiling, threads) for stmt in body if isinstance(stmt, For))
    return own + max(inner, default=0.0)


def _fragments(dots: Sequence[Let], layouts: Layouts) -> float:
    """Words of operands to a thread, of dots that warps multiply by themselves."""
    found = 0.0
    for dot in dots:
        if not layouts.grouped(dot):
            shares = zip(dot.args, layouts.warps(dot), strict=True)
            found += sum(tile_bytes(tile, layouts.held) / share for tile, share in shares)
    return found / WORD / LANES


def _to_split(dot: Let, tiling: Tiling) -> float:
    """Registers that take the operands of a dot apart, all threads together; 0 if it is whole."""
    words = (each * _words(tile, tiling) for each, tile in zip(SPLIT, dot.args, strict=True))
    return sum(words) if dot.split else 0.0


def _peak(layouts: Layouts) -> float:
    """The most words of tiles that live at once, all threads together.

    What a loop reads of tiles made outside lives until it ends. An operand that dies where a tile
    of its axes is made gives its registers to that tile, and a total to its rescaled value. What
    arrives ahead of dots is in shared memory, and what they add to a total needs no registers, but
    for partial sums of float8, which have registers of their own. A block of rows and columns alone
    that one statement reads, such as an outer product, is made there element by element.
    """
    tiling, live = layouts.held, _lives(Same(layouts.nest.body), layouts.held.units)
    words = [0.0 if free else _words(tile, tiling) for tile, free in live.tiles]
    held = live.held(words)
    for at, numbers in _copied(layouts, live):
        held[at] += COPIES * sum(map(words.__getitem__, numbers))
    return max(held, default=0.0)


def _without_registers(nest: Nest, units: tuple[Dim, ...], live: _Lives) -> set[Tile]:
    """Tiles that take no registers: see ``_peak``."""
    uses = Uses(nest, Tiling({}, units))
    awaits = (s.target for s in statements(nest.body) if isinstance(s, Await))
    none = {tile for tile in awaits if uses.only_in_dots(tile)}
    lets = (s for s in statements(nest.body) if isinstance(s, Let) and s.into)
    none.update(let.target for let in lets if not in_float8(let))
    none.update(s.onto for s in statements(nest.body) if isinstance(s, Fold) and s.onto)
    none.update(_element_by_element(live))
    return none


def _copied(layouts: Layouts, live: _Lives) -> Iterator[tuple[int, list[int]]]:
    """The operands that a statement takes in another layout, and that live on in their own."""
    known, lanes = layouts.known, layouts.held.lanes
    for at, target, args in live.wide:
        if to := known.get(target):
            held = ((number, known.get(tile), tile) for number, tile in args)
            yield at, [n for n, own, tile in held if own and own.crosses(to, lanes(tile))]


def _element_by_element(live: _Lives) -> Iterator[Tile]:
    """Values between elementwise statements that follow each other outside loops: each element goes
    through all of them before the next one does.

    Gelu by tanh of a product wants 176 registers for 128 results to a thread, as many as silu.
    """
    loops = [isinstance(stmt, For) and not stmt.parallel for stmt, _ in live.order]
    folds = {fold for stmt, _ in live.order for fold in _folds_pieces(stmt)}
    each = [
        (_is_elementwise(s) or s in folds or (isinstance(s, For) and bool(s.within)))
        and not any(loops[at] for at in around)
        for s, around in live.order
    ]
    for tile, first in live.made.items():
        if all(each[first : live.last[tile] + 1]):
            yield tile


def _is_elementwise(stmt: Stmt) -> bool:
    is_let = isinstance(stmt, Let) and isinstance(stmt.op, Pointwise | Cast | Regroup)
    return is_let or isinstance(stmt, Store)


def _folds_pieces(loop: Stmt) -> Iterator[Stmt]:
    """The folds of a loop over pieces of columns, which threads make of elements as they come: root
    mean squares of 64 to 256 columns of 128 x 256 results want 186 to 198 registers.
    """
    if isinstance(loop, For) and loop.within:
        piece = loop.within[1]
        for stmt in (stmt for stmt in loop.body if isinstance(stmt, Let)):
            if piece not in stmt.target.axes and any(piece in arg.axes for arg in stmt.args):
                yield stmt


def _words(tile: Tile, tiling: Tiling) -> float:
    return WORDS.get(tile.dtype, 1.0) * tiling.elements(tile)


@lru_cache(maxsize=KEPT)
def _lives(body: Same[Body], units: tuple[Dim, ...]) -> _Lives:
    return _Lives(body.one, units)


class _Lives:
    """From which statement up to which the tiles of a body live, in the order of its text.

    ``tiles``: each with whether it takes no registers; they have numbers from 0. ``wide``: the
    statements, but for matrix dots, that read blocks which live on.
    """

    def __init__(self, body: Body, units: tuple[Dim, ...]) -> None:
        self.order: list[tuple[Stmt, tuple[int, ...]]] = []
        self.ends: dict[int, int] = {}
        self._number(body, ())
        self.made: dict[Tile, int] = {}
        self.last: dict[Tile, int] = {}
        self._same: dict[Tile, Tile] = {}  # of regrouped tiles, whose registers they are
        once = (stmt for stmt, _ in self.order if isinstance(stmt, For) and stmt.within)
        self._pieces = {loop.within[0]: (loop.dim, loop.within[1]) for loop in once}
        for at, (stmt, loops) in enumerate(self.order):
            for tile in (*operands(stmt), *folded(stmt)):
                self._read(self._same.get(tile, tile), at, loops)
            made = defined(stmt)
            if isinstance(stmt, Let) and isinstance(stmt.op, Regroup):
                self._same[stmt.target] = self._same.get(stmt.args[0], stmt.args[0])
            elif made is not None:
                self.made[made] = self.last[made] = at
        none = _without_registers(Nest(body), units, self)
        self.tiles = [(tile, tile in none) for tile in self.made]
        self._numbers = {tile: number for number, tile in enumerate(self.made)}
        self._steps = list(self._living())
        self.wide = list(self._wide(units))

    def _number(self, body: tuple[Stmt, ...], loops: tuple[int, ...]) -> None:
        for stmt in body:
            at = len(self.order)
            self.order.append((stmt, loops))
            if isinstance(stmt, For):
                self._number(stmt.body, (*loops, at))
                self.ends[at] = len(self.order)

    def _read(self, tile: Tile, at: int, loops: tuple[int, ...]) -> None:
        outside = [loop for loop in loops if loop > self.made.get(tile, at)]
        self.last[tile] = max(self.last.get(tile, 0), self.ends[outside[0]] if outside else at)

    def _living(self) -> Iterator[tuple[list[int], list[int], list[int]]]:
        """The tiles that begin to live at each statement, those whose registers it takes, and those
        that live no longer.
        """
        begin, end = defaultdict[int, list[Tile]](list), defaultdict[int, list[Tile]](list)
        for tile, first in self.made.items():
            begin[first].append(tile)
            end[self.last[tile]].append(tile)
        for at, (stmt, _) in enumerate(self.order):
            made = defined(stmt)
            axes = self._axes(made) if made else None
            ended = (t for t in end[at] if self.made[t] < at and t != made)
            taken = [tile for tile in ended if self._axes(tile) == axes]
            begins, takes, ends = (
                [self._numbers[tile] for tile in tiles] for tiles in (begin[at], taken, end[at])
            )
            yield begins, takes, ends

    def _axes(self, tile: Tile) -> set[Dim]:
        """The axes of a tile, of whole columns those of their pieces."""
        return {own for dim in tile.axes for own in self._pieces.get(dim, (dim,))}

    def _wide(self, units: tuple[Dim, ...]) -> Iterator[tuple[int, Tile, list[tuple[int, Tile]]]]:
        for at, (stmt, _) in enumerate(self.order):
            if isinstance(stmt, Let) and not takes_matrix_units(stmt, units):
                args = dict.fromkeys(self._same.get(tile, tile) for tile in stmt.args)
                more = [tile for tile in args if self.last[tile] > at]
                wide = [tile for tile in more if len(blocked(tile.axes, units)) > 1]
                if wide:
                    yield at, stmt.target, [(self._numbers[tile], tile) for tile in wide]

    def held(self, words: Sequence[float]) -> list[float]:
        """The words of the tiles that are held at each statement; ``words``: of each tile."""
        living, found = 0.0, list[float]()  # multiples of a power of two: no rounding errors
        for begins, takes, ends in self._steps:
            living += sum(map(words.__getitem__, begins))
            found.append(living - sum(map(words.__getitem__, takes)))
            living -= sum(map(words.__getitem__, ends))
        return found
