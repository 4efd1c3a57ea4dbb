"""Joined and merged arrays that are read but never built.

An operation on a join runs on each part, if its other operands can be cut in the same way for free;
an operation on a merged axis runs on the two axes from which it is merged. Where the inner one of
these is a join and is summed, each part has a product over the outer one. If that fails, the join
is copied. It is also copied where a product for each part would read a large operand once for each:
tokens that are joined meet the same weights. Keys that are joined meet a query each by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from blockbuster.frontend.deep import Task, done
from blockbuster.frontend.joined import Parted, as_one_view
from blockbuster.frontend.limits import MOST_PARTS
from blockbuster.frontend.primitives import Contract, Join, Merge, Primitive, Ref
from blockbuster.frontend.program import Axis, Shape
from blockbuster.frontend.push import Pieces
from blockbuster.frontend.regrouping import exchanged, parts_of
from blockbuster.frontend.repeated import batch_alone, with_operand_once
from blockbuster.frontend.strips import Cut, Split
from blockbuster.ir.expr import Arg, Expr, Size, call, rewrite
from blockbuster.ir.lengths import ONE, ZERO, Length, product_of
from blockbuster.ir.ops import COMBINE
from blockbuster.ir.types import Dim


class ViewRecorder(Pieces):
    """A recorder whose operands may be joins and merges."""

    def __init__(
        self, dims: Sequence[Dim], lengths: Mapping[Dim, Length], fixed: Mapping[Dim, int]
    ) -> None:
        super().__init__(dims, lengths, fixed)
        self._batches: dict[int, tuple[int, ...]] = {}
        """By value, in which order of axes its rows or columns are the batches that they are."""
        self._cuts: dict[Ref, Parted] = {}
        """Pieces of axes, and what they were cut from."""
        self._of_products: set[int] = set()
        """Products, and functions of them that have their rows and columns last."""

    def cut(self, ref: Ref, position: int, piece: Cut) -> Ref:
        made = super().cut(ref, position, piece)
        self._cuts[made] = ref, position, piece
        return made

    def join(self, refs: Sequence[Ref], axis: int, dim: Axis) -> Ref:
        """Arrays of one shape but along ``axis``, one behind the other; ``dim`` is of them all.

        Where their dtypes differ, all become results of arithmetic. Those without elements are
        left out.
        """
        if len({self.own_dtype(ref) for ref in refs}) > 1:
            refs = [self.computed(ref) for ref in refs]
        refs = [ref for ref in refs if self.length(self.shape(ref)[axis]).terms] or refs[:1]
        if len(refs) == 1:
            return refs[0]
        if (one := as_one_view(self, refs, axis, dim, cuts=self._cuts)) is not None:
            return one
        shape = self.shape(refs[0])
        return self.add(Join(axis), tuple(refs), (*shape[:axis], dim, *shape[axis + 1 :]), "j")

    def merge(self, ref: Ref, axis: int, dim: Axis) -> Ref:
        """The axes 0 and ``axis`` + 1 of ``ref`` as one axis ``dim`` at ``axis``."""
        shape = self.shape(ref)[1:]
        return self.add(Merge(axis), (ref,), (*shape[:axis], dim, *shape[axis + 1 :]), "j")

    def reshape(self, ref: Ref, shape: Shape, new: Sequence[Length]) -> Ref:
        """The elements of ``ref`` in order under other axes, of extents ``new``: split and merged,
        or copied.
        """
        old = [*map(self.length, self.shape(ref))]
        parts = parts_of(old, new)
        if parts is None:
            return self.reshape_copy(ref, shape)
        ref = self._without_units(ref, old)
        words = [shape[p.new] if p.length == new[p.new] else self.axis(p.length) for p in parts]
        for at, axis in reversed([*enumerate(dict.fromkeys(part.old for part in parts))]):
            own = [word for word, part in zip(words, parts, strict=True) if part.old == axis]
            ref = self._split_up(ref, at, own)
        for at, axis in enumerate(dict.fromkeys(part.new for part in parts)):
            ref = self._merged_up(ref, at, sum(part.new == axis for part in parts), shape[axis])
        places = iter(range(len(parts)))
        return ref.view([None if length == ONE else next(places) for length in new])

    def _without_units(self, ref: Ref, extents: Sequence[Length]) -> Ref:
        """``ref`` without its axes of extent 1, which may be dims of the user's."""
        for axis, extent in enumerate(extents):
            if extent == ONE:
                ref = self.cut(ref, axis, Cut(1, ZERO, ONE))
        return ref.view([axis for axis, extent in enumerate(extents) if extent != ONE])

    def _split_up(self, ref: Ref, axis: int, dims: Sequence[Axis]) -> Ref:
        """``ref`` with an axis split into several."""
        for at, outer in enumerate(dims[:-1], start=axis):
            rest = product_of(map(self.length, dims[at - axis + 1 :]))
            inner = dims[-1] if at - axis == len(dims) - 2 else self.axis(rest)
            piece = Split(outer, inner, self.length(outer), rest)
            both = self.split(ref, at, piece, len(ref.axes))
            ref = both.view((*range(1, at + 1), 0, *range(at + 1, len(both.axes))))
        return ref

    def _merged_up(self, ref: Ref, axis: int, count: int, dim: Axis) -> Ref:
        """``ref`` with ``count`` axes from ``axis`` on merged into one."""
        for left in reversed(range(count - 1)):
            others = (i for i in range(len(ref.axes)) if i != axis)
            pair = product_of(map(self.length, self.shape(ref)[axis : axis + 2]))
            ref = self.merge(ref.view((axis, *others)), axis, self.axis(pair) if left else dim)
        return ref

    def apply(self, expr: Expr, *refs: Ref, hint: str = "") -> Ref:
        return done(self._apply(expr, refs, hint))

    def round(self, ref: Ref, dtype: str) -> Ref:
        return done(self._round(ref, dtype))

    def fold(self, ref: Ref, monoid: str, axis: int, *, keepdims: bool = True) -> Ref:
        return done(self._fold(ref, monoid, axis % len(ref.axes), keepdims))

    def product(self, a: Ref, b: Ref) -> Ref:
        return done(self._product(a, b))

    def opaque(
        self, name: str, fn: Callable[..., object], refs: Sequence[Ref], shape: Shape
    ) -> Ref:
        return super().opaque(name, fn, [self.copied(ref) for ref in refs], shape)

    def _in_known_sizes(self, expr: Expr) -> Expr:
        """``expr`` without sizes that follow from others: no array may have such a dim."""

        def known(leaf: Expr) -> Expr:
            if isinstance(leaf, Size) and leaf.dim in self.lengths:
                return self.length(leaf.dim).expr
            return leaf

        return rewrite(expr, known)

    def scan(self, ref: Ref, monoid: str, axis: int, *, back: bool = False) -> Ref:
        return done(self._scan(ref, monoid, axis, back))

    # how each reads: joins in joins nest as deep as the program is long ------------

    def _apply(self, expr: Expr, refs: Sequence[Ref], hint: str) -> Task[Ref]:
        rank = max((len(ref.axes) for ref in refs), default=0)
        found = self._own_axis(refs, rank)
        if found is None:
            expr, order = self._in_known_sizes(expr), self._order_of_rows(refs, rank)
            if order is None:
                return self._with_rows_of(refs, super().apply(expr, *refs, hint=hint))
            full = [Ref(ref.value, (*(None,) * (rank - len(ref.axes)), *ref.axes)) for ref in refs]
            made = super().apply(expr, *(ref.view(order) for ref in full), hint=hint)
            return self._with_rows(made, order)
        result: Ref = yield self._through(
            refs, found, rank, lambda operands: self._apply(expr, operands, hint)
        )
        return result

    def _round(self, ref: Ref, dtype: str) -> Task[Ref]:
        found = self._own_axis([ref], len(ref.axes))
        if found is None:
            order = self._order_of_rows([ref], len(ref.axes))
            if order is None:
                return self._with_rows_of([ref], super().round(ref, dtype))
            return self._with_rows(super().round(ref.view(order), dtype), order)
        made: Ref = yield self._through(
            [ref], found, len(ref.axes), lambda operands: self._round(operands[0], dtype)
        )
        return made

    def _scan(self, ref: Ref, monoid: str, axis: int, back: bool) -> Task[Ref]:
        rank = len(ref.axes)
        found = self._own_axis([ref], rank)
        if found is None or found[1] == axis:
            return super().scan(self.copied(ref), monoid, axis, back=back)
        made: Ref = yield self._through(
            [ref], found, rank, lambda operands: self._scan(operands[0], monoid,
            axis + len(operands[0].axes) - rank, back)
        )
        return made

    def _fold(self, ref: Ref, monoid: str, axis: int, keepdims: bool) -> Task[Ref]:
        rank = len(ref.axes)
        found = self._own_axis([ref], rank)
        if found is None:
            order = self._order_of_rows([ref], rank) if axis == rank - 1 else None
            if order is None or order[axis] != axis:
                return super().fold(ref, monoid, axis, keepdims=keepdims)
            folded = self._with_rows(super().fold(ref.view(order), monoid, axis), order)
            return folded if keepdims else folded.view(range(axis))
        own = found[1]
        dim = self.shape(ref)[own]
        place = own - (own > axis and not keepdims)
        if isinstance(self.primitives[ref.value].op, Join):
            folds: list[Ref] = []
            for part in [self.cut(ref, own, piece) for _, piece in self.parts(ref.value)]:
                folds.append((yield self._fold(part, monoid, axis, keepdims)))
            return self.join(folds, place, dim) if own != axis else self._combined(monoid, folds)
        both = self.split(ref, own, self.merged(ref.value), rank)
        inner: Ref = yield self._fold(both, monoid, axis + 1, keepdims)
        if own != axis:
            return self.merge(inner, place, dim)
        made: Ref = yield self._fold(inner, monoid, 0, False)
        return made

    def _product(self, a: Ref, b: Ref) -> Task[Ref]:
        rank = max(len(a.axes), len(b.axes))
        for index, ref in enumerate((a, b)):
            found = self._own_axis([ref], rank)
            if found is not None:
                made: Ref = yield self._product_through(a, b, index, found[1], rank)
                return made
        return self._of_matrices(a, b)

    def _of_matrices(self, a: Ref, b: Ref) -> Ref:
        """A product in which batches that meet the same matrix are its rows, or columns.

        So do those where there is one row alone: the queries of a group of heads, with its keys.
        """
        for index in (0, 1):
            mine, other = self._read_once(a, b, index)
            unit, rank = index - 2, len(mine.axes)
            if mine.axes[unit] is None and (at := batch_alone(mine, other)) is not None:
                order = exchanged(rank, at, unit)
                made = super().product(*_ordered(index, mine.view(order), other))
                return self._with_rows(made, exchanged(len(made.axes), at, unit))
        made = super().product(a, b)
        self._of_products.add(made.value)
        return made

    def _with_rows_of(self, refs: Sequence[Ref], made: Ref) -> Ref:
        """A function of ``refs``: it has the rows and columns of a product if one of them has."""
        for ref in refs:
            own = len(self.primitives[ref.value].shape)
            if ref.value in self._of_products and ref.axes[-2:] == (own - 2, own - 1):
                self._of_products.add(made.value)
        return made

    def _with_rows(self, made: Ref, order: Sequence[int]) -> Ref:
        """A value whose rows or columns are shown as batches, in ``order``."""
        self._batches[made.value] = tuple(order)
        return made.view(order)

    def _order_of_rows(self, refs: Sequence[Ref], rank: int) -> tuple[int, ...] | None:
        """The order in which an operand has such batches as rows, or columns.

        Functions of it keep that order: then they are computed in the blocks of the product.
        """
        for ref in refs:
            order = self._batches.get(ref.value) or self._rows_elsewhere(ref)
            if order is not None and len(order) == len(ref.axes) == rank:
                moved = [at for at in range(rank) if order[at] != at]
                if any(ref.axes[at] is None for at in moved):
                    return order
        return None

    def _rows_elsewhere(self, ref: Ref) -> tuple[int, ...] | None:
        """The same for what has rows of a product, with a new axis of one element beside them."""
        own, rank = len(self.primitives[ref.value].shape), len(ref.axes)
        if rank < 3 or ref.value not in self._of_products:
            return None
        for unit in (-2, -1):
            if ref.axes[unit] is None and own + unit in ref.axes[:-2]:
                return tuple(exchanged(rank, ref.axes.index(own + unit) - rank, unit))
        return None

    def _read_once(self, a: Ref, b: Ref, index: int) -> tuple[Ref, Ref]:
        """Operand ``index`` and the other one, which has no repetitions that it makes needless."""
        shape = self.broadcast((a, b))
        read = Primitive(Contract(self.shape(a)[-1]), (a, b), shape)
        once = with_operand_once(read, 1 - index, self.primitives).operands
        return once[index], once[1 - index]

    def _own_axis(self, refs: Sequence[Ref], rank: int) -> tuple[int, int] | None:
        """The first operand that is a join or merge, and where in a result its own axis stands."""
        for index, ref in enumerate(refs):
            op = self.primitives[ref.value].op
            if isinstance(op, Join | Merge):
                return index, ref.axes.index(op.axis) + rank - len(ref.axes)
        return None

    def _combined(self, monoid: str, folds: Sequence[Ref]) -> Ref:
        total = folds[0]
        for part in folds[1:]:
            total = self.apply(call(COMBINE[monoid], Arg(0), Arg(1)), total, part, hint="s")
        return total

    def _pieces_of(self, value: int) -> list[Cut] | list[Split]:
        if isinstance(self.primitives[value].op, Join):
            return [piece for _, piece in self.parts(value)]
        return [self.merged(value)]

    def _alike(self, value: int, others: Sequence[Ref], places: Sequence[int]) -> bool:
        """True if the others can be cut, or split, as the join or merge ``value`` is, for free."""
        return all(
            self.is_free(ref, place, piece)
            for piece in self._pieces_of(value)
            for ref, place in zip(others, places, strict=True)
        )

    def _through(
        self,
        refs: Sequence[Ref],
        found: tuple[int, int],
        rank: int,
        work: Callable[[Sequence[Ref]], Task[Ref]],
    ) -> Task[Ref]:
        """``work`` on the parts of a join or merge, put together again."""
        index, place = found
        value = refs[index].value
        result: Ref
        places = [place + len(ref.axes) - rank for ref in refs]
        if not self._alike(value, refs, places):
            result = yield work([self.copied(r) if i == index else r for i, r in enumerate(refs)])
            return result
        dim = self.shape(refs[index])[places[index]]
        if isinstance(self.primitives[value].op, Merge):
            piece = self.merged(value)
            result = yield work([self.split(ref, place, piece, rank) for ref in refs])
            return self.merge(result, place, dim)
        made = []
        for _, part in self.parts(value):
            pairs = zip(refs, places, strict=True)
            cuts = [self.cut(ref, at, part) if at >= 0 else ref for ref, at in pairs]
            made.append((yield work(cuts)))
        return self.join(made, place, dim)

    def _product_through(self, a: Ref, b: Ref, index: int, place: int, rank: int) -> Task[Ref]:
        """A product whose operand ``index`` has its own axis at ``place``, of ``rank`` axes."""
        mine, other = (a, b)[index], (b, a)[index]
        value = mine.value
        summed = place == rank - 1 - index
        across = rank - 2 + index if summed else place if place < rank - 2 else -rank
        at = across + len(other.axes) - rank  # negative where the other lacks the axis
        is_join = isinstance(self.primitives[value].op, Join)
        result: Ref
        few = is_join and len(self.parts(value)) <= MOST_PARTS
        of_both = summed or (few and place < rank - 2 and at >= 0 and other.axes[at] is not None)
        whole = is_join and not (of_both or self._apart(value, other, index, place, rank))
        if whole or not self._alike(value, [other], [at]):
            result = yield self._product(*_ordered(index, self.copied(mine), other))
            return result
        own = place + len(mine.axes) - rank
        if is_join:
            products: list[Ref] = []
            for _, cut_ in self.parts(value):
                x, y = self.cut(mine, own, cut_), self.cut(other, at, cut_) if of_both else other
                products.append((yield self._product(*_ordered(index, x, y))))
            if summed:
                return self._combined("+", products)
            return self.join(products, place, self.shape(mine)[own])
        dim, piece = self.shape(mine)[own], self.merged(value)
        split = (self.split(mine, place, piece, rank), self.split(other, across, piece, rank))
        if summed and self._is_interleaved(split[0], place + 1):
            result = yield self._product_of_interleaved(split, index, (place + 1, across + 1))
            return result
        result = yield self._product(*_ordered(index, *split))
        if summed:
            return self.fold(result, "+", 0, keepdims=False)
        return self.merge(result, place, dim)

    def _is_interleaved(self, ref: Ref, place: int) -> bool:
        """True for a join of a few arrays, each with one element along the axis at ``place``."""
        is_join = isinstance(self.primitives[ref.value].op, Join)
        if not is_join or self._own_axis([ref], len(ref.axes)) != (0, place):
            return False
        parts = self.parts(ref.value)
        return len(parts) <= MOST_PARTS and all(at.length == ONE for _, at in parts)

    def _product_of_interleaved(
        self, split: tuple[Ref, Ref], index: int, places: tuple[int, int]
    ) -> Task[Ref]:
        """A product summed over an axis in which parts take turns: one product for each part.

        In both operands, the axis is split: its places stand in front, its parts at ``places``.
        """
        products: list[Ref] = []
        for _, cut_ in self.parts(split[0].value):
            pair = []
            for ref, at in zip(split, places, strict=True):
                order = [*range(1, len(ref.axes))]
                order[at - 1] = 0
                pair.append(self.cut(ref, at, cut_).view(order))
            products.append((yield self._product(*_ordered(index, *pair))))
        return self._combined("+", products)

    def _apart(self, value: int, other: Ref, index: int, place: int, rank: int) -> bool:
        """True if the parts of a join, rows or columns of a product, have products of their own.

        Weights stand on the right and have no batches: rows that meet them are copied.
        """
        of_batches = any(axis is not None for axis in other.axes[:-2])
        of_matrix = place >= rank - 2 and (index == 1 or of_batches)
        return of_matrix and len(self.parts(value)) <= MOST_PARTS


def _ordered(index: int, mine: Ref, other: Ref) -> tuple[Ref, Ref]:
    return (mine, other) if index == 0 else (other, mine)
