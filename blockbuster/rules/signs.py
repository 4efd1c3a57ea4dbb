"""The signs that values may have, for all that the operators above them show."""

from __future__ import annotations

from blockbuster.ir.expr import FUNCTIONS, Arg, Call, Const
from blockbuster.ir.graph import Graph, Value
from blockbuster.rules.array_terms import Number, Terms, value_of
from blockbuster.rules.separate import ANY, NEGATIVE, POSITIVE, signs_of

PROVABLE = frozenset({"exp", "add", "sub", "neg", "mul", "div", "reciprocal", "recip0", "where"})
"""Functions of whose results proofs decide the sign: those that make polynomials in exponentials.

Squares and absolute values are not negative either, but proofs cannot use it.
"""


class SignsOfTerms:
    """The signs that ``terms`` may have, each found once; inputs may have any.

    If some functions are ``trusted``, what others do does not count.
    """

    def __init__(self, terms: Terms, trusted: frozenset[str] | None = None) -> None:
        self.terms, self._trusted = terms, trusted
        self._known: list[str] = []

    def of(self, number: Number) -> str:
        """The signs of a term: the operands of a term have smaller numbers."""
        while len(self._known) <= number:
            self._known.append(self._next(len(self._known)))
        return self._known[number]

    def _next(self, number: Number) -> str:
        term = self.terms[number]
        known = [self._known[arg] for arg in term.args]
        match term.fn.split():
            case ["number"]:
                return signs_of(Const(value_of(term) or 0.0), {})
            case ["size"]:
                return POSITIVE
            case ["fold", monoid]:
                return signs_of_fold(monoid, known[0])
            case ["significand"]:
                return signs_of_fold("+", known[0])
            case ["mul"] if term.args[0] == term.args[1] and not self._trusted:
                return signs_of(Call("square", (Arg(0),)), {0: known[0]})
            case [fn] if fn in FUNCTIONS:
                values = [value_of(self.terms[arg]) for arg in term.args]
                args = (Arg(at) if x is None else Const(x) for at, x in enumerate(values))
                return signs_of(Call(fn, tuple(args)), dict(enumerate(known)), self._trusted)
        return ANY


def signs_of_value(graph: Graph, value: Value, trusted: frozenset[str] | None = None) -> str:
    """The signs that elements of a value of ``graph`` may have."""
    terms = Terms()
    return SignsOfTerms(terms, trusted).of(terms.values(graph)[value])


def signs_of_fold(monoid: str, signs: str) -> str:
    """The signs of a fold of elements that may have ``signs``."""
    kept = NEGATIVE not in signs or (monoid == "+" and POSITIVE not in signs)
    return signs if kept or monoid in ("max", "min") else ANY
