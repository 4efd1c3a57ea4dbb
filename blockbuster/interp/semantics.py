"""Semantics: the meaning of operators, given by a table of scalar functions, a dot and three folds.

All other operators are made of these, in the same way for every semantics: see
``Semantics.functional``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np

from blockbuster.interp.domains import RANGES
from blockbuster.interp.layout import Array
from blockbuster.ir.dtypes import TRUTH
from blockbuster.ir.expr import Arg, Call, Const, Expr, Size, in_order
from blockbuster.ir.ops import COMBINE, IDENTITY, MONOID_OF, Misc, Scan
from blockbuster.ir.types import Dim

Function = Callable[..., Any]


class Refused(ArithmeticError):
    """A value has no exact meaning here; the text says which."""


SizeOf = Callable[[Dim], int]
Shape = tuple[int, ...]


class Semantics(ABC):
    """The meaning of operators on items; subclasses say what an element is."""

    dtype: Any
    """What items and outputs are made of."""
    scalars: Mapping[str, Function]
    """The meaning of each scalar function, applied to whole items."""

    @abstractmethod
    def item(self, array: Array) -> Array:
        """An input array as items hold it."""

    @abstractmethod
    def constant(self, value: float) -> Any:
        """A number of a scalar expression."""

    def positions(self, dim: Dim, numbers: Array) -> Array:
        """The index vector of a dim as items hold it."""
        return self.item(numbers)

    def extent(self, dim: Dim, size: int) -> Any:
        """The size of a dim in a scalar expression."""
        return self.constant(float(size))

    def numbers(self, item: Array) -> Array:
        """The numbers that an item holds, as floats. Raises Refused if they are not known."""
        raise Refused("a bound that is no number")

    def identity(self, monoid: str, shape: Sequence[int]) -> Array:
        """The value of a fold over nothing."""
        return self.item(np.full(shape, IDENTITY[monoid]))

    @abstractmethod
    def dot(self, a: Array, b: Array) -> Array:
        """``a @ b.T``, for all items that are stacked along leading axes."""

    @abstractmethod
    def fold_last(self, monoid: str, item: Array) -> Array:
        """An item folded along its last axis."""

    def scan_last(
        self, scan: Scan, item: Array, before: Array | None = None
    ) -> tuple[Array, Array | None]:
        """An item scanned along its last axis, and what the next item's scan goes on from.

        ``before`` is what an earlier item left: an accumulator with a last axis of one element.
        """
        wide, count = self.accumulator, item.shape[-1]
        if not count:
            return item, before
        columns = [wide.item(item[..., at : at + 1]) for at in range(count)]
        columns = columns[::-1] if scan.back else columns
        folds = [*accumulate(columns, partial(wide.fold, scan.monoid), initial=before)][-count:]
        made = self.item(np.concatenate(folds[::-1] if scan.back else folds, axis=-1))
        return made, folds[-1]

    @abstractmethod
    def cast(self, item: Array, dtype: str) -> Array:
        """An item rounded to a dtype."""

    @abstractmethod
    def misc(
        self, op: Misc, arrays: Sequence[Array], shapes: Sequence[Sequence[int]]
    ) -> Sequence[Array]:
        """The results of an opaque function of whole arrays."""

    def compared(self, x: Array, y: Array) -> tuple[bool, bool]:
        """Whether an element of x differs from that of y, and whether one of them is undefined."""
        if x is y:
            return False, bool((x != x).any())
        undefined = (x != x) | (y != y)
        return bool(((x != y) & ~undefined).any()), bool(undefined.any())

    @property
    def accumulator(self) -> Semantics:
        """The meaning of operators on accumulators, which may be wider than items."""
        return self

    def fold(self, monoid: str, a: Array, b: Array) -> Array:
        """Two partial values combined."""
        return np.asarray(self.scalars[COMBINE[monoid]](a, b))

    def functional(self, name: str, args: Sequence[Array]) -> Array:
        """A functional operator of Table 1; items may be stacked along leading axes."""
        if name == "dot":
            return self.dot(*args)
        if name in MONOID_OF:
            return self.fold_last(MONOID_OF[name], *args)
        a, b = args
        match name:
            case "row_shift" | "row_scale":
                b = b[..., :, None]
            case "col_shift" | "col_scale":
                b = b[..., None, :]
            case "outer":
                a, b = a[..., :, None], b[..., None, :]
        return np.asarray(self.scalars[_SCALAR_OF.get(name, name)](a, b))

    def expression(self, expr: Expr, args: Sequence[Array], size: SizeOf, stack: Shape = ()) -> Any:
        """A scalar expression over items that broadcast together.

        ``stack``: the leading axes along which items are stacked. A shared part is computed once.
        """
        done: list[Any] = []
        rank = max(map(np.ndim, args), default=len(stack))
        shape = (*stack, *(1,) * (rank - len(stack)))
        for part, numbers in in_order(expr):
            match part:
                case Arg(index):
                    done.append(args[index])
                case Const(value):
                    done.append(self.each(self.constant(value), shape))
                case Size(dim):
                    done.append(self.each(self.extent(dim, size(dim)), shape))
                case Call():
                    done.append(self.applied(part, [done[number] for number in numbers]))
        return done[-1]

    def each(self, number: Any, shape: Shape) -> Any:
        """A number that is an operand of each stacked item; a semantics that counts spreads it."""
        return number

    def applied(self, call: Call, args: Sequence[Any]) -> Any:
        """The function of a call on the values of its arguments."""
        return self.scalars[call.fn](*args)


_SCALAR_OF = {
    "row_shift": "add", "row_scale": "mul", "col_shift": "add", "col_scale": "mul", "outer": "mul",
}  # fmt: skip


def _sigmoid(x: Any) -> Any:
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + small), small / (1 + small))


def _gelu(x: Any) -> Any:
    return x * (1 + _erf(x * math.sqrt(0.5))) / 2


# erf of an integer or a huge float would be right too, but math.erf takes one number at a time
_erf = np.vectorize(math.erf, otypes=[float])


def _of_integers(fn: np.ufunc) -> Function:
    """A function of integers of floats that hold them; NaN where one is not finite."""

    def function(*args: Any) -> Any:
        if all(np.asarray(x).dtype.kind in "iub" for x in args):
            return fn(*args)
        known = np.logical_and(*map(np.isfinite, args))
        whole = (np.where(known, x, 0).astype(np.int64) for x in args)
        return np.where(known, fn(*whole), np.nan)

    return function


FLOAT_SCALARS: dict[str, Function] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.true_divide,
    "pow": np.power, "neg": np.negative,
    "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x),
    "tanh": np.tanh, "sigmoid": _sigmoid, "silu": lambda x: x * _sigmoid(x), "gelu": _gelu,
    "relu": lambda x: np.maximum(x, 0), "erf": _erf, "abs": np.abs, "square": np.square,
    "reciprocal": lambda x: 1 / x,
    "maximum": np.maximum, "minimum": np.minimum,
    "sub0": lambda x, z: np.where(np.isinf(x), x, x - z),
    "recip0": lambda x: np.where(x == 0, 0, np.where(np.isinf(x), np.nan, 1 / x)),
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "eq": np.equal, "ne": np.not_equal,
    "and": np.logical_and, "or": np.logical_or, "not": np.logical_not,
    "where": lambda c, a, b: np.where(c != 0, a, b),
    "floordiv": np.floor_divide, "mod": np.mod, "whole": lambda x: x,
    "bitand": _of_integers(np.bitwise_and), "shl": _of_integers(np.left_shift),
    "shr": _of_integers(np.right_shift),
    "floor": np.floor, "round": np.rint, "sin": np.sin, "cos": np.cos, "log1p": np.log1p,
    "expm1": np.expm1, "atan": np.arctan,
}  # fmt: skip
UFUNC: dict[str, np.ufunc] = {
    "+": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum,
}  # fmt: skip


class Floats(Semantics):
    """Floating point: every operator rounds to ``dtype``; sums and dots accumulate in ``wide``."""

    def __init__(self, dtype: str, wide: str) -> None:
        self.dtype = np.dtype(dtype)
        self.scalars = {name: self._rounded(fn) for name, fn in FLOAT_SCALARS.items()}
        self._accumulator = self if dtype == wide else Floats(wide, wide)

    def __repr__(self) -> str:
        return f"Floats({self.dtype.name})"

    def _rounded(self, fn: Function) -> Function:
        return lambda *args: np.asarray(fn(*args), self.dtype)

    @property
    def accumulator(self) -> Semantics:
        return self._accumulator

    def item(self, array: Array) -> Array:
        return np.asarray(array, self.dtype)

    def numbers(self, item: Array) -> Array:
        return np.asarray(item, float)

    def constant(self, value: float) -> Any:
        return self.dtype.type(value)

    def dot(self, a: Array, b: Array) -> Array:
        wide = self._accumulator.dtype
        a, b = a.astype(wide, copy=False), b.astype(wide, copy=False)
        return np.asarray(a @ b.swapaxes(-1, -2), self.dtype)

    def fold_last(self, monoid: str, item: Array) -> Array:
        fold, start = UFUNC[monoid], IDENTITY[monoid]
        wide = self._accumulator.dtype
        return np.asarray(fold.reduce(item, axis=-1, dtype=wide, initial=start), self.dtype)

    def cast(self, item: Array, dtype: str) -> Array:
        return np.asarray(rounded_to(dtype, item), self.dtype)

    def misc(
        self, op: Misc, arrays: Sequence[Array], shapes: Sequence[Sequence[int]]
    ) -> Sequence[Array]:
        made = op.fn(*arrays)
        results = made if isinstance(made, tuple) else (made,)
        for array, shape in zip(results, shapes, strict=True):
            if np.shape(array) != tuple(shape):
                raise ValueError(f"{op.name} gave shape {np.shape(array)}, expected {tuple(shape)}")
        return results


def rounded_to(dtype: str, array: Array) -> Array:
    """What a cast to ``dtype`` gives: the nearest float, ties to even, or an integer.

    Of integers as ``domains.wrapped`` has it: a fraction is cut off, and integers wrap around.
    """
    if dtype == TRUTH:
        return np.asarray(array != 0)
    if dtype in RANGES:
        low, high = RANGES[dtype]
        whole = np.trunc(array)
        around = np.mod(whole - low, float(high - low + 1)) + low
        return np.where((low <= whole) & (whole <= high) | ~np.isfinite(whole), whole, around)
    if dtype != "bfloat16":
        return array.astype(dtype)
    bits = array.astype(np.float32).view(np.uint32)
    even = (bits >> 16) & 1
    nearest = ((bits + 0x7FFF + even) & np.uint32(0xFFFF0000)).view(np.float32)
    return np.where(np.isfinite(array), nearest, array.astype(np.float32))


Float64 = Floats("float64", "float64")
Float32 = Floats("float32", "float32")
Float16 = Floats("float16", "float32")
