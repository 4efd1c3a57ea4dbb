"""Which axes of values are in blocks, where others than the last two have to be.

Short axes: values of programs that compute element by element are blocked along the innermost axes
of every array, so that lines of all arrays are moved whole.

    pixel shuffle: O[a,e,c*4*D+f*2*D+d*2+g] = x[a,e*4+f*2+g,c,d]    F and G are 2

A block of C and D takes every other element of O, and one of F and G few elements of x. Here x is
blocked along C and D, and O along C, D and G.

Axes in another order than they are stored: where the innermost axis of an array that runs along all
loops is in no block, values are blocked along the innermost axes of all such arrays, and along the
axes that are folded.

    layer norm of channels: y[a,w,h,c] = x[a,c,h,w], folded along c; the last two axes are h and c

A block of the last two axes would read single elements of x, which is stored along w. Here blocks
run along w and c.

Products: what is computed of a product element by element, or folded along its axes, is blocked
along the axes of the product, as far as no axis would be in blocks here and a loop over single
elements there.

    norm per head: q[m,h,d] = sum_k x[m,k] w[k,h,d], divided by the root of its mean square along d

A product has blocks of rows and columns, here of m and d, for each h. In blocks of the last two
axes, h and d, what follows would read single rows of the product.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import inf

from blockbuster.frontend.layout import Layout
from blockbuster.frontend.limits import BLOCKED_AXES, LINE, SHORT
from blockbuster.frontend.piece_places import operand_positions
from blockbuster.frontend.primitives import Apply, Contract, Count, Fold, Primitive, Round, Source
from blockbuster.frontend.program import Shape
from blockbuster.frontend.strips import Along, Strip, Strips, strips_of
from blockbuster.ir.lengths import whole
from blockbuster.ir.types import Dim, size_class

Axes = list[set[int]]
"""By the position of a value: some of its axes."""

BY_ELEMENT = (Source, Apply, Round, Count)
"""What programs consist of that compute element by element."""


@dataclass(frozen=True)
class Blocks:
    """A primitive program with the layouts of its values.

    ``outputs``: the values that are stored, and how. ``fixed``: sizes that are known.
    """

    primitives: Sequence[Primitive]
    layouts: Sequence[Layout]
    live: Sequence[bool]
    outputs: Sequence[tuple[int, Strips]]
    fixed: Mapping[Dim, int]

    @cached_property
    def of(self) -> list[int]:
        """The values that an output needs."""
        return [at for at, live in enumerate(self.live) if live]

    @cached_property
    def blocked(self) -> Axes:
        """The axes that are in blocks."""
        return [{level.axis for level in layout if level.blocked} for layout in self.layouts]

    @property
    def folds(self) -> dict[int, Fold]:
        """The folds among the values, by position."""
        return {at: op for at in self.of if isinstance(op := self.primitives[at].op, Fold)}

    def has_only(self, kinds: tuple[type, ...]) -> bool:
        """True if all values are made by these operators."""
        return all(isinstance(self.primitives[at].op, kinds) for at in self.of)

    def arrays(self) -> Iterator[tuple[int, Strips]]:
        """The inputs that are read, and how values lie in them; then the outputs."""
        for at in self.of:
            op, shape = self.primitives[at].op, self.primitives[at].shape
            if isinstance(op, Source):
                yield at, op.strips or strips_of(tuple(range(len(shape))), shape)
        yield from self.outputs

    def spread(self, chosen: Axes, of: Sequence[int]) -> Axes:
        """What is blocked in a value is blocked in its operands, and the other way around."""
        before = -1
        while before != (now := sum(map(len, chosen))):
            before = now
            for at in of:
                primitive = self.primitives[at]
                for axis in range(len(primitive.shape)):
                    for index, position in operand_positions(primitive, axis):
                        ref = primitive.operands[index]
                        own = ref.axes[position]
                        if own is not None and (axis in chosen[at] or own in chosen[ref.value]):
                            chosen[at].add(axis)
                            chosen[ref.value].add(own)
        return chosen

    def along(
        self, chosen: Axes, *, folded: Iterable[Dim] = (), short: Collection[Dim] = (),
        most: float = inf,
    ) -> Blocks:  # fmt: skip
        """With blocks along the chosen axes alone; folds over them are in blocks, too.

        Unchanged if a value has more than ``most`` blocked axes, but for those of ``short`` sizes,
        or if one size would be in blocks, as those that are ``folded``, and a loop elsewhere: a
        size has blocks of one element everywhere.
        """
        pairs = zip(self.layouts, chosen, strict=True)
        found = [tuple(one._replace(blocked=one.axis in axes) for one in layout)
                 for layout, axes in pairs]  # fmt: skip
        sizes: tuple[set[Dim], set[Dim]] = set(), {size_class(dim) for dim in folded}
        for at in self.of:
            for level in found[at]:
                sizes[level.blocked].add(size_class(level.dim))
            many = sum(one.blocked and size_class(one.dim) not in short for one in found[at])
            if many > most:
                return self
        if sizes[False] & sizes[True]:
            return self
        made = list(self.primitives)
        for at, fold in self.folds.items():
            (*_, ref) = made[at].operands
            if ref.axes[fold.axis] in chosen[ref.value]:
                made[at] = replace(made[at], op=replace(fold, in_blocks=True))
        return replace(self, primitives=made, layouts=found)


def in_blocks(blocks: Blocks) -> Blocks:
    """The layouts, and the primitives with their folds, with blocks along the axes that need it."""
    return _beside_products(_along_whole_lines(_along_short_axes(blocks)))


def _along_short_axes(blocks: Blocks) -> Blocks:
    """With blocks along the innermost axes of all arrays, where short axes are blocked, or are
    innermost.
    """
    if not blocks.has_only(BY_ELEMENT):
        return blocks
    arrays = [
        (at, [along for strip in strips for along in strip.moving])
        for at, strips in blocks.arrays()
    ]
    short: Axes = [set() for _ in blocks.primitives]
    for at, runs in arrays:
        short[at].update(along.axis for along in runs if _length(along) <= SHORT)
    blocks.spread(short, blocks.of)
    innermost = (short[at] & {along.axis for along in runs[-1:]} for at, runs in arrays)
    if not any(map(set.intersection, short, blocks.blocked)) and not any(innermost):
        return blocks
    chosen: Axes = [set() for _ in blocks.primitives]
    for at, runs in arrays:
        chosen[at].update(_innermost(runs))
    return blocks.along(blocks.spread(chosen, blocks.of))


def _innermost(runs: Sequence[Along]) -> Iterator[int]:
    """Of the axes that run along an array the last ones, which make a line together, and those
    before them that would make another one.
    """
    lines, length = 0, 1.0
    for along in reversed(runs):
        yield along.axis
        length *= _length(along)
        if length > SHORT:
            lines, length = lines + 1, 1.0
        if lines == 2:
            return


def _length(along: Along) -> float:
    """How many elements run along an axis; infinite if that is not known."""
    length = along.length.constant if along.length is not None else None
    return inf if length is None else float(length)


def _along_whole_lines(blocks: Blocks) -> Blocks:
    """With blocks along lines of the arrays. Sizes that are known tell that more axes make a line,
    where nothing is folded.
    """
    if not blocks.has_only((*BY_ELEMENT, Fold)):
        return blocks
    primitives, folds = blocks.primitives, blocks.folds
    fixed = {} if folds else blocks.fixed
    arrays = [
        (at, [*_runs(strips, primitives[at].shape, fixed)]) for at, strips in blocks.arrays()
    ]
    most = max((len(runs) for _, runs in arrays), default=0)
    full = [(at, runs) for at, runs in arrays if len(runs) == most]
    if most < BLOCKED_AXES or not any(
        runs[-1].axis not in blocks.blocked[at] and _length(runs[-1]) > SHORT for at, runs in full
    ):
        return blocks
    chosen: Axes = [set() for _ in primitives]
    for at, runs in full:
        chosen[at].update(_line(runs))
    for at, fold in folds.items():
        (ref,) = primitives[at].operands
        own = ref.axes[fold.axis]
        assert own is not None, "unit axes are not folded"
        chosen[ref.value].add(own)
    return blocks.along(
        blocks.spread(chosen, blocks.of), folded=[fold.dim for fold in folds.values()],
        short=[dim for dim, size in fixed.items() if size <= SHORT], most=BLOCKED_AXES,
    )  # fmt: skip


def _pieces(strip: Strip) -> Sequence[Along]:
    """The axes that an axis of an array is cut into; of windows, those that count windows."""
    for outer, inner in pairwise(strip.moving):
        if inner.length is None or inner.length != outer.step:
            return strip.moving[:1]
    return strip.moving


def _runs(strips: Strips, shape: Shape, fixed: Mapping[Dim, int]) -> Iterator[Along]:
    """The axes of a value that run along an array, those of known sizes with their length."""
    for along in (one for strip in strips for one in _pieces(strip)):
        dim = shape[along.axis]
        known = fixed.get(size_class(dim)) if isinstance(dim, str) else None
        if along.length is None and known is not None:
            along = replace(along, length=whole(known))
        yield along


def _line(runs: Sequence[Along]) -> Iterator[int]:
    """The last axes that run along an array, with so many elements together as make a line."""
    length = 1.0
    for along in reversed(runs):
        yield along.axis
        length *= _length(along)
        if length >= LINE:
            return


def _beside_products(blocks: Blocks) -> Blocks:
    """With blocks along the axes of products."""
    if not blocks.has_only((*BY_ELEMENT, Fold, Contract)):
        return blocks
    primitives, blocked = blocks.primitives, blocks.blocked
    products = [at for at in blocks.of if isinstance(primitives[at].op, Contract)]
    by_element = [at for at in blocks.of if isinstance(primitives[at].op, Apply | Round | Fold)]
    chosen: Axes = [set() for _ in primitives]
    for at in products:
        chosen[at].update(blocked[at])
    blocks.spread(chosen, by_element)
    moved = [at for at in by_element if chosen[at] and chosen[at] != blocked[at]]
    behind = _behind(products, primitives, blocks.of)
    for at, fold in blocks.folds.items():
        (*_, ref) = primitives[at].operands
        own = ref.axes[fold.axis]
        beside = ref.value not in behind and own in blocked[ref.value]
        if own is not None and (at in moved or (beside and chosen[ref.value])):
            chosen[ref.value].add(own)
    if not moved:
        return blocks
    blocks.spread(chosen, by_element)
    kept = [axes or before for axes, before in zip(chosen, blocked, strict=True)]
    torn = any(kept[at] != blocked[at] for at in products)
    return blocks if torn else blocks.along(kept, most=BLOCKED_AXES)


def _behind(
    products: Sequence[int], primitives: Sequence[Primitive], of: Sequence[int]
) -> set[int]:
    """The values that are computed of products: what is beside them keeps its folds in blocks."""
    found = {*products}
    for at in of:
        if not found.isdisjoint(ref.value for ref in primitives[at].operands):
            found.add(at)
    return found
