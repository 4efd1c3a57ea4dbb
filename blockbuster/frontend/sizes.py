"""Symbolic sizes in a user's arithmetic: ``q.shape[-1] ** -0.5`` before the size is known."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from blockbuster.frontend.numerics import number
from blockbuster.frontend.size_table import fixing
from blockbuster.frontend.source import Refused, trace_error
from blockbuster.ir.expr import (
    DEEPEST,
    Call,
    Const,
    Expr,
    Size,
    calls,
    rewrite,
    show_expr,
    sizes_in,
)
from blockbuster.ir.expr_lengths import length_of
from blockbuster.ir.lengths import Length

if TYPE_CHECKING:
    from blockbuster.frontend.array import TracedArray
    from blockbuster.frontend.trace import Trace


_MADE = "bb.ones((n, m)), bb.zeros, bb.full, bb.arange and bb.eye take sizes"


_PLACES = ("device", "layout", "pin_memory")
"""What torch is told of a new array that holds for all: they are where the arguments are."""


def _arithmetic(name: str, *, reflected: bool = False) -> Callable[..., Any]:
    """The operator method that applies the scalar function ``name``."""

    def operator(self: SizeExpr, *others: object) -> Any:
        args = [bound(other) for other in others]
        if None in args:
            return NotImplemented
        ordered = [*args, self.expr] if reflected else [self.expr, *args]
        taken = (size for size in (self, *others) if isinstance(size, SizeExpr))
        whole = tuple(dict.fromkeys(length for size in taken for length in size.whole))
        return SizeExpr(Call(name, tuple(a for a in ordered if a is not None)), self.trace, whole)

    return operator


class SizeExpr:
    """An entry of the shape of a traced array, or arithmetic on such entries.

    It has no value while tracing, so it cannot steer an ``if`` and is no ``int``, unless it is
    fixed. ``whole``: quotients in it that have to be whole, since they were divided with ``//``.
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, expr: Expr, trace: Trace, whole: tuple[Length, ...] = ()) -> None:
        if calls(expr) > DEEPEST:
            hint = "compute the number before, or make it an input array of one element"
            raise trace_error(f"one size goes through more than {DEEPEST} operators", hint=hint)
        self.expr = expr
        self.trace = trace
        self.whole = whole

    @property
    def is_whole(self) -> bool:
        """True for sums, differences and products of sizes and whole numbers."""
        return _is_whole(self.expr)

    def __repr__(self) -> str:
        def named(leaf: Expr) -> Expr:
            if not isinstance(leaf, Size):
                return leaf
            number = self.trace.dims.length(leaf.dim).constant
            word = self.trace.dims.word(leaf.dim)
            return Size(word) if number is None else Const(float(number))

        return show_expr(rewrite(self.expr, named), [])

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        row = self.trace.spellings.numpy.get(ufunc)
        taken = [a for a in map(scalar, args) if a is not None]
        if row is None or method != "__call__" or kwargs or len(taken) < len(args):
            return NotImplemented
        return row.function(*args)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """A function of torch's that makes an array of sizes that are not known. Of examples' sizes
        it is refused: then the function is traced again with numbers for sizes.
        """
        named = {n: value for n, value in (kwargs or {}).items() if n not in _PLACES}
        given = [*args, *named.values()]
        flat = [part for one in given for part in (one if isinstance(one, tuple | list) else [one])]
        sizes = [part for part in flat if isinstance(part, SizeExpr)]
        trace = sizes[0].trace
        lengths = [length for size in sizes if (length := length_of(size.expr)) is not None]
        if all(trace.dims.extent(dim) is not None for each in lengths for dim in each.dims):
            raise trace_error(f"torch.{func.__name__} takes sizes as numbers")  # traced again
        taken = trace.captures.taken
        asked = {n: taken(v) for n, v in named.items() if v is not None and v is not False}
        return trace.spellings.call_torch(func, [taken(value) for value in args], asked)

    __add__, __radd__ = _arithmetic("add"), _arithmetic("add", reflected=True)
    __sub__, __rsub__ = _arithmetic("sub"), _arithmetic("sub", reflected=True)
    __mul__, __rmul__ = _arithmetic("mul"), _arithmetic("mul", reflected=True)
    __truediv__, __rtruediv__ = _arithmetic("div"), _arithmetic("div", reflected=True)
    __pow__, __rpow__ = _arithmetic("pow"), _arithmetic("pow", reflected=True)
    __neg__, __abs__ = _arithmetic("neg"), _arithmetic("abs")
    __lt__, __le__ = _arithmetic("lt"), _arithmetic("le")
    __gt__, __ge__ = _arithmetic("gt"), _arithmetic("ge")
    __eq__, __ne__ = _arithmetic("eq"), _arithmetic("ne")

    def __bool__(self) -> bool:
        hint = "pass an example array, whose sizes are known"
        return bool(self._number("a truth value", hint))

    def __int__(self) -> int:
        hint = f"use the size itself: it takes part in arithmetic; {_MADE}"
        return int(self._number("an int", hint))

    __index__ = __int__

    def __float__(self) -> float:
        hint = "functions of the math module need numbers: use n ** 0.5 for math.sqrt(n)"
        length = length_of(self.expr)
        self.trace.dims.fix(length.dims if length else ())  # of an example: for this size alone
        return float(self._number("a float", hint))

    def __floordiv__(self, divisor: object) -> SizeExpr:
        return self._divided(divisor, "//")[0]

    def __mod__(self, divisor: object) -> int:
        found = self.modulo(divisor)
        if found is None:
            by = bound(divisor)
            hint = fixing(self._unknown_in(self.expr, *([] if by is None else [by])))
            raise self._unknown(f"known modulo {divisor!r}", hint)
        return found

    def modulo(self, divisor: object) -> int | None:
        """The rest of a division; None if it is not known."""
        return self._divided(divisor, "%")[1]

    def _divided(self, divisor: object, sign: str) -> tuple[SizeExpr, int | None]:
        """The quotient, and the rest; None if it has to be 0 and is not known."""
        by = bound(divisor)
        top, bottom = length_of(self.expr), length_of(by) if by is not None else None
        found = self.trace.dims.divided(top, bottom) if top and bottom else None
        if found is None:
            hint = self._instead(by, top is not None)
            raise trace_error(f"{self!r} {sign} {divisor!r} is no known number", hint=hint)
        quotient, rest = found
        more = (quotient,) if rest is None else ()
        others = divisor.whole if isinstance(divisor, SizeExpr) else ()
        whole = tuple(dict.fromkeys((*self.whole, *others, *more)))
        return SizeExpr(quotient.expr, self.trace, whole), rest

    def _instead(self, divisor: Expr | None, is_length: bool) -> str:
        """What to do about a // or % whose result is not known."""
        if divisor is None or (isinstance(divisor, Const) and divisor.value % 1):
            return "divisors are whole numbers and sizes; / takes any number"
        if isinstance(divisor, Const) and divisor.value < 1:
            return "divisors are at least 1"
        unknown = self._unknown_in(divisor) if is_length else ()
        return f"use /, or {fixing(unknown or self._unknown_in(self.expr, divisor))}"

    def __rfloordiv__(self, top: object) -> SizeExpr:
        expr = bound(top)
        return NotImplemented if expr is None else SizeExpr(expr, self.trace) // self

    def __rmod__(self, top: object) -> int:
        expr = bound(top)
        return NotImplemented if expr is None else SizeExpr(expr, self.trace) % self

    def _number(self, wanted: str, hint: str) -> float:
        """The value where all sizes in it are fixed. Raises TraceError elsewhere."""
        unknown: list[Size] = []

        def known(leaf: Expr) -> Expr:
            fixed = self.trace.dims.length(leaf.dim).constant if isinstance(leaf, Size) else None
            if isinstance(leaf, Size) and fixed is None:
                unknown.append(leaf)
            return leaf if fixed is None else Const(float(fixed))

        expr = rewrite(self.expr, known)
        if unknown:
            raise self._unknown(wanted, f"{fixing(self._unknown_in(self.expr))}; or {hint}")
        return number(expr, {})

    def _unknown(self, wanted: str, hint: str) -> Exception:
        reason = f"the size {self!r} is not known while tracing, so it is not {wanted}"
        return trace_error(reason, hint=hint)

    def _unknown_in(self, *exprs: Expr) -> tuple[str, ...]:
        """The sizes in expressions that no number is known for, as users name them."""
        dims = self.trace.dims
        among = dict.fromkeys(dim for expr in exprs for dim in sizes_in(expr))
        return tuple(dims.word(dim) for dim in among if dims.length(dim).constant is None)


