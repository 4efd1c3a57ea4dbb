"""What NumPy text takes on a CPU: microseconds of its calls, elements, rows and products.

    t5 = exp(t3 - t4[:, None])      a call each for the difference and for exp; as many elements as
                                    t5 has, and a row of each for the inner loops of NumPy

NumPy runs one call after the other, so times add up. A call costs Python's time for a statement,
the memory that it walks through, and a start for each row, since NumPy's inner loops walk rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from blockbuster.emit.print.numpy.places import lies_at_positions
from blockbuster.emit.tile.dataflow import accessed
from blockbuster.emit.tile.extents import Extents, Loops, extents_of
from blockbuster.emit.tile.layouts import WORD
from blockbuster.emit.tile.program import Fold, For, Init, Let, Load, Stmt, Store, Tile, TileProgram
from blockbuster.ir.expr import Expr, arguments, calls_in
from blockbuster.ir.ops import Functional, Pointwise, Scan
from blockbuster.ir.types import Dim
from blockbuster.ir.views import Strided
from blockbuster.machines import Machine
from blockbuster.selection.priors import PRIORS


@dataclass(frozen=True)
class NumpyCosts:
    """The seconds of what NumPy does on a machine, which has the rates of a CPU."""

    machine: Machine

    @property
    def statement(self) -> float:
        """A statement, whatever its operands."""
        return PRIORS.numpy_calls_of_statement * self.machine.launch.plain

    def moving(self, elements: float, held: float) -> float:
        """Elements read or written of arrays that take ``held`` elements of memory in all."""
        tiers = [t for t in self.machine.tiers if t.bytes >= held * WORD]
        tier = min(tiers or [self.machine.memory], key=lambda t: t.bytes)
        return elements * WORD / min(tier.bandwidth, self.machine.tier("l2").bandwidth)

    def rows(self, count: float) -> float:
        """Starts of inner loops."""
        return count / self.machine.rate("rows", "float32")

    def special(self, function: str, elements: float) -> float:
        """A function of elements beyond what moving them takes; 0 for simple ones."""
        times = PRIORS.numpy_functions.get(function, 0.0)
        return times * elements / self.machine.rate("special", "float64")

    def folding(self, elements: float, *, summed: bool) -> float:
        """Sums of elements, in float64, or their largest."""
        if not summed:
            return elements / self.machine.rate("vector", "float32")
        return elements / self.machine.rate("fold", "float64")

    def gathered(self, elements: float) -> float:
        """Elements at positions."""
        return elements / self.machine.rate("gather", "float32")

    def copied(self, elements: float) -> float:
        """Elements that lie apart, copied one by one."""
        return elements / self.machine.rate("copy", "float32")

    def multiplying(self, terms: float, *, small: bool) -> float:
        """A product of so many multiplications; small ones are computed in float64."""
        return 2.0 * terms / self.machine.rate("matrix", "float64" if small else "float32")


def price_of_text(
    program: TileProgram, sizes: Mapping[Dim, int], blocks: Mapping[Dim, int], machine: Machine
) -> float:
    """Microseconds of the text of a scheduled program; ``sizes`` by size class."""
    costs = NumpyCosts(machine)
    nests = extents_of(program, sizes, blocks)
    return 1e6 * sum(_Nest(costs, extents).seconds() for extents in nests)


@dataclass(frozen=True)
class _Nest:
    costs: NumpyCosts
    extents: Extents

    def seconds(self) -> float:
        """The time of all statements of the nest."""
        found = 0.0
        for stmt, loops in self.extents.walk():
            if not isinstance(stmt, For):
                runs = self.extents.tiles(loops)
                found += runs * self.costs.statement + self._of(stmt, loops)
        return found

    def _of(self, stmt: Stmt, loops: Loops) -> float:
        """A statement, in all iterations, without Python's time for its first call."""
        match stmt:
            case Load() | Store():
                return self._moved(stmt, loops)
            case Let(target, Pointwise(expr), args):
                return self._pointwise(target, expr, args, loops)
            case Let(_, Functional("dot"), args):
                terms = self._elements(args, loops)
                runs = self.extents.tiles(loops)
                small = terms <= PRIORS.numpy_small_product * runs
                return self.costs.multiplying(terms, small=small)
            case Let(_, Functional(name), args):
                elements = self._elements(args, loops)
                rows = elements / max(self._extent(args[0].axes[-1]), 1)
                folded = self.costs.folding(elements, summed=name == "row_sum")
                return folded + self.costs.rows(rows)
            case Let(_, Scan(), args):
                elements = self._elements(args, loops)
                rows = elements / max(self._extent(args[0].axes[-1]), 1)
                walked = self._walked(elements, [*args, stmt.target], 2)
                return self.costs.folding(elements, summed=True) + self.costs.rows(rows) + walked
            case Fold(target) | Init(target):
                return self._walked(self._elements([target], loops), [target], 2)
        return 0.0

    def _moved(self, stmt: Load | Store, loops: Loops) -> float:
        """Elements that a tile has in an array: a store copies them, a load is a view mostly."""
        tile = accessed(stmt)
        elements = self._elements([tile], loops)
        held = prod(self.extents.size(a.dim) for a in stmt.view.buffer.axes if a.dim is not None)
        time = self.costs.moving(elements, held)
        if _is_gathered(stmt):
            time += self.costs.gathered(elements)
        return time

    def _pointwise(self, target: Tile, expr: Expr, args: Sequence[Tile], loops: Loops) -> float:
        calls = [call for call in calls_in(expr) if arguments(call)]  # numbers alone are none
        elements, runs = self._elements([target], loops), self.extents.tiles(loops)
        time = max(len(calls) - 1, 0) * runs * self.costs.statement
        for call in calls:
            time += self.costs.special(call.fn, elements)
            time += self._walked(elements, [target, *args], len(call.args) + 1)
        return time

    def _walked(self, elements: float, tiles: Sequence[Tile], arrays: int) -> float:
        """Walking through elements of tiles, in so many of them at once, row by row."""
        largest = max(prod(self._extent(dim) for dim in tile.axes) for tile in tiles)
        last = self._extent(tiles[0].axes[-1]) if tiles[0].axes else 1
        rows = self.costs.rows(elements / max(last, 1))
        return self.costs.moving(elements * arrays, largest * arrays) + rows

    def _extent(self, dim: Dim) -> int:
        return min(self.extents.size(dim), self.extents.blocks[dim])

    def _elements(self, tiles: Sequence[Tile], loops: Loops) -> int:
        return self.extents.elements(dict.fromkeys(d for t in tiles for d in t.axes), loops)


def _is_gathered(stmt: Load | Store) -> bool:
    """True if a tile lies along an axis of the array in no slice."""
    tile = accessed(stmt)
    return any(
        lies_at_positions(axis, tile.axes) for axis in stmt.view.dims if isinstance(axis, Strided)
    )
