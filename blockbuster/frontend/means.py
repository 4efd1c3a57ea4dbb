"""Means of means as one sum, which is divided once, however many axes it runs over.

The mean along an axis of means along another is the sum of their sums over both numbers. A kernel
then folds all elements of a tile at once (emit/closing/fold_together.py), and divides one number.
"""

from __future__ import annotations

from blockbuster.frontend.primitives import Apply, Fold, Recorder, Ref
from blockbuster.ir.expr import Arg, Call, Const, Expr, Size


def sum_behind(recorder: Recorder, ref: Ref) -> tuple[Ref, Expr]:
    """The sums behind an array of means, and what makes a mean of each; else the array itself."""
    made = recorder.primitives[ref.value]
    if isinstance(made.op, Apply) and len(made.operands) == 1 and _is_quotient(made.op.expr):
        (total,) = made.operands
        summed = recorder.primitives[total.value].op
        shown = total.view(ref.axes) if len(total.axes) == len(made.shape) else ref
        same = recorder.shape(shown) == recorder.shape(ref)
        if isinstance(summed, Fold) and summed.monoid == "+" and same:
            return shown, made.op.expr
    return ref, Arg(0)


def _is_quotient(expr: Expr) -> bool:
    """True for an operand over sizes, one after the other."""
    match expr:
        case Call("div", (left, Size() | Const())):
            return left == Arg(0) or _is_quotient(left)
    return False
