"""What a part of a program takes at least, before anything is fused for it; and about how long.

The bound is admissible for one kernel and for several: a part reads what it is given and writes
what others read at least once, computes each of its operators at least once, and is launched once.
A launch counts as one by the host: in calls outside of CUDA graphs each kernel costs one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from math import inf

from blockbuster.costs.coefficients import FITTED
from blockbuster.emit.tile.between import width
from blockbuster.frontend.program import Equation
from blockbuster.ir.graph import Value
from blockbuster.ir.types import Dim
from blockbuster.machines import CPU, Machine
from blockbuster.selection.candidates.candidate import LARGE
from blockbuster.selection.parts.units import OPAQUE, PRODUCT, Units, elements

OPERATIONS = {"softmax": 4, "logsumexp": 3, "log_softmax": 4, "rms_norm": 4, "layer_norm": 6}
"""Operations of each element of operators that are several; others are one."""

WHOLE_ROWS = ("softmax", "log_softmax", "rms_norm", "layer_norm")
"""Operators whose results need all of a row first."""

SEEN = 0.5
"""The part of a product that a mask of positions leaves to compute at least: one triangle."""

USUAL = 1.1
"""How many times its bound a unit by itself is expected to take, until it has a price: products of
1024 x 4096 x 4096 take 1.08 times theirs, and a unit is priced in a quarter of a second. By 1.4
times, a linear layer behind which a norm folds whole rows was never tried as two kernels."""

ROWS, COLUMNS, HELD = 128, 256, 512
"""Rows and columns of a block of a product, and elements of a row that a program can hold: what a
kernel computes of its operands it computes again for each other block, or each time that it reads
a longer row."""

MUCH = 4
"""How many times as large as every input and output an array between two parts is before it counts
``LARGE`` times: scores of attention are, which grow with the product of two sizes until memory is
full; hidden layers of networks, four times as wide as their rows, are not."""

SHARED = 0.3
"""Of its own estimate, what a part takes longer at most for units that took longer in another: a
part may be slow for what that one left out."""


@dataclass(frozen=True)
class Bounds:
    """Bounds and estimates for the parts of ``units``, in microseconds; parts are bits.

    ``dtypes``: those in which inputs and values that cross from part to part are kept.
    """

    units: Units
    sizes: Mapping[Dim, int]
    dtypes: Mapping[Value, str]
    machine: Machine
    _known: dict[int, float] = field(default_factory=dict, init=False, repr=False, compare=False)

    def least(self, part: int) -> float:
        """What no kernel of the part goes below."""
        if part not in self._known:
            self._known[part] = self._least(part)
        return self._known[part]

    def estimate(self, part: int, priced: Mapping[int, float]) -> float:
        """About what a kernel of the part takes, times its weight, where some parts have prices.

        As many times its bound as its units take theirs. If it holds a part that took longer than
        that, as much longer; if it shares units with one, somewhat longer, in proportion to them.
        """
        usual = self._by_units(part, priced)
        longer = 0.0
        for own, taken in priced.items():
            shared = (own & part).bit_count()
            if own == part or shared < 2 or taken == inf:
                continue
            excess = taken - self._by_units(own, priced) * self.weight(own)
            if own & ~part:
                excess = min(excess * shared / own.bit_count(), SHARED * usual)
            longer = max(longer, excess)
        return usual * self.weight(part) + longer

    def weight(self, part: int) -> float:
        """``LARGE`` for a part that reads or gives an array far larger than all that the program
        is given or gives; else 1.
        """
        program, units = self.units.program, self.units
        shapes = [one.shape for one in program.inputs]
        shapes += [program.shape_of(output.value) for output in program.outputs]
        largest = max(elements(shape, self.sizes) for shape in shapes)
        members = (unit for number, unit in enumerate(units.units) if part >> number & 1)
        outer = {v for unit in members for v in unit.reads if v.node >= 0}
        outer -= {Value(at) for at in units.own(part)}
        outer |= {Value(at) for at in given(units, part)}
        many = any(elements(program.shape_of(v), self.sizes) > MUCH * largest for v in outer)
        return LARGE if many else 1.0

    def again(self, part: int) -> dict[int, int]:
        """How often one kernel computes each equation of a part."""
        program, bases = self.units.program, self.units.bases
        own, stored = self.units.own(part), given(self.units, part)
        times = dict.fromkeys(own, 1)
        for at in sorted(own, reverse=True):
            equation = program.equations[at]
            for place, operand in enumerate(equation.operands):
                for base in bases[operand] if isinstance(operand, Value) else ():
                    if base.node in times and base.node not in stored:
                        often = times[at] * self._blocks(at, place, times)
                        times[base.node] = max(times[base.node], often)
        return times

    def _by_units(self, part: int, priced: Mapping[int, float]) -> float:
        """What the part takes by its bound and its units, whatever other parts took."""
        units = [1 << n for n in range(len(self.units)) if part >> n & 1]
        least = sum(map(self.least, units))
        taken = sum(
            priced[unit] if priced.get(unit, inf) < inf else USUAL * self.least(unit)
            for unit in units
        )
        times = taken / least if least else USUAL
        return max(self.least(part), self._launched(*self._work(part, self.again(part)))) * times

    def _least(self, part: int) -> float:
        program = self.units.program
        if all(program.equations[at].op == OPAQUE for at in self.units.own(part)):
            return 0.0  # the same in every plan
        once = dict.fromkeys(self.units.own(part), 1)
        moved = self._read(part) + self._written(part)
        moving = moved / self._bandwidth(moved)
        return self._launched(moving, *self._work(part, once))

    def _bandwidth(self, moved: float) -> float:
        """Bytes a second, at most: what a CPU moves may be in a cache that holds it all."""
        if self.machine.kind != CPU:
            return self.machine.memory.bandwidth
        held = [tier for tier in self.machine.tiers if tier.bytes >= moved]
        return max(tier.bandwidth for tier in held or [self.machine.memory])

    @property
    def launching(self) -> float:
        """Microseconds of a kernel that does nothing."""
        return self._launched(0.0)

    def _launched(self, *seconds: float) -> float:
        """Microseconds of a kernel that is busy for so many seconds with each of several things."""
        return (self.machine.launch.plain + FITTED.start + max(seconds)) * 1e6

    def _work(self, part: int, times: Mapping[int, int]) -> tuple[float, float]:
        """Seconds of matrix and of other units, where equations are computed so many ``times``."""
        ops = [(self.units.program.equations[at], times[at]) for at in self.units.own(part)]
        masked = any(one.op == "where" for one, _ in ops)
        products, other = 0.0, 0.0
        for one, often in ops:
            if one.op == PRODUCT:
                products += 2.0 * often * elements(one.shape, self.sizes) * self._inner(one)
            else:
                other += OPERATIONS.get(one.op, 1) * often * elements(one.shape, self.sizes)
        matrix = products * (SEEN if masked else 1.0) / self._rate()
        return matrix, other / self.machine.rate("vector", "float32")

    def _blocks(self, at: int, place: int, own: Collection[int]) -> int:
        """How often an equation has an operand computed that is not stored."""
        equation = self.units.program.equations[at]
        if equation.op == PRODUCT:
            shape = (1, 1, *equation.shape)
            other, block = (shape[-1], COLUMNS) if place == 0 else (shape[-2], ROWS)
            return -(-elements((other,), self.sizes) // block) or 1
        if equation.op in WHOLE_ROWS and elements(equation.shape[-1:], self.sizes) > HELD:
            readers = (n for n in own if Value(at) in self._bases_of(n))
            return 1 if any(self.units.program.equations[n].op == PRODUCT for n in readers) else 2
        return 1

    def _bases_of(self, at: int) -> list[Value]:
        operands = (o for o in self.units.program.equations[at].operands if isinstance(o, Value))
        return [base for operand in operands for base in self.units.bases[operand]]

    def _rate(self) -> float:
        """Operations a second of products, at most: in the first half precision of an input."""
        given = (dtype for value, dtype in self.dtypes.items() if value.node < 0)
        halves = (dtype for dtype in given if dtype in ("float16", "bfloat16"))
        return self.machine.rate("matrix", next(halves, "float16"))

    def _inner(self, product: Equation) -> int:
        """The length of the axis that a product sums over."""
        left = product.operands[0]
        assert isinstance(left, Value)
        last = self.units.program.shape_of(left)[-1]
        return self.sizes[last] if isinstance(last, str) else 1

    def _read(self, part: int) -> int:
        """Bytes of what the part reads of others: of views, those that they show."""
        program, bases = self.units.program, self.units.bases
        own = dict.fromkeys(self.units.own(part))
        shown: dict[Value, dict[Value, None]] = {}
        for at in own:
            for operand in program.equations[at].operands:
                for base in bases[operand] if isinstance(operand, Value) else ():
                    if base.node not in own and isinstance(operand, Value):
                        shown.setdefault(base, {})[operand] = None
        total = 0
        for base, views in shown.items():
            seen = sum(elements(program.shape_of(view), self.sizes) for view in views)
            all_of_it = elements(program.shape_of(base), self.sizes)
            total += min(seen, all_of_it) * width(self.dtypes[base])
        return total

    def _written(self, part: int) -> int:
        program = self.units.program
        found = (Value(at) for at in given(self.units, part))
        return sum(elements(program.shape_of(v), self.sizes) * width(self.dtypes[v]) for v in found)


def given(units: Units, part: int) -> tuple[int, ...]:
    """The equations of a part whose values others read, or outputs show."""
    program = units.program
    outer = {
        value.node
        for number, unit in enumerate(units.units)
        if not part >> number & 1
        for value in unit.reads
    }
    outer |= {base.node for output in program.outputs for base in units.bases[output.value]}
    return tuple(at for at in units.own(part) if at in outer)
