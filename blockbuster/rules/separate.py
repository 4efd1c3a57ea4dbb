"""Functions g(r, c) of producers r and elements c, taken apart: g = A(r) * B(c), or A(r) + B(c).

A producer is the result of another reduction, an element differs from iteration to iteration, and
what is neither is a parameter: the same number throughout.

    c * exp(x - r) / sqrt(q + eps)     A = exp(-r) * (q + eps) ** -0.5
    log(x * abs(r)) - 2 * q            A = log(abs(r)) - 2 * q

Only A is made: what becomes of it when r changes is all that a repair needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from functools import reduce
from math import isfinite

from blockbuster.ir.expr import Arg, Call, Const, Expr, Size, arguments, call

POWERS = {"square": 2.0, "reciprocal": -1.0, "sqrt": 0.5, "rsqrt": -0.5}

NEGATIVE, ZERO, POSITIVE = "-", "0", "+"
ANY = "-0+"
Signs = Mapping[int, str]
"""The signs that an argument may have, by its number: some of "-0+". All, if it is missing."""

_SUMS = {"--": "-", "-0": "-", "0-": "-", "00": "0", "0+": "+", "+0": "+", "++": "+"}
_PRODUCTS = {"--": "+", "-+": "-", "+-": "-", "++": "+"}
_NEGATED = {"-": "+", "0": "0", "+": "-"}


class NotSeparableError(ValueError):
    """Why a function does not come apart, as the rest of a sentence about it."""


@dataclass(frozen=True)
class Factor:
    """A(r): bases to powers, times the exponential of terms with coefficients."""

    powers: Mapping[Expr, float] = field(default_factory=dict)
    exponent: Mapping[Expr, float] = field(default_factory=dict)

    def times(self, other: Factor, power: float = 1) -> Factor:
        """This factor times ``other ** power``, a whole power."""
        return Factor(
            _added(self.powers, other.powers, power), _added(self.exponent, other.exponent, power)
        )


def expression(factor: Factor) -> Expr:
    """A factor without powers but 1, written out."""
    assert all(power == 1 for power in factor.powers.values())
    terms = [
        term if by == 1 else call("neg", term) if by == -1 else call("mul", term, by)
        for term, by in factor.exponent.items()
    ]
    exponent = [call("exp", reduce(lambda a, b: call("add", a, b), terms))] if terms else []
    return reduce(lambda a, b: call("mul", a, b), [*factor.powers, *exponent])


def signs_of(expr: Expr, known: Signs, trusted: frozenset[str] | None = None) -> str:
    """The signs that ``expr`` may have where it is a number.

    If some functions are ``trusted``, what others do does not count.
    """
    match expr:
        case Call(fn, _) if trusted is not None and fn not in trusted:
            return ANY
        case Arg(index):
            return known.get(index, ANY)
        case Const(value):
            return POSITIVE if value > 0 else NEGATIVE if value < 0 else ZERO
        case Size() | Call("exp" | "sigmoid" | "rsqrt", _):
            return POSITIVE
        case Call(fn, args):
            return _of_call(fn, args, [signs_of(arg, known, trusted) for arg in args])
    raise AssertionError(expr)


def _of_call(fn: str, args: tuple[Expr, ...], signs: list[str]) -> str:
    match fn, signs:
        case "add" | "sub", [a, b]:
            second = b if fn == "add" else _ordered(_NEGATED[s] for s in b)
            return _ordered(_SUMS.get(x + y, ANY) for x in a for y in second)
        case "mul" | "div", [a, b]:
            return product_of_signs(a, b if fn == "mul" else b.replace(ZERO, ""))
        case "neg", [a]:
            return _ordered(_NEGATED[s] for s in a)
        case "reciprocal", [a]:
            return a.replace(ZERO, "")
        case "tanh" | "recip0", [a]:
            return a
        case "abs" | "square" | "sqrt", [a]:
            return _size_of(a)
        case "relu", [a]:
            return _ordered(ZERO if s == NEGATIVE else s for s in a)
        case "pow", [a, _]:
            power = args[1].value if isinstance(args[1], Const) else 0.5
            return a if power % 2 == 1 else POSITIVE if power == 0 else _size_of(a)
        case "maximum", [a, b]:
            return _ordered(max(x, y, key=ANY.index) for x in a for y in b)
        case "minimum", [a, b]:
            return _ordered(min(x, y, key=ANY.index) for x in a for y in b)
        case "where", [_, a, b]:
            return _ordered(a + b)
        case "lt" | "le" | "gt" | "ge" | "eq" | "ne" | "and" | "or" | "not", _:
            return ZERO + POSITIVE
    return ANY


def product_of_signs(left: str, right: str) -> str:
    """The signs of a product of numbers with such signs."""
    return _ordered(_PRODUCTS.get(a + b, ZERO) for a in left for b in right)


def _ordered(signs: Iterable[str]) -> str:
    held = "".join(signs)
    return "".join(sign for sign in ANY if sign in held)


def _size_of(signs: str) -> str:
    return _ordered(POSITIVE if s == NEGATIVE else s for s in signs)


@dataclass(frozen=True)
class Separation:
    """Takes functions apart: arguments ``producers``, ``elements``, and what signs they have.

    Of an argument that is a function itself, ``known`` is the factor, ``shifts`` the shift. The
    factor of an exponential is what ``power`` makes of its exponent, if there is such a function.
    """

    producers: Set[int]
    elements: Set[int]
    signs: Signs
    known: Mapping[int, Factor] = field(default_factory=dict)
    shifts: Mapping[int, Mapping[Expr, float]] = field(default_factory=dict)
    power: Callable[[Expr], Factor] | None = None

    def factor(self, expr: Expr) -> Factor:
        """A of ``expr`` = A(r) * B(c). Raises NotSeparableError if it is no such product."""
        if self._lacks(expr, self.producers):
            return Factor()
        match expr:
            case Arg(index) if index in self.known:
                return self.known[index]
            case Call("mul", (a, b)):
                return self.factor(a).times(self.factor(b))
            case Call("div", (a, b)):
                return self.factor(a).times(self.factor(b), -1)
            case Call("neg", (a,)):
                return self.factor(a)
            case Call("abs", (a,)):
                return self._absolute(self.factor(a))
            case Call("square" | "reciprocal" | "sqrt" | "rsqrt" as name, (a,)):
                return self._to(self.factor(a), POWERS[name])
            case Call("pow", (a, Const(power))) if isfinite(power):
                return self._to(self.factor(a), power)
            case Call("exp", (a,)):
                return self.power(a) if self.power else Factor({}, self.shift(a))
            case Call("add" | "sub" | "where" | "maximum" | "minimum" | "relu", _):
                shared = self._shared(expr)
                if shared is not None:
                    return shared
            case Call(_, args) if self.known and all(self.factor(a) == Factor() for a in args):
                return Factor()
        return Factor({self._alone(expr): 1})

    def shift(self, expr: Expr) -> Mapping[Expr, float]:
        """The terms of A of ``expr`` = A(r) + B(c), with coefficients; raises as ``factor``."""
        if self._lacks(expr, self.producers):
            return {}
        match expr:
            case Arg(index) if index in self.shifts:
                return self.shifts[index]
            case Call("add", (a, b)):
                return _added(self.shift(a), self.shift(b), 1)
            case Call("sub", (a, b)):
                return _added(self.shift(a), self.shift(b), -1)
            case Call("neg", (a,)):
                return _added({}, self.shift(a), -1)
            case Call("mul", (Const(k), a)) | Call("mul", (a, Const(k))) if isfinite(k):
                return _added({}, self.shift(a), k)
            case Call("mul", (k, a)) if self._is_parameter(k):
                return {call("mul", k, term): n for term, n in self.shift(a).items()}
            case Call("mul" | "div" as fn, (a, k)) if self._is_parameter(k):
                return {call(fn, term, k): n for term, n in self.shift(a).items()}
            case Call("log", (a,)) if not self.known:
                factor = self._absolute(self.factor(a))
                logs: dict[Expr, float] = {}
                logs.update((call("log", base), power) for base, power in factor.powers.items())
                return _added(factor.exponent, logs, 1)
        return {self._alone(expr): 1}

    def _shared(self, expr: Call) -> Factor | None:
        """The factor of all parts of a sum or of a choice; None if they have several."""
        parts = expr.args[1:] if expr.fn == "where" else expr.args
        test = expr.args[0] if expr.fn == "where" else Const(0.0)
        free = self._lacks(test, self.producers) or (self.known and self.factor(test) == Factor())
        if not free:
            return None
        try:
            found = [self.factor(each) for each in parts if each != Const(0.0)]
        except NotSeparableError:
            return None
        if not found or any(each != found[0] for each in found[1:]):
            return None
        of_order = expr.fn in ("maximum", "minimum", "relu")
        odd = (base for base, power in found[0].powers.items() if power % 2)
        negative = any(NEGATIVE in signs_of(base, self.signs) for base in odd)
        return None if of_order and negative else found[0]

    def _to(self, factor: Factor, power: float) -> Factor:
        """A factor of what is raised to a power: if that is a number, so is the one of |A|."""
        whole = factor if power == int(power) else self._absolute(factor)
        return Factor().times(whole, power)

    def _absolute(self, factor: Factor) -> Factor:
        powers: dict[Expr, float] = {}
        for base, power in factor.powers.items():
            key = call("abs", base) if NEGATIVE in signs_of(base, self.signs) else base
            powers[key] = powers.get(key, 0) + power
        return Factor(powers, factor.exponent)

    def _alone(self, expr: Expr) -> Expr:
        if self._lacks(expr, self.elements):
            return expr
        name = f"{expr.fn} of" if isinstance(expr, Call) else "a value of"
        raise NotSeparableError(f"takes {name} elements and producers together")

    def _is_parameter(self, expr: Expr) -> bool:
        return self._lacks(expr, self.producers | self.elements)

    def _lacks(self, expr: Expr, among: Set[int]) -> bool:
        return among.isdisjoint(arguments(expr))


def _added(
    left: Mapping[Expr, float], right: Mapping[Expr, float], times: float
) -> Mapping[Expr, float]:
    total = dict(left)
    for key, value in right.items():
        total[key] = total.get(key, 0) + times * value
    return {key: value for key, value in total.items() if value}
