"""How many positions and sizes must be tried to see that a polynomial in them is not zero.

``j * (j - 1) * (j - 2)`` is zero at the first three positions. A polynomial of degree d in one
unknown that is zero at d + 1 values is zero; so that many have to be tried.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from itertools import zip_longest

from blockbuster.interp.binding import dims_of
from blockbuster.interp.positions import elements
from blockbuster.interp.terms import Term, Terms, below
from blockbuster.ir.graph import Graph
from blockbuster.ir.types import Dim, size_class


@lru_cache(maxsize=64)
def power(a: Graph, b: Graph) -> int:
    """The degree in positions and sizes of the difference of two programs, at most.

    Elements of outputs that are one term in both programs do not count, nor do elements that no
    position or size enters. Raises TooLarge.
    """
    terms = Terms(anywhere=True)
    dims = {d for graph in (a, b) for dim in dims_of(graph) for d in (dim, size_class(dim))}
    pairs = list(zip_longest(elements(a, terms), elements(b, terms)))
    apart = [tuple(filter(None, pair)) for pair in pairs if pair[0] is not pair[1]]
    degrees = _degrees(tuple(term for pair in apart for term in pair), dims)
    return max((sum(degrees[term] for term in pair) for pair in apart), default=0)


def _degrees(outputs: tuple[Term, ...], dims: Collection[Dim]) -> dict[Term, int]:
    """The degree of each output in ``dims``: of a quotient, the degrees of both parts together; of
    functions without a rule here, that of an argument; 0 if no position or size enters.
    """
    known: dict[int, tuple[int, int]] = {}
    entered: set[int] = set()
    for term in sorted(below(*outputs), key=lambda term: term.number):
        args = [known[part.number] for part in term.parts]
        own = term.fn == "input" and term.args[0][0] in dims
        if term.fn == "input":
            made = (int(own), 0)
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
        if own or any(part.number in entered for part in term.parts):
            entered.add(term.number)
    return {t: sum(known[t.number]) if t.number in entered else 0 for t in outputs}


def _added(args: list[tuple[int, int]]) -> tuple[int, int]:
    """Degrees of a sum; equal denominators, as those of numbers, are taken to be one."""
    dens = [d for _, d in args if d]
    below_all = sum(dens)
    return max(n + below_all - d for n, d in args), below_all
