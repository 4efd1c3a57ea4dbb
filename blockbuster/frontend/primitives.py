"""Primitive array programs: eight operations, each lowered to at most one node, and two views.

An operand is a value seen through a view (``Ref``). Transposes and axes of extent 1 are never
computed; they only change the order of the value's axes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from blockbuster.frontend.program import Axis, Shape
from blockbuster.frontend.strips import Cut, Split, Strips, turned
from blockbuster.ir.expr import Arg, Expr, call, is_predicate
from blockbuster.ir.lengths import Length
from blockbuster.ir.origin import SourceLine
from blockbuster.ir.types import Dim

MIXED = "mixed"


@dataclass(frozen=True)
class Ref:
    """Value number ``value`` seen through a view: its axis ``axes[i]`` is shown as axis i.

    None shows an axis of extent 1.
    """

    value: int
    axes: tuple[int | None, ...]

    def shown_at(self, axis: int, rank: int) -> int | None:
        """The value's axis that takes part in axis ``axis`` of a broadcast result of ``rank``."""
        position = axis - (rank - len(self.axes))
        return self.axes[position] if position >= 0 else None

    def view(self, axes: Sequence[int | None]) -> Ref:
        """A view of this view."""
        return Ref(self.value, tuple(None if axis is None else self.axes[axis] for axis in axes))


@dataclass(frozen=True)
class Source:
    """An input array, or a view of it: how the value's axes lie in those of the array."""

    name: str
    strips: Strips = ()
    dtype: str = ""
    """That of masks and integers; empty for floats."""


@dataclass(frozen=True)
class Count:
    """The index vector along a dim."""

    dim: Dim


@dataclass(frozen=True)
class Apply:
    """A scalar expression over operands that broadcast against each other."""

    expr: Expr


@dataclass(frozen=True)
class Round:
    """A cast to a floating dtype."""

    dtype: str


@dataclass(frozen=True)
class Fold:
    """A reduction over one axis, which the result no longer has.

    ``in_blocks``: the axis is in blocks wherever it stands, not only among the last two.
    """

    monoid: str
    axis: int
    dim: Dim
    in_blocks: bool = False


@dataclass(frozen=True)
class Scan:
    """The folds along an axis up to each element, or ``back`` from each to the last."""

    monoid: str
    axis: int
    back: bool = False

    def of(self, piece: Cut | Split, extent: Length) -> Scan | None:
        """The scan of a piece of its axis, of ``extent`` elements, that gives that of the result.

        The elements up to one that the scan reaches in order, or all of them turned around; else
        there is none.
        """
        if not isinstance(piece, Cut):
            return None
        if piece == turned(piece.dim, extent):
            return replace(self, back=not self.back)
        first = piece.stop == extent if self.back else not piece.start.terms
        return self if piece.step == 1 and first else None


@dataclass(frozen=True)
class Contract:
    """A matrix product (..., m, k) @ (..., k, n); any of the axes may be a unit axis."""

    inner: Axis


@dataclass(frozen=True)
class Opaque:
    """A function of whole arrays."""

    name: str
    fn: Callable[..., Any]
    shapes: tuple[Shape, ...]
    """The shapes of the operands."""


@dataclass(frozen=True)
class Join:
    """Arrays one behind the other along an axis. Never computed: what reads it, reads the parts."""

    axis: int


@dataclass(frozen=True)
class Merge:
    """Axis 0 of the operand and the one at ``axis`` + 1 as one axis. Never computed either."""

    axis: int


PrimitiveOp = Source | Count | Apply | Round | Fold | Scan | Contract | Opaque | Join | Merge


@dataclass(frozen=True)
class Primitive:
    """An equation of the primitive program."""

    op: PrimitiveOp
    operands: tuple[Ref, ...]
    shape: Shape
    hint: str = ""
    where: SourceLine | None = None


