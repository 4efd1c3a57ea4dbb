"""How many positions and sizes must be tried to see that a polynomial in them is not zero.

``j * (j - 1) * (j - 2)`` is zero at the first three positions. A polynomial of degree d in one
unknown that is zero at d + 1 values is zero; so that many have to be tried.
"""

from __future__ import annotations

from functools import lru_cache

from blockbuster.interp.binding import dims_of
from blockbuster.interp.positions import elements
from blockbuster.interp.terms import Terms, below
from blockbuster.ir.graph import Graph
from blockbuster.ir.types import size_class


@lru_cache(maxsize=64)
def power(graph: Graph) -> int:
    """The degree in positions and sizes of what a program computes, at most. Raises TooLarge.

    Of a quotient, the degrees of both parts together; of other functions, that of an argument. An
    output that no position or size enters does not count.
    """
    terms = Terms(anywhere=True)
    dims = {d for dim in dims_of(graph) for d in (dim, size_class(dim))}
    outputs = elements(graph, terms)
    known: dict[int, tuple[int, int]] = {}
    entered: set[int] = set()
    for term in sorted(below(*outputs), key=lambda term: term.number):
        args = [known[part.number] for part in term.parts]
        if term.fn == "input":
            made = (int(term.args[0][0] in dims), 0)
        elif term.fn == "mul":
            made = (sum(n for n, _ in args), sum(d for _, d in args))
        elif term.fn == "inverse":
            made = args[0][::-1]
        elif term.fn in ("add", "fold"):
            made = _added(args)
            made = (made[0] + (term.fn == "fold"), made[1])  # of one more than its terms
        else:
            made = (max((n for n, _ in args), default=0), max((d for _, d in args), default=0))
        known[term.number] = made
        own = term.fn == "input" and term.args[0][0] in dims
        if own or any(part.number in entered for part in term.parts):
            entered.add(term.number)
    return max((sum(known[t.number]) for t in outputs if t.number in entered), default=0)


def _added(args: list[tuple[int, int]]) -> tuple[int, int]:
    """Degrees of a sum; equal denominators, as those of numbers, are taken to be one."""
    dens = [d for _, d in args if d]
    below_all = sum(dens)
    return max(n + below_all - d for n, d in args), below_all
