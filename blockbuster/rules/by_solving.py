"""Repair functions as scalar expressions, solved for by ``repair.py``."""

from __future__ import annotations

import sympy

from blockbuster.ir.expr import Arg
from blockbuster.rules.answer import answer
from blockbuster.rules.as_sympy import NoCounterpartError, from_sympy, to_sympy
from blockbuster.rules.laws import Law, Question, Repaired, Unrepaired
from blockbuster.rules.separate import ANY

SOLVED = Law("solved for", Arg(0), "factor", ())
"""In place of a row of the table."""


def solved_for(
    question: Question, bounds: tuple[tuple[int, int, str], ...]
) -> Repaired | Unrepaired:
    """The repair function of a fold whose elements have such bounds; see ``bounded.py``."""
    read = (*question.producers, *question.elements, *question.parameters)
    args = [sympy.Symbol("unused")] * (max(read) + 1)
    for index in read:
        args[index] = _symbol(f"a{index}", question.signs.get(index, ANY))
    facts = tuple(
        sympy.Le(args[element], args[lead])
        if side == "max"
        else sympy.Ge(args[element], args[lead])
        for element, lead, side in bounds
    )
    producers = tuple(args[index] for index in question.producers)
    elements = tuple(args[index] for index in question.elements)
    try:
        g = to_sympy(question.g, args)
        found = answer(g, producers, elements, question.monoid, facts)
        if not found.ok:
            return Unrepaired(found.reason, found.answer == "no")
        if found.needs:
            return Unrepaired(f"h divides by what may be 0: {found.needs[0].lhs}")
        given = (*found.producers, *found.changed, *(args[i] for i in question.parameters))
        h = from_sympy(found.h, (found.t, *given))
    except NoCounterpartError as reason:
        return Unrepaired(f"it {reason}")
    return Repaired(SOLVED, h, ())


def _symbol(name: str, signs: str) -> sympy.Symbol:
    assumed = {"+": {"positive": True}, "0+": {"nonnegative": True}, "-": {"negative": True},
               "-0": {"nonpositive": True}}.get(signs, {"real": True})  # fmt: skip
    return sympy.Symbol(name, **assumed)
