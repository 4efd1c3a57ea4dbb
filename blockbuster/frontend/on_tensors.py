"""Runs an array program on torch tensors: exactly or as eager torch would, whole or for some rows.

``run`` is for a GPU what ``ArrayProgram.numpy`` is for the host: the oracle, for arrays that may be
too large to bring to the host. A program can be run for some indices of a dim only if each index is
computed independently of the others (separable.py).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from blockbuster.errors import NOT_TAKEN
from blockbuster.frontend.kinds import FLOAT
from blockbuster.frontend.numerics import number
from blockbuster.frontend.program import ArrayProgram, Equation, Operand, Shape
from blockbuster.frontend.rows import Rows, rows_of
from blockbuster.frontend.torch import POINTWISE, TENSORS, custom_on_tensors, on_tensors
from blockbuster.ir.dtypes import INTEGERS
from blockbuster.ir.expr import FUNCTIONS, Call, Const, Size
from blockbuster.ir.extents import Lengths
from blockbuster.ir.graph import Value
from blockbuster.ir.lengths import Length
from blockbuster.ir.types import Dim

Tensor = Any
Noise = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Way:
    """The way to compute: in float64, where a cast rounds nothing, or as eager torch would.

    ``dtype``: of all floats of an eager run; None leaves them as they are. ``noise`` changes each
    number that an operator reads: what roundings may do. It leaves out positions, and operators
    that round nothing (``UNROUNDED``) on values that nothing has rounded: every kernel finds the
    same maximum of an input, and the same elements equal to it.
    """

    exact: bool
    dtype: Any = None
    noise: Noise | None = None


@dataclass(frozen=True)
class Known:
    """Values that are known, and functions of operands, by equation, in place of the operators."""

    values: Mapping[Value, Tensor] = field(default_factory=dict)
    along: Mapping[int, Callable[..., Tensor]] = field(default_factory=dict)


NOTHING_KNOWN = Known()

DOUBLE = 8
"""Bytes of a float64 element."""


def run(
    program: ArrayProgram,
    tensors: Sequence[Tensor],
    sizes: Mapping[Dim, int],
    *,
    way: Way,
    rows: Rows,
    wanted: Sequence[Value] = (),
    known: Known = NOTHING_KNOWN,
) -> list[Tensor]:
    """The outputs of ``program`` for its inputs in order, which are on one device.

    ``sizes`` are those of all dims, ``rows`` the indices that are computed. ``wanted``: other
    values than the outputs. ``known``: what need not be computed (in_pieces.py).
    """
    wanted = wanted or [output.value for output in program.outputs]
    positions = program.needed(wanted, known.values)
    walk = _Walk(program, tensors, sizes, way, rows, known, last_uses(program, positions, wanted))
    for position in positions:
        walk.step(position)
    return [walk.value(value) for value in wanted]


class _Walk:
    """The values of a program that are still read."""

    def __init__(
        self,
        program: ArrayProgram,
        tensors: Sequence[Tensor],
        sizes: Mapping[Dim, int],
        way: Way,
        rows: Rows,
        known: Known,
        last: Mapping[Value, int],
    ) -> None:
        self._program, self._sizes, self._rows = program, sizes, rows
        self._given, self._way, self._known, self._last = tensors, way, known, last
        self._like = tensors[0]
        self._made: dict[Value, Tensor] = dict(known.values)
        self._positional = {v for v in known.values if _is_position(program, v)}  # or an integer
        self._unrounded: set[Value] = set()  # the same

    def value(self, value: Value) -> Tensor:
        """A value; an input is cut to its rows and converted when it is first read."""
        if value not in self._made:
            tensor = self._given[value.port].detach()
            cut = rows_of(tensor, self._program.inputs[value.port].shape, self._rows)
            whole = not (cut.is_floating_point() or _is_mask(cut))
            if whole:
                self._positional.add(value)
            if whole or (self._way.exact and not _is_mask(cut)):
                cut = cut.double()
            elif cut.is_floating_point() and self._way.dtype is not None:
                cut = cut.to(self._way.dtype)
            self._made[value] = cut
        return self._made[value]

    def step(self, position: int) -> None:
        """Compute an equation; values that it is the last to read are dropped."""
        equation = self._program.equations[position]
        result = self._result(Value(position), equation)
        self._made[Value(position)] = result
        for operand in equation.arrays:
            if self._last.get(operand) == position:
                self._made.pop(operand, None)

    def _result(self, value: Value, equation: Equation) -> Tensor:
        arrays = equation.arrays
        params = {k: self._number(v) for k, v in equation.params}
        if equation.op == "arange":
            self._positional.add(value)
            places = _positions(int(params["size"]), self._like)
            return rows_of(places, equation.shape, self._rows)
        if equation.op == "cast" and self._way.exact:
            return self.value(arrays[0])
        as_given = equation.op in UNROUNDED and all(map(self._is_unrounded, equation.operands))
        if as_given:
            self._unrounded.add(value)
        read = {o: self._operand(o, as_given) for o in equation.operands}  # a number has one noise
        operands = [read[o] for o in equation.operands]
        taken = equation.operands[equation.op == "where" :]  # not what chooses among positions
        numbers = [o for o in taken if isinstance(o, Value)] or arrays
        positional = all(a in self._positional for a in numbers)
        if positional and equation.op in (*FUNCTIONS, "max", "min"):
            self._positional.add(value)
        if value.node in self._known.along:
            return self._known.along[value.node](*operands)
        if equation.op == "reshape":
            params["shape"] = self._extents(equation.shape)
        if equation.op not in FUNCTIONS:
            return self._table()[equation.op](*operands, **params)
        if not (self._way.exact or positional):
            operands = [
                o.float() if a in self._positional and o.is_floating_point() else o
                for a, o in zip(equation.operands, operands, strict=True)
            ]
        result = self._table()[equation.op](*operands)
        if not self._way.exact and value not in self._positional and result.is_floating_point():
            result = result.to(self._dtype(arrays))
        result = _wrapped(result, equation.kind)
        return result[(None,) * (len(equation.shape) - result.dim())]

    def _dtype(self, arrays: Sequence[Value]) -> Any:
        """The widest dtype of the operands that are no positions, or that of the inputs."""
        known = [self._made[a].dtype for a in arrays if a not in self._positional]
        floats = [dtype for dtype in known if dtype.is_floating_point]
        return max(floats, key=lambda dtype: dtype.itemsize, default=self._like.dtype)

    def _table(self) -> Mapping[str, Callable[..., Tensor]]:
        return EXACT if self._way.exact else EAGER

    def _extents(self, shape: Shape) -> list[int]:
        """The extents of an array of the rows that are computed."""
        extents = {**self._sizes, **{dim: len(indices) for dim, indices in self._rows.items()}}
        return [extents[axis] if isinstance(axis, str) else axis for axis in shape]

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
            noise = self._way.noise
            is_whole = operand in self._positional or self._program.kind_of(operand) != FLOAT
            return noise(value) if noise and not is_whole else value
        return None if operand is None else number(operand, self._sizes)

    def _number(self, value: Any) -> Any:
        if isinstance(value, Length | Lengths):
            return value.value(self._sizes)
        return number(value, self._sizes) if isinstance(value, Const | Size | Call) else value


def _is_position(program: ArrayProgram, value: Value) -> bool:
    """True for an extremum of positions or other integers."""
    chosen = program.equations[value.node].op in ("max", "min")
    return chosen and program.kind_of(value) != "float"


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


def _strided(x: Tensor, *, axis: int, start: int, length: int, step: int = 1) -> Tensor:
    stop = start + length * step  # in front of which there are as many, if any
    return x[(slice(None),) * axis + (slice(start, stop, step),)]


def _custom(*tensors: Tensor, fn: Callable[..., Any], name: str = "") -> Tensor:  # noqa: ARG001
    """``fn`` of tensors if it takes them, else of arrays on the host."""
    try:
        found = fn(*tensors)
        if hasattr(found, "data_ptr") and found.device == tensors[0].device:
            return found
    except NOT_TAKEN:
        pass  # then it is a function of NumPy arrays, and says so itself if it is not
    return custom_on_tensors(fn, tensors)


def sub0(x: Tensor, z: Tensor) -> Tensor:
    """x - z, and x where it is infinite."""
    return (x - z).where(~x.isinf(), x)


def recip0(x: Tensor) -> Tensor:
    """1 / x, 0 where x is 0, and NaN where it is infinite."""
    return x.reciprocal().where(x != 0, 0.0).masked_fill(x.isinf(), math.nan)


def _largest(x: Tensor, axis: int) -> Tensor:
    """The maximum along an axis; torch has none of no elements."""
    return x.amax(axis, keepdim=True) if x.shape[axis] else x.sum(axis, keepdim=True)


def _softmax(x: Tensor, *, axis: int, safe: bool = False) -> Tensor:  # noqa: ARG001
    e = sub0(x, _largest(x, axis)).exp_()
    return e.mul_(recip0(e.sum(axis, keepdim=True)))


def _logsumexp(x: Tensor, *, axis: int, keepdims: bool = False) -> Tensor:
    top = _largest(x, axis)
    top = top.where(top.isfinite(), 0.0)
    total = (x - top).exp_().sum(axis, keepdim=True).log() + top
    return total if keepdims else total.squeeze(axis)


EAGER: Mapping[str, Callable[..., Tensor]] = {
    **{name: _torch(name) for name in (*TENSORS, *POINTWISE)},
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv,
    "pow": operator.pow, "neg": operator.neg, "sub0": sub0, "recip0": recip0,
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "eq": operator.eq, "ne": operator.ne,
    "and": _logical(operator.and_), "or": _logical(operator.or_), "not": lambda x: x == 0,
    "matmul": _widest(_torch("matmul")),
    "floordiv": operator.floordiv, "mod": operator.mod, "whole": lambda x: x,
    "bitand": operator.and_, "shl": operator.lshift, "shr": operator.rshift,
    "expand": _expand, "slice": _strided, "strided": _strided, "custom": _custom,
}  # fmt: skip
"""Every operator but ``arange``, as torch has it."""

EXACT: Mapping[str, Callable[..., Tensor]] = {
    **EAGER, "softmax": _softmax, "logsumexp": _logsumexp,
}  # fmt: skip
"""The same as the oracle has it (numerics.py): torch differs on rows of infinities."""


UNROUNDED = frozenset(
    (
        "max", "min", "maximum", "minimum", "relu", "abs", "neg", "where", "lt", "le", "gt", "ge",
        "eq", "ne", "and", "or", "not", "transpose", "expand", "slice", "strided", "concat",
        "windows", "reshape",
    )
)  # fmt: skip
"""The operators whose results need no rounding where their operands needed none."""

EXACT_IN_ALL = 2**8
"""Up to here each whole number is one of each dtype."""


# what a run costs ------------------------------------------------------------------------


def last_uses(
    program: ArrayProgram, positions: Sequence[int], wanted: Sequence[Value]
) -> dict[Value, int]:
    """The last of the equations at ``positions`` that reads each value; never for ``wanted``."""
    last = {
        operand: position
        for position in positions
        for operand in program.equations[position].arrays
    }
    return {**last, **{value: len(program.equations) for value in wanted}}


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

    outputs = [output.value for output in program.outputs]
    last = last_uses(program, range(len(program.equations)), outputs)
    held: dict[Value, int] = {}
    peak = made = products = 0
    for position, equation in enumerate(program.equations):
        arrays = equation.arrays
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
