"""Where the axes of an input are read: at sums of multiples of the indices of a view of it.

Windows of two taps, dilated by 3, at every second place of x, show x[2 * place + 3 * tap].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from blockbuster.frontend.program import ArrayProgram, Equation, Shape
from blockbuster.ir.graph import Value
from blockbuster.ir.lengths import product_of
from blockbuster.selection.library.extents import Extents, constant


@dataclass(frozen=True)
class Index:
    """The sum of ``offset`` and of ``times`` the index of each ``axis``, over (axis, times)."""

    terms: tuple[tuple[int, int], ...] = ()
    offset: int = 0

    @classmethod
    def of(cls, times: Mapping[int, int], offset: int = 0) -> Index:
        """With the terms in the order of their axes."""
        return cls(tuple(sorted(times.items())), offset)

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes whose indices count."""
        return tuple(axis for axis, _ in self.terms)

    def through(self, steps: Sequence[Index]) -> Index:
        """The same with ``steps[axis]`` in place of the index of each axis."""
        offset, found = self.offset, dict[int, int]()
        for axis, times in self.terms:
            offset += times * steps[axis].offset
            found |= {own: times * more for own, more in steps[axis].terms}
        return Index.of(found, offset)


@dataclass(frozen=True)
class Origins:
    """The input that a value of ``shape`` shows, by its number, the ``extents`` of its axes, and
    where each of them is read: windows read zeros around an axis, all else among its elements.
    """

    port: int
    extents: Shape
    axes: tuple[Index, ...]
    shape: Shape

    @property
    def long(self) -> list[int]:
        """The input's axes without those of one element, as far as only that is read."""
        units = zip(self.extents, self.axes, strict=True)
        return [at for at, (extent, index) in enumerate(units) if extent != 1 or index != Index()]

    def shown(self, axis: int, extents: Extents) -> int | None:
        """The input's axis that an axis of the view shows as it is."""
        if Index(((axis, 1),)) not in self.axes:
            return None
        at = self.axes.index(Index(((axis, 1),)))
        same = extents.of(self.extents[at]) == extents.of(self.shape[axis])
        return at if same else None


def origins(program: ArrayProgram, extents: Extents, value: Value) -> Origins | None:
    """Where ``value`` reads an input; None if it is more than views of one that move, add, cut,
    split or window axes.
    """
    shape = program.shape_of(value)
    if value.node < 0:
        return Origins(value.port, shape, _shown(shape, range(len(shape))), shape)
    one = program.equations[value.node]
    operands = [o for o in one.operands if isinstance(o, Value)]
    steps = _steps(extents, one, program.shape_of(operands[0])) if len(operands) == 1 else None
    found = origins(program, extents, operands[0]) if steps else None
    if found is None or steps is None:
        return None
    if one.param("padded") and found.shown(one.param("axis"), extents) is None:
        return None  # zeros would stand where the input goes on
    return Origins(found.port, found.extents, tuple(i.through(steps) for i in found.axes), shape)


def _shown(shape: Shape, axes: Sequence[int]) -> tuple[Index, ...]:
    """The indices of axes of an array of ``shape``; the only index of a single element is 0."""
    return tuple(Index(((axis, 1),) if shape[axis] != 1 else ()) for axis in axes)


def _steps(extents: Extents, one: Equation, shape: Shape) -> list[Index] | None:
    """Where an equation reads each axis of its operand of this ``shape``, by its result's."""
    if one.op in ("transpose", "expand"):
        axes = one.param("axes")
        places = (axes.index(axis) if axis in axes else None for axis in range(len(shape)))
        return [Index() if at is None else _shown(one.shape, [at])[0] for at in places]
    if one.op == "reshape":
        return _split(extents, one, shape)
    if one.op not in ("slice", "strided", "windows"):
        return None
    at, steps = one.param("axis"), [*_shown(one.shape, range(len(shape)))]
    start = constant(one.param("start")) if one.op != "windows" else -one.param("before")
    if start is None:
        return None
    times = {at: one.param("step", 1)}
    if one.op == "windows":
        times[len(shape)] = one.param("dilation")
    steps[at] = Index.of({a: step for a, step in times.items() if one.shape[a] != 1}, start)
    return steps


def _split(extents: Extents, one: Equation, shape: Shape) -> list[Index] | None:
    """Of a reshape that splits axes into others of known extents."""
    parts, steps = extents.parts(shape, one.shape), []
    for part in parts or ():
        axes = [axis for axis in part if one.shape[axis] != 1]
        behind = [
            product_of(extents.of(one.shape[a]) for a in axes[at + 1 :]).constant
            for at in range(len(axes))
        ]
        if None in behind:
            return None
        steps.append(Index.of({axis: n for axis, n in zip(axes, behind, strict=True) if n}))
    return steps or None
