"""Questions for the repair of a fold whose leads bound elements: none is over its maximum.

The table of laws is asked first (``laws.py``). What it does not know is solved for with SymPy,
which is loaded then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from blockbuster.ir.expr import Arg, Expr, arguments, replaced
from blockbuster.rules.laws import LAWS, Law, Question, Repaired, Unrepaired, repaired
from blockbuster.rules.separate import signs_of

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
        from blockbuster.rules.answer import solved_for

        h, reason, certain = solved_for(self.question, self.bounds)
        return Unrepaired(reason, certain) if h is None else Repaired(SOLVED, h, ())


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
