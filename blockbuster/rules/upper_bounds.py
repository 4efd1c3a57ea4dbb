"""Terms that cannot be large: what exponentials may be taken of.

    x - max(x)        at most 0, whatever x is          -|x|        at most 0
    x - log(sum(exp(x)))   at most 0                    tanh(x)     at most 1

A term is written as a sum of others with coefficients. It is bounded if what is added is taken off
again, by a term that is at least as large: a maximum of it, or the logarithm of a sum of its
exponentials. A logarithm of anything else counts as moderate: exp(log(x)) is as large as x.
"""

from __future__ import annotations

from collections.abc import Iterator

from blockbuster.rules.array_terms import Number, Terms, value_of

LONGEST = 64
"""Terms of a sum that is looked at."""

DEEPEST = 8
"""How often a term is replaced by one that is no less."""

Factors = tuple[Number, ...]
Sum = dict[tuple[Number, Factors], float]
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


def is_bounded(terms: Terms, number: Number) -> bool:
    """True if the term shows to be at most about 1, whatever the inputs are."""
    return _not_large(terms, sum_of(terms, number), DEEPEST)


def sum_of(terms: Terms, number: Number) -> Sum:
    """The sum that a term is; the term itself if it is none."""
    found: Sum = {}
    todo: list[tuple[float, Number, Factors]] = [(1.0, number, ())]
    for _ in range(LONGEST):
        if not todo:
            break
        by, at, factors = todo.pop()
        inner = _addends(terms, at)
        if inner is None:
            found[at, factors] = found.get((at, factors), 0.0) + by
        else:
            todo += [(by * sign, part, _joint(factors, more)) for sign, part, more in inner]
    for by, at, factors in todo:  # too long: the rest stays as it is
        found[at, factors] = found.get((at, factors), 0.0) + by
    return {key: by for key, by in found.items() if by}


def _joint(first: Factors, second: Factors) -> Factors:
    return tuple(sorted((*first, *second)))


def _addends(terms: Terms, number: Number) -> list[tuple[float, Number, Factors]] | None:
    term = terms[number]
    match term.fn:
        case "add":
            return [(1.0, at, ()) for at in reversed(term.args)]
        case "sub" | "sub0":
            return [(-1.0, term.args[1], ()), (1.0, term.args[0], ())]
        case "neg":
            return [(-1.0, term.args[0], ())]
        case "mul" | "div":
            return _scaled(terms, number)
        case "number":
            return []
    return None


def _scaled(terms: Terms, number: Number) -> list[tuple[float, Number, Factors]] | None:
    """A term times a number, or times what is not negative; None where neither factor is that."""
    term = terms[number]
    for at, by in ((term.args[0], term.args[1]), (term.args[1], term.args[0])):
        value = value_of(terms[by])
        if value is not None and value != 0:
            return [(value if term.fn == "mul" else 1 / value, at, ())]
        if term.fn == "mul" and not_negative(terms, by) and not not_negative(terms, at):
            return [(1.0, at, (by,))]
        if term.fn == "div":
            break
    return None


def not_negative(terms: Terms, number: Number) -> bool:
    """True if the term shows not to be negative."""
    left, seen = [number], {number}
    while left:
        term = terms[left.pop()]
        value = value_of(term)
        if term.fn in NOT_NEGATIVE or (value is not None and value >= 0):
            continue
        args = term.args[1:] if term.fn == "where" else term.args
        if not args or not (term.fn == "where" or term.fn in NOT_NEGATIVE_IF_ALL):
            return False
        left += (new := [arg for arg in args if arg not in seen])
        seen.update(new)
        if len(seen) > LONGEST:
            return False
    return True


def _not_large(terms: Terms, total: Sum, left: int) -> bool:
    """True if a sum shows to be bounded from above."""
    open_ = next((key for key, by in total.items() if not _is_harmless(terms, key, by)), None)
    if open_ is None:
        return True
    return left > 0 and any(
        _not_large(terms, rest, left - 1) for rest in _no_less(terms, total, open_)
    )


def _is_harmless(terms: Terms, key: tuple[Number, Factors], by: float) -> bool:
    """True if the term makes no sum large: it is moderate, or not negative and taken off."""
    number, factors = key
    moderate = not factors and terms[number].fn in BOUNDED
    return moderate or (by < 0 and not_negative(terms, number))


def _no_less(terms: Terms, total: Sum, key: tuple[Number, Factors]) -> Iterator[Sum]:
    """Sums that are at least ``total``, in one of which the term at ``key`` may be gone."""
    by, term = total[key], terms[key[0]]
    parts = [sum_of(terms, part) for part in term.args[-2:]]
    sums = [_with(total, key, part, by) for part in parts]
    if term.fn == ("minimum" if by > 0 else "maximum") or (term.fn == "fold min" and by > 0):
        yield from sums
    elif term.fn in ("minimum", "maximum", "where"):
        if all(_not_large(terms, each, DEEPEST // 2) for each in sums):
            yield {}
    elif term.fn == "fold max" and _not_large(terms, parts[0], DEEPEST // 2):
        yield {other: value for other, value in total.items() if other != key}
    for other, taken in total.items():
        if taken < 0:
            for inside in _no_more_than(terms, other[0], DEEPEST):
                yield _with(total, other, sum_of(terms, inside), taken)


def _with(total: Sum, key: tuple[Number, Factors], part: Sum, by: float) -> Sum:
    """``total`` with ``by`` times ``part`` in place of the term at ``key``."""
    made = {other: value for other, value in total.items() if other != key}
    for (number, more), value in part.items():
        at = (number, _joint(key[1], more))
        made[at] = made.get(at, 0.0) + by * value
    return {other: value for other, value in made.items() if abs(value) > 1e-12}


def _no_more_than(terms: Terms, number: Number, left: int) -> Iterator[Number]:
    """Terms that are at most ``number``: those of which it is a maximum, or a sum of powers."""
    term = terms[number]
    if left == 0:
        return
    if term.fn in ("fold max", "maximum"):
        for part in term.args:
            yield part
            yield from _no_more_than(terms, part, left - 1)
    if term.fn == "log":
        yield from _powers_in(terms, term.args[0])


def _powers_in(terms: Terms, number: Number) -> Iterator[Number]:
    """The exponents of exponentials of which ``number`` is a sum with others not negative."""
    left = [number]
    while left:
        term = terms[left.pop()]
        if term.fn == "exp":
            yield term.args[0]
        elif term.fn == "fold +" or (
            term.fn == "add" and all(not_negative(terms, part) for part in term.args)
        ):
            left += term.args
