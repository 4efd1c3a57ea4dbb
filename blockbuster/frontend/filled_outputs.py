"""Which values fill an output, where it is put together of several."""

from __future__ import annotations

from blockbuster.frontend.primitives import Join, Merge, Ref
from blockbuster.frontend.push import Pieces
from blockbuster.frontend.strips import Strips, cut, placed, split, strips_of


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
