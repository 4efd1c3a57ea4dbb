"""What a part of a program takes at least, before anything is fused for it; and about how long.

The bound is admissible for one kernel and for several: a part reads what it is given and writes
what others read at least once, computes each of its operators at least once, and launches once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf

from blockbuster.costs.coefficients import FITTED
from blockbuster.frontend.program import Equation
from blockbuster.ir.graph import Value
from blockbuster.ir.types import Dim
from blockbuster.machines import Machine
from blockbuster.selection.parts.units import OPAQUE, POINTWISE, PRODUCT, Units, elements

BYTES = {"float64": 8, "float32": 4, "int64": 8, "int32": 4, "int8": 1, "uint8": 1, "bool": 1,
         "float8_e4m3fn": 1}  # fmt: skip
"""Of dtypes that have another number than two."""

OPERATIONS = {"softmax": 4, "logsumexp": 3, "log_softmax": 4, "rms_norm": 4, "layer_norm": 6}
"""Operations of each element of operators that are several; others are one."""

SEEN = 0.5
"""The part of a product that a mask of positions leaves to compute at least: one triangle."""

USUAL, CHAINED = 1.4, 1.25
"""How many times its bound a unit is expected to take, and how many times more a part for each
operator in a chain behind a product that folds or multiplies what is computed of it: it keeps whole
rows, or computes them again. Of 30 units of a decoder block with made-up prices, plans steered by
1.4 times the bound were within 1.5% of the best, by 1.7 within 7%, at a fifth of the parts that
bare bounds have priced."""


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
        """About what a kernel of the part takes, where some parts have prices.

        As many times its bound as its units take theirs. And if it has units together that took
        longer than that in a part with a price, as much longer: in proportion to how many of that
        part's units it has.
        """
        longer = [
            (taken - self._by_units(own, priced)) * (own & part).bit_count() / own.bit_count()
            for own, taken in priced.items()
            if own != part and (own & part).bit_count() > 1 and taken < inf
        ]
        return self._by_units(part, priced) + max(longer, default=0.0)

    def _by_units(self, part: int, priced: Mapping[int, float]) -> float:
        """The same from the units alone."""
        units = [1 << n for n in range(len(self.units)) if part >> n & 1]
        least = sum(map(self.least, units))
        taken = sum(
            priced[unit] if priced.get(unit, inf) < inf else USUAL * self.least(unit)
            for unit in units
        )
        times = taken / least if least else USUAL
        return self.least(part) * times * CHAINED ** self._chained(part)

    def _least(self, part: int) -> float:
        program = self.units.program
        equations = self.units.equations(part)
        ops = [program.equations[at] for at in equations]
        if all(program.equations[at].op == OPAQUE for at in self._own(part)):
            return 0.0  # the same in every plan
        moved = self._read(part) + self._written(part)
        masked = any(one.op == "where" for one in ops)
        products, other = 0.0, 0.0
        for one in ops:
            if one.op == PRODUCT:
                products += 2.0 * elements(one.shape, self.sizes) * self._inner(one)
            else:
                other += OPERATIONS.get(one.op, 1) * elements(one.shape, self.sizes)
        matrix = products * (SEEN if masked else 1.0) / self._rate()
        vector = other / self.machine.rate("vector", "float32")
        longest = max(moved / self.machine.memory.bandwidth, matrix, vector)
        return (self.machine.launch.graph + FITTED.start + longest) * 1e6

    def _own(self, part: int) -> list[int]:
        units = enumerate(self.units.units)
        return [at for n, unit in units if part >> n & 1 for at in unit.equations]

    def _rate(self) -> float:
        floats = [dtype for value, dtype in self.dtypes.items() if value.node < 0]
        narrow = [dtype for dtype in floats if dtype in ("float16", "bfloat16")]
        return self.machine.rate("matrix", narrow[0] if narrow else "float16")

    def _inner(self, product: Equation) -> int:
        """The length of the axis that a product sums over."""
        left = product.operands[0]
        assert isinstance(left, Value)
        last = self.units.program.shape_of(left)[-1]
        return self.sizes[last] if isinstance(last, str) else 1

    def _bytes(self, value: Value) -> int:
        return BYTES.get(self.dtypes.get(value, ""), 2)

    def _read(self, part: int) -> int:
        """Bytes of what the part reads of others: of views, those that they show."""
        program, bases = self.units.program, self.units.bases
        own = dict.fromkeys(self._own(part))
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
            total += min(seen, all_of_it) * self._bytes(base)
        return total

    def _written(self, part: int) -> int:
        program = self.units.program
        found = (Value(at) for at in given(self.units, part))
        return sum(elements(program.shape_of(v), self.sizes) * self._bytes(v) for v in found)

    def _chained(self, part: int) -> int:
        """How many operators, one behind the other, fold or multiply what a product is read by."""
        program, bases = self.units.program, self.units.bases
        depths: dict[int, int] = {}  # of what is computed of a product
        for at in sorted(self._own(part)):
            equation = program.equations[at]
            read = (base for o in equation.operands if isinstance(o, Value) for base in bases[o])
            behind = [depths[base.node] for base in read if base.node in depths]
            if behind:
                depths[at] = max(behind) + (equation.op not in (*POINTWISE, OPAQUE))
            elif equation.op == PRODUCT:
                depths[at] = 0
        return max(depths.values(), default=0)


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
    own = (unit.equations for number, unit in enumerate(units.units) if part >> number & 1)
    return tuple(at for equations in own for at in equations if at in outer)
