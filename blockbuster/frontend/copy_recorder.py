"""A recorder of operations that knows the lengths of axes, and copies where a view is not free."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from blockbuster.frontend.copies import (
    Copy,
    CopyJoin,
    CopyMerge,
    CopyReshape,
    CopySlice,
    CopySplit,
    CopyWindows,
    along,
    in_axes,
)
from blockbuster.frontend.dims import letters
from blockbuster.frontend.primitives import Join, Merge, Opaque, Primitive, Recorder, Ref
from blockbuster.frontend.program import Axis, Shape
from blockbuster.frontend.strips import Cut, Piece, Windows
from blockbuster.ir.dtypes import TRUTH
from blockbuster.ir.expr import Arg, call
from blockbuster.ir.lengths import ONE, Length, size, whole
from blockbuster.ir.types import Dim


class Copies(Recorder):
    """A recorder that can write what it recorded to memory, each value once."""

    def __init__(
        self, dims: Sequence[Dim], lengths: Mapping[Dim, Length], fixed: Mapping[Dim, int]
    ) -> None:
        super().__init__()
        self._fixed = fixed
        self.notes: list[str] = []
        """One sentence for each copy."""
        self.lengths = dict(lengths)
        self._fresh = (word for word in letters() if word not in dims)
        self._dims: dict[Length, Dim] = {self.length(dim): dim for dim in reversed(dims)}
        self._copies: dict[int, Ref] = {}

    def length(self, axis: Axis) -> Length:
        """The extent of an axis in terms of sizes that do not follow from others."""
        if not isinstance(axis, str):
            return ONE
        if axis in self._fixed:
            return whole(self._fixed[axis])
        return self.normal(self.lengths[axis]) if axis in self.lengths else size(axis)

    def normal(self, length: Length) -> Length:
        """``length`` in terms of sizes that do not follow from others."""
        return length.replaced(self.length)

    def axis(self, length: Length) -> Axis:
        """An axis of that extent."""
        if length == ONE:
            return 1
        if length not in self._dims:
            self._dims[length] = word = next(self._fresh)
            self.lengths[word] = length
        return self._dims[length]

    def nothing_of(self, ref: Ref, position: int, dim: Axis) -> Ref:
        """``ref`` with an axis of no elements, ``dim``, in place of a unit axis."""
        behind = len(ref.axes) - position - 1
        there = call("ge", Arg(0), 0)
        is_mask = self.own_dtype(ref) == TRUTH
        expr = call("and", there, Arg(1)) if is_mask else call("where", there, Arg(1), Arg(1))
        return self.apply(expr, self.count(dim).view((0, *(None,) * behind)), ref)

    def copied(self, ref: Ref) -> Ref:
        """``ref`` to an array in memory where it was one to a join or merge."""
        stack = [ref.value] if self._is_put_together(ref.value) else []
        while stack:
            primitive = self.primitives[stack[-1]]
            read = [operand.value for operand in primitive.operands]
            missing = [v for v in read if self._is_put_together(v) and v not in self._copies]
            if missing:
                stack += reversed(missing)
                continue
            value = stack.pop()
            if value not in self._copies:
                self._copies[value] = self._copied_whole(primitive)
        made = self._copies.get(ref.value)
        return ref if made is None else Ref(made.value, ref.axes)

    def _is_put_together(self, value: int) -> bool:
        return isinstance(self.primitives[value].op, Join | Merge)

    def _copied_whole(self, primitive: Primitive) -> Ref:
        op = primitive.op
        assert isinstance(op, Join | Merge)
        refs = [
            Ref(self._copies[operand.value].value, operand.axes)
            if operand.value in self._copies
            else operand
            for operand in primitive.operands
        ]
        fn = CopyJoin(op.axis) if isinstance(op, Join) else CopyMerge(op.axis)
        return self._copy(fn, refs, primitive.shape, primitive)

    def cut_copy(self, value: int, axis: int, piece: Piece) -> Ref:
        """A piece of a value, written to memory."""
        primitive = self.primitives[value]
        shape, dim = primitive.shape, primitive.shape[axis]
        ref = self.copied(Ref(value, _all(shape)))
        fn: Copy
        if isinstance(piece, Cut):
            assert isinstance(dim, str)
            start, length = (along(n, dim, self.length(dim)) for n in (piece.start, piece.length))
            fn = CopySlice(axis, dim, start, length, piece.step)
        elif isinstance(piece, Windows):
            fn = self._copied_windows(axis, dim, piece)
        elif piece.count.constant is None:
            split_ = (*shape[:axis], piece.outer, piece.inner, *shape[axis + 1 :])
            made = self._reshaped(ref, split_, primitive)
            return made.view((axis, *(i for i in range(len(split_)) if i != axis)))
        else:
            fn = CopySplit(axis, piece.count.constant)
        return self._copy(fn, [ref], shape_of_piece(primitive, axis, piece), primitive)

    def _copied_windows(self, axis: int, dim: Axis, piece: Windows) -> CopyWindows:
        assert isinstance(dim, str)
        runs = (piece.count, piece.length, piece.before)
        count, length, before = (along(n, dim, self.length(dim)) for n in runs)
        return CopyWindows(axis, dim, count, length, piece.step, piece.dilation, before)

    def reshape_copy(self, ref: Ref, shape: Shape) -> Ref:
        """The elements of ``ref`` in order under other axes, written to memory."""
        return self._reshaped(self.copied(ref), shape, None)

    def _reshaped(self, ref: Ref, shape: Shape, primitive: Primitive | None) -> Ref:
        extents = in_axes([*map(self.length, shape)], [*map(self.length, self.shape(ref))])
        return self._copy(CopyReshape(extents), [ref], shape, primitive)

    def _copy(
        self, fn: Copy, refs: Sequence[Ref], shape: Shape, primitive: Primitive | None
    ) -> Ref:
        """What ``fn`` gives, in place of ``primitive`` if one was recorded."""
        where = primitive.where if primitive else self.where
        hint = (primitive and primitive.hint) or "y"
        word = str(fn).split()[0]
        self.notes.append(f"{word} ({where}) is a copy: a kernel boundary runs around it")
        shapes = tuple(self.shape(ref) for ref in refs)
        return self.append(Primitive(Opaque(str(fn), fn, shapes), tuple(refs), shape, hint, where))


def _all(shape: Shape) -> tuple[int | None, ...]:
    return tuple(None if axis == 1 else i for i, axis in enumerate(shape))


def shape_of_piece(primitive: Primitive, axis: int, piece: Piece) -> Shape:
    """The shape of a primitive where an axis is cut or split."""
    shape = primitive.shape
    inner = piece.dim if isinstance(piece, Cut) else piece.inner
    cut_one = (*shape[:axis], inner, *shape[axis + 1 :])
    return cut_one if isinstance(piece, Cut) else (piece.outer, *cut_one)
