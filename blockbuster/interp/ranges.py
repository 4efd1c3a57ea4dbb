"""Which signs a term may have, at given sizes or at any: bounds on its values.

A position is at least 0 and below its size, a size is at least 1, a fold is of any length. The
bounds of a sum or product are those of intervals; sums of positions and sizes are bounded exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from blockbuster.interp.cells import Cell, Signs
from blockbuster.interp.laurent import ONE, Polynomial, minus
from blockbuster.interp.terms import Term, TooLarge
from blockbuster.interp.unfold import Undecided, Unfolding, ZeroDivisor
from blockbuster.interp.unknowns import Unknowns
from blockbuster.ir.types import Dim, size_class

Bounds = tuple[float, float, bool, bool]
"""The least and the largest value, and whether each is open: not reached."""
ANYTHING: Bounds = (-math.inf, math.inf, True, True)
TRUTH: Bounds = (0.0, 1.0, False, False)


class Ranges:
    """Bounds of terms. ``length``: what a fold is repeated and a position is below; None for any.

    Inputs that are positions have a dim and a number, sizes a dim alone; ``dims`` are all dims.
    """

    def __init__(self, dims: frozenset[Dim], length: int | None) -> None:
        self.dims, self.length = dims, length
        self.known: dict[int, Bounds] = {}

    def signs(self, bounds: Bounds) -> Signs:
        """The signs of the values within bounds."""
        low, high, low_open, high_open = bounds
        found = set()
        if low < 0:
            found.add(-1)
        if high > 0:
            found.add(1)
        if (low < 0 or (low == 0 and not low_open)) and (high > 0 or (high == 0 and not high_open)):
            found.add(0)
        return frozenset(found)

    def compared(self, x: Term, y: Term) -> Signs:
        """The signs that x - y may have."""
        a, b = self(x), self(y)
        low = a[0] - b[1] if a[0] != b[1] else 0.0
        high = a[1] - b[0] if a[1] != b[0] else 0.0
        return self.signs((low, high, a[2] or b[3], a[3] or b[2]))

    def __call__(self, term: Term) -> Bounds:
        """The bounds of a term."""
        stack = [term]
        while stack:
            top = stack[-1]
            if top.number not in self.known:
                waiting = [part for part in top.parts if part.number not in self.known]
                if waiting:
                    stack.extend(waiting)
                    continue
                self.known[top.number] = self._bounds(top)
            stack.pop()
        return self.known[term.number]

    def _bounds(self, term: Term) -> Bounds:
        if term.fn == "number":
            value = float(term.args[0])
            return (value, value, False, False)
        if term.fn == "input":
            name, *at = term.args[0]
            if name not in self.dims:
                return ANYTHING
            most = math.inf if self.length is None else float(self.length - bool(at))
            least = 0.0 if at else 1.0 if self.length is None else float(self.length)
            return (least, most, False, self.length is None)
        args = [self.known[part.number] for part in term.parts]
        if term.fn == "mul" and len(args) == 2 and term.args[0] is term.args[1]:
            return _square(args[0])
        if term.fn == "fold" and self.length is None:
            return _repeated(args)
        return BOUNDS[term.fn](args) if term.fn in BOUNDS else ANYTHING


def _join(found: Sequence[tuple[float, bool]], pick: Callable[..., float]) -> tuple[float, bool]:
    value = pick(x for x, _ in found)
    return value, all(is_open for x, is_open in found if x == value)


def _sum(args: Sequence[Bounds]) -> Bounds:
    low = sum(a[0] for a in args)
    high = sum(a[1] for a in args)
    return (low, high, any(a[2] for a in args), any(a[3] for a in args))


def _repeated(args: Sequence[Bounds]) -> Bounds:
    low, high, low_open, high_open = _hull(args)
    return (
        -math.inf if low < 0 else low, math.inf if high > 0 else high,
        low_open or low < 0, high_open or high > 0,
    )  # fmt: skip


def _times(a: Bounds, b: Bounds) -> Bounds:
    found = []
    for x, x_open in ((a[0], a[2]), (a[1], a[3])):
        for y, y_open in ((b[0], b[2]), (b[1], b[3])):
            reached = (x == 0 and not x_open) or (y == 0 and not y_open)
            found.append((0.0 if 0 in (x, y) else x * y, (x_open or y_open) and not reached))
    low, low_open = _join(found, min)
    high, high_open = _join(found, max)
    return (low, high, low_open, high_open)


def _product(args: Sequence[Bounds]) -> Bounds:
    made = args[0]
    for other in args[1:]:
        made = _times(made, other)
    return made


def _square(a: Bounds) -> Bounds:
    if a[0] < 0 < a[1]:
        return (0.0, max(a[0] ** 2, a[1] ** 2), False, True)
    return _times(a, a)


def _inverse(args: Sequence[Bounds]) -> Bounds:
    low, high, low_open, high_open = args[0]
    if low < 0 < high:
        return ANYTHING
    if low >= 0:
        return (1 / high if high else math.inf, 1 / low if low else math.inf,
                high_open, low_open or not low)  # fmt: skip
    return (1 / high if high else -math.inf, 1 / low, high_open or not high, low_open)


def _hull(args: Sequence[Bounds]) -> Bounds:
    low, low_open = _join([(a[0], a[2]) for a in args], min)
    high, high_open = _join([(a[1], a[3]) for a in args], max)
    return (low, high, low_open, high_open)


def _max(args: Sequence[Bounds]) -> Bounds:
    low = max((a[0], not a[2]) for a in args)
    high, high_open = _join([(a[1], a[3]) for a in args], max)
    return (low[0], high, not low[1], high_open)


def _min(args: Sequence[Bounds]) -> Bounds:
    high = min((a[1], a[3]) for a in args)
    low, low_open = _join([(a[0], a[2]) for a in args], min)
    return (low, high[0], low_open, high[1])


def _exp(args: Sequence[Bounds]) -> Bounds:
    low, high, low_open, high_open = args[0]
    made = [math.exp(min(max(x, -745.0), 709.0)) if abs(x) < math.inf else max(x, 0.0)
            for x in (low, high)]  # fmt: skip
    return (made[0], made[1], low_open or low == -math.inf, high_open)


BOUNDS: dict[str, Callable[[Sequence[Bounds]], Bounds]] = {
    "add": _sum, "fold": _sum, "mul": _product, "inverse": _inverse, "max": _max, "min": _min,
    "exp": _exp, "sqrt": lambda args: (0.0, math.inf, False, True),
    "tanh": lambda args: (-1.0, 1.0, True, True), "erf": lambda args: (-1.0, 1.0, True, True),
    "atan": lambda args: (-math.pi / 2, math.pi / 2, True, True),
    **dict.fromkeys(("sin", "cos"), lambda args: (-1.0, 1.0, False, False)),
    "where": lambda args: _hull(args[1:]), **dict.fromkeys(
        ("lt", "eq", "not", "and", "or"), lambda args: TRUTH),
}  # fmt: skip


def straight(
    x: Term, y: Term, free: Mapping[int, Term] | None = None
) -> tuple[Unknowns, Polynomial] | None:
    """x - y as a polynomial in inputs and ``free`` terms, if nothing has to be decided for it."""
    names = Unknowns(laws=False)
    unfolding = Unfolding(names, Cell({}), free or {})
    try:
        left, right = unfolding(x), unfolding(y)
    except (Undecided, ZeroDivisor, TooLarge):
        return None
    if isinstance(left, float) or isinstance(right, float):
        return None
    return names, minus(left, right)


def affine_signs(names: Unknowns, p: Polynomial, dims: frozenset[Dim]) -> Signs | None:
    """The signs of a sum of positions and sizes at any sizes; None if p is no such sum.

    Positions lie from 0 to their size less 1, so for each size class p is least at one end.
    """
    slopes: dict[Dim, list[Fraction]] = {}
    for monomial, factor in p.items():
        if not monomial:
            continue
        ((number, power),) = monomial if len(monomial) == 1 else ((-1, Fraction(0)),)
        kind = names.kinds[number] if number >= 0 else ("",)
        if power != 1 or kind[0] != "input" or kind[1][0] not in dims:
            return None
        name, *at = kind[1]
        slope = slopes.setdefault(size_class(name), [Fraction(0)] * 3)
        if at:
            slope[1 if factor < 0 else 2] += factor
        else:
            slope[0] += factor
    found = set()
    for side, end in ((1, -1), (2, 1)):
        value, endless = p.get(ONE, Fraction(0)), False
        for slope in slopes.values():
            per_size = slope[0] + slope[side]
            value += slope[0]
            endless |= per_size * end > 0
        found |= {end} if endless or value * end > 0 else {int(value > 0) - int(value < 0)}
    if found == {-1, 1} and _meets_zero(p):
        found.add(0)
    return frozenset(found)


def _meets_zero(p: Polynomial) -> bool:
    """Whether whole numbers can make p zero, as far as common divisors tell."""
    scale = math.lcm(*(c.denominator for c in p.values()))
    whole = {m: int(c * scale) for m, c in p.items()}
    rest = whole.pop(ONE, 0)
    return rest % math.gcd(*whole.values()) == 0 if whole else rest == 0
