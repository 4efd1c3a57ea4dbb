"""Terms that cannot be large: what exponentials may be taken of.

    x - max(x)        at most 0, whatever x is          -|x|        at most 0
    x - log(sum(exp(x)))   at most 0                    tanh(x)     at most 1

A term is written as a sum of others with coefficients. It is bounded if what is added is taken off
again, by a term that is at least as large: a maximum of it, or the logarithm of a sum of its
exponentials. A logarithm of anything else counts as moderate: exp(log(x)) is as large as x. So do
numbers up to ``LARGEST``, and shares x / s of a sum s.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from blockbuster.rules.array_terms import Number, Terms, value_of

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

BOUNDED = (
    "tanh", "sigmoid", "erf", "sin", "cos", "lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not",
    "size", "log",
)  # fmt: skip
NOT_NEGATIVE = (
    "exp", "square", "abs", "sqrt", "rsqrt", "sigmoid", "relu", "size",
    "lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not",
)  # fmt: skip
NOT_NEGATIVE_IF_ALL = (
    "add", "mul", "div", "reciprocal", "recip0", "maximum", "minimum", "pow",
    "fold +", "fold max", "fold min", "significand",
)  # fmt: skip


@dataclass
class Bounds:
    """What shows of the signs and sizes of terms; sums and signs are remembered."""

    terms: Terms
    _sums: dict[Number, Sum] = field(default_factory=dict)
    _signs: dict[Number, bool] = field(default_factory=dict)

    def is_bounded(self, number: Number) -> bool:
        """True if the term shows to be at most ``LARGEST``, whatever the inputs are."""
        return _Search(self).not_large(self.sum_of(number), DEEPEST)

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
        if number not in self._signs:
            self._signs[number] = self._not_negative(number)
        return self._signs[number]

    def _not_negative(self, number: Number) -> bool:
        left, seen = [number], {number}
        while left:
            term = self.terms[left.pop()]
            value = value_of(term)
            if term.fn in NOT_NEGATIVE or (value is not None and value >= 0):
                continue
            if term.fn == "mul" and term.args[0] == term.args[1]:
                continue
            args = term.args[1:] if term.fn == "where" else term.args
            if not args or not (term.fn == "where" or term.fn in NOT_NEGATIVE_IF_ALL):
                return False
            left += (new := [arg for arg in args if arg not in seen])
            seen.update(new)
            if len(seen) > LONGEST:
                return False
        return True

    def is_harmless(self, key: Key, by: float) -> bool:
        """True if the term makes no sum large: it is moderate, or not negative and taken off."""
        number, factors = key
        value = value_of(self.terms[number])
        if value is not None and not factors:
            return by * value <= LARGEST
        moderate = self.terms[number].fn in BOUNDED or self._is_share(number)
        return (moderate and not factors) or (by < 0 and self.not_negative(number))

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
        if term.fn == "mul":
            yield from self._products_below(number, left)
        if term.fn == "log":
            for part in self.summed_in(term.args[0]):
                if self.terms[part].fn == "exp":
                    yield self.terms[part].args[0]

    def _products_below(self, number: Number, left: int) -> Iterator[Number]:
        """Products with a factor that is at most the product's, times the same, not negative."""
        first, second = self.terms[number].args
        for at, by in ((first, second), (second, first)):
            if self.not_negative(by):
                for part in self.no_more_than(at, left - 1):
                    known = self.terms.known("mul", (part, by))
                    if known is not None:
                        yield known

    def summed_in(self, number: Number) -> Iterator[Number]:
        """``number`` and the parts of which it is a sum, with others not negative."""
        left = [number]
        while left:
            found = left.pop()
            yield found
            term = self.terms[found]
            alike = term.fn == "add" and all(self.not_negative(part) for part in term.args)
            if alike or term.fn in ("fold +", "significand"):
                left += term.args


@dataclass
class _Search:
    """A search for a sum that is no less than a given one, and that shows to be bounded.

    ``failed`` holds sums for which there is none, with the depth to which it was looked for.
    """

    bounds: Bounds
    failed: dict[tuple[tuple[Key, float], ...], int] = field(default_factory=dict)

    def not_large(self, total: Sum, left: int) -> bool:
        """True if a sum shows to be bounded from above."""
        harmful = (key for key, by in total.items() if not self.bounds.is_harmless(key, by))
        first = next(harmful, None)
        if first is None:
            return True
        known = tuple(sorted(total.items()))
        if self.failed.get(known, 0) >= left or len(self.failed) >= MOST_SUMS:
            return False
        self.failed[known] = left
        return any(
            self.not_large(rest, left if len(rest) < len(total) else left - 1)
            for rest in sorted(self._no_less(total, first), key=len)
        )

    def _no_less(self, total: Sum, key: Key) -> Iterator[Sum]:
        """Sums that are at least ``total``, in one of which the term at ``key`` may be gone."""
        by, term = total[key], self.bounds.terms[key[0]]
        parts = [self.bounds.sum_of(part) for part in term.args[-2:]]
        sums = [_with(total, key, part, by) for part in parts]
        if term.fn == ("minimum" if by > 0 else "maximum") or (term.fn == "fold min" and by > 0):
            yield from sums
        elif term.fn in ("minimum", "maximum", "where"):
            if all(self.not_large(each, DEEPEST // 2) for each in sums):
                yield {}
        elif (term.fn == "fold max" and by > 0 and not key[1]) and self.not_large(
            parts[0], DEEPEST // 2
        ):
            yield {other: value for other, value in total.items() if other != key}
        for other, taken in total.items():
            if taken < 0:
                for inside in self.bounds.no_more_than(other[0]):
                    yield _with(total, other, self.bounds.sum_of(inside), taken)


def _with(total: Sum, key: Key, part: Sum, by: float) -> Sum:
    """``total`` with ``by`` times ``part`` in place of the term at ``key``."""
    made = {other: value for other, value in total.items() if other != key}
    for (number, more), value in part.items():
        at = (number, _joint(key[1], more))
        made[at] = made.get(at, 0.0) + by * value
    return {other: value for other, value in made.items() if abs(value) > 1e-12}


def _joint(first: Factors, second: Factors) -> Factors:
    return tuple(sorted((*first, *second)))
