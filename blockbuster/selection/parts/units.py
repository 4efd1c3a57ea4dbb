"""The units of an array program: what a plan puts into one kernel or another, never apart.

    y = x @ w          unit 1: matmul, add, maximum          views, positions and what is computed
    z = relu(y + b)    unit 2: sum                           of positions alone belong to no unit:
    s = sum(z.T, 0)                                          each reader has its own

A pointwise operator is glued to its only reader, or to what it reads where nothing else reads that,
so that plans are few. It is not glued to a product that reads it: the product would compute it once
for every block of columns. Nor to what reads it by windows that overlap, which would compute it for
each of them, nor to a smaller array that it reads, so that a fold and what reads the folded array
again may be two kernels. The sum of a product over a batch axis is glued to it:
together they are one product, summed over more axes, as over the taps of a filter.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import heapify, heappop, heappush

from blockbuster.frontend.kinds import FLOAT, MOVES
from blockbuster.frontend.program import ArrayOutput, ArrayProgram
from blockbuster.ir.expr import FUNCTIONS
from blockbuster.ir.graph import Value
from blockbuster.ir.types import Dim
from blockbuster.selection.parts.operand_views import (
    OPAQUE,
    PRODUCT,
    copied_for_products,
    elements,
    joined_for_products,
    operands_of,
    repeats,
    windows_of,
)

POINTWISE = (*FUNCTIONS, "cast", "concat")


@dataclass(frozen=True)
class Unit:
    """Equations that stay together, by position. ``reads``: inputs, and values of other units."""

    equations: tuple[int, ...]
    reads: tuple[Value, ...]


@dataclass(frozen=True)
class Units:
    """The units of a program in an order in which they can run.

    ``bases``: what each value is a view of, or computed of without a unit: inputs and values of
    units.
    """

    program: ArrayProgram
    units: tuple[Unit, ...]
    bases: Mapping[Value, tuple[Value, ...]] = field(repr=False)
    of: Mapping[int, int] = field(repr=False)
    """The number of each equation's unit."""

    def __len__(self) -> int:
        return len(self.units)

    @cached_property
    def before(self) -> tuple[int, ...]:
        """For each unit the units that it reads, as bits."""
        return tuple(
            sum({1 << self.of[v.node] for v in unit.reads if v.node >= 0}) for unit in self.units
        )

    @cached_property
    def beside(self) -> tuple[int, ...]:
        """For each unit those that it reads, that read it, or that read an array that it reads."""
        found = list(self.before)
        for value, read_by in self.readers.items():
            maker = 1 << self.of[value.node] if value.node >= 0 else 0
            for number in numbers_in(read_by | maker):
                found[number] |= read_by | maker
        return tuple(bits & ~(1 << number) for number, bits in enumerate(found))

    @cached_property
    def readers(self) -> Mapping[Value, int]:
        """For each value that units read of others or of inputs, those units, as bits."""
        found: dict[Value, int] = {}
        for number, unit in enumerate(self.units):
            for value in unit.reads:
                found[value] = found.get(value, 0) | 1 << number
        return found

    def crosses(self, value: Value, part: int) -> bool:
        """True if a unit outside of ``part`` reads ``value``."""
        return bool(self.readers.get(value, 0) & ~part)

    def given(self, part: int) -> tuple[int, ...]:
        """The equations of a part whose values other parts read, or outputs show."""
        shown, own = self.shown, self.own(part)
        return tuple(at for at in own if at in shown or self.crosses(Value(at), part))

    @cached_property
    def shown(self) -> frozenset[int]:
        """The equations that outputs of the program show."""
        bases = (self.bases[output.value] for output in self.program.outputs)
        return frozenset(base.node for own in bases for base in own)

    def shown_by(self, part: int) -> list[ArrayOutput]:
        """The outputs of the program that ``part`` gives.

        An output that no unit computes, an input or a view of one, is given by the part of the
        first unit that reads that input, or else of the first unit.
        """
        own = dict.fromkeys(self.own(part))

        def is_shown(output: ArrayOutput) -> bool:
            bases = self.bases[output.value]
            if any(base.node >= 0 for base in bases):
                return all(base.node in own for base in bases)
            readers = (n for n, unit in enumerate(self.units) if {*bases} & {*unit.reads})
            return bool(part >> next(readers, 0) & 1)

        return [output for output in self.program.outputs if is_shown(output)]

    def own(self, part: int) -> list[int]:
        """The equations of the units in ``part``."""
        return [at for number in numbers_in(part) for at in self.units[number].equations]

    def equations(self, part: int) -> tuple[int, ...]:
        """The equations of the units in ``part``, and those without a unit that they need."""
        return _with_free(self.program, self.own(part), self.of)

    def with_views(self, equations: Sequence[int], values: Sequence[Value]) -> tuple[int, ...]:
        """``equations`` with those without a unit that ``values`` need."""
        free = [v.node for v in values if v.node >= 0 and v.node not in self.of]
        return _with_free(self.program, [*equations, *free], self.of)


