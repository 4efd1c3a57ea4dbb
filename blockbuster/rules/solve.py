"""Solving for a repair function with SymPy: what the table of laws does not know.

1. g(r', c) / g(r, c) is free of elements: h multiplies t by it. A function that distributes over
   sums is a factor, so for sums this is all that there is.
2. g(r', c) - g(r, c) is free of elements: h adds it to t.
3. Elements enter g in one place, u(c), and each function around u rises, or each falls: h undoes
   the functions one by one, and does them again with r'.

To find a ratio or a difference, one element is put in for c; that it serves all elements is proven
then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import sympy

from blockbuster.rules.case import (
    Case,
    Refused,
    Setting,
    Solved,
    no_factor,
    no_shift,
    order_changed,
)
from blockbuster.rules.repair import Symbolic

STARTS = (1, 0, 2, -1)
"""What is put in for the first element, until g is a number; others get the numbers after it."""

ONLY_FACTORS = "g(r', c) / g(r, c) depends on c, and only a factor distributes over +"
COUNT = (
    "each element changes by the same number, so a sum of them changes by that times their "
    "number, which h is not given"
)
ORDER = "the order of elements changes with r, so another one may become the {}"
SEVERAL_PLACES = "elements enter g in several places, and their part does not come apart"


def solved(case: Case, settings: tuple[Setting, ...]) -> Solved | Refused:
    """The repair function of ``case``, derived and proven, or what failed."""
    different, unequal = no_factor(settings), no_shift(settings)
    case = replace(case, g=_roots_apart(case.g))
    if case.f == "+":
        if different:
            return Refused(ONLY_FACTORS if unequal else COUNT, True, different)
        return _ratio(case)
    # elements that one value of r makes equal count as turned, too: 0 does it to c * r
    turned = order_changed(case, settings)
    plain = () if turned or different else (_ratio,)
    shifted = () if turned or unequal else (_difference,)
    for way in (*plain, *shifted, _inverse):
        found = way(case)
        if isinstance(found, Solved):
            return found
    return Refused(ORDER.format(case.f), True, turned) if turned else found


def with_facts(case: Case) -> Case:
    """``case`` with g as it is where the facts hold: by c <= r, Max(c, r) is r."""
    g = case.g
    for fact in case.facts:
        element, bound = (
            (fact.lhs, fact.rhs) if case.has_elements(fact.lhs) else (fact.rhs, fact.lhs)
        )
        below = element == fact.lts
        gap = sympy.Dummy("gap", nonnegative=True)
        g = g.xreplace({element: bound - gap if below else bound + gap}).doit()
        g = g.xreplace({gap: bound - element if below else element - bound})
    return replace(case, g=g)


def _roots_apart(g: Symbolic) -> Symbolic:
    """g with factors below its roots, so that squares leave them."""
    return g.replace(
        lambda part: part.is_Pow and part.exp.is_Rational and not part.exp.is_integer,
        lambda part: sympy.factor(part.base) ** part.exp,
    )


def _ratio(case: Case) -> Solved | Refused:
    """t times g(r', c) / g(r, c), at the first element at which that is a number."""
    for new, old in _at_some_elements(case):
        if old.is_zero:
            continue
        if not _is_zero(case.later(case.g) * old - case.g * new):
            return Refused("the ratio g(r', c) / g(r, c) looks free of c, but this is not proven")
        ratio = _tidied(sympy.factor_terms(new) / sympy.factor_terms(old))
        if case.f != "+" and not (ratio.is_nonnegative or _keeps_sign(old)):
            return Refused(
                "the sign of g(r', c) / g(r, c) is not known, and a negative factor turns "
                f"{case.f} round: state what the symbols' signs are"
            )
        return Solved(case.t * ratio, "g(r', c) / g(r, c) is free of c", _not_zero(ratio))
    return Refused("g is 0 or undefined at the elements that were tried")


def _difference(case: Case) -> Solved | Refused:
    """t plus g(r', c) - g(r, c)."""
    for new, old in _at_some_elements(case):
        change = new - old
        if not _is_zero(case.later(case.g) - case.g - change):
            return Refused("g(r', c) - g(r, c) looks free of c, but this is not proven")
        return Solved(case.t + _tidied(change), "g(r', c) - g(r, c) is free of c")
    return Refused("g is undefined at the elements that were tried")


def _at_some_elements(case: Case) -> Iterator[tuple[Symbolic, Symbolic]]:
    """g after, and before, with numbers for the elements, where it is a number then."""
    for start in STARTS:
        put = {symbol: sympy.Integer(start + place) for place, symbol in enumerate(case.elements)}
        old = case.g.xreplace(put)
        if not old.has(sympy.nan, sympy.zoo, sympy.oo, -sympy.oo, sympy.I):
            yield case.later(old), old


def _is_zero(expr: Symbolic) -> bool:
    """Whether SymPy proves that ``expr`` is 0."""
    steps: tuple[Callable[[Symbolic], Symbolic], ...] = (sympy.expand, sympy.simplify)
    return any(step(expr) == 0 for step in steps)


def _tidied(expr: Symbolic) -> Symbolic:
    """The shortest of a few ways to write ``expr``: ``simplify`` would take most of the time."""
    apart = sympy.expand_power_exp(sympy.expand_mul(expr))
    ways = (expr, sympy.powsimp(expr), sympy.powsimp(apart), sympy.factor_terms(apart))
    return min(ways, key=sympy.count_ops)


def _keeps_sign(expr: Symbolic) -> bool:
    return bool(expr.is_nonnegative or expr.is_nonpositive)


def _not_zero(ratio: Symbolic) -> tuple[Symbolic, ...]:
    """What h divides by, and could be 0."""
    factors = sympy.Mul.make_args(sympy.denom(sympy.together(ratio)))
    bases = dict.fromkeys(factor.as_base_exp()[0] for factor in factors)
    return tuple(sympy.Ne(base, 0) for base in bases if base.is_zero is not False)


@dataclass(frozen=True)
class _Layer:
    """The outermost function of ``inner`` in g, which rises or falls, and how it is undone."""

    inner: Symbolic
    undo: Callable[[Symbolic], Symbolic]
    redo: Callable[[Symbolic], Symbolic]
    needs: tuple[Symbolic, ...] = ()


def _inverse(case: Case) -> Solved | Refused:
    """g undone function by function from outside, until what is left is free of producers."""
    layers: list[_Layer] = []
    inner = case.g
    while case.has_producers(inner):
        layer = _outermost(case, inner)
        if isinstance(layer, Refused):
            return layer
        layers.append(layer)
        inner = layer.inner
    h = case.t
    for layer in layers:
        h = layer.undo(h)
    for layer in reversed(layers):
        h = layer.redo(h)
    needs = tuple(dict.fromkeys(need for layer in layers for need in layer.needs))
    return Solved(_tidied(h), "g is undone, and done again with r'", needs)


def _outermost(case: Case, expr: Symbolic) -> _Layer | Refused:
    if expr.is_Add or expr.is_Mul:
        inner = expr.func(*(arg for arg in expr.args if case.has_elements(arg)))
        rest = expr.func(*(arg for arg in expr.args if not case.has_elements(arg)))
        if inner == expr:
            return Refused(SEVERAL_PLACES)
        return _beside(case, expr.is_Add, inner, rest)
    if expr.is_Pow and not case.has_elements(expr.exp):
        return _power(case, expr.base, expr.exp)
    if expr.func in INVERSES and len(expr.args) == 1:
        return _Layer(expr.args[0], INVERSES[expr.func], expr.func)
    name = expr.func.__name__
    return Refused(f"{name} of elements and producers is not known to rise or to fall")


INVERSES = {
    sympy.exp: sympy.log,
    sympy.log: sympy.exp,
    sympy.tanh: sympy.atanh,
    sympy.atanh: sympy.tanh,
    sympy.sinh: sympy.asinh,
    sympy.asinh: sympy.sinh,
    sympy.atan: sympy.tan,
    sympy.erf: sympy.erfinv,
}
"""Functions of one number that rise wherever they are defined, and what undoes them."""


def _beside(case: Case, added: bool, inner: Symbolic, rest: Symbolic) -> _Layer | Refused:
    """A term or a factor that is the same for all elements."""
    later = case.later(rest)
    if added:
        return _Layer(inner, lambda x: x - rest, lambda x: x + later)
    if not _keeps_sign(rest):
        return Refused(
            f"the sign of a factor is not known, and a negative one turns {case.f} round: state "
            "what the symbols' signs are"
        )
    needs = () if rest.is_nonzero else (sympy.Ne(rest, 0),)
    return _Layer(inner, lambda x: x / rest, lambda x: x * later, needs)


def _power(case: Case, base: Symbolic, power: Symbolic) -> _Layer | Refused:
    """A power that depends on no element: of what is not negative, or a whole odd one."""
    later = case.later(power)
    if base.is_nonnegative and power.is_nonzero and _keeps_sign(power):
        return _Layer(base, lambda x: x ** (1 / power), lambda x: x**later)
    if power.is_odd and power.is_positive and not case.has_producers(power):
        return _Layer(
            base, lambda x: sympy.sign(x) * sympy.Abs(x) ** (1 / power), lambda x: x**power
        )
    return Refused("a power of what may be negative does not rise or fall with it")
