"""Shifts that may leave a product: those that the centering of variances takes back.

    (x + c) w = x w + c (1' w)      loses digits with |c| / |x + c|, as x near -c cancels

If c is minus the mean of x, and the squares of x are summed for a variance, ``safe`` centers both
(centering.py): its products read x + c again. Any other shift stays where it is.
"""

from __future__ import annotations

from blockbuster.ir.expr import Arg, Call, Const, Expr, Size
from blockbuster.ir.graph import Graph, Value
from blockbuster.ir.types import Dim, size_class
from blockbuster.rules.array_terms import Number, Terms, value_of
from blockbuster.rules.linear_expressions import ARITHMETIC
from blockbuster.rules.shift_invariance import equal, minus_mean


def digits_would_cancel(graph: Graph, elements: Value, shift: Value, dim: Dim) -> str:
    """A shift that leaves sums of products is minus the mean of a row whose variance is taken.

    Returns "", or why the shift of ``elements`` by ``shift`` stays before the sums along ``dim``.
    Both are values of ``graph``; nothing is assumed of the graph's inputs.
    """
    terms = Terms()
    known = terms.values(graph)
    return not_centered(terms, known[elements], known[shift], dim)


def not_centered(terms: Terms, elements: Number, shift: Number, dim: Dim) -> str:
    """The same for terms: the shift must be minus their mean, and their squares must be summed."""
    total = terms.known("fold +", (elements,), dim)
    squares = (("square", (elements,)), ("mul", (elements, elements)))
    found = [terms.known("fold +", (at,), dim) for s in squares if (at := terms.known(*s))]
    mean = total is not None and _expression(terms, shift, total)
    if mean and any(found) and equal(mean, minus_mean(size_class(dim)), size_class(dim)):
        return ""
    return (
        "the shift is not minus the mean of a row whose variance is taken: behind the product,"
        " digits would cancel where the shift is large"
    )


def _expression(terms: Terms, number: Number, total: Number) -> Expr | None:
    """A term as an expression of the sum of all elements; None if it is made of anything else."""
    if number == total:
        return Arg(0)
    term = terms[number]
    if term.fn == "size":
        return Size(size_class(str(term.leaf)))
    value = value_of(term)
    if value is not None:
        return Const(value)
    parts = [_expression(terms, arg, total) for arg in term.args]
    known = [part for part in parts if part is not None]
    if term.fn not in ARITHMETIC or len(known) < len(parts):
        return None
    return Call(term.fn, tuple(known))
