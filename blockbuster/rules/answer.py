"""Questions for a repair function, in symbols of our own, and their answers, kept by form.

``solved_for`` asks about a scalar expression of ours.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import chain
from typing import Literal

import sympy

from blockbuster.errors import message
from blockbuster.ir.expr import Expr
from blockbuster.rules.as_sympy import NoCounterpartError, from_sympy, to_sympy
from blockbuster.rules.case import Case, Point, Refused, Solved, agrees, sampled
from blockbuster.rules.laws import Question, Unrepaired, repaired
from blockbuster.rules.repair import Repair, Symbolic
from blockbuster.rules.separate import ANY
from blockbuster.rules.solve import solved, with_facts

Symbols = tuple[Symbolic, ...]
FOLDS = ("+", "max", "min")
KEPT = 1024
"""How many answers are kept, by form: the same function of other names is not solved again."""


def answer(g: Symbolic, producers: Symbols, elements: Symbols, f: str, facts: Symbols) -> Repair:
    """What ``repair`` answers. Raises as it does."""
    check_arguments(g, producers, elements, f, facts)
    forms = Forms(g, producers, elements, f, facts)
    found = answered(forms.case)
    read = forms.t, forms.producers, forms.changed
    if isinstance(found, Solved):
        needs = tuple(map(forms.back, found.needs))
        return Repair("yes", forms.back(found.h), found.how, *read, needs)
    short: Literal["no", "unknown"] = "no" if found.certain else "unknown"
    return Repair(short, None, found.reason, *read, points=tuple(map(forms.point, found.points)))


@lru_cache(maxsize=KEPT)
def answered(case: Case) -> Solved | Refused:
    """The answer for a function of the symbols of ``Forms``, checked at random points."""
    settings = sampled(case)
    if not settings:
        return Refused("g is no number at any of the points of its domain that were tried")
    known = with_facts(case)
    found = _by_table(known) or solved(known, settings)
    if isinstance(found, Solved) and not agrees(case, found.h, settings):
        return Refused("h was derived, but does not repair folds of numbers from the domain")
    return found


def _by_table(case: Case) -> Solved | None:
    """What the table of laws knows, if anything."""
    args = (*case.producers, *case.elements, *case.parameters)
    places = range(len(args))
    split = len(case.producers), len(case.producers) + len(case.elements)
    try:
        signs = {place: _signs(symbol) for place, symbol in enumerate(args)}
        question = Question(
            from_sympy(case.g, args), (*places[: split[0]],), (*places[split[0] : split[1]],),
            case.f, signs,
        )  # fmt: skip
        found = repaired(question)
        if isinstance(found, Unrepaired):
            return None
        parameters = (args[place] for place in question.parameters)
        given = (case.t, *case.producers, *case.changed, *parameters)
        needs = tuple(sympy.Ne(to_sympy(each, given), 0) for each in found.divisors)
        return Solved(to_sympy(found.h, given), f"by the law {found.law.name!r}", needs)
    except NoCounterpartError:
        return None


def _signs(symbol: Symbolic) -> str:
    """The signs that the assumptions of a symbol leave."""
    excluded = {"-": symbol.is_negative, "0": symbol.is_zero, "+": symbol.is_positive}
    return "".join(sign for sign, held in excluded.items() if held is not False)


class Forms:
    """The question in symbols of our own, and the way back: answers are kept by form.

    Symbols without assumptions are real numbers.
    """

    def __init__(
        self,
        g: Symbolic,
        producers: Symbols,
        elements: Symbols,
        f: str,
        facts: Symbols,
    ) -> None:
        taken = {symbol.name for symbol in (*g.free_symbols, *producers, *elements)}
        parameters = g.free_symbols | {s for fact in facts for s in fact.free_symbols}
        parameters -= {*producers, *elements}
        rest = tuple(sorted(parameters, key=lambda symbol: symbol.name))
        self.t = sympy.Symbol(_unused("t", taken), real=True)
        self.producers = producers
        self.changed = tuple(
            sympy.Symbol(_unused(f"{old.name}'", taken), **_domain(old)) for old in producers
        )
        ours = [_form("r", producers), _form("c", elements), _form("p", rest)]
        changed = _form("n", producers)
        there = dict(zip((*producers, *elements, *rest), chain(*ours), strict=True))
        form = g.xreplace(there)
        t = (
            sympy.Symbol("t", nonnegative=True)
            if form.is_nonnegative
            else sympy.Symbol("t", real=True)
        )
        self._back = {new: old for old, new in there.items()} | {t: self.t}
        self._back |= dict(zip(changed, self.changed, strict=True))
        renamed = tuple(fact.xreplace(there) for fact in facts)
        self.case = Case(form, ours[0], changed, ours[1], ours[2], t, f, renamed)

    def back(self, expr: Symbolic) -> Symbolic:
        """An answer in the symbols of the question."""
        return expr.xreplace(self._back)

    def point(self, point: Point) -> Point:
        """A point in the symbols of the question."""
        return {self._back[symbol]: value for symbol, value in point.items()}


def _form(letter: str, symbols: Symbols) -> Symbols:
    return tuple(
        sympy.Symbol(f"{letter}{place}", **_domain(symbol)) for place, symbol in enumerate(symbols)
    )


def _domain(symbol: Symbolic) -> dict[str, bool]:
    """The assumptions of a symbol that its author made; real if there are none."""
    return symbol.assumptions0 if symbol.is_real is not None else {"real": True}


def _unused(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def check_arguments(
    g: Symbolic, producers: Symbols, elements: Symbols, f: str, facts: Symbols
) -> None:
    """Raises an error that names the argument of ``repair`` that is wrong."""
    if not isinstance(g, sympy.Expr):
        raise TypeError(message(
            "g has to be an expression of SymPy",
            value=g, hint="make symbols with sympy.symbols, and write g of them",
        ))  # fmt: skip
    for what, symbols in (("producers", producers), ("elements", elements)):
        for symbol in symbols:
            if not isinstance(symbol, sympy.Symbol):
                raise TypeError(message(f"{what} have to be symbols of SymPy", value=symbol))
    both = [symbol for symbol in producers if symbol in elements]
    if both:
        raise ValueError(message("a symbol is a producer or an element, not both", value=both[0]))
    if f not in FOLDS:
        raise ValueError(message(f"f has to be one of {', '.join(map(repr, FOLDS))}", value=f))
    for fact in facts:
        _check_fact(fact, elements)


def _check_fact(fact: Symbolic, elements: Symbols) -> None:
    ordered = isinstance(fact, sympy.Le | sympy.Ge)
    sides = (fact.lhs, fact.rhs) if ordered else ()
    free = [side for side in sides if side.free_symbols.isdisjoint(elements)]
    if len(free) != 1 or not any(side in elements for side in sides):
        raise ValueError(message(
            "a fact compares one element with what bounds it", value=fact,
            hint="write sympy.Le(c, r) or sympy.Ge(c, r)",
        ))  # fmt: skip


def solved_for(
    question: Question, bounds: tuple[tuple[int, int, str], ...]
) -> tuple[Expr | None, str, bool]:
    """h of a fold whose elements have such bounds (``bounded.py``); or None, why, and for certain.

    Its arguments are those of ``Repaired.h``.
    """
    read = (*question.producers, *question.elements, *question.parameters)
    args = [sympy.Symbol("unused")] * (max(read) + 1)
    for index in read:
        args[index] = _symbol(f"a{index}", question.signs.get(index, ANY))
    relations = {"max": sympy.Le, "min": sympy.Ge}
    facts = tuple(relations[side](args[element], args[lead]) for element, lead, side in bounds)
    producers = tuple(args[index] for index in question.producers)
    elements = tuple(args[index] for index in question.elements)
    try:
        found = answer(to_sympy(question.g, args), producers, elements, question.monoid, facts)
        if not found.ok:
            return None, found.reason, found.answer == "no"
        if found.needs:
            return None, f"h divides by what may be 0: {found.needs[0].lhs}", False
        given = (*found.producers, *found.changed, *(args[i] for i in question.parameters))
        return from_sympy(found.h, (found.t, *given)), found.reason, True
    except NoCounterpartError as reason:
        return None, f"it {reason}", False


def _symbol(name: str, signs: str) -> sympy.Symbol:
    assumed = {"+": {"positive": True}, "0+": {"nonnegative": True}, "-": {"negative": True},
               "-0": {"nonpositive": True}}.get(signs, {"real": True})  # fmt: skip
    return sympy.Symbol(name, **assumed)