class ElementCount(SizeExpr):
    """``x.size``: the product of the extents; called, as in torch, the extents, or one of them."""

    def __init__(self, array: TracedArray) -> None:
        self._shape = array.shape
        super().__init__(bound(math.prod(self._shape, start=1)) or Const(1.0), array.trace)

    def __call__(self, dim: int | None = None) -> Any:
        """``x.size()`` is the shape, ``x.size(-1)`` its last entry."""
        return self._shape if dim is None else self._shape[dim]


class KnownSize(int):
    """A known entry of a shape, as a number for any library; ours know whose it is."""

    trace: Trace

    def __new__(cls, number: int, trace: Trace) -> KnownSize:
        made = super().__new__(cls, number)
        made.trace = trace
        return made


class Extents(tuple[Any, ...]):
    """The shape of a traced array."""

    def numel(self) -> Any:
        """The number of elements, as torch's shapes have it."""
        return math.prod(self, start=1)


def trace_among(extents: Iterable[Any]) -> Trace | None:
    """The trace of the first size among extents; None where all are plain numbers."""
    return next((e.trace for e in extents if isinstance(e, SizeExpr | KnownSize)), None)


def _is_whole(expr: Expr) -> bool:
    leaf = isinstance(expr, Size) or (isinstance(expr, Const) and expr.value.is_integer())
    wholes = ("add", "sub", "mul", "neg", "abs")
    return leaf or (isinstance(expr, Call) and expr.fn in wholes and all(map(_is_whole, expr.args)))


