"""A fold whose repair function is asked for, and its numbers at random points.

Numbers refute: they show two elements that no h can map. They never prove.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations, islice
from math import isfinite, nan
from random import Random
from typing import Any

import mpmath
import sympy

from blockbuster.rules.repair import Symbolic

SETTINGS, ELEMENTS = 40, 6
"""How many values of the producers are tried, and with how many elements each."""
NEARLY = 1e-7
"""The relative difference from which two numbers count as different."""
DIGITS, CHECKED = (40, 400), 8
"""With how many digits a derived h is checked, and at how many points.

Where g flattens, as tanh does, undoing it loses digits: then the check takes more of them.
"""
TO = 20
"""How many digits of the result have to be right."""

Point = Mapping[Symbolic, float]
FOLD: Mapping[str, Callable[..., Any]] = {"+": sum, "max": max, "min": min}


@dataclass(frozen=True)
class Case:
    """A fold of ``g`` by ``f``; ``changed`` stands for the new values of the producers in h."""

    g: Symbolic
    producers: tuple[Symbolic, ...]
    changed: tuple[Symbolic, ...]
    elements: tuple[Symbolic, ...]
    parameters: tuple[Symbolic, ...]
    t: Symbolic
    f: str
    facts: tuple[Symbolic, ...]

    def later(self, expr: Symbolic) -> Symbolic:
        """``expr`` with the new values of the producers."""
        return expr.xreplace(dict(zip(self.producers, self.changed, strict=True)))

    def has_elements(self, expr: Symbolic) -> bool:
        """Whether ``expr`` differs from element to element."""
        return not expr.free_symbols.isdisjoint(self.elements)

    def has_producers(self, expr: Symbolic) -> bool:
        """Whether ``expr`` depends on what the fold waits for."""
        return not expr.free_symbols.isdisjoint(self.producers)


@dataclass(frozen=True)
class Solved:
    """A repair function, how it was found, and what must hold where it divides."""

    h: Symbolic
    how: str
    needs: tuple[Symbolic, ...] = ()


@dataclass(frozen=True)
class Refused:
    """Why there is no repair function; if not ``certain``, why none was found."""

    reason: str
    certain: bool = False
    points: tuple[Point, ...] = field(default=(), hash=False)


@dataclass(frozen=True)
class Setting:
    """Producers before and after with parameters, and some elements of the domain.

    ``before[i]`` and ``after[i]`` are g of element i.
    """

    shared: Point
    elements: tuple[Point, ...]
    before: tuple[float, ...]
    after: tuple[float, ...]

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Two elements each."""
        return combinations(range(len(self.elements)), 2)

    def at(self, *elements: int) -> tuple[Point, ...]:
        """The points of these elements."""
        return tuple({**self.shared, **self.elements[each]} for each in elements)


def sampled(case: Case) -> tuple[Setting, ...]:
    """Points of the domain at which g is a number before and after."""
    random = Random(0)
    read = (*case.producers, *case.elements, *case.parameters)
    function = numeric(read, case.g)
    allowed = [numeric(read, fact) for fact in case.facts]
    domains = {symbol: _domain(symbol) for symbol in read}
    if not all(domains.values()):
        return ()
    renewed = dict(zip(case.changed, case.producers, strict=True))
    found = []
    for _ in range(SETTINGS):
        shared = {s: random.choice(domains[s]) for s in (*case.producers, *case.parameters)}
        shared |= {new: random.choice(domains[old]) for new, old in renewed.items()}
        new = {**shared, **{old: shared[changed] for changed, old in renewed.items()}}
        elements: list[Point] = []
        before, after = list[float](), list[float]()
        for _ in range(2 * ELEMENTS):
            element = {s: random.choice(domains[s]) for s in case.elements}
            points = [[{**known, **element}[s] for s in read] for known in (shared, new)]
            values = [function(*point) for point in points]
            holds = all(fact(*point) for fact in allowed for point in points)
            if holds and all(map(isfinite, values)) and len(elements) < ELEMENTS:
                elements.append(element)
                before.append(values[0])
                after.append(values[1])
        found.append(Setting(shared, tuple(elements), tuple(before), tuple(after)))
    return tuple(setting for setting in found if len(setting.elements) > 1)


