"""Means of means as one sum, which is divided once, however many axes it runs over.

The mean along an axis of means along another is the sum of their sums over both numbers. A kernel
then folds all elements of a tile at once (emit/closing/fold_together.py), and divides one number.

That holds without overflow: sums of large means may be infinite where the means are not. So means
are put together only where one call runs over several axes, of which eager execution adds up all,
too: where neither torch stores the first means, nor are they made in another line of the user's.
"""

from __future__ import annotations

from blockbuster.frontend.primitives import Apply, Fold, Recorder, Ref
from blockbuster.ir.expr import Arg, Call, Const, Expr, Size


def sum_behind(recorder: Recorder, ref: Ref) -> tuple[Ref, Expr]:
    """The sums behind an array of means, and what makes a mean of each; else the array itself."""
    made = recorder.primitives[ref.value]
    if ref.value in recorder.stored or made.where != recorder.where:
        return ref, Arg(0)
    if isinstance(made.op, Apply) and len(made.operands) == 1 and _is_quotient(made.op.expr):
        (total,) = made.operands
        summed = recorder.primitives[total.value].op
        shown = total.view(ref.axes) if len(total.axes) == len(made.shape) else ref
        same = recorder.shape(shown) == recorder.shape(ref)
        if isinstance(summed, Fold) and summed.monoid == "+" and same:
            return shown, made.op.expr
    return ref, Arg(0)


def _is_quotient(expr: Expr) -> bool:
    """True for an operand over sizes, one after the other, as means have them."""
    match expr:
        case Call("div", (left, Size() | Const(1.0))):
            return left == Arg(0) or _is_quotient(left)
    return False