def fixed(value: Any) -> int:
    """A size as a number. That of an example becomes fixed: the program is for it alone."""
    if not isinstance(value, SizeExpr):
        return int(value)
    length = length_of(value.expr)
    value.trace.dims.fix(length.dims if length else ())
    return int(value)


def rest(value: Any, divisor: int) -> int | None:
    """A size modulo a number; None if it is not known."""
    return value.modulo(divisor) if isinstance(value, SizeExpr) else int(value % divisor)


def scalar(value: object) -> Expr | None:
    """A number or a size as an expression; None for anything else."""
    if isinstance(value, SizeExpr):
        value.trace.dims.expect_whole(value.whole)
    return bound(value)


def bound(value: object) -> Expr | None:
    """The same for an operand of more arithmetic, which need not be used."""
    if isinstance(value, SizeExpr):
        return value.expr
    if not isinstance(value, numbers.Real):
        return None
    try:
        return Const(float(value))
    except OverflowError:
        raise trace_error("a number is too large for float64") from None


def held_exactly(given: Any, number: Expr) -> Expr:
    """``number``, which is ``given`` as an expression. Raises Refused if digits were lost."""
    is_whole = isinstance(given, numbers.Integral)
    if is_whole and isinstance(number, Const) and int(number.value) != int(given):
        raise Refused(f"{given} is no float64", "make it an input: an array of int64")
    return number
