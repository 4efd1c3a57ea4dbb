"""Parts that are the same but for their place in the program, as those of equal layers are.

    layer 1:  h = x @ w1    y = relu(h) + x          {0, 1} and {2, 3} are alike: bounds and
    layer 2:  i = y @ w2    z = relu(i) + y          estimates of one are those of the other

Only what bounds and estimates may read of a part counts: operators with their numbers, the extents
and dtypes of what they read and give, which of them read one another or the same input, and which
units read the results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from blockbuster.frontend.program import Shape
from blockbuster.ir.graph import Value
from blockbuster.ir.types import Dim
from blockbuster.selection.parts.units import Units, numbers_in

Key = tuple[tuple[int, int, int], ...]
"""For each unit how many units it is behind the first, its kind, and the same for equations."""


@dataclass(frozen=True)
class Alike:
    """Which parts of ``units`` are alike, where dims have ``sizes`` and values ``dtypes``."""

    units: Units
    sizes: Mapping[Dim, int]
    dtypes: Mapping[Value, str]
    _keys: dict[int, Key] = field(default_factory=dict, init=False, repr=False, compare=False)

    def key(self, part: int) -> Key:
        """Two parts have equal keys if they are alike: of equal units, equally far apart."""
        if part not in self._keys:
            self._keys[part] = self._key([*numbers_in(part)])
        return self._keys[part]

    def _key(self, numbers: Sequence[int]) -> Key:
        units = [self._kinds[number] for number in numbers]
        return tuple(
            (number - numbers[0], kind, begin - units[0][1])
            for number, (kind, begin) in zip(numbers, units, strict=True)
        )

    @cached_property
    def _kinds(self) -> list[tuple[int, int]]:
        """For each unit the number of its kind, and its first equation."""
        seen: dict[Any, int] = {}
        kinds = (self._described(number) for number in range(len(self.units)))
        return [
            (seen.setdefault(kind, len(seen)), unit.equations[0])
            for kind, unit in zip(kinds, self.units.units, strict=True)
        ]

    def _described(self, number: int) -> tuple[Any, ...]:
        """A unit with other units and equations told by how far from its own they are."""
        units, program = self.units, self.units.program
        own = units.units[number].equations
        begin, inputs = own[0], dict[Value, int]()  # those that no other unit reads

        def told(value: Value) -> tuple[Any, ...]:
            if value.node >= 0:
                name: Any = value.node - begin
            elif units.readers.get(value) == 1 << number:
                name = "own", inputs.setdefault(value, len(inputs))
            else:
                name = "input", value.port
            return name, self._extents(program.shape_of(value)), self.dtypes[value]

        def equation(at: int) -> tuple[Any, ...]:
            read = tuple(
                (told(one), tuple(map(told, units.bases[one]))) if isinstance(one, Value) else None
                for one in program.equations[at].operands
            )
            value = Value(at)
            readers = units.readers.get(value, 0) >> number
            one = program.equations[at]
            return one.op, one.params, told(value), read, readers, at in units.shown

        return tuple(map(equation, own))

    def _extents(self, shape: Shape) -> tuple[int, ...]:
        return tuple(self.sizes[axis] if isinstance(axis, str) else 1 for axis in shape)
