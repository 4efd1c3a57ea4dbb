"""Elements that are repeated along an axis: their readers read them where they are held once.

    y = where(j >= 0, k, k)        k has no axis L, y has one: heads of keys, for each of L queries
    s = q @ y.T                    q has the axis L: it multiplies k

An array that is expanded and then reshaped has real elements along its new axis, since no view
merges an axis that repeats elements with another. Readers that tell the two axes apart again need
none: what other operands show along the axis meets each element as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from blockbuster.frontend.array import TracedArray, array_at
from blockbuster.frontend.contractions import equation_of
from blockbuster.frontend.operation import Operation
from blockbuster.frontend.primitives import Apply, Contract, Primitive, Ref, Round
from blockbuster.ir.expr import Arg, Call
from blockbuster.ir.graph import Value
from blockbuster.ir.lengths import ONE


def beside_others(asked: Operation) -> TracedArray | None:
    """A function of an array that is repeated along axes which other operands have, as that of the
    array as it was: ``s.expand_as(x) * x`` is ``s * x``. None for other functions.
    """
    trace, op, operands, params, _ = asked
    for at, x in enumerate(operands):
        made = equation_of(x)
        held = made.operands[1] if made is not None and made.op == "where" else None
        if made is None or not isinstance(held, Value) or held != made.operands[2]:
            continue
        once = array_at(trace, held)
        others = [o for o in operands if isinstance(o, TracedArray) and o.value != x.value]
        if once.ndim and _have_axes(others, x, once):  # the dtype of a number would count less
            trace.replaced |= dict.fromkeys((x.value.node, *_positions(once, made.operands[0])))
            return trace.record(op, (*operands[:at], once, *operands[at + 1 :]), params)
    return None


def _have_axes(others: Sequence[TracedArray], x: TracedArray, once: TracedArray) -> bool:
    """True if each axis of ``x`` that ``once`` lacks is one of an array among others."""
    length = x.trace.dims.length

    def extent(array: TracedArray, behind: int) -> object:
        return length(array.axes[-1 - behind]) if behind < array.ndim else ONE

    lacking = [n for n in range(x.ndim) if extent(once, n) != extent(x, n)]
    return all(any(extent(o, n) == extent(x, n) for o in others) for n in lacking)


def _positions(like: TracedArray, mask: object) -> Iterator[int]:
    """The equations of a condition on positions."""
    left = [mask]
    while left:
        one = left.pop()
        made = equation_of(array_at(like.trace, one)) if isinstance(one, Value) else None
        if made is not None and made.op in ("and", "ge", "expand", "arange"):
            assert isinstance(one, Value)
            yield one.node
            left += made.operands


def read_once(primitives: Sequence[Primitive]) -> tuple[Primitive, ...]:
    """The primitives, their operands without the repetitions that others make needless."""
    made: list[Primitive] = []
    for primitive in primitives:
        if isinstance(primitive.op, Apply | Round | Contract):
            for at in range(len(primitive.operands)):
                primitive = with_operand_once(primitive, at, made)
        made.append(primitive)
    return tuple(made)


def with_operand_once(primitive: Primitive, at: int, made: Sequence[Primitive]) -> Primitive:
    """``primitive`` with an operand as it is before it is repeated, if others show all axes."""
    ref = primitive.operands[at]
    held = _repeated(made[ref.value])
    if held is None:
        return primitive
    rank = len(made[ref.value].shape)
    axes = tuple(None if axis is None else held.shown_at(axis, rank) for axis in ref.axes)
    operands = [*primitive.operands]
    operands[at] = Ref(held.value, axes)
    lost = [n for n, axis in enumerate(axes) if axis is None and ref.axes[n] is not None]
    matrix = 2 if isinstance(primitive.op, Contract) else 0
    if any(n >= len(axes) - matrix for n in lost):
        return primitive
    behind = (n - len(axes) for n in lost)  # counted from the last axis, as operands broadcast
    if all(any(_shows(other, n) for other in operands) for n in behind):
        return replace(primitive, operands=tuple(operands))
    return primitive


def batch_alone(mine: Ref, other: Ref) -> int | None:
    """The last batch, counted from the end, that ``mine`` has and ``other`` has not."""
    for at in range(-3, -len(mine.axes) - 1, -1):
        if mine.axes[at] is not None and not _shows(other, at):
            return at
    return None


def _shows(ref: Ref, axis: int) -> bool:
    return -axis <= len(ref.axes) and ref.axes[axis] is not None


def _repeated(primitive: Primitive) -> Ref | None:
    """The operand that a primitive repeats: one that stands on both sides of a choice."""
    match primitive.op:
        case Apply(Call("where", (_, Arg(first), Arg(second)))):
            one, other = primitive.operands[first], primitive.operands[second]
            return one if one == other else None
    return None