def numbers_in(part: int) -> Iterator[int]:
    """The numbers of the units in ``part``, from the lowest.

    >>> [*numbers_in(0b1101)]
    [0, 2, 3]
    """
    while part:
        lowest = part & -part
        yield lowest.bit_length() - 1
        part ^= lowest


def units_of(program: ArrayProgram, sizes: Mapping[Dim, int]) -> Units:
    """The units of ``program`` at ``sizes``: none if its outputs are inputs or views of them."""
    free = _free(program, sizes)
    bases = _bases(program, free)
    live = program.needed(output.value for output in program.outputs)
    computed = [at for at in live if at not in free]
    gluing = _Gluing(program, sizes, computed, bases)
    return _numbered(program, gluing.groups(), bases)


@dataclass
class _Group:
    """Equations that are glued, and the ``outer`` ones that read them."""

    members: list[int]
    outer: dict[int, None]
    pointwise: bool
    product: bool

    def take(self, other: _Group) -> None:
        """Add another group. The smaller one of two is added, so that gluing stays cheap."""
        self.members += other.members
        self.outer |= other.outer
        self.pointwise = self.pointwise and other.pointwise
        self.product = self.product or other.product

    @property
    def size(self) -> int:
        """What adding it to another group costs."""
        return len(self.members) + len(self.outer)


class _Gluing:
    """Groups of equations that grow by gluing. No group reads itself through others."""

    def __init__(
        self,
        program: ArrayProgram,
        sizes: Mapping[Dim, int],
        computed: Sequence[int],
        bases: Mapping[Value, tuple[Value, ...]],
    ) -> None:
        self._program, self._sizes, self._computed = program, sizes, computed
        self._reads = {
            at: tuple(dict.fromkeys(b for v in operands_of(program, at) for b in bases[v]))
            for at in computed
        }
        self._readers: dict[int, list[int]] = {at: [] for at in computed}
        for at, read in self._reads.items():
            for base in read:
                if base.node >= 0:
                    self._readers[base.node].append(at)
        self._windows = windows_of(program, bases)
        self._ends = frozenset(b.node for o in program.outputs for b in bases[o.value])
        self._group = {at: self._alone(at) for at in computed}

    def _alone(self, at: int) -> _Group:
        op = self._program.equations[at].op
        outer = dict.fromkeys(self._readers[at])
        return _Group([at], outer, op in POINTWISE, op == PRODUCT)

    def groups(self) -> list[list[int]]:
        """The groups, each in order."""
        for at in joined_for_products(self._program, self._sizes):
            self._glue(self._reads[at][0].node, at)
        for at in self._computed:
            self._glue_to_product(at)
        pointwise = [at for at in self._computed if self._program.equations[at].op in POINTWISE]
        for at in pointwise:
            self._glue_to_operand(at)
        for at in reversed(pointwise):
            self._glue_to_reader(at)
        for at in self._computed:
            if self._program.equations[at].kind != FLOAT:
                self._glue_whole(at)
        found = {id(group): group for group in (self._group[at] for at in self._computed)}
        return [sorted(group.members) for group in found.values()]

    def _elements(self, at: int) -> int:
        return elements(self._program.equations[at].shape, self._sizes)

    def _glue_to_product(self, at: int) -> None:
        """A sum over batches of a product that nothing else reads: it is summed over more axes."""
        program, equation = self._program, self._program.equations[at]
        if equation.op != "sum":
            return
        (operand,) = operands_of(program, at)
        own, axis = operand.node, equation.param("axis") % len(program.shape_of(operand))
        if own < 0 or own in self._ends or self._readers.get(own) != [at]:
            return
        if self._group[own].product and axis < len(program.shape_of(operand)) - 2:
            self._glue(own, at)

    def _glue_to_operand(self, at: int) -> None:
        """To an array as large that nothing else reads, the one that is computed last."""
        for base in sorted(self._reads[at], key=lambda value: -value.node):
            own = base.node
            if own < 0 or own in self._ends or self._readers[own] != [at]:
                continue
            opaque = self._program.equations[own].op == OPAQUE
            if not opaque and self._elements(own) == self._elements(at) and self._glue(own, at):
                return

    def _glue_to_reader(self, at: int) -> None:
        """Pointwise operators alone, to the group of all their readers, unless one is a product."""
        own = self._group[at]
        if not own.pointwise or not own.outer or not self._ends.isdisjoint(own.members):
            return
        if self._overlap(at, own):
            return
        first = next(iter(own.outer))
        group, equations = self._group[first], self._program.equations
        if all(
            self._group[reader] is group and equations[reader].op not in (PRODUCT, OPAQUE)
            for reader in own.outer
        ):
            self._glue(at, first)

    def _overlap(self, at: int, group: _Group) -> bool:
        """True if windows of a group's values read more elements than there are, not counting one
        element of each window: windows of a padded axis read some behind its ends.
        """
        counts = [
            (elements(self._program.shape_of(value), self._sizes), self._elements(reader))
            for reader in group.outer
            for value in operands_of(self._program, reader)
            if any(self._group[own] is group for own in self._windows.get(value.node, ()))
        ]
        beside = min((windows for _, windows in counts), default=0)
        return sum(read for read, _ in counts) > self._elements(at) + beside

    def _glue_whole(self, at: int) -> None:
        """To all readers, where that is possible: masks and integers are seldom worth an array."""
        for reader in self._readers[at]:
            self._glue(at, reader)

    def _glue(self, one: int, other: int) -> bool:
        """Make the groups of an equation and of one that reads it one group.

        Refused if a way leads from one to the other through others.
        """
        first, second = self._group[one], self._group[other]
        if first is second:
            return True
        if self._has_detour(first, second):
            return False
        large, small = (first, second) if first.size >= second.size else (second, first)
        for at in small.members:
            self._group[at] = large
            large.outer.pop(at, None)
        small.outer = {at: None for at in small.outer if self._group[at] is not large}
        large.take(small)
        return True

    def _has_detour(self, first: _Group, second: _Group) -> bool:
        """True if a way leads from ``first`` through others to ``second``, which reads it.

        None leads back: groups are an order, as equations are.
        """
        left = [at for at in first.outer if self._group[at] is not second]
        seen: set[int] = set()
        while left:
            group = self._group[left.pop()]
            if group is second:
                return True
            if id(group) not in seen:
                seen.add(id(group))
                left += group.outer
        return False


