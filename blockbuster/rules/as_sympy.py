"""Scalar expressions as SymPy's, and back where nothing is lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from math import isfinite

import sympy

from blockbuster.ir.expr import FUNCTIONS, Arg, Call, Const, Expr, Size, call
from blockbuster.rules.linear_expressions import ARITHMETIC
from blockbuster.rules.repair import Symbolic
from blockbuster.rules.separate import POWERS

_FUNCTIONS: Mapping[str, Callable[..., Symbolic]] = {
    **ARITHMETIC,
    "pow": lambda a, b: a**b,
    "sqrt": sympy.sqrt,
    "rsqrt": lambda a: 1 / sympy.sqrt(a),
    "exp": sympy.exp,
    "log": sympy.log,
    "tanh": sympy.tanh,
    "sin": sympy.sin,
    "cos": sympy.cos,
    "atan": sympy.atan,
    "abs": sympy.Abs,
    "maximum": sympy.Max,
    "minimum": sympy.Min,
    "relu": lambda a: sympy.Max(a, 0),
    "sigmoid": lambda a: 1 / (1 + sympy.exp(-a)),
    "silu": lambda a: a / (1 + sympy.exp(-a)),
}

_BACK = {
    _FUNCTIONS[name]: name
    for name in ("exp", "log", "tanh", "sin", "cos", "atan", "abs", "maximum", "minimum")
}

LARGEST, POWERS_OF_TWO = 2**32, tuple(2**bits for bits in range(11))
"""Numbers below the one, over one of the others, are the same in floating point."""

_RELATIONS = {
    sympy.StrictLessThan: "lt",
    sympy.LessThan: "le",
    sympy.StrictGreaterThan: "gt",
    sympy.GreaterThan: "ge",
}

_NO_NUMBERS = (sympy.zoo, sympy.nan, sympy.oo, -sympy.oo)
_POWERS = {power: name for name, power in POWERS.items()}


SIZE = "size of "
"""How the names of symbols begin that stand for sizes."""


class NoCounterpartError(ValueError):
    """An expression has no counterpart, as the rest of a sentence about it."""


def to_sympy(expr: Expr, args: Sequence[Symbolic]) -> Symbolic:
    """``expr`` of ``args``, as SymPy simplifies it. Raises NoCounterpartError."""
    match expr:
        case Arg(index):
            return args[index]
        case Const(value) if isfinite(value):
            exact = sympy.Rational(value)
            return exact if exact.q in POWERS_OF_TWO else sympy.Float(value)
        case Size(dim):
            return sympy.Symbol(f"{SIZE}{dim}", positive=True)
        case Call(fn, given) if fn in _FUNCTIONS:
            made = _FUNCTIONS[fn](*(to_sympy(arg, args) for arg in given))
            if made in _NO_NUMBERS:
                raise NoCounterpartError("is no number: it divides by 0")
            return made
        case Const(value):
            raise NoCounterpartError(f"holds {value}, with which SymPy computes otherwise")
    assert isinstance(expr, Call)
    raise NoCounterpartError(f"has no {expr.fn} of SymPy")


def from_sympy(symbolic: Symbolic, symbols: Sequence[Symbolic]) -> Expr:
    """The expression in which ``symbols[i]`` is argument i. Raises NoCounterpartError."""
    if symbolic in symbols:
        return Arg(symbols.index(symbolic))
    if symbolic.is_Symbol and symbolic.name.startswith(SIZE):
        return Size(symbolic.name.removeprefix(SIZE))
    if symbolic.is_Rational and abs(symbolic) < LARGEST and symbolic.q in POWERS_OF_TWO:
        return Const(float(symbolic))
    if isinstance(symbolic, sympy.Piecewise):
        return _choice(symbolic.args, symbols)
    parts = [from_sympy(part, symbols) for part in symbolic.args]
    if symbolic.is_Add or symbolic.is_Mul:
        return reduce(lambda a, b: call("add" if symbolic.is_Add else "mul", a, b), parts)
    if symbolic.is_Pow:
        base, power = parts
        name = _POWERS.get(power.value) if isinstance(power, Const) else None
        return call(name, base) if name else call("pow", base, power)
    name = {**_BACK, **_RELATIONS}.get(symbolic.func)
    if name and len(parts) == FUNCTIONS[name]:
        return call(name, *parts)
    raise NoCounterpartError(f"has {symbolic.func.__name__}, which is no scalar function of ours")


def _choice(cases: Sequence[Symbolic], symbols: Sequence[Symbolic]) -> Expr:
    """The first of the values whose condition holds; the last one's has to hold always."""
    *first, (last, always) = cases
    if always != sympy.true:
        raise NoCounterpartError("has a choice that may leave no value")
    chosen = from_sympy(last, symbols)
    for value, condition in reversed(first):
        chosen = call("where", from_sympy(condition, symbols), from_sympy(value, symbols), chosen)
    return chosen