def numeric(read: tuple[Symbolic, ...], expr: Symbolic) -> Callable[..., float]:
    """``expr`` as a function of numbers; NaN where it is no real number."""
    function: Any = sympy.lambdify(read, expr, modules=["math", "mpmath"], docstring_limit=0)

    def value(*numbers: float) -> float:
        try:
            return float(function(*numbers))
        except (ArithmeticError, ValueError, TypeError, NameError):
            return nan

    return value


@lru_cache(maxsize=256)
def _domain(symbol: Symbolic) -> tuple[float, ...]:
    """Some numbers that the assumptions of ``symbol`` allow: quarters between -3 and 3."""
    quarters = [sympy.Rational(number, 4) for number in range(-12, 13)]
    assumed = symbol.assumptions0.items()
    return tuple(
        float(number)
        for number in quarters
        if all(getattr(number, f"is_{name}") in (held, None) for name, held in assumed)
    )


def differ(left: float, right: float, size: float = 0) -> bool:
    """Whether two numbers differ by more than rounding does."""
    return abs(left - right) > NEARLY * max(abs(left), abs(right), size)


def no_factor(settings: tuple[Setting, ...]) -> tuple[Point, ...]:
    """Two elements that would need different factors, or ()."""
    for setting in settings:
        before, after = setting.before, setting.after
        for i, j in setting.pairs():
            if differ(after[i] * before[j], after[j] * before[i]):
                return setting.at(i, j)
    return ()


def no_shift(settings: tuple[Setting, ...]) -> tuple[Point, ...]:
    """Two elements that change by different differences, or ()."""
    for setting in settings:
        before, after = setting.before, setting.after
        size = max(map(abs, (*before, *after)))
        for i, j in setting.pairs():
            if differ(after[i] - before[i], after[j] - before[j], size):
                return setting.at(i, j)
    return ()


def order_changed(case: Case, settings: tuple[Setting, ...]) -> tuple[Point, ...]:
    """Two elements of which the smaller one becomes the larger one, or ().

    Equal elements that become different ones count, too.
    """
    for ties in (False, True):
        for setting in settings:
            for i, j in setting.pairs():
                low, high = sorted((i, j), key=lambda at: (setting.before[at], -setting.after[at]))
                turned = differ(setting.after[low], setting.after[high]) and (
                    setting.after[low] > setting.after[high]
                )
                apart = differ(setting.before[low], setting.before[high])
                if turned and apart != ties and (apart or _equal(case, setting.at(low, high))):
                    return setting.at(low, high)
    return ()


def _equal(case: Case, points: tuple[Point, ...]) -> bool:
    """Whether g is the same at both points before anything is rounded."""
    first, second = (
        case.g.xreplace({symbol: sympy.Rational(value) for symbol, value in point.items()})
        for point in points
    )
    return bool(first == second)


def agrees(case: Case, h: Symbolic, settings: tuple[Setting, ...]) -> bool:
    """Whether h takes folds to folds at some of the points: those at which it is a number."""
    read = (*case.producers, *case.elements, *case.parameters)
    given = (case.t, *case.producers, *case.changed, *case.parameters)
    g = sympy.lambdify(read, case.g, modules="mpmath", docstring_limit=0)
    function = sympy.lambdify(given, h, modules="mpmath", docstring_limit=0)
    for digits in DIGITS:
        with mpmath.workdps(digits):
            answers = (_repairs(case, g, function, setting) for setting in settings)
            checked = list(islice((each for each in answers if each is not None), CHECKED))
        if checked and all(checked):
            return True
    return False


def _repairs(case: Case, g: Any, h: Any, setting: Setting) -> bool | None:
    """Whether h takes the fold of the elements from before to after; None for no number."""
    shared = {symbol: mpmath.mpf(value) for symbol, value in setting.shared.items()}
    changed = dict(zip(case.producers, case.changed, strict=True))
    later = shared | {old: shared[new] for old, new in changed.items()}
    read = (*case.producers, *case.elements, *case.parameters)
    before, after = (
        FOLD[case.f]([g(*({**known, **each}[s] for s in read)) for each in setting.elements])
        for known in (shared, later)
    )
    given = (shared[s] for s in (*case.producers, *case.changed, *case.parameters))
    try:
        value = h(before, *given)
    except ArithmeticError:
        return None
    if not mpmath.isfinite(value):
        return None
    size = max(abs(before), abs(after), 1)
    return bool(abs(value - after) < size * mpmath.mpf(10) ** -TO)
