"""The layout in which every value is computed, found from the outputs backwards.

An output can be stored in any layout, so it demands none. A fold demands its axis innermost, and a
product its right operand transposed; a pointwise operation passes the demand on. So transposes and
repeated dims travel to the inputs, where they are free.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from blockbuster.frontend.layout import Layout, Level, choose, moved, natural, under
from blockbuster.frontend.primitives import (
    Apply,
    Contract,
    Count,
    Fold,
    Join,
    Merge,
    Opaque,
    Primitive,
    PrimitiveOp,
    Ref,
    Round,
    Scan,
    Source,
)


def layouts(primitives: Sequence[Primitive], live: Sequence[bool]) -> list[Layout]:
    """The layout each value is computed in.

    A first pass leaves open what only outputs read; such values then follow their operands, so
    that a softmax over columns is computed transposed rather than transposing its exponentials. An
    operand that is made of inputs element by element has no order of its own to follow: windows of
    an image whose maxima are taken one by one are computed in the order of the result.
    """
    first = _asked(primitives, live, [None] * len(primitives))
    settled: list[Layout | None] = []  # layouts for which there is a reason
    for position, primitive in enumerate(primitives):
        chosen = choose(first[position], natural(primitive.shape))
        free = isinstance(primitive.op, Source | Count)
        settled.append(None if free else chosen or _like_operands(primitive, settled))
    preferred = [
        None if isinstance(p.op, Source | Count) else layout or native(p, natural(p.shape))
        for p, layout in zip(primitives, settled, strict=True)
    ]
    second = _asked(primitives, live, preferred)
    return [
        _computed_in(primitive, asked, wish) or native(primitive, natural(primitive.shape))
        for primitive, asked, wish in zip(primitives, second, preferred, strict=True)
    ]


def native(primitive: Primitive, layout: Layout) -> Layout:
    """The layout nearest to ``layout`` that the op can make."""
    return _NATIVE[type(primitive.op)](primitive, layout)


def wants(primitive: Primitive, layout: Layout) -> tuple[Layout, ...]:
    """The layouts of the operands' values that give a result in a native ``layout``."""
    return _WANTS[type(primitive.op)](primitive, layout)


def _asked(
    primitives: Sequence[Primitive], live: Sequence[bool], preferred: Sequence[Layout | None]
) -> list[dict[Layout, None]]:
    """The layouts that each value is asked for, in order, consumers last to first."""
    asked: list[dict[Layout, None]] = [{} for _ in primitives]
    for position in reversed(range(len(primitives))):
        primitive = primitives[position]
        layout = _computed_in(primitive, asked[position], preferred[position])
        if live[position] and layout is not None:
            for ref, wanted in zip(primitive.operands, wants(primitive, layout), strict=True):
                value = primitives[ref.value]
                given = isinstance(value.op, Source | Count)
                asked[ref.value].setdefault(wanted if given else under(value.shape, wanted))
    return asked


def _computed_in(
    primitive: Primitive, asked: Mapping[Layout, None], preferred: Layout | None
) -> Layout | None:
    """The layout for these wishes; None if nothing is asked and the op has no order of its own."""
    usual = native(primitive, natural(primitive.shape))
    chosen = choose([native(primitive, layout) for layout in asked], usual)
    if chosen is None and preferred is not None:
        chosen = native(primitive, preferred)
    open_ = isinstance(primitive.op, Apply | Round)
    return chosen if chosen is not None or open_ else usual


def _like_operands(primitive: Primitive, settled: Sequence[Layout | None]) -> Layout | None:
    """The layout of an operand which has all axes of the result; None if none has a settled one.

    What is computed in another way than element by element has its own.
    """
    usual = native(primitive, natural(primitive.shape))
    if not isinstance(primitive.op, Apply | Round):
        return usual
    for ref in primitive.operands:
        layout = settled[ref.value]
        first = len(primitive.shape) - len(ref.axes)
        shown = {axis: i for i, axis in enumerate(ref.axes, first)}
        if layout is not None and len(layout) == len(usual):
            return under(primitive.shape, moved(layout, shown.get))
    return usual if any(settled[ref.value] for ref in primitive.operands) else None


def _as_asked(_primitive: Primitive, layout: Layout) -> Layout:
    return layout


