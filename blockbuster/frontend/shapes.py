"""Shape rules: the shape and kind of each operation's result, and the errors of its operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from blockbuster.frontend.dims import DimTable
from blockbuster.frontend.program import Axis, Shape
from blockbuster.frontend.reshaping import reshaped
from blockbuster.frontend.source import Refused, trace_error
from blockbuster.ir.expr import FUNCTIONS, Size
from blockbuster.ir.expr_lengths import length_of
from blockbuster.ir.lengths import Length

ShapeRule = Callable[[DimTable, Sequence[Shape], Mapping[str, Any]], Shape]


def axis_of(axis: object, rank: int) -> int:
    """``axis`` counted from the front. Raises Refused if there is no such axis."""
    if not isinstance(axis, int) or isinstance(axis, bool):
        raise Refused(f"axis must be an int, got {axis!r}")
    if not -rank <= axis < rank:
        raise Refused(f"axis {axis} is out of range for {rank} axes")
    return axis % rank


def axes_of(what: str, given: object, rank: int) -> tuple[int, ...]:
    """One axis or several of the function ``what``, counted from the front, each once."""
    several = given if isinstance(given, tuple | list | range) else (given,)
    try:
        found = tuple(axis_of(axis, rank) for axis in several)
    except Refused as refused:
        raise trace_error(f"{what}: {refused.reason}") from None
    if len({*found}) < len(found):
        raise trace_error(f"{what}: an axis stands twice in {given}")
    return found


def listed(given: Any) -> Any:
    """What is given one by one (``f(a, b)``), or as a tuple or list (``f((a, b))``)."""
    return given[0] if len(given) == 1 and isinstance(given[0], tuple | list) else given


def broadcast(
    dims: DimTable, shapes: Sequence[Shape], _params: Mapping[str, Any] | None = None
) -> Shape:
    """The common shape of operands, aligned from the right as in NumPy."""
    rank = max(map(len, shapes), default=0)
    result: list[Axis] = [1] * rank
    for shape in shapes:
        for position, axis in enumerate(shape, start=rank - len(shape)):
            result[position] = dims.broadcast(result[position], axis)
    return tuple(result)


def _matmul(dims: DimTable, shapes: Sequence[Shape], _params: Mapping[str, Any]) -> Shape:
    a, b = shapes
    if not a or not b:
        raise Refused("a scalar is no matrix", "use *")
    dims.unify(a[-1], b[-2:][0])
    batch = broadcast(dims, (a[:-2], b[:-2]))
    return (*batch, *a[-2:-1], *b[-1:]) if len(b) > 1 else (*batch, *a[-2:-1])


def _reduce(_dims: DimTable, shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    (shape,) = shapes
    axis = axis_of(params["axis"], len(shape))
    kept: Shape = (1,) if params["keepdims"] else ()
    return (*shape[:axis], *kept, *shape[axis + 1 :])


def _along_axis(_dims: DimTable, shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    axis_of(params["axis"], len(shapes[0]))
    return shapes[0]


def _norm(dims: DimTable, shapes: Sequence[Shape], _params: Mapping[str, Any]) -> Shape:
    if not shapes[0]:
        raise Refused("a scalar has no axis to normalize")
    result = broadcast(dims, shapes)
    if len(result) != len(shapes[0]) or result != dims.shape(shapes[0]):
        raise Refused("weights must broadcast to the array")
    return result


def _same(_dims: DimTable, shapes: Sequence[Shape], _params: Mapping[str, Any]) -> Shape:
    return shapes[0]


def _transpose(_dims: DimTable, shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    return tuple(shapes[0][axis] for axis in params["axes"])


def _expand(_dims: DimTable, shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    return tuple(1 if axis is None else shapes[0][axis] for axis in params["axes"])


def _arange(dims: DimTable, _shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    size = params["size"]
    if isinstance(size, Size):
        return (size.dim,)
    length = length_of(size)
    if length is None or length.constant == 0:
        raise Refused("arange takes a size of a shape", "use bb.arange(x.shape[-1])")
    return (dims.derived(length, "arange", length),)


def _slice(dims: DimTable, shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    shape, axis = shapes[0], params["axis"]
    length = params["length"]
    dim = dims.derived(length, "slice", dims.find(shape[axis]), length)
    return (*shape[:axis], dim, *shape[axis + 1 :])


def _windows(dims: DimTable, shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    (shape,), axis = shapes, params["axis"]
    count, length = params["count"], params["length"]
    key = dims.find(shape[axis]), *sorted(params.items())
    outer, inner = dims.derived(count, "windows", *key), dims.derived(length, "window", length)
    return (*shape[:axis], outer, *shape[axis + 1 :], inner)


def _reshape(dims: DimTable, shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    return reshaped(dims, shapes[0], params["shape"])


def _concat(dims: DimTable, shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    axis = axis_of(params["axis"], len(shapes[0]))
    total = Length()
    for shape in shapes:
        if len(shape) != len(shapes[0]):
            raise Refused("arrays are joined that have equally many axes")
        total = total + dims.length(shape[axis])
        for i, (own, first) in enumerate(zip(shape, shapes[0], strict=True)):
            if i != axis:
                dims.unify(first, own)
    parts = tuple(dims.find(shape[axis]) for shape in shapes)
    dim = dims.derived(total, "joined", parts) if len(parts) > 1 else parts[0]
    return (*shapes[0][:axis], dim, *shapes[0][axis + 1 :])


REDUCTIONS = ("sum", "prod", "max", "min", "mean", "logsumexp")
SCANS = ("cumsum", "cumprod", "cummax", "cummin")
WEIGHTED = ("rms_norm", "layer_norm")
ARRAYS_ONLY = ("matmul", "concat")
"""Operations whose operands must be arrays, not constants."""
"""Operations with operands that may be left out, as None."""

SHAPES: Mapping[str, ShapeRule] = {
    **dict.fromkeys(FUNCTIONS, broadcast),
    **dict.fromkeys(REDUCTIONS, _reduce),
    **dict.fromkeys(("softmax", "log_softmax", *SCANS), _along_axis),
    **dict.fromkeys(WEIGHTED, _norm),
    "matmul": _matmul, "transpose": _transpose, "expand": _expand, "cast": _same,
    "arange": _arange, "slice": _slice, "strided": _slice, "windows": _windows,
    "concat": _concat, "reshape": _reshape,
}  # fmt: skip