class Recorder:
    """Collects primitives; the functions of ``ARRAY_OPS`` write to it.

    Whether a value has a dtype of its own must not depend on how an operator is taken apart: a
    reduction and a concatenation of several dtypes are arithmetic, also where they compute nothing.
    """

    def __init__(self) -> None:
        self.primitives: list[Primitive] = []
        self._own: list[str] = []
        self.where: SourceLine | None = None
        self.stored: set[int] = set()
        """Values that eager execution stores, and rounds."""

    def shape(self, ref: Ref) -> Shape:
        """The shape that a view shows."""
        shape = self.primitives[ref.value].shape
        return tuple(1 if axis is None else shape[axis] for axis in ref.axes)

    def source(self, name: str, shape: Shape, dtype: str = "") -> Ref:
        """An input array; ``dtype`` is that of masks and integers."""
        return self.add(Source(name, dtype=dtype), (), shape, name)

    def count(self, axis: Axis) -> Ref:
        """The index vector along a dim; along a unit axis it is the constant 0."""
        if isinstance(axis, str):
            return self.add(Count(axis), (), (axis,), "i")
        return self.add(Apply(call("add", 0, 0)), (), (), "i").view((None,))

    def apply(self, expr: Expr, *refs: Ref, hint: str = "") -> Ref:
        """A scalar expression over broadcast operands."""
        return self.add(Apply(expr), refs, self.broadcast(refs), hint)

    def unary(self, fn: str, ref: Ref, hint: str = "") -> Ref:
        """A scalar function of one operand."""
        return self.apply(call(fn, Arg(0)), ref, hint=hint)

    def binary(self, fn: str, left: Ref, right: Ref, hint: str = "") -> Ref:
        """A scalar function of two operands."""
        return self.apply(call(fn, Arg(0), Arg(1)), left, right, hint=hint)

    def round(self, ref: Ref, dtype: str) -> Ref:
        """A cast."""
        return self.add(Round(dtype), (ref,), self.shape(ref), "c")

    def fold(self, ref: Ref, monoid: str, axis: int, *, keepdims: bool = True) -> Ref:
        """A reduction over one axis; a unit axis is reduced by not showing it."""
        shape = self.shape(ref)
        position = axis % len(shape)
        others = [i for i in range(len(shape)) if i != position]
        dim = shape[position]
        if not isinstance(dim, str):
            result = self.computed(ref.view(others))
        else:
            kept = tuple(shape[i] for i in others)
            hint = {"+": "s", "prod": "p"}.get(monoid, "z")
            result = self.add(Fold(monoid, position, dim), (ref,), kept, hint)
        rank = len(shape)
        places = [i - (i > position) if i != position else None for i in range(rank)]
        return result.view(places) if keepdims else result

    def scan(self, ref: Ref, monoid: str, axis: int, *, back: bool = False) -> Ref:
        """A scan along an axis; a unit axis is its own."""
        shape = self.shape(ref)
        if not isinstance(shape[axis], str):
            return self.computed(ref)
        return self.add(Scan(monoid, axis, back), (ref,), shape, "s")

    def contract(self, a: Ref, b: Ref) -> Ref:
        """A matrix product; a vector counts as a row on the left and a column on the right."""
        row, column = len(a.axes) == 1, len(b.axes) == 1
        a = a.view((None, 0)) if row else a
        b = b.view((0, None)) if column else b
        result = self.product(a, b)
        rank = len(result.axes)
        hidden = (*((rank - 2,) if row else ()), *((rank - 1,) if column else ()))
        return result.view([i for i in range(rank) if i not in hidden])

    def product(self, a: Ref, b: Ref) -> Ref:
        """A product of matrices, or of arrays of them."""
        first, second = self.shape(a), self.shape(b)
        leading = self.broadcast((a.view(range(len(first) - 2)), b.view(range(len(second) - 2))))
        shape = (*leading, first[-2], second[-1])
        return self.add(Contract(first[-1]), (a, b), shape, "p")

    def opaque(self, name: str, fn: Callable[..., Any], refs: Sequence[Ref], shape: Shape) -> Ref:
        """A function of whole arrays."""
        shapes = tuple(self.shape(ref) for ref in refs)
        return self.add(Opaque(name, fn, shapes), tuple(refs), shape, "y")

    def broadcast(self, refs: Sequence[Ref]) -> Shape:
        """The common shape of operands."""
        rank = max((len(ref.axes) for ref in refs), default=0)
        result: list[Axis] = [1] * rank
        for ref in refs:
            for position, axis in enumerate(self.shape(ref), start=rank - len(ref.axes)):
                result[position] = axis if result[position] == 1 else result[position]
        return tuple(result)

    def add(self, op: PrimitiveOp, refs: tuple[Ref, ...], shape: Shape, hint: str) -> Ref:
        """Any primitive."""
        return self.append(Primitive(op, refs, shape, hint, self.where))

    def own_dtype(self, ref: Ref) -> str:
        """The cast or the masks or integers that a value is, MIXED for several; else empty."""
        return self._own[ref.value]

    def computed(self, ref: Ref) -> Ref:
        """``ref`` as a result of arithmetic, which has no dtype of its own."""
        return self.apply(call("mul", Arg(0), 1), ref) if self.own_dtype(ref) else ref

    def append(self, primitive: Primitive) -> Ref:
        """A primitive as it is; returns it with all its axes."""
        self.primitives.append(primitive)
        self._own.append(_own_dtype(primitive, [self._own[r.value] for r in primitive.operands]))
        axes = tuple(None if axis == 1 else i for i, axis in enumerate(primitive.shape))
        return Ref(len(self.primitives) - 1, axes)


def _own_dtype(primitive: Primitive, operands: Sequence[str]) -> str:
    """What ``Recorder.own_dtype`` says of a primitive, from what it says of the operands."""
    match primitive.op:
        case Round(dtype) | Source(dtype=dtype):
            return dtype
        case Apply(expr):
            return "bool" if is_predicate(expr) else ""
        case Opaque() | Join() | Merge():
            distinct = dict.fromkeys(operands)
            return next(iter(distinct), "") if len(distinct) < 2 else MIXED
    return ""
