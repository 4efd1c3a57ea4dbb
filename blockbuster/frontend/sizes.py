"""Sizes of dims in a user's arithmetic: ``q.shape[-1] ** -0.5`` before the size is known."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from blockbuster.frontend.protocols import UFUNCS
from blockbuster.frontend.source import trace_error
from blockbuster.ir.expr import DEEPEST, Call, Const, Expr, Size, calls, rewrite, show_expr

if TYPE_CHECKING:
    from blockbuster.frontend.trace import Trace


def _arithmetic(name: str, *, reflected: bool = False) -> Callable[..., Any]:
    """The operator method that applies the scalar function ``name``."""

    def operator(self: SizeExpr, *others: object) -> Any:
        args = [bound(other) for other in others]
        if None in args:
            return NotImplemented
        ordered = [*args, self.expr] if reflected else [self.expr, *args]
        even = self.even or any(isinstance(o, SizeExpr) and o.even for o in others)
        return SizeExpr(Call(name, tuple(a for a in ordered if a is not None)), self.trace, even)

    return operator


class SizeExpr:
    """An entry of the shape of a traced array, or arithmetic on such entries.

    It has no value while tracing, so it cannot steer an ``if`` and is no ``int``. ``even``: it
    was divided with ``//``, so it may bound a slice only, where the division has to come out even.
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, expr: Expr, trace: Trace, even: bool = False) -> None:
        if calls(expr) > DEEPEST:
            hint = "compute the number before, or make it an input array of one element"
            raise trace_error(f"one size goes through more than {DEEPEST} operators", hint=hint)
        self.expr = expr
        self.trace = trace
        self.even = even

    @property
    def whole(self) -> bool:
        """True for sums, differences and products of sizes and whole numbers."""
        return not self.even and _is_whole(self.expr)

    def __repr__(self) -> str:
        def named(leaf: Expr) -> Expr:
            return Size(self.trace.dims.word(leaf.dim)) if isinstance(leaf, Size) else leaf

        return show_expr(rewrite(self.expr, named), [])

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        name = UFUNCS.get(ufunc)
        taken = [a for a in map(scalar, args) if a is not None]
        if name is None or method != "__call__" or kwargs or len(taken) < len(args):
            return NotImplemented
        return SizeExpr(Call(name, tuple(taken)), self.trace)

    __add__, __radd__ = _arithmetic("add"), _arithmetic("add", reflected=True)
    __sub__, __rsub__ = _arithmetic("sub"), _arithmetic("sub", reflected=True)
    __mul__, __rmul__ = _arithmetic("mul"), _arithmetic("mul", reflected=True)
    __truediv__, __rtruediv__ = _arithmetic("div"), _arithmetic("div", reflected=True)
    __pow__, __rpow__ = _arithmetic("pow"), _arithmetic("pow", reflected=True)
    __neg__, __abs__ = _arithmetic("neg"), _arithmetic("abs")
    __lt__, __le__ = _arithmetic("lt"), _arithmetic("le")
    __gt__, __ge__ = _arithmetic("gt"), _arithmetic("ge")
    __eq__, __ne__ = _arithmetic("eq"), _arithmetic("ne")

    def __bool__(self) -> NoReturn:
        raise self._unknown("a truth value", "bb.where chooses between arrays")

    def __int__(self) -> NoReturn:
        raise self._unknown("an int", "use the size itself: it takes part in arithmetic")

    __index__ = __int__

    def __float__(self) -> NoReturn:
        hint = "functions of the math module need numbers: use n ** 0.5 for math.sqrt(n)"
        raise self._unknown("a float", hint)

    def __floordiv__(self, divisor: object) -> SizeExpr:
        if not isinstance(divisor, int) or divisor < 1:
            self._refuse_rounding()
        return SizeExpr(Call("div", (self.expr, Const(float(divisor)))), self.trace, True)

    def _refuse_rounding(self, *_: object) -> NoReturn:
        hint = "use /, and // by a whole number where a slice begins or ends"
        raise trace_error(f"arithmetic on the size {self!r} has no // and %", hint=hint)

    __rfloordiv__ = __mod__ = __rmod__ = _refuse_rounding

    def _unknown(self, wanted: str, hint: str) -> Exception:
        reason = f"the size {self!r} is not known while tracing, so it is not {wanted}"
        return trace_error(reason, hint=hint)


def _is_whole(expr: Expr) -> bool:
    leaf = isinstance(expr, Size) or (isinstance(expr, Const) and expr.value.is_integer())
    wholes = ("add", "sub", "mul", "neg", "abs")
    return leaf or (isinstance(expr, Call) and expr.fn in wholes and all(map(_is_whole, expr.args)))


def scalar(value: object) -> Expr | None:
    """A number or a size as an expression; None for anything else."""
    if isinstance(value, SizeExpr) and value.even:
        raise trace_error(f"{value!r} was divided with //: it is for slices only", hint="use /")
    return bound(value)


def bound(value: object) -> Expr | None:
    """The same where a slice begins or ends: divisions with // come out even there."""
    if isinstance(value, SizeExpr):
        return value.expr
    if not isinstance(value, numbers.Real):
        return None
    try:
        return Const(float(value))
    except OverflowError:
        raise trace_error("a number is too large for float64") from None
