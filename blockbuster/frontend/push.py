"""Slices and windows of computed values, pushed towards the inputs, where they are free.

A slice of a sum is the sum of slices, a slice of a product's columns is the product with a slice of
the columns, and a slice of an input is a view. So slices pass through every operation except opaque
functions, whose results are copied. So do windows; what overlaps is computed several times then,
unless the program is divided where the windows begin.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from blockbuster.frontend.copy_recorder import Copies, shape_of_piece
from blockbuster.frontend.moves import Flip
from blockbuster.frontend.piece_places import is_plain, operand_positions, place_in, positions_in
from blockbuster.frontend.primitives import (
    Count,
    Fold,
    Join,
    Merge,
    Opaque,
    Primitive,
    Ref,
    Scan,
    Source,
)
from blockbuster.frontend.program import Shape
from blockbuster.frontend.regrouping import parts_of
from blockbuster.frontend.strips import (
    Cut,
    Piece,
    Split,
    Strips,
    Windows,
    cut,
    in_order,
    split,
    strips_of,
    turned,
)
from blockbuster.ir.dtypes import TRUTH
from blockbuster.ir.expr import Arg, call
from blockbuster.ir.lengths import ONE, Length
from blockbuster.ir.types import Dim

Wanted = tuple[int, int, Piece]
"""A value, the axis of which a piece is wanted, and the piece."""


class Pieces(Copies):
    """A recorder that can take pieces of what it recorded, each once."""

    def __init__(
        self, dims: Sequence[Dim], lengths: Mapping[Dim, Length], fixed: Mapping[Dim, int]
    ) -> None:
        super().__init__(dims, lengths, fixed)
        self._pieces: dict[Wanted, Ref] = {}
        self._views: dict[tuple[str, Strips, tuple[Length, ...]], Ref] = {}
        """The pieces of inputs: a slice, and a part of a split, may be one view."""
        self._free: dict[Wanted, None] = {}
        """Pieces that are known to need no copy."""
        self._parts: dict[int, tuple[tuple[Ref, Cut], ...]] = {}
        self._part_at: dict[int, dict[tuple[Length, Length], Ref]] = {}
        """The parts of a join by their place along its own axis."""

    def cut(self, ref: Ref, position: int, piece: Cut) -> Ref:
        """``ref`` with a piece of its axis at ``position``; a unit axis stays, or is left out."""
        entry = ref.axes[position]
        if entry is None:
            return ref if piece.dim == 1 else self.nothing_of(ref, position, piece.dim)
        made = self._piece(ref.value, entry, piece)
        return Ref(made.value, tuple(None if e is None else made.axes[e] for e in ref.axes))

    def split(self, ref: Ref, position: int, piece: Split, rank: int) -> Ref:
        """``ref``, as one of ``rank`` axes, with the axis at ``position`` from the end split.

        The outer axis stands in front; where the axis is a unit axis, both are.
        """
        position += len(ref.axes) - rank
        entry = ref.axes[position] if position >= 0 else None
        units = (None,) * (rank - len(ref.axes))
        if entry is None:
            return Ref(ref.value, (None, *units, *ref.axes))
        made = self._piece(ref.value, entry, piece)
        axes = (None if e is None else made.axes[e + 1] for e in ref.axes)
        return Ref(made.value, (made.axes[0], *units, *axes))

    def windows(self, ref: Ref, position: int, piece: Windows) -> Ref:
        """``ref`` with windows of its axis: the outer axis in front, the inner one in its place.

        Zeros stand outside: an input reads them, of any other value they are chosen.
        """
        made = self.split(ref, position, piece, len(ref.axes))
        if not piece.padded or self._is_whole_axis(ref, position):
            return made
        behind = len(ref.axes) - position - 1
        outer = self.count(piece.outer).view((0, *(None,) * len(ref.axes)))
        inner = self.count(piece.inner).view((0, *(None,) * behind))
        place, extent = place_in(piece, Arg(0), Arg(1)), self.length(self.shape(ref)[position])
        inside = call("and", call("ge", place, 0), call("lt", place, extent.expr))
        is_mask = self.own_dtype(ref) == TRUTH
        chosen = call("and", inside, Arg(2)) if is_mask else call("where", inside, Arg(2), 0)
        return self.apply(chosen, outer, inner, made)

    def _is_whole_axis(self, ref: Ref, position: int) -> bool:
        """True for an axis of an input, all of it: outside of the axis is outside of the array."""
        op, axis = self.primitives[ref.value].op, ref.axes[position]
        if not isinstance(op, Source) or axis is None:
            return False
        along = [a for strip in op.strips for a in strip.along if a.axis == axis]
        return not op.strips or [a.length for a in along] == [None]

    def is_free(self, ref: Ref, position: int, piece: Piece) -> bool:
        """True if that piece needs no copy."""
        entry = ref.axes[position] if position >= 0 else None
        return entry is None or self._all_free((ref.value, entry, piece))

    def _all_free(self, wanted: Wanted) -> bool:
        """True if a piece needs no copy; joins in joins may be as deep as the program is long."""
        found = dict.fromkeys([wanted])
        stack = [wanted]
        while stack:
            value, axis, piece = stack.pop()
            for at in self._closure(value, axis):
                if not self._free_here(*at, piece):
                    return False
                inner = self._within(*at, piece)
                if inner is not None and inner not in found and inner not in self._free:
                    found[inner] = None
                    stack.append(inner)
        self._free |= found
        return True

    def _within(self, value: int, axis: int, piece: Piece) -> Wanted | None:
        """What a piece of a join's or merge's own axis takes of a part, if it is such."""
        op = self.primitives[value].op
        if isinstance(op, Merge) and axis == op.axis:
            return self._within_merge(value, piece)
        if isinstance(op, Scan) and axis == op.axis and self._scan_of(value, piece):
            (given,) = self.primitives[value].operands
            own = given.axes[axis]
            return None if own is None else (given.value, own, piece)
        if not isinstance(op, Join) or axis != op.axis or not isinstance(piece, Cut):
            return None
        ref, inside = self._inside(value, piece) or (None, None)
        entry = ref.axes[axis] if ref else None
        return (
            None if ref is None or inside is None or entry is None else (ref.value, entry, inside)
        )

    # the values that a piece touches ---------------------------------------------

    def _closure(self, value: int, axis: int) -> list[tuple[int, int]]:
        """The axes of values that a piece of one axis cuts, operands first."""
        found: dict[tuple[int, int], None] = {}
        stack = [(value, axis)]
        while stack:
            pair = stack.pop()
            if pair not in found:
                found[pair] = None
                primitive = self.primitives[pair[0]]
                for index, position in operand_positions(primitive, pair[1]):
                    ref = primitive.operands[index]
                    entry = ref.axes[position]
                    assert entry is not None
                    stack.append((ref.value, entry))
        return sorted(found)

    def _free_here(self, value: int, axis: int, piece: Piece) -> bool:
        op = self.primitives[value].op
        if isinstance(op, Join) and axis == op.axis:
            cut_ = isinstance(piece, Cut) and self._inside(value, piece) is not None
            return cut_ or self._split_parts(value, piece) is not None
        if isinstance(op, Merge) and axis == op.axis:
            return self._is_merge_of(value, piece) or self._within_merge(value, piece) is not None
        if isinstance(op, Scan) and axis == op.axis:
            return self._scan_of(value, piece) is not None
        return not isinstance(op, Opaque) or self._turns_back(value, axis, piece)

    def _turns_back(self, value: int, axis: int, piece: Piece) -> bool:
        """True if a piece of a flipped value is that value as it was before."""
        primitive = self.primitives[value]
        flips = isinstance(primitive.op, Opaque) and primitive.op.fn == Flip((axis,))
        return flips and piece == turned(primitive.shape[axis], self.length(primitive.shape[axis]))

    def turned(self, ref: Ref, axes: Sequence[int]) -> Ref | None:
        """``ref`` with axes in the opposite order, if that needs no copy."""
        for position in axes:
            dim = self.shape(ref)[position]
            piece = turned(dim, self.length(dim))
            if not self.is_free(ref, position, piece):
                return None
            ref = self.cut(ref, position, piece)
        return ref

    def _scan_of(self, value: int, piece: Piece) -> Scan | None:
        """The scan of a piece of its own axis that makes this piece of a scan, if there is one."""
        op = self.primitives[value].op
        assert isinstance(op, Scan)
        return op.of(piece, self.length(self.primitives[value].shape[op.axis]))

    def _piece(self, value: int, axis: int, piece: Piece) -> Ref:
        if (value, axis, piece) not in self._pieces:
            for wanted in self._missing((value, axis, piece)):
                if wanted not in self._pieces:
                    self._pieces[wanted] = self._made(*wanted)
        return self._pieces[value, axis, piece]

    def _missing(self, wanted: Wanted) -> list[Wanted]:
        """The pieces to be made for that one, each behind those that it is made of."""
        found: dict[Wanted, None] = {}
        stack = [wanted]
        while stack:
            value, axis, piece = stack.pop()
            for at in self._closure(value, axis):
                if (*at, piece) in found or (*at, piece) in self._pieces:
                    continue
                found[*at, piece] = None
                inner = self._within(*at, piece)
                if inner is not None and self._all_free(inner):
                    stack.append(inner)
        return sorted(found, key=lambda each: each[0])  # operands come before what reads them

    def _made(self, value: int, axis: int, piece: Piece) -> Ref:
        primitive = self.primitives[value]
        match primitive.op:
            case Source(strips=strips):
                old = strips or strips_of(tuple(range(len(primitive.shape))), primitive.shape)
                new = cut(old, axis, piece) if isinstance(piece, Cut) else split(old, axis, piece)
                return self._view(primitive, new, shape_of_piece(primitive, axis, piece))
            case Count():
                return positions_in(self, piece, primitive.hint)
            case Join(own) if own == axis and isinstance(piece, Cut):
                part = self._part(value, axis, piece)
                return self.cut_copy(value, axis, piece) if part is None else part
            case Join(own) if own == axis and (pieces := self._split_parts(value, piece)):
                refs = (self.split(ref, axis, one, len(ref.axes)) for ref, one in pieces)
                shape = shape_of_piece(primitive, axis, piece)
                return self.append(replace(primitive, op=Join(0), operands=(*refs,), shape=shape))
            case Merge(own) if own == axis and self._is_merge_of(value, piece):
                return primitive.operands[0]
            case Merge(own) if own == axis and (inner := self._within_merge(value, piece)):
                if not self._all_free(inner):
                    return self.cut_copy(value, axis, piece)
                return self._merged_anew(primitive, axis, piece, inner)
            case Join(own) | Merge(own) if own == axis:
                return self.cut_copy(value, axis, piece)
            case Scan(axis=own) if own == axis and (kept := self._scan_of(value, piece)):
                assert isinstance(piece, Cut)
                given = (self.cut(primitive.operands[0], axis, piece),)
                shape = shape_of_piece(primitive, axis, piece)
                return self.append(replace(primitive, op=kept, operands=given, shape=shape))
            case Scan(axis=own) if own == axis:
                return self.cut_copy(value, axis, piece)
            case Opaque():
                before = self._turns_back(value, axis, piece)
                return primitive.operands[0] if before else self.cut_copy(value, axis, piece)
        return self._rebuilt(primitive, axis, piece)

    def _view(self, primitive: Primitive, strips: Strips, shape: Shape) -> Ref:
        """The view of an input by these strips: one of the same elements, if there is one."""
        assert isinstance(primitive.op, Source)
        plain, order = in_order(strips)
        wanted = primitive.op.name, plain, tuple(self.length(shape[axis]) for axis in order)
        if wanted not in self._views:
            source = replace(primitive.op, strips=strips)
            made = self.append(replace(primitive, op=source, shape=shape))
            self._views[wanted] = made.view(order)
        found = self._views[wanted]
        axes = range(len(shape))
        return found.view([order.index(axis) if axis in order else None for axis in axes])

    def _rebuilt(self, primitive: Primitive, axis: int, piece: Piece) -> Ref:
        """The primitive applied to pieces of those operands that have the axis."""
        touched = dict(operand_positions(primitive, axis))
        rank = len(primitive.shape) + isinstance(primitive.op, Fold | Merge)
        refs = list(primitive.operands)
        for index, ref in enumerate(refs):
            if isinstance(piece, Cut):
                refs[index] = self.cut(ref, touched[index], piece) if index in touched else ref
            elif index in touched:
                place = touched[index] + rank - len(ref.axes)
                refs[index] = self.split(ref, place, piece, rank)
            else:
                refs[index] = Ref(ref.value, (None,) * (rank + 1 - len(ref.axes)) + ref.axes)
        op = primitive.op
        if isinstance(piece, Split):
            if isinstance(op, Fold | Join | Merge | Scan):
                op = replace(op, axis=op.axis + 1)
            if isinstance(op, Merge):  # the axis that it merges comes first
                first, second, *others = refs[0].axes
                refs[0] = Ref(refs[0].value, (second, first, *others))
        shape = shape_of_piece(primitive, axis, piece)
        return self.append(replace(primitive, op=op, operands=tuple(refs), shape=shape))

    # joins, merges and copies ----------------------------------------------------

    def parts(self, value: int) -> Sequence[tuple[Ref, Cut]]:
        """The parts of a join, and where each lies along the joined axis."""
        if value not in self._parts:
            self._parts[value] = tuple(self._parts_of(value))
            reversed_ = reversed(self._parts[value])
            self._part_at[value] = {(at.start, at.length): ref for ref, at in reversed_}
        return self._parts[value]

    def _parts_of(self, value: int) -> Iterator[tuple[Ref, Cut]]:
        primitive = self.primitives[value]
        assert isinstance(primitive.op, Join)
        start = Length()
        for ref in primitive.operands:
            dim = self.shape(ref)[primitive.op.axis]
            piece = Cut(dim, start, self.length(dim))
            yield ref, piece
            start = start + piece.length

    def merged(self, value: int) -> Split:
        """The split that undoes a merge."""
        primitive = self.primitives[value]
        assert isinstance(primitive.op, Merge)
        shape = self.shape(primitive.operands[0])
        outer, inner = shape[0], shape[primitive.op.axis + 1]
        return Split(outer, inner, self.length(outer), self.length(inner))

    def _part(self, value: int, axis: int, piece: Cut) -> Ref | None:
        """What a cut of a join's own axis is, where it lies within one part and is free there."""
        ref, inside = self._inside(value, piece) or (None, None)
        if ref is None or inside is None:
            return ref
        return self.cut(ref, axis, inside) if self.is_free(ref, axis, inside) else None

    def _inside(self, value: int, piece: Cut) -> tuple[Ref, Cut | None] | None:
        """The part of a join in which a cut of its own axis lies, and where; None for all of it."""
        parts = self.parts(value)
        whole_part = self._part_at[value].get((piece.start, piece.length))
        if whole_part is not None and piece.step == 1:
            return whole_part, None
        first, stop = piece.start, piece.stop
        if piece.step < 0:
            first, stop = stop - ONE, first + ONE
        for ref, part in parts:
            before = (first - part.start).constant
            if before is None or before < 0:
                continue
            behind = (part.stop - stop).constant
            if behind is not None and behind >= 0:
                return ref, replace(piece, start=piece.start - part.start)
        return None

    def _split_parts(self, value: int, piece: Piece) -> list[tuple[Ref, Split]] | None:
        """The parts of a join, each with its own groups of a split; None if one ends inside one."""
        op = self.primitives[value].op
        if not isinstance(op, Join) or not is_plain(piece):
            return None
        found = []
        for ref, at in self.parts(value):
            count = at.length.over(piece.length)
            if count is None or not count.is_integral:
                return None
            one = Split(self.axis(count), piece.inner, count, piece.length)
            if not self.is_free(ref, op.axis, one):
                return None
            found.append((ref, one))
        return found

    def _is_merge_of(self, value: int, piece: Piece) -> bool:
        own = self.merged(value)
        return is_plain(piece) and (own.count, own.length) == (piece.count, piece.length)

    def _within_merge(self, value: int, piece: Piece) -> Wanted | None:
        """The split of one of two merged axes that a split into other factors needs."""
        if not is_plain(piece) or self._is_merge_of(value, piece):
            return None
        own, (ref,) = self.merged(value), self.primitives[value].operands
        parts = parts_of((own.count, own.length), (piece.count, piece.length)) or ()
        if len(parts) != 3:
            return None
        outer, inner = [part.length for part in parts if part.old == parts[1].old]
        entry = ref.axes[self._place(value) if parts[1].old else 0]
        split_ = Split(self.axis(outer), self.axis(inner), outer, inner)
        return None if entry is None else (ref.value, entry, split_)

    def _place(self, value: int) -> int:
        """Where the inner one of the axes stands that a merge makes one."""
        op = self.primitives[value].op
        assert isinstance(op, Merge)
        return op.axis + 1

    def _merged_anew(self, primitive: Primitive, axis: int, piece: Piece, inner: Wanted) -> Ref:
        """A merge split into other factors: one of its axes is split, a part merges anew."""
        (ref,) = primitive.operands
        position = ref.axes.index(inner[1])
        split_ = inner[2]
        assert isinstance(split_, Split)
        both = self.split(ref, position, split_, len(ref.axes))
        swapped = both.view((1, 0, *range(2, len(both.axes))))
        op = Merge(0 if position else axis + 1)
        shape = shape_of_piece(primitive, axis, piece)
        return self.append(replace(primitive, op=op, operands=(swapped,), shape=shape))
