"""About how long a part takes, before anything is fused for it: by this the search is steered.

An estimate is for one kernel. What that has to compute again, and how few programs it may become,
counts: a norm of long rows behind a product needs them whole, so each program of the one kernel
would compute all columns of its rows. Products that do not meet in the part are kernels of their
own. What units by themselves take beyond their bounds is mostly waiting, which
adds up.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf, prod
from typing import Any

from blockbuster.costs.coefficients import FITTED
from blockbuster.emit.schedule.block import LEAST
from blockbuster.emit.tile.between import width
from blockbuster.frontend.kinds import MOVES
from blockbuster.frontend.program import Equation, Shape
from blockbuster.ir.graph import Value
from blockbuster.selection.parts.alike import Key
from blockbuster.selection.parts.bounds import WHOLE_ROWS, Bounds
from blockbuster.selection.parts.operand_views import PRODUCT, elements
from blockbuster.selection.parts.units import POINTWISE, Units, numbers_in
from blockbuster.selection.priors import PRIORS

Kind = tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class Estimates:
    """Estimates for the parts of ``bounds.units``, in microseconds; parts are bits."""

    bounds: Bounds
    _kernels: dict[int, tuple[int, ...]] = field(default_factory=dict, init=False, repr=False)
    _busy: dict[Key, float] = field(default_factory=dict, init=False, repr=False)
    _kinds: dict[int, Kind] = field(default_factory=dict, init=False, repr=False)
    _units: dict[int, list[tuple[int, float, float]]] = field(
        default_factory=dict, init=False, repr=False
    )

    @property
    def units(self) -> Units:
        """The units that parts consist of."""
        return self.bounds.units

    def of(self, part: int, priced: Mapping[int, float]) -> float:
        """About what a part takes, times its weight, where some parts have prices.

        If it holds a part that took longer than its estimate, as much longer; if it shares units
        with one, somewhat longer, in proportion to them. And as much longer as one that is like a
        kernel of it in all but sizes: a norm and a product that became three kernels become three
        whatever columns the product has.
        """
        usual, weight = self._by_units(part, priced), self.bounds.weight
        longer = sum(self._like(own, priced) for own in self.kernels(part))
        for own, taken in priced.items():
            shared = (own & part).bit_count()
            if own == part or shared < 2 or taken == inf:
                continue
            excess = self._excess(own, priced)
            if own & ~part:
                excess = min(excess * shared / own.bit_count(), PRIORS.shared_estimate_part * usual)
            longer = max(longer, excess)
        return usual * weight(part) + longer

    def _excess(self, part: int, priced: Mapping[int, float]) -> float:
        """How much longer than its estimate a part took."""
        return priced[part] - self._by_units(part, priced) * self.bounds.weight(part)

    def _like(self, kernel: int, priced: Mapping[int, float]) -> float:
        """How much longer a part of several units took that is like one in all but sizes."""
        kind = self._kind(kernel)
        known = priced.items() if kind else ()
        alike = (own for own, taken in known if taken < inf and self._kind(own) == kind)
        return max((0.0, *(self._excess(own, priced) for own in alike)))

    def _kind(self, part: int) -> Kind:
        """The operators of a part, and which of them read one another; none of a single unit."""
        if part not in self._kinds:
            own = self.units.own(part) if part & (part - 1) else ()
            place = {at: number for number, at in enumerate(own)}
            equations = self.units.program.equations
            self._kinds[part] = tuple(
                (equations[at].op, equations[at].params, *(place.get(n) for _, n in self._read[at]))
                for at in own
            )
        return self._kinds[part]

    def again(self, part: int) -> dict[int, int]:
        """How often one kernel computes each equation of a part."""
        times = dict.fromkeys(self.units.own(part), 1)
        needed: dict[int, None] = {}  # those that a product of the part needs
        for at in sorted(times, reverse=True):
            product = self.units.program.equations[at].op == PRODUCT
            for place, base in self._read[at]:
                if base not in times:
                    continue
                if product or at in needed:
                    needed[base] = None
                often = self._repeats(at, place) if product or at in needed else 1
                often *= times[at] * self._blocks(at, place, times)
                times[base] = max(times[base], often)
        return times

    def programs(self, part: int) -> dict[int, float]:
        """How many programs of one kernel compute each equation of a part, at most."""
        found = dict.fromkeys(self.units.own(part), inf)
        for at in sorted(found, reverse=True):
            for _, base in self._read[at]:
                if base in found:
                    found[base] = min(found[base], found[at], self._programs(at, found))
        return found

    def kernels(self, part: int) -> tuple[int, ...]:
        """The parts that a part falls into: products that do not meet are kernels of their own."""
        if part not in self._kernels:
            self._kernels[part] = self._fallen_apart(part)
        return self._kernels[part]

    def _fallen_apart(self, part: int) -> tuple[int, ...]:
        before, read = self._before, 0
        needed: dict[int, int] = {}  # each unit with those that it needs in the part
        for unit in numbers_in(part):
            read |= before[unit]
            needed[unit] = 1 << unit
            for other in (n for n in needed if before[unit] >> n & 1):
                needed[unit] |= needed[other]
        groups: list[int] = []
        ends = (own for unit, own in needed.items() if not read >> unit & 1)
        for own in (one for end in ends for one in self._piece_by_piece(end, part, needed)):
            left = []
            for group in groups:
                if self._meet(group, own):
                    own |= group
                else:
                    left.append(group)
            groups = [*left, own]
        return tuple(groups)

    def _piece_by_piece(self, own: int, part: int, needed: Mapping[int, int]) -> list[int]:
        """What stores the pieces of joined arrays: each kernel its own, and one the pieces that
        others have stored. Just ``own``, the units that one needs, if that joins no arrays.
        """
        last = max(numbers_in(own))
        unit = self.units.units[last]
        ops = [self.units.program.equations[at].op for at in unit.equations]
        if "concat" not in ops or not {*ops} <= {*POINTWISE}:
            return [own]
        made = [needed[other] for other in numbers_in(self._before[last] & part)]
        whole = all(v.node >= 0 and part >> self.units.of[v.node] & 1 for v in unit.reads)
        return made if made and whole else [*made, 1 << last]

    def _meet(self, one: int, other: int) -> bool:
        """True if two parts that write different arrays are one kernel."""
        products = self._products
        return bool(one & other & products) or not (one | other) & products

    @cached_property
    def _before(self) -> tuple[int, ...]:
        return self.units.before

    @cached_property
    def _products(self) -> int:
        """The units with a product."""
        equations = self.units.program.equations
        return sum(
            1 << number
            for number, unit in enumerate(self.units.units)
            if any(equations[at].op == PRODUCT for at in unit.equations)
        )

    def _by_units(self, part: int, priced: Mapping[int, float]) -> float:
        """What the part takes by its bound and its units, whatever other parts took."""
        kernels = self.kernels(part)
        found = sum(self._in_one_kernel(own, priced) for own in kernels)
        return found * PRIORS.several_parts_factor if len(kernels) > 1 else found

    def _in_one_kernel(self, part: int, priced: Mapping[int, float]) -> float:
        beyond = 0.0
        for unit, least, usual in self._alone(part):
            known = priced.get(unit, inf)
            beyond += known - least if known < inf else usual
        return self._busiest(part) + beyond

    def _busiest(self, part: int) -> float:
        """What one kernel takes that computes again what it has to."""
        key = self.bounds.alike.key(part)
        if key not in self._busy:
            times, programs = self.again(part), self.programs(part)
            work = self.bounds.work(part, times, programs)
            busy = self.bounds.launched(*work, self._reading(times))
            self._busy[key] = max(self.bounds.least(part), busy)
        return self._busy[key]

    def _alone(self, part: int) -> list[tuple[int, float, float]]:
        """The units of a part: each with its bound, and with what it usually takes beyond that."""
        if part not in self._units:
            least = {1 << number: self.bounds.least(1 << number) for number in numbers_in(part)}
            beyond = PRIORS.usual_over_bound - 1.0
            self._units[part] = [(unit, known, beyond * known) for unit, known in least.items()]
        return self._units[part]

    def _reading(self, times: Mapping[int, int]) -> float:
        """Seconds in which products read from the cache what they multiply, each time anew."""
        moved = 0.0
        for at, often in times.items():
            equation = self.units.program.equations[at]
            for operand in equation.operands if equation.op == PRODUCT else ():
                assert isinstance(operand, Value)
                bases = self.units.bases[operand]
                if all(base.node not in times for base in bases):
                    bytes_each = max((width(self.bounds.dtypes[base]) for base in bases), default=0)
                    moved += often * self.bounds.count(operand) * bytes_each
        return moved / (self.bounds.machine.tiers[1].bandwidth * FITTED.cache)

    @cached_property
    def _read(self) -> Mapping[int, Sequence[tuple[int, int]]]:
        """For each equation those whose values it reads, and as which operand."""
        equations, bases = self.units.program.equations, self.units.bases
        return {
            at: [
                (place, base.node)
                for place, operand in enumerate(equations[at].operands)
                if isinstance(operand, Value)
                for base in bases[operand]
            ]
            for at in self.units.of
        }

    @cached_property
    def _products_reading(self) -> Mapping[int, Collection[int]]:
        """For each equation the products that read it."""
        found: dict[int, list[int]] = {at: [] for at in self._read}
        for at, read in self._read.items():
            if self.units.program.equations[at].op == PRODUCT:
                for _, base in read:
                    found.setdefault(base, []).append(at)
        return found

    def _count(self, shape: Shape) -> int:
        return elements(shape, self.bounds.sizes)

    def _blocks(self, at: int, place: int, own: Collection[int]) -> int:
        """How often an equation has an operand computed that is not stored."""
        equation = self.units.program.equations[at]
        if equation.op == PRODUCT:
            _, rows, columns = self._grid(equation)
            return columns if place == 0 else rows
        most = PRIORS.whole_elements_beside_dots
        if equation.op in WHOLE_ROWS and self._count(equation.shape[-1:]) > most:
            return 1 if self._feeds_product(at, own) else 2
        return 1

    def _repeats(self, at: int, place: int) -> int:
        """How often an equation repeats an operand along axes before the last two: if a product
        needs it, each repeat is another program's, as heads of keys that several heads of queries
        read.
        """
        equation = self.units.program.equations[at]
        operand = equation.operands[place]
        assert isinstance(operand, Value)
        shown = self.units.program.shape_of(operand)
        if len(shown) < 2 or equation.op in MOVES:
            return 1
        return self._count(equation.shape[:-2]) // max(self._count(shown[:-2]), 1) or 1

    def _grid(self, product: Equation) -> tuple[int, int, int]:
        """How many products there are, and how many blocks of rows and of columns each has.

        A product with a vector has no columns, or no rows.
        """
        left, right = (
            len(self.units.program.shape_of(operand)) > 1
            for operand in product.operands
            if isinstance(operand, Value)
        )
        shape = (*(() if left else (1,)), *product.shape)
        *batch, rows, columns = shape if right else (*shape, 1)
        dims = (rows, PRIORS.part_rows), (columns, PRIORS.part_columns)
        blocks = tuple(-(-self._count((dim,)) // lanes) for dim, lanes in dims)
        return self._count(tuple(batch)), blocks[0] or 1, blocks[1] or 1

    def _programs(self, at: int, own: Collection[int]) -> float:
        """How many programs can share what an equation needs of its kernel, at most."""
        equation = self.units.program.equations[at]
        if equation.op == PRODUCT:
            steps = -(-self.bounds.inner(equation) // PRIORS.part_rows)
            return prod(self._grid(equation)) * steps or 1
        if equation.op in WHOLE_ROWS and not self._feeds_product(at, own):
            return -(-self._count(equation.shape[:-1]) // LEAST) or 1
        return inf

    def _feeds_product(self, at: int, own: Collection[int]) -> bool:
        """True if a product in the same part reads an equation."""
        return any(reader in own for reader in self._products_reading[at])