def _numbered(
    program: ArrayProgram, groups: Sequence[Sequence[int]], bases: Mapping[Value, tuple[Value, ...]]
) -> Units:
    """Groups as units, in an order in which they can run: by what each of them needs."""
    group_of = {at: n for n, group in enumerate(groups) for at in group}
    reads = [
        tuple(
            dict.fromkeys(
                base
                for at in group
                for value in operands_of(program, at)
                for base in bases[value]
                if group_of.get(base.node, -1) != n
            )
        )
        for n, group in enumerate(groups)
    ]
    order = _in_order([{group_of[v.node] for v in read if v.node >= 0} for read in reads])
    units = tuple(Unit(tuple(groups[n]), reads[n]) for n in order)
    of = {at: number for number, unit in enumerate(units) for at in unit.equations}
    return Units(program, units, bases, of)


def _in_order(needs: Sequence[Collection[int]]) -> list[int]:
    """Numbers behind all that each of them needs, always the lowest that can come next."""
    waiting = [len(own) for own in needs]
    readers: list[list[int]] = [[] for _ in needs]
    for number in range(len(needs)):
        for needed in needs[number]:
            readers[needed].append(number)
    ready = [number for number, count in enumerate(waiting) if not count]
    heapify(ready)
    found: list[int] = []
    while ready:
        found.append(heappop(ready))
        for reader in readers[found[-1]]:
            waiting[reader] -= 1
            if not waiting[reader]:
                heappush(ready, reader)
    return found


def _free(program: ArrayProgram, sizes: Mapping[Dim, int]) -> set[int]:
    """Views, positions, and what is computed of positions and numbers alone."""
    found: set[int] = set()
    of_positions: set[int] = set()
    copied = {*copied_for_products(program, sizes), *joined_for_products(program, sizes)}
    for at, equation in enumerate(program.equations):
        operands = [v.node for v in operands_of(program, at)]
        alone = equation.op != OPAQUE and all(node in of_positions for node in operands)
        if alone:
            of_positions.add(at)
        if alone or (equation.op in MOVES and at not in copied) or repeats(equation):
            found.add(at)
    return found


def _bases(program: ArrayProgram, free: set[int]) -> dict[Value, tuple[Value, ...]]:
    inputs = (Value(-1, port) for port in range(len(program.inputs)))
    found: dict[Value, tuple[Value, ...]] = {value: (value,) for value in inputs}
    for at in range(len(program.equations)):
        if at in free:
            each = dict.fromkeys(b for v in operands_of(program, at) for b in found[v])
            found[Value(at)] = tuple(each)
        else:
            found[Value(at)] = (Value(at),)
    return found


def _with_free(
    program: ArrayProgram, equations: Sequence[int], of: Mapping[int, int]
) -> tuple[int, ...]:
    found = dict.fromkeys(equations)
    left = list(equations)
    while left:
        for value in operands_of(program, left.pop()):
            if value.node >= 0 and value.node not in of and value.node not in found:
                found[value.node] = None
                left.append(value.node)
    return tuple(sorted(found))
