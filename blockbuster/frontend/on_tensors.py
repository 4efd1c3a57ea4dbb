"""Runs an array program on torch tensors: exactly or as eager torch would, whole or for some rows.

``run`` is for a GPU what ``ArrayProgram.numpy`` is for the host: the oracle, for arrays that may be
too large to bring to the host. A program can be run for some indices of a dim only if each index is
computed independently of the others; ``separable_dims`` returns these dims.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from blockbuster.errors import NOT_TAKEN
from blockbuster.frontend.numerics import number
from blockbuster.frontend.program import ArrayProgram, Equation, Operand, Shape
from blockbuster.frontend.torch import POINTWISE, TENSORS, custom_on_tensors, on_tensors
from blockbuster.ir.dtypes import INTEGERS
from blockbuster.ir.expr import FUNCTIONS, Call, Const, Size
from blockbuster.ir.graph import Value
from blockbuster.ir.lengths import Length, Lengths
from blockbuster.ir.types import Dim

Tensor = Any
Rows = Mapping[Dim, Tensor]
"""For some dims, the indices that are computed: a vector of int64 each."""

Noise = Callable[[Tensor], Tensor]

DOUBLE = 8
"""Bytes of a float64 element."""


def run(
    program: ArrayProgram,
    tensors: Sequence[Tensor],
    sizes: Mapping[Dim, int],
    *,
    exact: bool,
    rows: Rows,
    noise: Noise | None = None,
) -> list[Tensor]:
    """The outputs of ``program`` for its inputs in order, which are on one device.

    ``exact``: in float64, where a cast rounds nothing; else in the dtype of the tensors, operator
    by operator. ``sizes`` are those of all dims, ``rows`` the indices that are computed. ``noise``
    changes each number that an operator reads: what roundings may do. It leaves out positions, and
    operators that round nothing (``UNROUNDED``) on values that nothing has rounded: every kernel
    finds the same maximum of an input, and the same elements equal to it.
    """
    walk = _Walk(program, tensors, sizes, exact, rows, noise)
    for position in range(len(program.equations)):
        walk.step(position)
    return [walk.value(output.value) for output in program.outputs]


class _Walk:
    """The values of a program that are still read."""

    def __init__(
        self,
        program: ArrayProgram,
        tensors: Sequence[Tensor],
        sizes: Mapping[Dim, int],
        exact: bool,
        rows: Rows,
        noise: Noise | None,
    ) -> None:
        self._program, self._sizes, self._exact, self._rows = program, sizes, exact, rows
        self._given, self._noise = tensors, noise
        self._like = tensors[0]
        self._made: dict[Value, Tensor] = {}
        self._positional: set[Value] = set()  # and other integers; asked, never iterated
        self._unrounded: set[Value] = set()  # the same
        self._last = last_uses(program)

    def value(self, value: Value) -> Tensor:
        """A value; an input is converted and cut to its rows when it is first read."""
        if value not in self._made:
            tensor = self._given[value.port].detach()
            cut = rows_of(tensor, self._program.inputs[value.port].shape, self._rows)
            whole = not (cut.is_floating_point() or _is_mask(cut))
            if whole:
                self._positional.add(value)
            exact = whole or (self._exact and not _is_mask(cut))
            self._made[value] = cut.double() if exact else cut
        return self._made[value]

    def step(self, position: int) -> None:
        """Compute an equation; values that it is the last to read are dropped."""
        equation = self._program.equations[position]
        result = self._result(Value(position), equation)
        self._made[Value(position)] = result
        for operand in equation.operands:
            if isinstance(operand, Value) and self._last.get(operand) == position:
                self._made.pop(operand, None)

    def _result(self, value: Value, equation: Equation) -> Tensor:
        arrays = [o for o in equation.operands if isinstance(o, Value)]
        params = {k: self._number(v) for k, v in equation.params}
        if equation.op == "arange":
            self._positional.add(value)
            places = _positions(int(params["size"]), self._like)
            return rows_of(places, equation.shape, self._rows)
        if equation.op == "cast" and self._exact:
            return self.value(arrays[0])
        as_given = equation.op in UNROUNDED and all(map(self._is_unrounded, equation.operands))
        if as_given:
            self._unrounded.add(value)
        operands = [self._operand(o, as_given) for o in equation.operands]
        taken = equation.operands[equation.op == "where" :]  # not what chooses among positions
        numbers = [o for o in taken if isinstance(o, Value)] or arrays
        positional = all(a in self._positional for a in numbers)
        if positional and equation.op in (*FUNCTIONS, "max", "min"):
            self._positional.add(value)
        if equation.op not in FUNCTIONS:
            return self._table()[equation.op](*operands, **params)
        if not (self._exact or positional):
            operands = [
                o.float() if a in self._positional and o.is_floating_point() else o
                for a, o in zip(equation.operands, operands, strict=True)
            ]
        result = self._table()[equation.op](*operands)
        if not self._exact and value not in self._positional and result.is_floating_point():
            result = result.to(self._dtype(arrays))
        result = _wrapped(result, equation.kind)
        return result[(None,) * (len(equation.shape) - result.dim())]

    def _dtype(self, arrays: Sequence[Value]) -> Any:
        """The widest dtype of the operands that are no positions, or that of the inputs."""
        known = [self._made[a].dtype for a in arrays if a not in self._positional]
        floats = [dtype for dtype in known if dtype.is_floating_point]
        return max(floats, key=lambda dtype: dtype.itemsize, default=self._like.dtype)

    def _table(self) -> Mapping[str, Callable[..., Tensor]]:
        return EXACT if self._exact else EAGER

    def _is_unrounded(self, operand: Operand) -> bool:
        """True for a value that all dtypes have: an input, what is made of it alone, a 1."""
        if isinstance(operand, Value):
            return operand.node < 0 or operand in self._unrounded
        constant = 0 if operand is None else number(operand, self._sizes)
        return constant == constant // 1 and abs(constant) <= EXACT_IN_ALL

    def _operand(self, operand: Operand, as_given: bool) -> Any:
        if isinstance(operand, Value):
            value = self.value(operand)
            if as_given:
                return value
            noisy = self._noise and value.is_floating_point() and operand not in self._positional
            return self._noise(value) if self._noise and noisy else value
        return None if operand is None else number(operand, self._sizes)

    def _number(self, value: Any) -> Any:
        if isinstance(value, Length | Lengths):
            return value.value(self._sizes)
        return number(value, self._sizes) if isinstance(value, Const | Size | Call) else value


def rows_of(tensor: Tensor, shape: Shape, rows: Rows) -> Tensor:
    """The rows of a whole tensor whose axes are ``shape``."""
    for axis, dim in enumerate(shape):
        if isinstance(dim, str) and dim in rows:
            tensor = tensor.index_select(axis, rows[dim])
    return tensor


def _wrapped(result: Tensor, kind: str) -> Tensor:
    """Integers that are held as floats, as their dtype holds them: bytes stay between 0 and 255."""
    if kind not in INTEGERS[:-1] or not result.is_floating_point():
        return result
    ends = np.iinfo(kind)
    return (result - int(ends.min)).remainder(1 << ends.bits) + int(ends.min)


def _is_mask(tensor: Tensor) -> bool:
    return str(tensor.dtype) == "torch.bool"


def _positions(count: int, like: Tensor) -> Tensor:
    import torch

    return torch.arange(count, dtype=torch.float64, device=like.device)


# what the operators mean on tensors ---------------------------------------------------


def _torch(name: str) -> Callable[..., Tensor]:
    """An array function of ours on tensors: torch's own."""
    return lambda *operands, **params: on_tensors(name, operands, params)


