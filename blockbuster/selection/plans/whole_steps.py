"""The steps of an array program that NumPy runs operator by operator, on whole arrays.

Equal equations are one step, and means of means (sums of sums, ...) are one fold over several axes.
The steps are the same for those who print them (whole_text.py) and those who price them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from blockbuster.frontend.kinds import FLOAT, MOVES
from blockbuster.frontend.moves import Flip
from blockbuster.frontend.program import ArrayProgram, Equation
from blockbuster.ir.graph import Value
from blockbuster.selection.plans.whole_patterns import pattern

FOLDS = ("sum", "prod", "mean", "max", "min")


@dataclass(frozen=True)
class Step:
    """One operator. ``equation`` reads results of other steps; ``axes``: those of a fold of floats,
    counted in its operand, else empty.
    """

    value: Value
    equation: Equation
    axes: tuple[int, ...] = ()

    @property
    def reads(self) -> tuple[Value, ...]:
        """The arrays among its operands."""
        return tuple(o for o in self.equation.operands if isinstance(o, Value))

    @property
    def moves(self) -> bool:
        """True if its result shows elements of its operand, in place if that is possible."""
        return self.equation.op in MOVES or self.turned is not None

    @property
    def turned(self) -> tuple[int, ...] | None:
        """The axes whose elements a flip shows in the opposite order; None for what is none."""
        function = self.equation.param("fn")
        return function.axes if isinstance(function, Flip) else None


@dataclass(frozen=True)
class Steps:
    """The steps of ``program`` in order. ``results``: the values of its outputs, in order."""

    program: ArrayProgram
    steps: tuple[Step, ...]
    results: tuple[Value, ...]
    roots: Mapping[Value, Value] = field(repr=False)
    """The value whose memory each value may show: its own, if a step makes it."""

    @property
    def last_reads(self) -> Mapping[Value, int]:
        """The number of the last step that reads a value or a view of it; of results, none does."""
        found = {self.roots[step.value]: number for number, step in enumerate(self.steps)}
        for number, step in enumerate(self.steps):
            found |= {self.roots[read]: number for read in step.reads}
        return found | {self.roots[value]: len(self.steps) for value in self.results}


def steps_of(program: ArrayProgram) -> Steps:
    """The steps that the outputs of ``program`` need."""
    same = {Value(-1, port): Value(-1, port) for port in range(len(program.inputs))}
    first: dict[object, Value] = {}
    kept: dict[Value, Equation] = {}
    for at in program.needed(output.value for output in program.outputs):
        one = program.equations[at]
        operands = tuple(same[o] if isinstance(o, Value) else o for o in one.operands)
        key = one.op, operands, one.params, one.shape, one.kind
        same[Value(at)] = first.setdefault(key, Value(at))
        if same[Value(at)] == Value(at):
            kept[Value(at)] = replace(one, operands=operands)
    results = tuple(same[output.value] for output in program.outputs)
    return _joined(program, kept, results)


def _joined(
    program: ArrayProgram, kept: Mapping[Value, Equation], results: tuple[Value, ...]
) -> Steps:
    """The steps with folds of folds as one, where nothing else reads what is between them."""
    readers: dict[Value, int] = dict.fromkeys(results, 1)
    for one in kept.values():
        for operand in one.operands:
            if isinstance(operand, Value):
                readers[operand] = readers.get(operand, 0) + 1
    made: dict[Value, Step] = {}

    def alone(value: object) -> Equation | None:
        found = made.get(value) if isinstance(value, Value) else None
        return found.equation if found and readers[found.value] == 1 else None

    for value, one in kept.items():
        step = Step(value, one, _axes(program, one))
        inner = made.get(step.reads[0]) if step.axes else None
        found = pattern(program, one, step.axes[0], alone, kept) if step.axes else None
        if found:
            step = Step(value, found[0])
            for gone in found[1]:
                del made[gone]
        elif inner and inner.axes and _is_alike(inner.equation, one) and alone(inner.value):
            del made[inner.value]
            step = _both(inner, step)
        made[value] = step
    made = _read({step.value: step for step in made.values()}, results)
    roots = {Value(-1, port): Value(-1, port) for port in range(len(program.inputs))}
    for step in made.values():
        shows = step.moves or step.equation.op in ("cast", "whole")  # to its own dtype: itself
        roots[step.value] = roots[step.reads[0]] if shows else step.value
    return Steps(program, tuple(made.values()), results, roots)


def _read(made: Mapping[Value, Step], results: tuple[Value, ...]) -> dict[Value, Step]:
    """The steps that are still read."""
    needed = dict.fromkeys(results)
    for value, step in reversed([*made.items()]):
        if value in needed:
            needed |= dict.fromkeys(step.reads)
    return {value: step for value, step in made.items() if value in needed}


def _axes(program: ArrayProgram, one: Equation) -> tuple[int, ...]:
    if one.op not in FOLDS or one.kind != FLOAT:
        return ()
    operand = one.operands[0]
    assert isinstance(operand, Value)
    if program.kind_of(operand) != FLOAT:
        return ()
    return (one.param("axis") % len(program.shape_of(operand)),)


def _is_alike(inner: Equation, outer: Equation) -> bool:
    keeps = [bool(one.param("keepdims")) for one in (inner, outer)]
    return inner.op == outer.op and keeps[0] == keeps[1]


def _both(inner: Step, outer: Step) -> Step:
    """A fold of a fold as one, over the axes of both."""
    (axis,) = outer.axes
    if not outer.equation.param("keepdims"):
        for gone in sorted(inner.axes):
            axis += axis >= gone
    axes = tuple(sorted({*inner.axes, axis}))
    return Step(outer.value, replace(outer.equation, operands=inner.equation.operands), axes)
