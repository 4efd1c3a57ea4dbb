"""A loop in Python over pieces of arrays, recorded as the one operation that it computes.

    concat(x[:, :8] @ w[:8], x[:, 8:] @ w[8:])     x and w with their axes split, multiplied as
                                                   two products of a batch, and joined again
    concat(x[:, ::2], x[:, 1::2])                  x with its axis split, and turned

Each product of such a loop would be a kernel of its own, and so would each of pieces that take
turns, which lie in the same lines of memory. Values that are computed alike from pieces
of one array, which cover it in order, are one value with a new first axis, along which the array is
split. Where something else reads a piece, too, that piece is computed by itself as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from blockbuster.frontend.array import TracedArray, array_at, operand_at
from blockbuster.frontend.contractions import equation_of
from blockbuster.frontend.limits import PIECES_OF_A_LOOP
from blockbuster.frontend.operation import Operation
from blockbuster.frontend.program import Equation, Operand
from blockbuster.frontend.shapes import ARRAYS_ONLY, REDUCTIONS, SCANS, WEIGHTED
from blockbuster.ir.expr import FUNCTIONS
from blockbuster.ir.graph import Value
from blockbuster.ir.lengths import ONE, ZERO, Length, whole

if TYPE_CHECKING:
    from blockbuster.frontend.trace import Trace

PRODUCT = "matmul"
ALONG_AXES = (*REDUCTIONS, *SCANS, "softmax", "log_softmax", "transpose", "expand")
BROADCAST = (*FUNCTIONS, *WEIGHTED, PRODUCT, "cast")
"""Operations whose operands may have fewer axes than their results."""


@dataclass(frozen=True)
class _Same:
    """What all pieces read."""

    operand: Operand


@dataclass(frozen=True)
class _Each:
    """One value for each piece: ``rank`` axes, and ``make`` records them behind a new first one."""

    rank: int
    make: Callable[[], TracedArray]


@dataclass(frozen=True)
class _Cut:
    """A slice of an axis."""

    start: Length
    length: Length
    step: int

    def then(self, inner: _Cut) -> _Cut:
        """A slice of this slice, as one of the axis."""
        start = self.start + inner.start * whole(self.step)
        return _Cut(start, inner.length, self.step * inner.step)


class _Grid:
    """Pieces of an array, ``each`` with its slices of axes, beside the ``first``; ``parts``: how
    many pieces lie side by side along an axis, by axis, the slowest one first.
    """

    def __init__(self, first: Mapping[int, _Cut], each: Sequence[Mapping[int, _Cut]]) -> None:
        self._first, self._each = first, each
        begins = {axis: [cuts[axis].start for cuts in each] for axis in first}
        self._runs = {
            axis: next(at for at, start in enumerate(starts) if start != starts[0])
            for axis, starts in begins.items()
            if any(start != starts[0] for start in starts)
        }
        order = sorted(self._runs, key=lambda axis: -self._runs[axis])
        self.parts = {axis: len(dict.fromkeys(begins[axis])) for axis in order}

    @property
    def is_whole(self) -> bool:
        """True if the pieces are all of a grid, in order."""
        return bool(self.parts) and math.prod(self.parts.values()) == len(self._each) and all(
            self._is_at(number, axis) for number in range(len(self._each)) for axis in self._first
        )

    def _is_at(self, number: int, axis: int) -> bool:
        first, parts = self._first[axis], self.parts.get(axis, 1)
        at = number // self._runs.get(axis, 1) % parts
        apart = ONE if first.step > 1 else first.length
        return self._each[number][axis] == replace(first, start=first.start + apart * whole(at))

    def in_front(self, x: TracedArray) -> TracedArray:
        """``x`` of which all pieces are one, with the number of the piece as a new first axis."""
        shape: list[Any] = []
        leads: dict[int, int] = {}
        for axis, extent in enumerate(x.shape):
            parts = self.parts.get(axis)
            if parts is None:
                shape.append(extent)
                continue
            in_turn = self._first[axis].step > 1
            leads[axis] = len(shape) + in_turn
            shape += [extent // parts, parts] if in_turn else [parts, extent // parts]
        lead = [leads[axis] for axis in self.parts]
        others = [at for at in range(len(shape)) if at not in lead]
        moved = x.trace.record("transpose", (x.reshape(shape),), {"axes": (*lead, *others)})
        if len(lead) == 1:
            return moved
        joined: TracedArray = moved.reshape((len(self._each), *moved.shape[len(lead) :]))
        return joined


def as_one_loop(asked: Operation) -> TracedArray | None:
    """A join of values that products compute alike from pieces of arrays; None for other joins."""
    return _as_one_loop(asked.trace, asked.operands, asked.params["axis"], by_products=True)


def as_result(array: TracedArray) -> TracedArray:
    """A result that joins pieces which take turns, as all of them at once: each by itself reads the
    lines of memory of all. What else reads such a join, may read each piece for itself.
    """
    trace, equation = array.trace, equation_of(array)
    if equation is None or equation.op != "concat":
        return array
    operands = [array_at(trace, one) for one in equation.operands if isinstance(one, Value)]
    trace.line = equation.where
    made = _as_one_loop(trace, operands, equation.param("axis"), by_products=False)
    trace.line = None
    if made is None:
        return array
    trace.replaced[array.value.node] = None
    return made


def _as_one_loop(
    trace: Trace, operands: Sequence[TracedArray], axis: int, *, by_products: bool
) -> TracedArray | None:
    first, count = operands[0], len(operands)
    alike = (trace.dims.alike(x.axes, first.axes) for x in operands)
    if not 2 <= count <= PIECES_OF_A_LOOP or not all(alike):
        return None
    loop = _Loop(trace, count)
    found = loop.over(tuple(x.value for x in operands))
    wanted = loop.has_product if by_products else loop.takes_turns
    if not isinstance(found, _Each) or not wanted:
        return None
    trace.replaced |= dict.fromkeys(loop.read)
    axis = axis % first.ndim
    made = found.make()
    order = (*range(1, axis + 1), 0, *range(axis + 1, first.ndim + 1))
    made = trace.record("transpose", (made,), {"axes": order})
    if first.axes[axis] == 1:
        return made[(slice(None),) * (axis + 1) + (0,)]
    shape = first.shape
    joined: TracedArray = made.reshape((*shape[:axis], count * shape[axis], *shape[axis + 1 :]))
    return joined


class _Loop:
    """The values of a loop of ``count`` pieces. ``read``: the equations that it writes out."""

    def __init__(self, trace: Trace, count: int) -> None:
        self._trace, self._count = trace, count
        self._known: dict[tuple[Operand, ...], _Same | _Each | None] = {}
        self.read: list[int] = []
        self.has_product = False
        self.takes_turns = False
        """Pieces lie between each other: each by itself reads the lines of all."""

    def over(self, values: tuple[Operand, ...]) -> _Same | _Each | None:
        """The values of all pieces; None if they are not computed alike."""
        if values not in self._known:
            self._known[values] = self._over(values)
        return self._known[values]

    def _over(self, values: tuple[Operand, ...]) -> _Same | _Each | None:
        if all(value == values[0] for value in values):
            return _Same(values[0])
        recorded = self._trace.recorded[1]
        nodes = [v.node for v in values if isinstance(v, Value) and v.node >= 0]
        if len(nodes) < len(values):
            return None
        equations = [recorded[node] for node in nodes]
        self.read += nodes
        pieces = self._pieces(nodes)
        return pieces if pieces is not None else self._alike(values[0], equations)

    def _pieces(self, nodes: Sequence[int]) -> _Each | None:
        """Slices that are neighbours, or cover an array by every so many elements, in order: of
        one axis, or of several, of which the last one runs fastest.
        """
        found = [self._cut(node) for node in nodes]
        base, along = found[0]
        assert isinstance(base, Value), "of which a slice was taken"
        if any(one != base or cuts.keys() != along.keys() for one, cuts in found):
            return None
        trace, shown = self._trace, array_at(self._trace, base)
        grid = _Grid(along, [cuts for _, cuts in found])
        if not grid.is_whole:
            return None
        for axis, cut in along.items():
            extent, parts = trace.dims.length(shown.axes[axis]), grid.parts.get(axis, 1)
            covers = extent == cut.length * whole(parts)
            if cut.step > 1 and (cut.step != parts or not covers or cut.start != ZERO):
                return None
            if not covers:
                length = cut.length * whole(parts)
                params = {"axis": axis, "start": cut.start, "length": length}
                shown = trace.record("slice", (shown,), params)

        self.takes_turns |= any(cut.step > 1 for cut in along.values())

        @cache
        def make() -> TracedArray:
            return grid.in_front(shown)

        return _Each(shown.ndim, make)

    def _cut(self, node: int) -> tuple[Operand, dict[int, _Cut]]:
        """What the equation at ``node`` cuts slices of, and its slice of each axis."""
        value: Operand = Value(node)
        cuts: dict[int, _Cut] = {}
        while isinstance(value, Value) and value.node >= 0:
            equation = self._trace.recorded[1][value.node]
            if equation.op not in ("slice", "strided"):
                break
            own, axis = dict(equation.params), equation.param("axis")
            cut = _Cut(own["start"], own["length"], own.get("step", 1))
            cuts[axis] = cut.then(cuts[axis]) if axis in cuts else cut
            (value,) = equation.operands
        return value, dict(sorted(cuts.items()))

    def _alike(self, value: Operand, equations: Sequence[Equation]) -> _Same | _Each | None:
        """Equations of one operation, on operands that are alike; ``value``: that of the first."""
        first = equations[0]
        if any((one.op, one.params) != (first.op, first.params) for one in equations):
            return None
        if first.op not in (*BROADCAST, *ALONG_AXES, "reshape"):
            return None
        places = zip(*(one.operands for one in equations), strict=True)
        operands = [self.over(place) for place in places]
        if all(isinstance(one, _Same) for one in operands):
            return _Same(value)  # recorded for each piece, and computed of none
        ranks = [self._rank(one) for one in operands if one is not None]
        if len(ranks) < len(operands) or (first.op in ARRAYS_ONLY and min(ranks) < 2):
            return None
        if first.op in ALONG_AXES and any(isinstance(one, _Same) for one in operands):
            return None
        self.has_product |= first.op == PRODUCT

        @cache
        def make() -> TracedArray:
            line, self._trace.line = self._trace.line, first.where
            try:
                made = self._made(first, operands, max(ranks))
            finally:
                self._trace.line = line
            if first.is_stored:
                self._trace.note_stored(made.value)
            return made

        return _Each(len(first.shape), make)

    def _rank(self, one: _Same | _Each) -> int:
        if isinstance(one, _Each):
            return one.rank
        return array_at(self._trace, one.operand).ndim if isinstance(one.operand, Value) else 0

    def _made(
        self, first: Equation, operands: Sequence[_Same | _Each | None], rank: int
    ) -> TracedArray:
        """The operation of one piece, recorded for all."""
        trace = self._trace
        if first.op == "reshape":
            (only,) = operands
            assert isinstance(only, _Each)
            shape = TracedArray(trace, Value(-1), first.shape, first.kind).shape
            made: TracedArray = only.make().reshape((self._count, *shape))
            return made
        given: list[Any] = []
        for one in operands:
            if isinstance(one, _Each):
                missing = rank - one.rank if first.op in BROADCAST else 0
                given.append(one.make()[(slice(None), *(None,) * missing)])
            elif one is not None:
                given.append(operand_at(trace, one.operand))
        return trace.record(first.op, given, _behind_one_more(dict(first.params), rank))


def _behind_one_more(params: dict[str, Any], rank: int) -> dict[str, Any]:
    """Parameters whose axes count one more axis in front."""
    if "axis" in params:
        params["axis"] = params["axis"] % rank + 1
    if "axes" in params:
        params["axes"] = (0, *(None if axis is None else axis + 1 for axis in params["axes"]))
    return params
