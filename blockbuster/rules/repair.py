"""``bb.repair``: the function that repairs a reduction when the reduction it waits for goes on.

A reduction t folds g(r, c) over the elements c, and r is the result of another reduction of the
same elements. If both run in one loop, t has been folded with an r that was not final. It can be
repaired if there is a function h with

    h(g(r, c), r, r') = g(r', c)           it takes one element from r to r'
    h(x f y) = h(x) f h(y)                 and a fold of elements like each of them

``answer.py`` asks the table of laws (``laws.py``) for it, and solves for it with SymPy
(``solve.py``) if the table does not know. SymPy is loaded by the first question.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Symbolic = Any
"""An expression of SymPy, which has no types that mypy knows."""


@dataclass(frozen=True)
class Repair:
    """What ``repair`` found.

    ``answer`` is "yes" if there is an h, "no" if there is none, and "unknown" if none was found
    or none was proven; then ``h`` is None, and ``reason`` says what failed. ``h`` is an expression
    of ``t``, of ``producers``, and of their new values ``changed``. ``needs`` are relations
    that must hold, because h divides.
    ``points`` shows a "no": two elements, before and after, that no h can map.
    """

    answer: Literal["yes", "no", "unknown"]
    h: Symbolic
    reason: str
    t: Symbolic
    producers: tuple[Symbolic, ...]
    changed: tuple[Symbolic, ...]
    needs: tuple[Symbolic, ...] = ()
    points: tuple[Mapping[Symbolic, float], ...] = field(default=(), hash=False)

    @property
    def ok(self) -> bool:
        """True if there is a repair function, proven to be one."""
        return self.answer == "yes"

    def __str__(self) -> str:
        if not self.ok:
            return f"{self.answer}: {self.reason}"
        given = ", ".join(map(str, (self.t, *self.producers, *self.changed)))
        needs = f", where {', '.join(map(str, self.needs))}" if self.needs else ""
        return f"h({given}) = {self.h}{needs}"

    def _repr_latex_(self) -> str:
        if not self.ok:
            return rf"$\text{{{self}}}$"
        from sympy import latex

        given = ", ".join(map(latex, (self.t, *self.producers, *self.changed)))
        needs = "".join(rf",\quad {latex(need)}" for need in self.needs)
        return rf"$\displaystyle h({given}) = {latex(self.h)}{needs}$"


def repair(
    g: Symbolic,
    producers: Sequence[Symbolic],
    elements: Sequence[Symbolic],
    f: str = "+",
    *,
    facts: Iterable[Symbolic] = (),
) -> Repair:
    """The repair function of a fold by ``f`` ("+", "max", "min") of ``g``, or why there is none.

    ``g`` is a SymPy expression. ``producers`` are the symbols of results that the fold waits for,
    ``elements`` those of what differs from iteration to iteration; other symbols of ``g`` are
    the same throughout. A symbol's assumptions are its domain, and one without is a real number.
    ``facts`` are relations ``c <= r`` or ``c >= r`` between an element and what bounds it.

    Raises TypeError for arguments that are no such expressions, ValueError for an unknown fold.
    Source: Neptune, which solves for h in the same way.

    >>> import sympy as sp
    >>> c, r = sp.symbols("c r")
    >>> print(repair(sp.exp(c - r), [r], [c]))
    h(t, r, r') = t*exp(r - r')
    >>> repair(sp.exp(c * r), [r], [c]).ok
    False
    """
    from blockbuster.rules.answer import answer

    return answer(g, tuple(producers), tuple(elements), f, tuple(facts))
