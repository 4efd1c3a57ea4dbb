"""One place along a part of a split axis, as a slice of the axis itself.

    x.reshape(m, n // 2, 2)[..., 1]     x[:, 1::2]
    x.reshape(m, 2, n // 2)[:, 1]       x[:, n // 2:]

Slices with a step are read as rows of neighbours, two of them together (``in_blocks.py``); a
place along a part is read element by element.
"""

from __future__ import annotations

from blockbuster.frontend.array import TracedArray, array_at
from blockbuster.frontend.contractions import equation_of
from blockbuster.frontend.operation import Operation
from blockbuster.ir.graph import Value
from blockbuster.ir.lengths import ONE


def of_split_axis(asked: Operation) -> TracedArray | None:
    """A slice of one place, which stays as an axis of one element.

    None unless it is of another array with one axis split in two, of which this is one.
    """
    trace, (x,), params = asked.trace, asked.operands, asked.params
    axis, start, equation = params["axis"], params["start"], equation_of(x)
    if params["length"] != ONE or equation is None or equation.op != "reshape":
        return None
    (shown,) = equation.operands
    assert isinstance(shown, Value)
    base = array_at(trace, shown)
    old, new = ([trace.dims.length(one) for one in a.axes] for a in (base, x))
    if len(new) != len(old) + 1:
        return None
    at = next((n for n, extent in enumerate(old) if extent != new[n]), len(old))
    if at == len(old) or old[at + 1 :] != new[at + 2 :]:
        return None
    outer, inner = new[at : at + 2]
    if outer * inner != old[at]:  # of an array without elements: others say that there are none
        return None
    if axis == at:
        made = trace.record("slice", (base,), {"axis": at, "start": start * inner, "length": inner})
    elif axis == at + 1 and (step := inner.constant):
        given = {"axis": at, "start": start, "length": outer, "step": step}
        made = trace.record("strided", (base,), given)
    else:
        return None
    axes = (*range(axis), None, *range(axis, len(old)))
    found: TracedArray = trace.record("expand", (made,), {"axes": axes})
    return found
