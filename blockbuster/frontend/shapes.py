"""Shape rules: the shape and kind of each operation's result, and why operands do not fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from blockbuster.frontend.dims import DimTable
from blockbuster.frontend.program import Axis, Shape
from blockbuster.frontend.source import Refused
from blockbuster.ir.expr import FUNCTIONS, PREDICATES, Size

ShapeRule = Callable[[DimTable, Sequence[Shape], Mapping[str, Any]], Shape]


def axis_of(axis: object, rank: int) -> int:
    """``axis`` counted from the front. Raises Refused where there is no such axis."""
    if not isinstance(axis, int) or isinstance(axis, bool):
        raise Refused(f"axis must be an int, got {axis!r}")
    if not -rank <= axis < rank:
        raise Refused(f"axis {axis} is out of range for {rank} axes")
    return axis % rank


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


def _arange(_dims: DimTable, _shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    size = params["size"]
    if not isinstance(size, Size):
        raise Refused("arange takes one size of a shape", "use bb.arange(x.shape[-1])")
    return (size.dim,)


SHAPES: Mapping[str, ShapeRule] = {
    **dict.fromkeys(FUNCTIONS, broadcast),
    **dict.fromkeys(("sum", "max", "min", "mean", "logsumexp"), _reduce),
    **dict.fromkeys(("softmax", "log_softmax"), _along_axis),
    **dict.fromkeys(("rms_norm", "layer_norm"), _norm),
    "matmul": _matmul, "transpose": _transpose, "expand": _expand, "cast": _same,
    "arange": _arange,
}  # fmt: skip

LOGICAL = ("and", "or", "not")
_KEEPS_KIND = ("transpose", "expand")


def result_kind(op: str, kinds: Sequence[str]) -> str:
    """``float``, ``index`` or ``mask``. Raises Refused where masks and numbers are mixed up.

    ``kinds`` are those of the operands, ``scalar`` for numbers and sizes.
    """
    if op in LOGICAL and any(kind not in ("mask", "scalar") for kind in kinds):
        raise Refused("& | ~ combine masks, not numbers", "compare first: (x > 0) & (y > 0)")
    if op == "where" and kinds[0] != "mask":
        hint = "compare first: bb.where(x > 0, x, y)"
        raise Refused("the condition of where is not a mask", hint)
    numbers = () if op in (*LOGICAL, *_KEEPS_KIND, "custom") else kinds[op == "where" :]
    if "mask" in numbers:
        raise Refused("a mask is not a number", "use bb.where(mask, x, 0)")
    if op in _KEEPS_KIND:
        return kinds[0]
    return "index" if op == "arange" else "mask" if op in PREDICATES else "float"
