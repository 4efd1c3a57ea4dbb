"""A loop in Python over pieces of arrays, recorded as the one operation that it computes.

    concat(x[:, :8] @ w[:8], x[:, 8:] @ w[8:])     x and w with their axes split, multiplied as
                                                   two products of a batch, and joined again

Each product of such a loop would be a kernel of its own. Values that are computed alike from pieces
of one array, which cover it in order, are one value with a new first axis, along which the array is
split. Where something else reads a piece, too, that piece is computed by itself as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from blockbuster.frontend.array import TracedArray, array_at, operand_at
from blockbuster.frontend.limits import PIECES_OF_A_LOOP
from blockbuster.frontend.operation import Operation
from blockbuster.frontend.program import Equation, Operand
from blockbuster.frontend.shapes import ARRAYS_ONLY, REDUCTIONS, SCANS, WEIGHTED
from blockbuster.ir.expr import FUNCTIONS
from blockbuster.ir.graph import Value
from blockbuster.ir.lengths import ONE, Length, whole

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


def as_one_loop(asked: Operation) -> TracedArray | None:
    """A join of values that products compute alike from pieces of arrays; None for other joins."""
    trace, operands = asked.trace, asked.operands
    first, count = operands[0], len(operands)
    if not 2 <= count <= PIECES_OF_A_LOOP or any(x.axes != first.axes for x in operands):
        return None
    loop = _Loop(trace, count)
    found = loop.over(tuple(x.value for x in operands))
    if not isinstance(found, _Each) or not loop.has_product:
        return None
    trace.replaced |= dict.fromkeys(loop.read)
    axis = asked.params["axis"] % first.ndim
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
        pieces = self._pieces(equations)
        return pieces if pieces is not None else self._alike(values[0], equations)

    def _pieces(self, equations: Sequence[Equation]) -> _Each | None:
        """Slices that are neighbours, or cover an array by every so many elements, in order."""
        first, trace, count = equations[0], self._trace, self._count
        if first.op not in ("slice", "strided") or not isinstance(first.operands[0], Value):
            return None
        own = dict(first.params)
        length, step = own["length"], own.get("step")
        starts = [one.param("start") if one.op == first.op else None for one in equations]
        unlike = [{**dict(one.params), "start": None} != {**own, "start": None}
                  or one.operands != first.operands for one in equations]  # fmt: skip
        apart: Length = ONE if step else length
        base, axis = array_at(trace, first.operands[0]), own["axis"]
        covers = trace.dims.length(base.axes[axis]) == length * whole(count)
        in_order = starts == [own["start"] + apart * whole(n) for n in range(count)]
        if any(unlike) or not in_order or (step and (step != count or not covers)):
            return None
        if not covers:
            both = {**own, "length": length * whole(count)}
            base = trace.record("slice", (base,), both)

        @cache
        def make() -> TracedArray:
            extent = base.shape[axis] // count
            split = (extent, count) if step else (count, extent)
            parts = base.reshape((*base.shape[:axis], *split, *base.shape[axis + 1 :]))
            lead = axis + bool(step)
            others = (at for at in range(base.ndim + 1) if at != lead)
            return trace.record("transpose", (parts,), {"axes": (lead, *others)})

        return _Each(base.ndim, make)

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
