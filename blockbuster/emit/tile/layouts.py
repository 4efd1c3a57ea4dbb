"""How Triton distributes the tiles of a nest over warps, as far as it decides shared memory.

A dot's result has the layout of the matrix units, and so have the tiles computed from it. Other
tiles have the layout of their load: along the axis that is contiguous in memory. A tile passes
through shared memory if it meets a tile of another layout or is stored in another layout; so do
values that warps reduce together.

The rules are those of Triton 3.6 to 3.9, read from its TTGIR (``AccelerateMatmul``, ``Coalesce``).
On sm_90, four warps multiply 64 rows together; elsewhere each warp multiplies by itself. If one dot
reads the result of another, all warps lie along the rows, or along the columns if there are more
columns.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import count
from math import prod

from blockbuster.emit.tile.dataflow import bodies, defined, folded, makes, operands
from blockbuster.emit.tile.dtypes import MEMORY
from blockbuster.emit.tile.each_nest import KEPT, Body, Same
from blockbuster.emit.tile.program import (
    Fold,
    Let,
    Nest,
    Stmt,
    Store,
    Tile,
    TileProgram,
    View,
    statements,
)
from blockbuster.emit.tile.result_dtypes import FLOAT
from blockbuster.emit.tile.rings import arrivals
from blockbuster.emit.tile.tiling import Tiling, blocked, tiling_of
from blockbuster.emit.tile.typed import takes_matrix_units
from blockbuster.emit.tile.uses import Uses
from blockbuster.ir.regroup import Regroup
from blockbuster.ir.types import Dim
from blockbuster.ir.views import dims_among

HOPPER = "sm_90"
GROUP, GROUP_ROWS = 4, 64
"""Warps that multiply together on sm_90, and the rows that they take at once."""

ROWS, COLUMNS = 16, 8
"""Rows and columns of a dot's result that one instruction of a warp gives."""

USUAL = 4  # warps of a program that does not say how many
WARP = 32  # lanes
WORD = 4  # bytes of arithmetic
VECTOR = 16  # bytes that a lane loads at once, at most

BANKS = 5
"""Digits of the number of banks of shared memory, each a word wide."""

AtOnce = Callable[[View, Tile], int]
"""Bytes of a tile that a lane moves at once, at given sizes."""

Bit = tuple[Dim, int]
"""A binary digit of the position along a dim: digit 3 tells the first eight lanes from the next."""


@dataclass(frozen=True)
class Layout:
    """``registers``: the digits of positions that one lane of a warp holds; ``warps``: those that
    tell warps apart. The others tell lanes of a warp apart.

    ``dense``: the dim that is dense in the memory it is loaded from; "" for what matrix units give.
    """

    registers: frozenset[Bit]
    warps: frozenset[Bit]
    dense: Dim = ""

    def warps_along(self, *dims: Dim) -> int:
        """How many warps lie along ``dims``."""
        return 1 << sum(along in dims for along, _ in self.warps)

    def neighbours(self, dim: Dim) -> int:
        """How many elements that follow each other along ``dim`` one lane of a warp holds."""
        return 1 << next(at for at in count() if (dim, at) not in self.registers)

    def shuffles(self, widths: Mapping[Dim, int], *dims: Dim) -> int:
        """How often lanes hand on what they have to fold a tile along ``dims``: each row that a
        lane holds, once for each digit of its place along ``dims`` that lanes tell apart.

        ``widths``: lanes of the tile along each of its dims.
        """
        digits = _digits_of(widths)
        across = digits - self.registers - self.warps
        rows = sum(d not in dims for d, _ in digits & self.registers)
        return sum(d in dims for d, _ in across) << rows

    def conflicts(self, widths: Mapping[Dim, int], *dims: Dim) -> int:
        """How often a warp stores to shared memory what its lanes have folded along ``dims``, if
        other warps have more: each row that a lane holds, once for each lane that asks for the same
        bank. What the warps have of a row lies side by side there, a word each.
        """
        beside = _digits(self.warps_along(*dims))
        others = _digits_of({dim: count for dim, count in widths.items() if dim not in dims})
        apart = others - self.registers - self.warps
        return 1 << len(others & self.registers) + sum(at + beside >= BANKS for _, at in apart)

    def crosses(self, to: Layout, lanes: Collection[Dim]) -> bool:
        """True if a tile over ``lanes`` that takes another layout passes from warp to warp."""
        if self.dense == to.dense != "":
            return False
        return of_lanes(self.warps, lanes) != of_lanes(to.warps, lanes)

    def rounds(self, to: Layout, lanes: Collection[Dim]) -> int:
        """In how many rounds a tile over ``lanes`` takes another layout through shared memory: each
        moves what differs in the digits that a lane holds in one layout alone.
        """
        return 1 << len(of_lanes(self.registers & to.registers, lanes))


