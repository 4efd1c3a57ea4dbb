"""A program divided into parts: which parts there are, and which of their plans is best at sizes.

Each part is lowered, fused and scheduled by itself, so an operator's loops are cut as that operator
needs it, whatever the rest of the program does (parts/units.py, parts/partition.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, prod
from typing import Any

from blockbuster.costs.coefficients import FITTED
from blockbuster.errors import EmitError, TraceError, shown_lines
from blockbuster.frontend import ArrayProgram
from blockbuster.frontend.dtype_names import held_in
from blockbuster.frontend.part import part
from blockbuster.ir.dtypes import OWN
from blockbuster.ir.graph import Value
from blockbuster.ir.types import Dim, size_class
from blockbuster.machines import Machine
from blockbuster.selection.choice import Fused
from blockbuster.selection.considered import Considered
from blockbuster.selection.parts.bounds import Bounds, given
from blockbuster.selection.parts.partition import Best, best_plan
from blockbuster.selection.parts.units import PRODUCT, Units, units_of
from blockbuster.selection.plans.asked import Subject
from blockbuster.selection.plans.part import Dtypes, Part
from blockbuster.selection.plans.pieces import Call

BUDGET = 24
"""Parts that are priced for a plan, at most: each takes about half a second."""

NEAR = 1.1
"""How many times the best plan one part of fewer kernels may take: of programs that differ, the
closed form tells no less apart."""

WIDTH = 4
"""Bytes of an element that a copy reads and writes: values between kernels are mostly float32."""

UNSAFE = 1e9
"""Microseconds that an exponential counts that can overflow: no plan that has fewer is worse."""

Consider = Callable[[Part], list[Considered]]
"""The choice for each piece of a part. Raises EmitError where a piece has none."""


@dataclass(frozen=True)
class Divided:
    """A plan's parts in order, what was considered for their pieces, and how the plan was found."""

    parts: tuple[Part, ...]
    considered: tuple[Considered, ...]
    best: Best | None = None

    @property
    def fused(self) -> tuple[Fused, ...]:
        """The programs of the pieces."""
        return tuple(fused for part in self.parts for fused in part.fused)

    @property
    def subjects(self) -> tuple[Subject, ...]:
        """What is asked of those who measure schedules of the pieces."""
        return tuple(subject for part in self.parts for subject in part.subjects)


class Division:
    """The parts of a program, each made once."""

    def __init__(self, program: ArrayProgram, dtypes: Dtypes, arithmetic: str) -> None:
        self._program, self._dtypes, self._arithmetic = program, dtypes, arithmetic
        self._parts: dict[tuple[Any, ...], Part] = {}
        self._names = _names(program)
        self._taken: dict[Dim, None] = {}  # by what lowering made of parts
        self._held = held_in(program, dtypes.inputs, dtypes.common)
        self._stored = _stored_by_eager(program)

    def kept(self, value: Value) -> str:
        """The dtype in which a value that crosses from part to part is kept.

        As eager execution keeps it where that stores it, too; else as it is computed.
        """
        dtype = self._held[value]
        stored = dtype in OWN or value.node < 0 or value in self._stored
        return dtype if stored else self._arithmetic

    def divided(
        self, sizes: Mapping[Dim, int], machine: Machine, consider: Consider, whole: Part
    ) -> Divided:
        """The best plan at ``sizes``. Raises EmitError where neither whole nor parts have one."""
        known = {size_class(dim): size for dim, size in sizes.items()}
        units = units_of(self._program, known)
        if units is None or len(units) < 2:
            return Divided((whole,), tuple(consider(whole)))
        return _Search(self, units, known, machine, consider, whole).found()

    def by_hand(
        self, sizes: Mapping[Dim, int], choose: Callable[[Units], Sequence[int]], consider: Consider
    ) -> Divided:
        """The plan of the parts that ``choose`` names: units as bits, in order."""
        units = units_of(self._program, {size_class(dim): size for dim, size in sizes.items()})
        if units is None:
            raise ValueError("an output is computed by no operator: the program has no parts")
        parts = tuple(self.part(units, bits) for bits in choose(units))
        return Divided(parts, tuple(one for own in parts for one in consider(own)))

    def part(self, units: Units, bits: int) -> Part:
        """The units in ``bits`` as a part."""
        program, own_values = self._program, dict.fromkeys(given(units, bits))
        shown = {
            output.name: output.value
            for output in program.outputs
            if all(base.node in own_values for base in units.bases[output.value])
        }
        cut = {self._names[v]: v for v in map(Value, own_values) if _crosses(units, v, bits)}
        outputs = {**{n: v for n, v in cut.items() if n not in shown}, **shown}
        equations = units.with_views(units.equations(bits), [*outputs.values()])
        key = equations, tuple(outputs.items())
        if key not in self._parts:
            own = part(program, equations, outputs, self._names, self._taken)
            made = Part(own, self._part_dtypes(own, outputs), whole=False)
            self._taken |= dict.fromkeys(rule.dim for rule in made.size_rules)
            self._parts[key] = made
        return self._parts[key]

    def _part_dtypes(self, own: ArrayProgram, outputs: Mapping[str, Value]) -> Dtypes:
        of_name = {name: value for value, name in self._names.items()}
        between = [one.name for one in own.inputs if of_name[one.name].node >= 0]
        held = {name: self._held[of_name[name]] for name in between}
        return replace(
            self._dtypes,
            inputs={**self._dtypes.inputs, **held},
            read={name: self.kept(of_name[name]) for name in between},
            cut={name: self.kept(value) for name, value in outputs.items()},
        )


