"""Terms that cannot be large: what exponentials may be taken of.

    x - max(x)        at most 0, whatever x is          -|x|        at most 0
    x - log(sum(exp(x)))   at most 0                    tanh(x)     at most 1

A term is written as a sum of terms with coefficients. The sum is bounded if each term in it that is
added is also subtracted, or a term that is at least as large is: a maximum of it, or the logarithm
of a sum of its exponentials. What else may be added is small, and stays below ``LARGEST`` in all:
numbers, shares x / s of a sum s, tanh and its like. Other logarithms count as 0, since exp(log(x))
is as large as x.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf

from blockbuster.rules.array_terms import Number, Terms, value_of
from blockbuster.rules.separate import NEGATIVE
from blockbuster.rules.signs import SignsOfTerms

LONGEST = 64
"""Terms of a sum that is looked at."""

DEEPEST = 8
"""How often a term is replaced by one that is no less, and the sum gets no shorter."""

MOST_SUMS = 100
"""How many sums are looked at for one term."""

LARGEST = 80.0
"""A number of which float32 has the exponential: up to 88."""

Factors = tuple[Number, ...]
Key = tuple[Number, Factors]
Sum = dict[Key, float]
"""Coefficients of terms, each times some terms that are not negative."""

Range = tuple[float, float]
RANGES: dict[str, Range] = {
    **dict.fromkeys(("tanh", "erf", "sin", "cos"), (-1.0, 1.0)), "atan": (-1.6, 1.6),
    **dict.fromkeys(("sigmoid", "lt", "le", "gt", "ge", "eq", "ne", "and", "or"), (0.0, 1.0)),
    "not": (0.0, 1.0),
    "log": (0.0, 0.0),
}
"""The least and the greatest value of functions, whatever they are applied to."""


@dataclass
class Bounds:
    """What shows of the sizes of terms; sums are remembered."""

    terms: Terms
    _sums: dict[Number, Sum] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._signs = SignsOfTerms(self.terms)

    def is_bounded(self, number: Number) -> bool:
        """True if the term shows to be at most ``LARGEST``, whatever the inputs are."""
        return _Search(self).most(self.sum_of(number), DEEPEST) < inf

    def sum_of(self, number: Number) -> Sum:
        """The sum that a term is; the term itself if it is none."""
        if number not in self._sums:
            self._sums[number] = self._sum_of(number)
        return self._sums[number]

    def _sum_of(self, number: Number) -> Sum:
        found: Sum = {}
        todo: list[tuple[float, Number, Factors]] = [(1.0, number, ())]
        for _ in range(LONGEST):
            if not todo:
                break
            by, at, factors = todo.pop()
            inner = self._addends(at)
            if inner is None:
                found[at, factors] = found.get((at, factors), 0.0) + by
            else:
                todo += [(by * sign, part, _joint(factors, more)) for sign, part, more in inner]
        for by, at, factors in todo:  # too long: the rest stays as it is
            found[at, factors] = found.get((at, factors), 0.0) + by
        return {key: by for key, by in found.items() if by}

    def _addends(self, number: Number) -> list[tuple[float, Number, Factors]] | None:
        term = self.terms[number]
        match term.fn:
            case "add":
                return [(1.0, at, ()) for at in reversed(term.args)]
            case "sub" | "sub0":
                return [(-1.0, term.args[1], ()), (1.0, term.args[0], ())]
            case "neg":
                return [(-1.0, term.args[0], ())]
            case "mul" | "div":
                return self._scaled(number)
        return None

    def _scaled(self, number: Number) -> list[tuple[float, Number, Factors]] | None:
        """A term times a number, or times what is not negative; None if no factor is that."""
        term = self.terms[number]
        for at, by in (term.args, term.args[::-1]):
            value = value_of(self.terms[by])
            if value is not None and value != 0:
                return [(value if term.fn == "mul" else 1 / value, at, ())]
            if term.fn == "mul" and self.not_negative(by) and not self.not_negative(at):
                return [(1.0, at, (by,))]
            if term.fn == "div":
                break
        return None

    def not_negative(self, number: Number) -> bool:
        """True if the term shows not to be negative."""
        return NEGATIVE not in self._signs.of(number)

    def most(self, key: Key, by: float) -> float:
        """What ``by`` times a term of a sum is at most; infinite if that does not show."""
        number, factors = key
        least, greatest = self._range(number)
        found = by * (greatest if by > 0 else least)
        return found if not factors else 0.0 if found <= 0 else inf

    def _range(self, number: Number) -> Range:
        term = self.terms[number]
        value = value_of(term)
        if value is not None:
            return value, value
        if term.fn in RANGES:
            return RANGES[term.fn]
        if self._is_share(number):
            return 0.0, 1.0
        return (0.0 if self.not_negative(number) else -inf), inf

    def _is_share(self, number: Number) -> bool:
        """True for x / s, or x times the reciprocal of s: s sums x and others, none negative."""
        term = self.terms[number]
        given = [term.args] if term.fn == "div" else []
        if term.fn == "mul":
            first, second = term.args
            given = [
                (part, self.terms[by].args[0])
                for part, by in ((first, second), (second, first))
                if self.terms[by].fn in ("reciprocal", "recip0")
            ]
        return any(
            self.not_negative(part) and part in self.summed_in(total) for part, total in given
        )

    def no_more_than(self, number: Number, left: int = DEEPEST) -> Iterator[Number]:
        """Terms that are at most ``number``: those of which it is a maximum, or a sum of powers."""
        term = self.terms[number]
        if left == 0:
            return
        if term.fn in ("fold max", "maximum"):
            for part in term.args:
                yield part
                yield from self.no_more_than(part, left - 1)
        if term.fn == "log":
            for part in self.summed_in(term.args[0]):
                if self.terms[part].fn == "exp":
                    yield self.terms[part].args[0]

    def summed_in(self, number: Number) -> Iterator[Number]:
        """``number`` and the parts of which it is a sum, with others not negative."""
        left = [number]
        while left:
            found = left.pop()
            yield found
            term = self.terms[found]
            if term.fn == "recip0" == self.terms[term.args[0]].fn:  # x again, or NaN
                term = self.terms[term.args[0]]
                left += term.args
            alike = term.fn == "add" and all(self.not_negative(part) for part in term.args)
            if alike or term.fn in ("fold +", "significand"):
                left += term.args


@dataclass
class _Search:
    """A search for a sum that is no less than a given one, and that shows to be bounded.

    ``found`` holds what the sums are at most that were looked at, and to which depth. A sum that is
    being looked at counts as one that has no bound.
    """

    bounds: Bounds
    found: dict[tuple[tuple[Key, float], ...], tuple[float, int]] = field(default_factory=dict)

    def most(self, total: Sum, left: int) -> float:
        """What a sum is at most; infinite if that is more than ``LARGEST``, or does not show."""
        parts = {key: self.bounds.most(key, by) for key, by in total.items()}
        whole = sum(parts.values())
        if whole <= LARGEST:
            return whole
        known = tuple(sorted(total.items()))
        bound, depth = self.found.get(known, (inf, 0))
        if bound < inf or depth >= left or len(self.found) >= MOST_SUMS:
            return bound
        self.found[known] = inf, left
        greatest = max(parts, key=lambda key: parts[key])
        for rest, more in sorted(self._no_less(total, greatest), key=lambda each: len(each[0])):
            whole = more + self.most(rest, left if len(rest) < len(total) else left - 1)
            if whole <= LARGEST:
                self.found[known] = whole, left
                return whole
        return inf

    def _no_less(self, total: Sum, key: Key) -> Iterator[tuple[Sum, float]]:
        """Sums, each with a number: together they are at least ``total``.

        The term at ``key`` may be gone from one of them.
        """
        by, term = total[key], self.bounds.terms[key[0]]
        parts = [self.bounds.sum_of(part) for part in term.args[-2:]]
        sums = [_with(total, key, part, by) for part in parts]
        if term.fn == ("minimum" if by > 0 else "maximum") or (term.fn == "fold min" and by > 0):
            yield from ((each, 0.0) for each in sums)
        elif term.fn in ("minimum", "maximum", "where"):
            yield {}, max(self.most(each, DEEPEST // 2) for each in sums)
        elif term.fn in ("fold max", "fold min"):
            rest = {other: value for other, value in total.items() if other != key}
            yield rest, self.most(_with({key: by}, key, parts[0], by), DEEPEST // 2)
        for other, taken in total.items():
            if taken < 0:
                for inside in self.bounds.no_more_than(other[0]):
                    yield _with(total, other, self.bounds.sum_of(inside), taken), 0.0


def _with(total: Sum, key: Key, part: Sum, by: float) -> Sum:
    """``total`` with ``by`` times ``part`` in place of the term at ``key``."""
    made = {other: value for other, value in total.items() if other != key}
    for (number, more), value in part.items():
        at = (number, _joint(key[1], more))
        made[at] = made.get(at, 0.0) + by * value
        if abs(made[at]) <= 1e-12 * abs(by * value):
            del made[at]
    return made


def _joint(first: Factors, second: Factors) -> Factors:
    return tuple(sorted((*first, *second)))
