"""The work of each kernel as expressions in the sizes of its program.

``work`` counts the same for given sizes; the expressions are exact at every size for which the
kernel's masks are right (tests/costs/test_formulas.py compares them with ``work``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import sympy

from blockbuster.costs.footprint import Footprint, footprint
from blockbuster.costs.lines import layouts_at
from blockbuster.costs.phases import Counting, Unit
from blockbuster.costs.sizes import fitting
from blockbuster.costs.symbols import CeilDiv, Symbolic, SymbolicExtents, compiled
from blockbuster.emit.tile.dataflow import accessed
from blockbuster.emit.tile.dtypes import MEMORY
from blockbuster.emit.tile.extents import Extents, Loops
from blockbuster.emit.tile.program import (
    ACCESSES,
    For,
    Issue,
    Load,
    Nest,
    Stmt,
    Store,
    TileProgram,
)
from blockbuster.emit.tile.told_sizes import with_told
from blockbuster.emit.tile.trips import blocks_in, bound_blocks, sized
from blockbuster.ir.types import Dim, size_class

if TYPE_CHECKING:
    from blockbuster.machines.machine import Machine


@dataclass(frozen=True)
class Formula:
    """What one kernel does, in SymPy expressions of ``sizes`` (dims of the program).

    ``programs``: of its grid. ``loaded``, ``stored``: bytes of global memory by array, every load
    of every program counted. ``operations``: by unit and dtype; a multiplication and an addition of
    a dot are two. ``special``: exponentials, logarithms, roots, quotients of special units.
    ``shared``: bytes written to and read from shared memory. ``footprint``: of a program; it does
    not depend on sizes.
    """

    sizes: tuple[Dim, ...]
    programs: Symbolic
    loaded: Mapping[str, Symbolic] = field(hash=False)
    stored: Mapping[str, Symbolic] = field(hash=False)
    operations: Mapping[Unit, Symbolic] = field(hash=False)
    special: Symbolic
    shared: Symbolic
    footprint: Footprint

    @property
    def moved(self) -> Symbolic:
        """Bytes that all programs load from and store to global memory."""
        return sum((*self.loaded.values(), *self.stored.values()))

    def waves(self, machine: Machine) -> Symbolic:
        """How many times the programs fill all processors of ``machine``, the last time in part."""
        side_by_side = machine.processors * self.footprint.resident(machine)
        return CeilDiv(self.programs, side_by_side)

    def at(self, sizes: Mapping[Dim, int]) -> Formula:
        """The same with numbers for expressions. Raises ValueError for a size that is missing."""
        if missing := [dim for dim in self.sizes if dim not in sizes]:
            raise ValueError(f"no size is given for {', '.join(missing)}")
        numbers = iter(self._numbers(*(sizes[dim] for dim in self.sizes)))
        return Formula(
            self.sizes,
            next(numbers),
            {name: next(numbers) for name in self.loaded},
            {name: next(numbers) for name in self.stored},
            {unit: next(numbers) for unit in self.operations},
            next(numbers),
            next(numbers),
            self.footprint,
        )

    @cached_property
    def _numbers(self) -> Callable[..., list[int]]:
        return compiled([expression for _, expression in self._rows()], self.sizes)

    def _rows(self) -> list[tuple[str, Symbolic]]:
        return [
            ("programs", self.programs),
            *((f"bytes loaded of {name}", count) for name, count in self.loaded.items()),
            *((f"bytes stored of {name}", count) for name, count in self.stored.items()),
            *((f"{unit} operations, {dtype}", n) for (unit, dtype), n in self.operations.items()),
            ("special functions", self.special),
            ("bytes of shared memory moved", self.shared),
        ]

    def __str__(self) -> str:
        return "\n".join(f"{name}: {count}" for name, count in self._rows() if count != 0)

    def _repr_latex_(self) -> str:
        lines = (
            rf"\text{{{name}}} &= {sympy.latex(count)}" for name, count in self._rows() if count
        )
        return "$$\\begin{aligned}" + r" \\ ".join(lines) + "\\end{aligned}$$"


def formulas(program: TileProgram, sizes: Mapping[Dim, int], target: str) -> tuple[Formula, ...]:
    """The formula of each kernel of a closed tile program, in order.

    ``sizes``: those it was made for; tiles that hold a whole dim are as long as these ask. Raises
    NoExpression, a ValueError, where bounds of loops need not be whole numbers.
    """
    known = fitting(program, sizes)
    return tuple(_Sum(program, nest, known, target).formula() for nest in program.nests)


class _Sum:
    """The expressions of a nest: the counts of one run of each statement, times its runs."""

    def __init__(
        self, program: TileProgram, nest: Nest, sizes: Mapping[Dim, int], target: str
    ) -> None:
        blocks = blocks_in(nest, bound_blocks(program, sizes))
        cut = {block.dim for block in nest.blocks}
        cut.update(dim for dim in blocks if size_class(dim) in program.units)
        self._extents = SymbolicExtents(nest, {}, {dim: blocks[dim] for dim in cut})
        extents = Extents(nest, sizes, blocks)
        self._layouts = layouts_at(program, nest, target, extents)
        self._counting = Counting(program, self._layouts, extents)
        tiling = self._layouts.tiling
        self._counting.tiling = with_told(nest, tiling, self._extents.size)
        self._loaded: dict[str, Symbolic] = defaultdict(int)
        self._stored: dict[str, Symbolic] = defaultdict(int)
        self._operations: dict[Unit, Symbolic] = defaultdict(int)
        self._special = self._shared = sympy.Integer(0)
        self._sizes = sized(program)

    def formula(self) -> Formula:
        """The formula of the nest."""
        for stmt, loops in self._extents.walk():
            runs = self._extents.tiles(loops)
            if isinstance(stmt, ACCESSES):
                self._access(stmt, loops, runs)
            elif not isinstance(stmt, For):
                self._computed(stmt, runs)
        return Formula(
            self._sizes,
            self._extents.tiles(self._extents.grid),
            dict(self._loaded),
            dict(self._stored),
            dict(self._operations),
            self._special,
            self._shared,
            footprint(self._layouts),
        )

    def _access(self, stmt: Load | Issue | Store, loops: Loops, runs: Symbolic) -> None:
        buffer, dims = stmt.view.buffer, stmt.view.sliced(accessed(stmt))
        moved = MEMORY[buffer.dtype].bytes * self._extents.elements(dims, loops)
        if isinstance(stmt, Store):
            self._stored[buffer.name] += moved
            return
        self._loaded[buffer.name] += moved
        self._shared += runs * sum(self._counting.through_shared(stmt))

    def _computed(self, stmt: Stmt, runs: Symbolic) -> None:
        once = self._counting.computed(stmt)
        for unit, count in once.operations.items():
            self._operations[unit] += runs * count
        self._special += runs * once.special
        self._shared += runs * (once.copied + once.fetched)
