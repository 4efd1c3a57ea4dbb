"""Questions for the repair of a fold in which leads bound elements: no element is over its maximum.

The table of laws is asked first (``laws.py``). Random numbers then refute most of what it does not
know, and only the rest is solved for with SymPy, which is loaded then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from blockbuster.interp.layout import Array
from blockbuster.interp.semantics import Float64
from blockbuster.ir.expr import Arg, Expr, arguments, replaced
from blockbuster.rules.laws import LAWS, Law, Question, Repaired, Unrepaired, repaired
from blockbuster.rules.separate import ANY, signs_of

SETTINGS, ELEMENTS, NEARLY = 24, 8, 1e-6
KEPT = 1024
SOLVED = Law("solved for", Arg(0), "factor", ())
"""In place of a row of the table."""


@dataclass(frozen=True)
class Bounded:
    """A question in which elements are bounded: argument e by a lead r, for (e, r, side).

    ``side`` is "max" if no e is larger than r, "min" if none is smaller.
    """

    question: Question
    bounds: tuple[tuple[int, int, str], ...]

    def repaired(self, laws: Sequence[Law] = LAWS) -> Repaired | Unrepaired:
        """The repair function, or why there is none; nothing is solved for if ``laws`` are few."""
        found = repaired(self.question, laws)
        if isinstance(found, Repaired) or found.certain or laws != LAWS:
            return found
        shown = self.refuted()
        if shown:
            return Unrepaired(shown, certain=True)
        q, signs = self.question, tuple(sorted(self.question.signs.items()))
        return _solved(q.g, q.producers, q.elements, q.monoid, signs, self.bounds)

    def refuted(self) -> str:
        """Why random numbers show that no h exists, or ""."""
        q, before, after = self.question, *self._points()
        with np.errstate(all="ignore"):
            old, new = (
                np.asarray(Float64.expression(q.g, args, _size)) for args in (before, after)
            )
        old, new = (np.broadcast_to(each, (SETTINGS, ELEMENTS)) for each in (old, new))
        usable = np.isfinite(old).all(1) & np.isfinite(new).all(1)
        if not usable.any():
            return "its function is no number at any of the points that were tried"
        old, new = old[usable], new[usable]
        if q.monoid == "+":
            products = old[:, :, None] * new[:, None, :]
            turned = products.transpose(0, 2, 1)
            size = np.maximum(abs(products), abs(turned))
            if (abs(products - turned) > NEARLY * size).any():
                return "g(r', c) / g(r, c) depends on c, and only a factor distributes over +"
            return ""
        steps = [each[:, :, None] - each[:, None, :] for each in (old, new)]
        scale = [NEARLY * abs(each).max(1)[:, None, None] for each in (old, new)]
        if ((steps[0] > scale[0]) & (steps[1] < -scale[1])).any():
            return f"the order of elements changes with r: another one may become the {q.monoid}"
        return ""

    def _points(self) -> tuple[list[Array], list[Array]]:
        """The arguments of g for random leads and elements, and for changed leads."""
        q, random = self.question, np.random.default_rng(0)
        count = max((*arguments(q.g), *q.producers), default=0) + 1
        before = [np.zeros((SETTINGS, 1))] * count
        after = list(before)
        for index in (*q.producers, *q.parameters, *q.elements):
            width = ELEMENTS if index in q.elements else 1
            before[index] = _drawn(random, (SETTINGS, width), q.signs.get(index, ANY))
            after[index] = before[index]
        for index in q.producers:
            after[index] = _drawn(random, (SETTINGS, 1), q.signs.get(index, ANY))
        for element, lead, side in self.bounds:
            share = random.uniform(0, 1, (SETTINGS, ELEMENTS))
            ends = np.minimum if side == "max" else np.maximum
            end = ends(before[lead], after[lead])
            step = -abs(end) * share if side == "max" else abs(end) * share
            nonnegative = q.signs.get(element, ANY) in ("+", "0+")
            value = end * share if side == "max" and nonnegative else end + step
            before[element] = after[element] = value
        return before, after


def _drawn(random: np.random.Generator, shape: tuple[int, int], signs: str) -> Array:
    value = random.uniform(-2, 2, shape)
    if signs in ("+", "0+"):
        return abs(value) + 0.125
    return -abs(value) - 0.125 if signs in ("-", "-0") else value


def _size(_: str) -> int:
    return 7


def bounded(question: Question, folded: Mapping[int, tuple[str, Expr]]) -> Bounded:
    """``question`` with what its leads are folded from taken for elements that these bound.

    ``folded[r]`` is the monoid and the summand of the lead r. That summand stands for one element
    wherever g reads it, which asks for more: it may then be any number that the lead bounds.
    """
    g, signs, bounds = question.g, dict(question.signs), list[tuple[int, int, str]]()
    extrema = question.extrema
    elements = dict.fromkeys(question.elements)
    free = max((*arguments(g), *question.producers), default=0) + 1
    for lead, (monoid, summand) in folded.items():
        own = signs_of(summand, signs)
        bounds_it = monoid in ("max", "min") or (monoid == "+" and "-" not in own)
        held = {*arguments(summand)}
        if not bounds_it or not held or not held <= elements.keys():
            continue
        side = "min" if monoid == "min" else "max"
        if isinstance(summand, Arg):
            bounds.append((summand.index, lead, side))
            continue
        made = replaced(g, {summand: Arg(free)})
        if made != g:
            g = made
            extrema = {r: replaced(each, {summand: Arg(free)}) for r, each in extrema.items()}
            signs[free] = own
            elements[free] = None
            bounds.append((free, lead, side))
            free += 1
    read = {*arguments(g)}
    kept = tuple(index for index in elements if index in read)
    made_of = replace(question, g=g, elements=kept, signs=signs, extrema=extrema)
    return Bounded(made_of, tuple(each for each in bounds if each[0] in read))


@lru_cache(maxsize=KEPT)
def _solved(
    g: Expr, producers: tuple[int, ...], elements: tuple[int, ...], monoid: str,
    signs: tuple[tuple[int, str], ...], bounds: tuple[tuple[int, int, str], ...],
) -> Repaired | Unrepaired:  # fmt: skip
    """What SymPy solves for."""
    from blockbuster.rules.answer import solved_for

    question = Question(g, producers, elements, monoid, dict(signs))
    h, reason, certain = solved_for(question, bounds)
    return Unrepaired(reason, certain) if h is None else Repaired(SOLVED, h, ())
