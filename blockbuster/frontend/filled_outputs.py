"""Which values fill an output, where it is put together of several.

Parts that take turns along the last axis in memory, and read no array in common, are chosen one
beside the other in one kernel, which writes whole lines. Any other part is written by itself, in
one kernel with those that read what it reads.
"""

from __future__ import annotations

from blockbuster.frontend.limits import PLACES_OF_A_GROUP
from blockbuster.frontend.primitives import MIXED, Join, Merge, Ref, Source
from blockbuster.frontend.push import Pieces
from blockbuster.frontend.strips import Strips, cut, placed, split, strips_of
from blockbuster.ir.dtypes import TRUTH
from blockbuster.ir.expr import Arg, Expr, call


def ends(recorder: Pieces, ref: Ref) -> list[tuple[int, Strips]]:
    """The values that fill an output array, each with the strips of the array it fills."""
    found: list[tuple[int, Strips]] = []
    stack = [(ref.value, strips_of(ref.axes, recorder.shape(ref)))]
    while stack:
        value, strips = stack.pop()
        primitive = recorder.primitives[value]
        op = primitive.op
        if isinstance(op, Merge):
            (operand,) = primitive.operands
            both = split(strips, op.axis, recorder.merged(value))
            stack.append((operand.value, placed(both, operand.axes)))
        elif isinstance(op, Join) and (chosen := _in_turn(recorder, value, strips)):
            stack.append((chosen.value, placed(strips, chosen.axes)))
        elif isinstance(op, Join):
            total = recorder.length(primitive.shape[op.axis])
            parts = [
                (operand.value, placed(cut(strips, op.axis, piece, extent=total), operand.axes))
                for operand, piece in recorder.parts(value)
            ]
            stack += reversed(parts)
        else:
            found.append((value, strips))
    return found


def _in_turn(recorder: Pieces, value: int, strips: Strips) -> Ref | None:
    """The join ``value`` as a choice by the place along its axis, of a few single elements."""
    primitive, parts = recorder.primitives[value], recorder.parts(value)
    op = primitive.op
    assert isinstance(op, Join)
    ends_in = strips[-1].along[-1:]
    is_last = bool(ends_in) and ends_in[0].axis == op.axis
    are_single = is_last and all(recorder.shape(ref)[op.axis] == 1 for ref, _ in parts)
    dtype = recorder.own_dtype(parts[0][0])
    if not are_single or len(parts) > PLACES_OF_A_GROUP or dtype in (TRUTH, MIXED):
        return None
    read = [name for ref, _ in parts for name in _arrays_of(recorder, ref)]
    if len(set(read)) < len(read):
        return None
    chosen: Expr = Arg(len(parts))
    for number in reversed(range(1, len(parts))):
        chosen = call("where", call("eq", Arg(0), number - 1), Arg(number), chosen)
    recorder.where = primitive.where
    dim, behind = primitive.shape[op.axis], len(primitive.shape) - op.axis - 1
    place = recorder.count(dim).view((0, *(None,) * behind))
    made = recorder.apply(chosen, place, *(ref for ref, _ in parts), hint=primitive.hint)
    return recorder.round(made, dtype) if dtype else made


def _arrays_of(recorder: Pieces, ref: Ref) -> list[str]:
    """The arrays that a value is computed of, each once."""
    stack, found = [ref.value], dict.fromkeys([ref.value])
    while stack:
        read = [operand.value for operand in recorder.primitives[stack.pop()].operands]
        stack += [value for value in read if value not in found]
        found |= dict.fromkeys(read)
    ops = (recorder.primitives[value].op for value in found)
    return [*dict.fromkeys(op.name for op in ops if isinstance(op, Source))]
