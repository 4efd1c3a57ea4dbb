"""What an array program takes on a CPU if NumPy runs it operator by operator on whole arrays.

A view costs a call, unless it is a reshape of what does not lie in order: that is a copy. An
operator costs what numpy_price.py says of its elements, rows and multiplications.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from blockbuster.frontend.program import ArrayProgram, Shape
from blockbuster.frontend.shapes import SCANS
from blockbuster.ir.graph import Value
from blockbuster.ir.types import Dim, size_class
from blockbuster.machines import Machine
from blockbuster.selection.decisions.numpy_price import NumpyCosts
from blockbuster.selection.plans.whole_patterns import CONTRACT, PICK
from blockbuster.selection.plans.whole_steps import FOLDS, Step, Steps, steps_of
from blockbuster.selection.priors import PRIORS


def price_of_whole(program: ArrayProgram, sizes: Mapping[Dim, int], machine: Machine) -> float:
    """Microseconds of the text of a program (whole_text.py); ``sizes`` by size class."""
    return 1e6 * _Priced(steps_of(program), sizes, NumpyCosts(machine)).seconds()


class _Priced:
    def __init__(self, steps: Steps, sizes: Mapping[Dim, int], costs: NumpyCosts) -> None:
        self._steps, self._program, self._sizes, self._costs = steps, steps.program, sizes, costs
        shapes = [one.shape for one in self._program.inputs]
        shapes += [self._program.shape_of(value) for value in steps.results]
        self._held = sum(prod(self._extents(shape)) for shape in shapes)
        self._lies: dict[Value, bool] = {}
        """For each value whether its elements lie in order in memory, without gaps."""

    def seconds(self) -> float:
        """The time of all steps."""
        found = 0.0
        for step in self._steps.steps:
            self._lies[step.value] = True
            found += self._costs.statement + self._of(step)
        return found

    def _of(self, step: Step) -> float:
        if step.moves:
            return self._view(step)
        if step.equation.op == "matmul":
            return self._product(step)
        if step.equation.op == CONTRACT:
            return self._contracted(step)
        if step.equation.op == PICK:
            return self._costs.gathered(prod(self._extents(step.equation.shape)))
        if step.equation.op == "concat":
            return self._copied(step.equation.shape, inner=self._inner(step))
        if step.axes or step.equation.op in (*FOLDS, *SCANS):
            return self._fold(step)
        if step.equation.op in PRIORS.numpy_rows:
            return self._of_rows(step)
        return self._pointwise(step)

    def _extents(self, shape: Shape) -> list[int]:
        return [self._sizes[size_class(axis)] if isinstance(axis, str) else axis for axis in shape]

    def _moving(self, elements: float, held: float) -> float:
        """Elements that are read and written where a step has ``held`` of them in its arrays."""
        return self._costs.moving(elements, max(held, self._held))

    def _extents_of(self, value: Value) -> list[int]:
        return self._extents(self._program.shape_of(value))

    def _in_order(self, value: Value) -> bool:
        return self._lies.get(value, True)

    def _view(self, step: Step) -> float:
        """A view, or the copy that a reshape makes."""
        one, (operand,) = step.equation, step.reads
        lies = self._in_order(operand)
        if one.op == "expand":
            self._lies[step.value] = lies
        elif one.op == "reshape":
            if not lies and not _only_splits(self._extents_of(operand), self._extents(one.shape)):
                return self._copied(one.shape, inner=self._extents_of(operand)[-1])
            self._lies[step.value] = lies
        elif one.op != "transpose" or tuple(one.param("axes")) != (*range(len(one.shape)),):
            self._lies[step.value] = False
        return 0.0

    def _copied(self, shape: Shape, *, inner: int) -> float:
        """A copy whose rows in memory have so many elements: short ones cost as single elements."""
        elements = prod(self._extents(shape))
        rows = min(self._costs.rows(elements / max(inner, 1)), self._costs.copied(elements))
        return self._moving(2 * elements, elements) + rows

    def _inner(self, step: Step) -> int:
        """The elements that a concatenation has of one array in a row, at least."""
        axis = step.equation.param("axis")
        return min(prod(self._extents_of(value)[axis:]) for value in step.reads)

    def _product(self, step: Step) -> float:
        left = self._extents_of(step.reads[0])
        depth, elements = left[-1], prod(self._extents(step.equation.shape))
        right = (1, *self._extents_of(step.reads[1]))
        one = depth * (1, *left)[-2] * (right[-1] if len(right) > 2 else 1)
        time = self._costs.multiplying(depth * elements, small=one <= PRIORS.numpy_small_product)
        read = sum(prod(self._extents_of(value)) for value in step.reads)
        parts = 1 if one <= PRIORS.numpy_small_product else -(-depth // 256)
        return time + self._moving(read + parts * elements, elements)

    def _contracted(self, step: Step) -> float:
        x, row = (self._extents_of(value) for value in step.reads)
        elements, one = prod(x), prod(x[-2:])
        time = self._costs.multiplying(elements, small=one <= PRIORS.numpy_small_product)
        apart = 0.0 if self._in_order(step.reads[0]) else self._costs.copied(elements)
        return time + self._moving(2 * elements + prod(row), elements) + apart

    def _fold(self, step: Step) -> float:
        (operand, *_), op = step.reads, step.equation.op
        extents = self._extents_of(operand)
        axes = step.axes or (step.equation.param("axis") % len(extents),)
        elements = prod(extents)
        inner = 1
        for axis in reversed(range(len(extents))):  # adjacent axes that are folded alike are one
            if (axis in axes) != (len(extents) - 1 in axes):
                break
            inner *= extents[axis]
        folded = self._costs.folding(elements, summed=op in ("sum", "prod", "mean", *SCANS))
        rows = elements / max(inner, 1)
        apart = 0.0 if self._in_order(operand) else self._costs.copied(elements)
        return folded + self._costs.rows(rows) + apart + self._moving(elements, elements)

    def _of_rows(self, step: Step) -> float:
        statements, passes, special, folds = PRIORS.numpy_rows[step.equation.op]
        extents = self._extents_of(step.reads[0])
        elements, axis = prod(extents), step.equation.param("axis", -1)
        time = self._moving(2 * passes * elements, 2 * elements)
        time += self._costs.special("exp", special * elements)
        time += folds * self._costs.folding(elements, summed=True)
        inner = extents[axis] if axis in (-1, len(extents) - 1) else extents[-1]
        rows = (passes + folds) * elements / max(inner, 1)
        return time + self._costs.rows(rows) + (statements - 1) * self._costs.statement

    def _pointwise(self, step: Step) -> float:
        one, reads = step.equation, step.reads
        elements = prod(self._extents(one.shape))
        full = [v for v in reads if prod(self._extents_of(v)) == elements]
        apart = [v for v in full if not self._in_order(v)]
        mixed = bool(apart) and len(apart) < len(full)
        self._lies[step.value] = not apart or mixed
        time = self._costs.special(one.op, elements)
        time += self._moving(elements * (len(reads) + 1), elements * (len(full) + 1))
        if mixed or len(full) < len(reads):
            inner = (1, *self._extents(one.shape))[-1]
            time += self._costs.rows(elements / max(inner, 1))
        return time + (self._costs.copied(elements) if mixed else 0.0)


def _only_splits(old: list[int], new: list[int]) -> bool:
    """True if each new axis is a part of an old one: a view, however the array lies."""
    if 0 in old:
        return True
    place = 0
    for extent in old:
        left = extent
        while left > 1:
            if place == len(new) or left % new[place]:
                return False
            left //= new[place]
            place += 1
    return all(extent == 1 for extent in new[place:])
