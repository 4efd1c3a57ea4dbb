"""What a part of a program takes at least, before anything is fused for it.

The bound is admissible for one kernel and for several: a part reads what it is given and writes
what others read at least once, computes each of its operators at least once, and is launched once.
A launch counts as one by the host: in calls outside of CUDA graphs each kernel costs one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf

from blockbuster.costs.coefficients import FITTED
from blockbuster.emit.tile.between import width
from blockbuster.frontend.program import Equation
from blockbuster.ir.graph import Value
from blockbuster.ir.types import Dim
from blockbuster.machines import CPU, Machine
from blockbuster.selection.parts.alike import Alike, Key
from blockbuster.selection.parts.operand_views import OPAQUE, PRODUCT, elements, most_outside
from blockbuster.selection.parts.units import Units, numbers_in
from blockbuster.selection.priors import PRIORS

WHOLE_ROWS = ("softmax", "log_softmax", "rms_norm", "layer_norm")
"""Operators whose results need all of a row first."""


@dataclass(frozen=True)
class Bounds:
    """Bounds for the parts of ``units``, in microseconds; parts are bits.

    ``dtypes``: those in which inputs and values that cross from part to part are kept.
    ``any_work``: programs may be found that do less arithmetic, so that bytes alone bound a part.
    """

    units: Units
    sizes: Mapping[Dim, int]
    dtypes: Mapping[Value, str]
    machine: Machine
    any_work: bool = False
    _known: dict[Key, float] = field(default_factory=dict, init=False, repr=False, compare=False)
    _weights: dict[Key, float] = field(default_factory=dict, init=False, repr=False, compare=False)
    _counts: dict[Value, int] = field(default_factory=dict, init=False, repr=False, compare=False)

    def least(self, part: int, stored: Sequence[int] | None = None) -> float:
        """What no kernel of the part goes below. ``stored``: the equations whose results it writes,
        if not all that others read.
        """
        if stored is not None:
            return self._least(part, stored)
        key = self.alike.key(part)
        if key not in self._known:
            self._known[key] = self._least(part, self.units.given(part))
        return self._known[key]

    @cached_property
    def alike(self) -> Alike:
        """Which parts have the same bounds."""
        return Alike(self.units, self.sizes, self.dtypes)

    def weight(self, part: int, stored: Sequence[int] | None = None) -> float:
        """``stored_large_factor`` for a part that reads or writes an array far larger than all that
        the program is given or gives; else 1. ``stored``: as in ``least``.
        """
        if stored is not None:
            return self._weight(part, stored)
        key = self.alike.key(part)
        if key not in self._weights:
            self._weights[key] = self._weight(part, self.units.given(part))
        return self._weights[key]

    def _weight(self, part: int, stored: Sequence[int]) -> float:
        units = self.units
        members = (units.units[number] for number in numbers_in(part))
        outer = {v for unit in members for v in unit.reads if v.node >= 0}
        outer -= {Value(at) for at in units.own(part)}
        outer |= {Value(at) for at in stored}
        most = PRIORS.large_array_factor * self._largest
        many = any(self.count(value) > most for value in outer)
        return PRIORS.stored_large_factor if many else 1.0

    def count(self, value: Value) -> int:
        """How many elements an input or a result has."""
        if value not in self._counts:
            self._counts[value] = elements(self.units.program.shape_of(value), self.sizes)
        return self._counts[value]

    @cached_property
    def _largest(self) -> int:
        return most_outside(self.units.program, self.sizes)

    def _least(self, part: int, stored: Sequence[int]) -> float:
        program = self.units.program
        if all(program.equations[at].op == OPAQUE for at in self.units.own(part)):
            return 0.0  # the same in every plan
        once = dict.fromkeys(self.units.own(part), 1)
        moved = self._read(part) + self._written(stored)
        moving = moved / self._bandwidth(moved)
        matrix, other = (0.0, 0.0) if self.any_work else self.work(part, once, {})
        if any(program.equations[at].op == "where" for at in once):
            matrix *= PRIORS.masked_part
        return self.launched(moving, matrix, other)

    def _bandwidth(self, moved: float) -> float:
        """Bytes a second, at most: what a CPU moves may be in a cache that holds it all."""
        if self.machine.kind != CPU:
            return self.machine.memory.bandwidth
        held = [tier for tier in self.machine.tiers if tier.bytes >= moved]
        return max(tier.bandwidth for tier in held or [self.machine.memory])

    def launched(self, *seconds: float) -> float:
        """Microseconds of a kernel that is busy for so many seconds with each of several things."""
        return (self.machine.launch.plain + FITTED.start + max(seconds)) * 1e6

    def work(
        self, part: int, times: Mapping[int, int], programs: Mapping[int, float]
    ) -> tuple[float, float]:
        """Seconds of matrix and of other units, where equations are computed so many ``times``.

        ``programs``: the most that compute an equation, each on one processor; without one, all
        processors are busy.
        """
        products, other = 0.0, 0.0
        for at in self.units.own(part):
            one = self.units.program.equations[at]
            count = times[at] * self.count(Value(at))
            if one.op == PRODUCT:
                products += 2.0 * count * self.inner(one) * self.idle(programs.get(at, inf))
            else:
                other += PRIORS.operations_of_rows.get(one.op, 1) * count
        return products / self._rate, other / self.machine.rate("vector", "float32")

    def idle(self, programs: float) -> float:
        """How many times longer work takes that so many programs do, each on one processor."""
        return max(self.machine.processors / programs, 1.0)

    @cached_property
    def _rate(self) -> float:
        """Operations a second of products, at most: in the first half precision of an input."""
        given = (dtype for value, dtype in self.dtypes.items() if value.node < 0)
        halves = (dtype for dtype in given if dtype in ("float16", "bfloat16"))
        return self.machine.rate("matrix", next(halves, "float16"))

    def inner(self, product: Equation) -> int:
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
            seen = sum(map(self.count, views))
            total += min(seen, self.count(base)) * width(self.dtypes[base])
        return total

    def _written(self, stored: Sequence[int]) -> int:
        return sum(self.count(v) * width(self.dtypes[v]) for v in map(Value, stored))
