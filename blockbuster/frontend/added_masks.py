"""Masks that are added to scores, 0 where an element counts and -inf elsewhere, as choices.

    s + where(j <= i, 0, -inf)                    where(j <= i, s, -inf)

The choice is one operation less, and it is what a mask written with ``where`` or ``masked_fill``
records, so that both become the same kernel. The two differ where a score that is left out is NaN
or infinite: the sum is NaN there, the choice -inf, as it is in blocks that a kernel leaves out.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from blockbuster.frontend.array import TracedArray, array_at
from blockbuster.frontend.dtype_names import dtype_name
from blockbuster.frontend.kinds import FLOAT, MASK
from blockbuster.frontend.operation import Operation
from blockbuster.ir.dtypes import met
from blockbuster.ir.expr import Const
from blockbuster.ir.graph import Value

if TYPE_CHECKING:
    from blockbuster.frontend.trace import Trace

_VIEWS = ("transpose", "expand", "cast")


def as_choice(asked: Operation) -> TracedArray | None:
    """The sum of an array of floats and a mask of 0 and -inf as a choice; None for other sums."""
    for x, added in (asked.operands, asked.operands[::-1]):
        if isinstance(x, TracedArray) and isinstance(added, TracedArray) and x.kind == FLOAT:
            choice = _choice(asked.trace, x, added)
            if choice is not None:
                return choice
    return None


def _choice(trace: Trace, x: TracedArray, added: TracedArray) -> TracedArray | None:
    equations = trace.recorded[1]
    value, views = added.value, []
    while value.node >= 0 and equations[value.node].op in _VIEWS:
        views.append(equations[value.node])
        base = views[-1].operands[0]
        assert isinstance(base, Value)
        value = base
    if value.node < 0 or equations[value.node].op != "where":
        return None
    condition, *ends = equations[value.node].operands
    numbers = [end.value if isinstance(end, Const) else math.nan for end in ends]
    if not isinstance(condition, Value) or sorted(numbers) != [-math.inf, 0.0]:
        return None
    before = array_at(trace, condition)
    if before.kind != MASK:
        return None
    mask = before
    for view in reversed([view for view in views if view.op != "cast"]):
        mask = trace.record(view.op, (mask,), dict(view.params))
    made = trace.record("where", (mask, *(x if number == 0 else -math.inf for number in numbers)))
    dtypes = dtype_name(x), dtype_name(added)
    wider = met(dtypes) if all(dtypes) else dtypes[0]
    return made if wider == dtypes[0] else trace.record("cast", (made,), {"dtype": wider})