def on_vector_units(dot: Let) -> bool:
    """True for a dot of float32 that is not split: no matrix unit multiplies exactly enough."""
    return dot.args[0].dtype == FLOAT and not dot.split


def of_lanes(digits: frozenset[Bit], lanes: Collection[Dim]) -> frozenset[Bit]:
    """The digits of a layout that tell elements of a tile over ``lanes`` apart."""
    return frozenset(digit for digit in digits if digit[0] in lanes)


class Layouts:
    """The layouts of the tiles of one nest, compiled for ``target``; a row has that of its tile.

    ``at_once``: how wide accesses are; without it all rows begin at whole vectors. ``held``: the
    lanes for which there are instructions and registers, without those that a compiler leaves out
    (told_sizes.py).
    """

    def __init__(
        self,
        nest: Nest,
        tiling: Tiling,
        target: str,
        at_once: AtOnce = lambda view, tile: VECTOR,
        held: Tiling | None = None,
    ) -> None:
        self.nest, self.tiling, self.target, self.at_once = nest, tiling, target, at_once
        self.held = held or tiling
        self.number = nest.warps or USUAL
        self.known: dict[Tile, Layout] = {}
        views = dict(arrivals(nest.body))
        self._widest: dict[tuple[Dim, ...], int] = {}
        stores = ((s.value, s.view) for s in statements(nest.body) if isinstance(s, Store))
        for tile, view in (*views.items(), *stores):
            order, each = self._order(tile, view), self.neighbours(view, tile)
            self._widest[order] = max(each, self._widest.get(order, 1))
        notes = _notes(Same(nest.body), tiling.units)
        for _ in range(2):  # accumulators are read before the fold that says how they lie
            for note in notes:
                self._note(note)

    @cached_property
    def uses(self) -> Uses:
        """The readers of each tile."""
        return Uses(self.nest, self.tiling)

    def lanes(self, *dims: Dim) -> int:
        """The lanes of a tile over ``dims``."""
        return prod(map(self.tiling.block, dims))

    def grouped(self, dot: Let) -> bool:
        """True if four warps multiply together, with operands in shared memory."""
        rows = self.lanes(self.tiling.lanes(dot.target)[0])
        whole = rows >= GROUP_ROWS and self.number % GROUP == 0
        return self.target == HOPPER and whole and not on_vector_units(dot)

    def warps(self, dot: Let) -> tuple[int, int]:
        """How many warps lie along the rows, and the columns, of a dot's result."""
        number = self.number
        near, fed = _near(Same(self.nest.body), self.tiling.units, dot)
        if self.grouped(dot):
            return (number, 1) if fed else self._spread(dot, GROUP)
        if len(near) == 1:
            return self._spread(dot, 1)
        rows, columns = map(self.lanes, self.tiling.lanes(near[-1].target))
        return (number, 1) if rows >= columns else (1, number)

    def _spread(self, dot: Let, least: int) -> tuple[int, int]:
        """Warps by turns along rows and columns, where the result has more for each of them."""
        rows, columns = map(self.lanes, self.tiling.lanes(dot.target))
        down, across = least, 1
        while down * across < self.number:
            more = rows // (ROWS * down)
            grows = more > 1 if least > 1 else more >= columns // (COLUMNS * across)
            if grows and down < rows // ROWS:
                down *= 2
            else:
                across *= 2
        return down, across

    def _note(self, note: _Note) -> None:
        """Note the layout of what a statement makes, if it has one."""
        known, stmt = self.known, note.stmt
        if note.view is not None:
            self._loaded(note.targets[0], note.view)
        elif isinstance(stmt, Fold):
            if stmt.value in known:
                known.update(dict.fromkeys(note.targets, known[stmt.value]))
                return
        elif note.is_dot:
            assert isinstance(stmt, Let)
            known[stmt.target] = self._of_dot(stmt)
        elif found := self._met(note):
            if isinstance(stmt, Let) and isinstance(stmt.op, Regroup):
                found = self._regrouped(found, stmt.op)
            known[note.targets[0]] = found

    def _met(self, note: _Note) -> Layout | None:
        """The layout in which operands meet: that of matrix units, or the first one's.

        What is spread from rows and columns alone has none: it is made in any.
        """
        found = [layout for tile in note.wide if (layout := self.known.get(tile))]
        if not found and note.narrow:
            found = [layout for tile in note.read if (layout := self.known.get(tile))]
        return next((layout for layout in found if not layout.dense), found[0] if found else None)

    def _regrouped(self, layout: Layout, op: Regroup) -> Layout:
        """The layout of the same elements with other axes in the place of some."""

        def over(dims: Sequence[Dim]) -> list[Bit]:
            """All digits of a position along ``dims`` together, the lowest first."""
            digits = [_range_of(dim, self.lanes(dim)) for dim in reversed(dims)]
            return [digit for own in digits for digit in own]

        new = dict(zip(over(op.old), over(op.new), strict=True))
        registers, warps = (
            frozenset(new.get(digit, digit) for digit in digits)
            for digits in (layout.registers, layout.warps)
        )
        dense = op.new[-1] if layout.dense == op.old[-1] else layout.dense
        return Layout(registers, warps, dense)

    def _of_dot(self, dot: Let) -> Layout:
        """Two columns and two rows, eight apart, to a lane; more of them beyond what warps take."""
        rows, columns = self.tiling.lanes(dot.target)
        if on_vector_units(dot):
            return self.blocked((rows, columns), VECTOR // WORD)
        down, across = self.warps(dot)
        high, wide = map(_digits, (self.lanes(rows), self.lanes(columns)))
        first = max(3, wide - _digits(across)) if self.grouped(dot) else 3
        warps = _range(rows, 4, min(high, 4 + _digits(down)))
        warps |= _range(columns, first, min(wide, first + _digits(across)))
        lanes = _range(rows, 0, 3) | _range(columns, 1, 3)
        return Layout((_range(rows, 0, high) | _range(columns, 0, wide)) - warps - lanes, warps)

    def blocked(self, order: Sequence[Dim], neighbours: int) -> Layout:
        """Elements that lie in memory in this order of dims: of the last, which is dense, a lane
        takes so many at once, if there are as many for each lane.
        """
        blocks = tuple([(dim, self.lanes(dim)) for dim in order])
        return _in_blocks(blocks, self.number, neighbours)

    def neighbours(self, view: View, tile: Tile) -> int:
        """How many elements of a tile a lane moves at once."""
        return max(1, self.at_once(view, tile) // MEMORY[view.buffer.dtype].bytes)

    def _order(self, tile: Tile, view: View) -> tuple[Dim, ...]:
        return tuple([dim for dim in inward(view, tile) if dim in self.tiling.lanes(tile)])

    def _loaded(self, tile: Tile, view: View) -> None:
        """A lane holds as many elements as the widest access to memory in this order moves."""
        order = self._order(tile, view)
        if order:
            self.known[tile] = self.blocked(order, self._widest[order])


def inward(view: View, tile: Tile) -> tuple[Dim, ...]:
    """The dims of a tile in the order in which they change in memory, the fastest last: a joined
    dim of several axes changes as fast as along the innermost of them.
    """
    return tuple(filter(tile.axes.__contains__, _fastest_last(view)))


@lru_cache(maxsize=KEPT)
def _fastest_last(view: View) -> tuple[Dim, ...]:
    axes = zip(view.dims, view.buffer.axes, strict=True)
    along = dims_among([axis for axis, own in axes if not own.per_block])
    return tuple(reversed(dict.fromkeys(reversed(along))))


def layouts_of(program: TileProgram, nest: Nest, target: str = HOPPER) -> Layouts:
    """The layouts of a nest of ``program``, which has dtypes, at sizes that are not known."""
    return Layouts(nest, tiling_of(program, nest), target)


@dataclass(frozen=True)
class _Note:
    """A statement that says how tiles lie. ``targets``: these tiles. ``view``: of what is loaded.
    ``read``: operands, ``wide`` ones with several dims of lanes; ``narrow``: the target has not.
    """

    stmt: Stmt
    targets: tuple[Tile, ...]
    view: View | None = None
    is_dot: bool = False
    read: tuple[Tile, ...] = ()
    wide: tuple[Tile, ...] = ()
    narrow: bool = False


@lru_cache(maxsize=KEPT)
def _notes(body: Same[Body], units: tuple[Dim, ...]) -> tuple[_Note, ...]:
    """The statements of a body that say how tiles lie, in order."""
    views, found = dict(arrivals(body.one)), list[_Note]()
    for stmt in statements(body.one):
        target = defined(stmt)
        if isinstance(stmt, Fold):
            found.append(_Note(stmt, folded(stmt)))
        elif target is not None and target in views:
            found.append(_Note(stmt, (target,), views[target]))
        elif target is not None and takes_matrix_units(stmt, units):
            found.append(_Note(stmt, (target,), is_dot=True))
        elif target and (lanes := blocked(target.axes, units)) and (read := operands(stmt)):
            wide = tuple(tile for tile in read if len(blocked(tile.axes, units)) > 1)
            narrow = len(lanes) < 2
            found.append(_Note(stmt, (target,), read=read, wide=wide, narrow=narrow))
    return tuple(found)


@lru_cache(maxsize=KEPT)
def _near(body: Same[Body], units: tuple[Dim, ...], dot: Let) -> tuple[tuple[Let, ...], bool]:
    """The dots of its loop that share a tile with a dot, it among them; if it feeds another."""
    stmts = next(inner for inner in bodies(body.one) if dot in inner)
    behind, linked = {dot.target}, {dot.target, *dot.args}
    made = [({*makes(stmt)}, {*operands(stmt)}) for stmt in stmts]
    for _ in made:
        for results, read in made:
            if behind & read:
                behind |= results
            if linked & (results | read):
                linked |= results | read
    dots = [s for s in stmts if isinstance(s, Let) and takes_matrix_units(s, units)]
    return tuple(d for d in dots if d.target in linked), any(behind & {*d.args} for d in dots)


@lru_cache(maxsize=KEPT)  # the same few blocks are loaded in many schedules
def _in_blocks(order: tuple[tuple[Dim, int], ...], number: int, neighbours: int) -> Layout:
    """The layout of ``Layouts.blocked``, for so many warps; ``order``: dims and their lanes."""
    each = min(neighbours, max(1, prod(lanes for _, lanes in order) // (number * WARP)))
    registers, warps = frozenset[Bit](), frozenset[Bit]()
    lanes_left, warps_left = _digits(WARP), _digits(number)
    last, _ = order[-1]
    for dim, lanes in reversed(order):
        digits = _digits(lanes)
        first = min(digits, _digits(each) if dim == last else 0)
        second = min(digits, first + lanes_left)
        third = min(digits, second + warps_left)
        registers |= _range(dim, 0, first) | _range(dim, third, digits)
        warps |= _range(dim, second, third)
        lanes_left, warps_left = lanes_left - second + first, warps_left - third + second
    return Layout(registers, warps, last)


def _digits(count: int) -> int:
    """Binary digits of positions below ``count``, a power of two."""
    return count.bit_length() - 1


def _range_of(dim: Dim, lanes: int) -> list[Bit]:
    """The digits of positions along ``dim``, the lowest first."""
    return [(dim, digit) for digit in range(_digits(lanes))]


def _digits_of(widths: Mapping[Dim, int]) -> set[Bit]:
    return {(dim, at) for dim, count in widths.items() for at in range(_digits(count))}


@lru_cache(maxsize=KEPT)
def _range(dim: Dim, first: int, end: int) -> frozenset[Bit]:
    return frozenset((dim, digit) for digit in range(first, end))