class _Search:
    """The search for the best plan of a program at some sizes."""

    def __init__(
        self,
        division: Division,
        units: Units,
        sizes: Mapping[Dim, int],
        machine: Machine,
        consider: Consider,
        whole: Part,
    ) -> None:
        self._division, self._units, self._sizes = division, units, sizes
        self._machine, self._consider, self._whole = machine, consider, whole
        self._all = (1 << len(units)) - 1
        self._made: dict[int, Part] = {}
        self._prices: dict[Any, float] = {}
        self._notes: dict[str, EmitError] = {}
        program = units.program
        values = [Value(-1, port) for port in range(len(program.inputs))]
        values += [Value(at) for at in range(len(program.equations))]
        dtypes = {value: division.kept(value) for value in values}
        self._bounds = Bounds(units, sizes, dtypes, machine)

    def found(self) -> Divided:
        """The best plan."""
        bounds, units = self._bounds, self._units
        best = best_plan(
            units.before, units.beside, budget=BUDGET,
            bound=bounds.least, estimate=bounds.estimate, price=self._price,
        )  # fmt: skip
        if any(bits not in self._made for bits in best.parts):
            raise next(iter(self._notes.values()))
        if best.whole is not None and self._is_as_good(best.whole, best):
            best = replace(best, parts=(self._all,), total=best.whole)
        parts = tuple(self._made[bits] for bits in best.parts)
        return Divided(parts, tuple(one for own in parts for one in self._consider(own)), best)

    def _is_as_good(self, taken: float, best: Best) -> bool:
        """True if all units as one part take about as long as a plan, in fewer kernels."""
        if taken > NEAR * best.total:
            return False
        whole, *parts = (self._kernels(bits) for bits in (self._all, *best.parts))
        return whole < sum(parts)

    def _kernels(self, bits: int) -> int:
        return sum(one.best.kernels for one in self._consider(self._made[bits]))

    def _price(self, bits: int) -> float:
        """Microseconds of a part; infinite if it has no kernels. Equal parts are priced once."""
        try:
            own = self._whole if bits == self._all else self._division.part(self._units, bits)
        except TraceError as error:
            self._notes.setdefault(shown_lines(str(error))[0], EmitError(str(error)))
            return inf
        self._made[bits] = own
        key = own.structure(self._sizes)
        if key not in self._prices:
            self._prices[key] = self._priced(own)
        return self._prices[key]

    def _priced(self, own: Part) -> float:
        try:
            considered = self._consider(own)
        except EmitError as error:
            self._notes.setdefault(shown_lines(str(error))[0], error)
            return inf
        unsafe = sum(len(one.best.unsafe) for one in considered)
        calls = [step for step in own.pieces.steps if isinstance(step, Call)]
        copies = sum(map(self._copy, calls))
        launch = self._machine.launch
        hosts = sum(one.best.kernels for one in considered) * (launch.plain - launch.graph) * 1e6
        return UNSAFE * unsafe + copies + hosts + sum(one.best.price for one in considered)

    def _copy(self, call: Call) -> float:
        """Microseconds of a copy; functions of the user's take the same in every plan."""
        if not call.only_moves:
            return 0.0
        counts = [prod(self._sizes[size_class(d)] for d in axes if d) for axes in call.axes]
        moving = 2 * WIDTH * sum(counts) / self._machine.memory.bandwidth
        return (self._machine.launch.plain + FITTED.start + moving) * 1e6


def _crosses(units: Units, value: Value, bits: int) -> bool:
    """True if a unit outside of a part reads a value."""
    readers = enumerate(units.units)
    return any(not bits >> number & 1 and value in unit.reads for number, unit in readers)


def _names(program: ArrayProgram) -> dict[Value, str]:
    """The names of all values as arrays: an output's is its own."""
    taken = {output.name for output in program.outputs} | {one.name for one in program.inputs}
    found: dict[Value, str] = {}
    for value, word in program.names().items():
        name = word
        while value.node >= 0 and name in taken:
            name += "_"
        taken.add(name)
        found[value] = name
    for output in reversed(program.outputs):
        if output.value.node >= 0:
            found[output.value] = output.name
    return found


def _stored_by_eager(program: ArrayProgram) -> dict[Value, None]:
    """The values that eager execution stores in their dtype: results of products, values that the
    function holds from one line to another, and its results.

    A function of a library that is several operators here is one line of the user's, and what it
    computes inside it holds in float32.
    """
    found = dict.fromkeys(output.value for output in program.outputs if output.value.node >= 0)
    for at, equation in enumerate(program.equations):
        if equation.op == PRODUCT:
            found[Value(at)] = None
        for operand in equation.operands:
            if isinstance(operand, Value) and operand.node >= 0:
                made = program.equations[operand.node]
                if made.where is not None and made.where != equation.where:
                    found[operand] = None
    return found