def _with_blocked(layout: Layout, blocked: Callable[[int], bool]) -> Layout:
    return tuple([Level(axis, dim, blocked(axis)) for axis, dim, _ in layout])


def _native_count(_primitive: Primitive, layout: Layout) -> Layout:
    return _with_blocked(layout, lambda _: True)


def _native_fold(primitive: Primitive, layout: Layout) -> Layout:
    """Items keep the axes that are blocked in the operand: its last two, less the folded one."""
    fold = _op(primitive, Fold)
    rank = len(primitive.shape) + 1
    return _with_blocked(layout, lambda axis: axis + (axis >= fold.axis) >= rank - 2)


def _native_scan(primitive: Primitive, layout: Layout) -> Layout:
    """The axis that is scanned is innermost; items have it and the last one of the others."""
    own, rank = _op(primitive, Scan).axis, len(primitive.shape)
    other = max((axis for axis in range(rank) if axis != own), default=own)
    order = sorted(layout, key=lambda level: level.axis == own)
    return _with_blocked(tuple(order), lambda axis: axis in (own, other))


def _native_contract(primitive: Primitive, layout: Layout) -> Layout:
    return _with_blocked(layout, lambda axis: axis >= len(primitive.shape) - 2)


def _native_opaque(primitive: Primitive, _layout: Layout) -> Layout:
    return natural(primitive.shape)


def _wants_nothing(_primitive: Primitive, _layout: Layout) -> tuple[Layout, ...]:
    return ()


def _wants_same(primitive: Primitive, layout: Layout) -> tuple[Layout, ...]:
    rank = len(primitive.shape)
    return tuple(
        moved(layout, lambda axis, ref=ref: ref.shown_at(axis, rank))  # type: ignore[misc]
        for ref in primitive.operands
    )


def _wants_fold(primitive: Primitive, layout: Layout) -> tuple[Layout, ...]:
    fold, (ref,) = _op(primitive, Fold), primitive.operands
    rank = len(primitive.shape) + 1
    outer = moved(layout, lambda axis: ref.axes[axis + (axis >= fold.axis)])
    own = ref.axes[fold.axis]
    assert own is not None, "unit axes are not folded"
    return ((*outer, Level(own, fold.dim, fold.in_blocks or fold.axis >= rank - 2)),)


def _wants_contract(primitive: Primitive, layout: Layout) -> tuple[Layout, ...]:
    """(..., m, k) of the left operand and (..., n, k) of the right one."""
    rank = len(primitive.shape)
    inner = _op(primitive, Contract).inner

    def side(ref: Ref, skipped: int, inner_axis: int) -> Layout:
        outer = moved(layout, lambda axis: None if axis == skipped else ref.shown_at(axis, rank))
        own = ref.axes[inner_axis]
        if own is None:
            return outer
        return (*outer, Level(own, inner, True))

    a, b = primitive.operands
    return side(a, rank - 1, -1), side(b, rank - 2, -2)


def _wants_natural(primitive: Primitive, _layout: Layout) -> tuple[Layout, ...]:
    return tuple(
        moved(natural(shape), lambda axis, ref=ref: ref.axes[axis])  # type: ignore[misc]
        for ref, shape in zip(primitive.operands, _op(primitive, Opaque).shapes, strict=True)
    )


def _op(primitive: Primitive, kind: type[Any]) -> Any:
    assert isinstance(primitive.op, kind)
    return primitive.op


_Native = Callable[[Primitive, Layout], Layout]
_Wants = Callable[[Primitive, Layout], tuple[Layout, ...]]

_NATIVE: Mapping[type[PrimitiveOp], _Native] = {
    Source: _as_asked, Apply: _as_asked, Round: _as_asked, Count: _native_count,
    Fold: _native_fold, Scan: _native_scan, Contract: _native_contract, Opaque: _native_opaque,
    Join: _as_asked, Merge: _as_asked,  # dead: what reads them reads their parts
}  # fmt: skip
_WANTS: Mapping[type[PrimitiveOp], _Wants] = {
    Source: _wants_nothing, Count: _wants_nothing, Apply: _wants_same, Round: _wants_same,
    Fold: _wants_fold, Scan: _wants_same, Contract: _wants_contract, Opaque: _wants_natural,
}  # fmt: skip
