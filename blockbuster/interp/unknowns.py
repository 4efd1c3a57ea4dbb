"""The unknowns of polynomials: elements of inputs, and functions that are not polynomials."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from fractions import Fraction
from typing import Any

from blockbuster.interp.laurent import (
    Key,
    Monomial,
    Polynomial,
    constant,
    content,
    joined,
    key,
    order,
    scaled,
    times,
    total,
    unknowns,
)

NUMERIC: dict[str, Callable[[float], float]] = {
    "exp": math.exp, "log": math.log, "sqrt": math.sqrt, "tanh": math.tanh, "erf": math.erf,
    "sin": math.sin, "cos": math.cos, "log1p": math.log1p, "expm1": math.expm1,
    "atan": math.atan,
}  # fmt: skip


class NotComputed(ArithmeticError):
    """An unknown stands for a function that is not known here."""


class Unknowns:
    """Numbered unknowns: a function's name and the keys of its arguments.

    ``laws``: exp turns sums into products and is positive, roots are not negative, and log undoes
    exp; without, these are functions of which nothing is known.
    """

    def __init__(self, *, laws: bool) -> None:
        self.laws = laws
        self.kinds: list[tuple[Any, ...]] = []
        self._numbers: dict[Hashable, int] = {}

    def number(self, fn: str, *args: Hashable) -> int:
        """The number of an unknown."""
        kind = (fn, *args)
        if kind not in self._numbers:
            self._numbers[kind] = len(self.kinds)
            self.kinds.append(kind)
        return self._numbers[kind]

    def primitive(self, p: Polynomial) -> tuple[Fraction, Polynomial]:
        """A factor, and ``p`` without it: its leading coefficient is 1."""
        lead = p[max(p, key=order)]
        return lead, scaled(p, 1 / lead)

    def positive(self, number: int) -> bool:
        """True if an unknown is above zero by itself."""
        return self.laws and self.kinds[number][0] == "exp"

    def not_negative(self, number: int) -> bool:
        """True if an unknown is not below zero."""
        return self.laws and self.kinds[number][0] in ("exp", "sqrt")

    def bounded(self, number: int) -> bool:
        """True if an unknown lies between -1 and 1."""
        return self.laws and self.kinds[number][0] in ("tanh", "erf")

    def functions(self, p: Mapping[Monomial, Fraction]) -> bool:
        """True if functions that polynomials cannot say occur in ``p``."""
        return any(self.kinds[n][0] not in ("input", "inverse") for m in p for n, _ in m)

    def cleared(self, p: Polynomial) -> tuple[Polynomial, list[tuple[Polynomial, int]]]:
        """``p`` times powers of its denominators, and these: p = it / (denominators ** powers)."""
        factors: list[tuple[Polynomial, int]] = []
        while any(self.kinds[n][0] == "inverse" for n in unknowns(p)):  # denominators in them
            for number in reversed(unknowns(p)):
                if self.kinds[number][0] == "inverse":
                    p = self._without(p, number, factors)
        return p, factors

    def _without(
        self, p: Polynomial, number: int, factors: list[tuple[Polynomial, int]]
    ) -> Polynomial:
        """``p`` times the power of the denominator ``number`` that is added to ``factors``."""
        powers = [dict(m).get(number, Fraction(0)) for m in p]
        if not any(powers):
            return p
        most = int(max(powers, default=Fraction(0)))
        below: Polynomial = dict(self.kinds[number][1])
        made = []
        for (monomial, factor), power in zip(p.items(), powers, strict=True):
            rest = {joined(monomial, ((number, power),), -1) if power else monomial: factor}
            for _ in range(most - int(power)):
                rest = times(rest, below)
            made.append(rest)
        factors.append((below, most))
        return total(made)

    def factored(self, p: Polynomial) -> tuple[int, list[tuple[Key, bool]]]:
        """The sign of a nonzero polynomial as a sign and the signs of primitive ones.

        With each stands whether its power is odd.
        """
        sign, factors = 1, []
        waiting = [(p, 1)]
        while waiting:
            part, power = waiting.pop()
            part, denominators = self.cleared(part)
            if not part:
                return 0, []
            waiting += [(d, power * k) for d, k in denominators]
            held = content(part)
            for number, exponent in held:
                if not self.positive(number):
                    factors.append((key({((number, Fraction(1)),): Fraction(1)}),
                                    bool(exponent * power % 2)))  # fmt: skip
            rest = {joined(m, held, -1): c for m, c in part.items()}
            lead, rest = self.primitive(rest)
            sign *= -1 if lead < 0 and power % 2 else 1
            if rest != constant(1):
                factors.append((key(rest), bool(power % 2)))
        return sign, factors

    def value(self, p: Mapping[Monomial, Fraction], point: Mapping[int, float]) -> float:
        """A polynomial where inputs have these values. Raises ArithmeticError, ValueError."""
        made = 0.0
        for monomial, factor in p.items():
            product = float(factor)
            for number, power in monomial:
                product *= self._value(number, point) ** float(power)
            made += product
        return made

    def _value(self, number: int, point: Mapping[int, float]) -> float:
        if number in point:
            return point[number]
        fn, *args = self.kinds[number]
        if fn == "inverse":
            return 1 / self.value(dict(args[0]), point)
        if fn not in NUMERIC or isinstance(args[0], float):
            raise NotComputed(fn)
        return NUMERIC[fn](self.value(dict(args[0]), point))

    def show(self, p: Mapping[Monomial, Fraction]) -> str:
        """A polynomial as text."""
        parts = []
        for monomial, factor in sorted(p.items(), key=lambda item: order(item[0]), reverse=True):
            size = abs(factor)
            names = [self._named(n) + (f"**{e}" if e != 1 else "") for n, e in monomial]
            number = f"{float(size):g}"
            text = " * ".join(names if size == 1 and names else [number, *names])
            parts.append(("- " if factor < 0 else "+ ") + text)
        text = " ".join(parts) or "0"
        return text[2:] if text.startswith("+ ") else text.replace("- ", "-", 1)

    def _named(self, number: int) -> str:
        fn, *args = self.kinds[number]
        if fn == "input":
            name, *at = args[0]
            return f"{name}[{', '.join(map(str, at))}]" if at else name
        if fn == "term":
            return f"value {args[0]}"
        shown = [str(a) if isinstance(a, float) else self.show(dict(a)) for a in args]
        text = ", ".join(shown)
        return f"1/({text})" if fn == "inverse" else f"{fn}({text})"