def _widest(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """``function`` of tensors of one dtype: torch refuses products of two."""

    def call(*tensors: Tensor, **params: Any) -> Tensor:
        dtype = max((t.dtype for t in tensors), key=lambda dtype: dtype.itemsize)
        return function(*(t.to(dtype) for t in tensors), **params)

    return call


def _logical(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    return lambda x, y: function(x != 0, y != 0)


def _expand(x: Tensor, *, axes: Sequence[int | None]) -> Tensor:
    return x.reshape([1 if axis is None else x.shape[axis] for axis in axes])


def _slice(x: Tensor, *, axis: int, start: int, length: int) -> Tensor:
    return x.narrow(axis, start, length)


def _strided(x: Tensor, *, axis: int, start: int, length: int, step: int) -> Tensor:
    return x.narrow(axis, start, (length - 1) * step + 1).unfold(axis, 1, step).squeeze(-1)


def _custom(*tensors: Tensor, fn: Callable[..., Any], name: str = "") -> Tensor:  # noqa: ARG001
    """``fn`` of tensors if it takes them, else of arrays on the host."""
    try:
        found = fn(*tensors)
        if hasattr(found, "data_ptr") and found.device == tensors[0].device:
            return found
    except NOT_TAKEN:
        pass  # then it is a function of NumPy arrays, and says so itself if it is not
    return custom_on_tensors(fn, tensors)


def _sub0(x: Tensor, z: Tensor) -> Tensor:
    return (x - z).where(~x.isinf(), x)


def _recip0(x: Tensor) -> Tensor:
    return x.reciprocal().where(x != 0, 0.0).masked_fill(x.isinf(), math.nan)


def _softmax(x: Tensor, *, axis: int, safe: bool = False) -> Tensor:  # noqa: ARG001
    e = _sub0(x, x.amax(axis, keepdim=True)).exp_()
    return e.mul_(_recip0(e.sum(axis, keepdim=True)))


def _logsumexp(x: Tensor, *, axis: int, keepdims: bool = False) -> Tensor:
    top = x.amax(axis, keepdim=True)
    top = top.where(top.isfinite(), 0.0)
    total = (x - top).exp_().sum(axis, keepdim=True).log() + top
    return total if keepdims else total.squeeze(axis)


def _log_softmax(x: Tensor, *, axis: int) -> Tensor:
    return x - _logsumexp(x, axis=axis, keepdims=True)


EAGER: Mapping[str, Callable[..., Tensor]] = {
    **{name: _torch(name) for name in (*TENSORS, *POINTWISE)},
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv,
    "pow": operator.pow, "neg": operator.neg, "sub0": _sub0, "recip0": _recip0,
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "eq": operator.eq, "ne": operator.ne,
    "and": _logical(operator.and_), "or": _logical(operator.or_), "not": lambda x: x == 0,
    "matmul": _widest(_torch("matmul")),
    "floordiv": operator.floordiv, "mod": operator.mod, "whole": lambda x: x,
    "expand": _expand, "slice": _slice, "strided": _strided, "custom": _custom,
}  # fmt: skip
"""Every operator but ``arange``, as torch has it."""

EXACT: Mapping[str, Callable[..., Tensor]] = {
    **EAGER, "softmax": _softmax, "logsumexp": _logsumexp, "log_softmax": _log_softmax,
}  # fmt: skip
"""The same as the oracle has it (numerics.py): torch differs on rows of infinities."""


UNROUNDED = frozenset(
    (
        "max", "min", "maximum", "minimum", "relu", "abs", "neg", "where", "lt", "le", "gt", "ge",
        "eq", "ne", "and", "or", "not", "transpose", "expand", "slice", "strided", "concat",
        "split_heads", "merge_heads", "reshape",
    )
)  # fmt: skip
"""The operators whose results need no rounding where their operands needed none."""

EXACT_IN_ALL = 2**8
"""Up to here each whole number is one of each dtype."""


# what a run costs, and for which dims rows can be taken -------------------------------


def last_uses(program: ArrayProgram) -> dict[Value, int]:
    """The last equation that reads each value; outputs are read at the end."""
    last = {
        operand: position
        for position, equation in enumerate(program.equations)
        for operand in equation.operands
        if isinstance(operand, Value)
    }
    return {**last, **{output.value: len(program.equations) for output in program.outputs}}


@dataclass(frozen=True)
class Cost:
    """The cost of an exact run: peak bytes, elements made, operations of matmuls."""

    held: int
    elements: int
    products: int


def cost(program: ArrayProgram, sizes: Mapping[Dim, int]) -> Cost:
    """The cost of ``run`` in float64, for all rows of dims of these sizes."""

    def count(shape: Shape) -> int:
        return math.prod(sizes[axis] if isinstance(axis, str) else axis for axis in shape)

    last = last_uses(program)
    held: dict[Value, int] = {}
    peak = made = products = 0
    for position, equation in enumerate(program.equations):
        arrays = [operand for operand in equation.operands if isinstance(operand, Value)]
        held.update({a: count(program.shape_of(a)) for a in arrays})
        held[Value(position)] = size = count(equation.shape)
        scratch = 2 * max([size, *(held[a] for a in arrays)])  # what one function makes inside
        peak = max(peak, sum(held.values()) + scratch)
        made += size + sum(held[a] for a in arrays)
        if equation.op == "matmul":
            products += size * count(program.shape_of(arrays[0])[-1:])
        for value in [a for a in held if last.get(a, -1) <= position]:
            del held[value]
    return Cost(DOUBLE * peak, made, products)


def separable_dims(program: ArrayProgram) -> tuple[Dim, ...]:
    """The dims of outputs that nothing folds, cuts, joins or looks into: rows of them stand alone.

    >>> from blockbuster.frontend.trace import trace
    >>> separable_dims(trace(lambda x, y: (x @ y).sum(axis=1), x="M K", y="K N"))
    ('M',)
    """
    shown = [axis for o in program.outputs for axis in program.shape_of(o.value)]
    read = {axis for equation in program.equations for axis in _looked_into(program, equation)}
    return tuple(dict.fromkeys(a for a in shown if isinstance(a, str) and a not in read))


def _looked_into(program: ArrayProgram, equation: Equation) -> Iterator[Any]:
    """The axes along which elements of an operator's result depend on several of its operands."""
    shapes = [program.shape_of(o) for o in equation.operands if isinstance(o, Value)]
    if equation.op in FUNCTIONS:
        return
    for pick in LOOKED_INTO[equation.op]:
        yield from pick(equation, shapes)


Pick = Callable[[Equation, Sequence[Shape]], Shape]


def _axis_of_first(equation: Equation, shapes: Sequence[Shape]) -> Shape:
    axis = equation.param("axis")
    return shapes[0] if axis is None else (shapes[0][axis],)


def _axis_of_all(equation: Equation, shapes: Sequence[Shape]) -> Shape:
    axis = equation.param("axis") % len(shapes[0])
    return tuple(shape[axis] for shape in (*shapes, equation.shape))


def _everything(equation: Equation, shapes: Sequence[Shape]) -> Shape:
    return (*equation.shape, *(axis for shape in shapes for axis in shape))


def _axes(
    of_first: Sequence[int], of_result: Sequence[int], equation: Equation, shapes: Sequence[Shape]
) -> Shape:
    taken = (*(shapes[0][i] for i in of_first), *(equation.shape[i] for i in of_result))
    return taken


LOOKED_INTO: Mapping[str, tuple[Pick, ...]] = {
    **dict.fromkeys(
        ("sum", "max", "min", "mean", "softmax", "log_softmax", "logsumexp"), (_axis_of_first,)
    ),
    **dict.fromkeys(("rms_norm", "layer_norm"), (partial(_axes, (-1,), ()),)),
    "matmul": (lambda equation, shapes: (shapes[0][-1], shapes[1][-2:][0]),),
    **dict.fromkeys(("slice", "strided", "concat"), (_axis_of_all,)),
    "split_heads": (partial(_axes, (-1,), (-1, -3)),),
    "merge_heads": (partial(_axes, (-1, -3), (-1,)),),
    **dict.fromkeys(("custom", "reshape"), (_everything,)),
    **dict.fromkeys(("transpose", "expand", "cast", "arange"), ()),
}
"""For each operator that is not pointwise, which axes it looks into."""
