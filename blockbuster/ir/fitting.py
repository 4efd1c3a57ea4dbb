"""Sizes with which a program can run, if some of its sizes follow from others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import islice, product
from math import lcm

from blockbuster.ir.length_symbols import Clamp, Inverse, Product
from blockbuster.ir.lengths import Length, Rule, completed, in_order
from blockbuster.ir.types import Dim

MOST_TRIED = 4096
"""Sets of sizes that are tried for one that keeps all rules."""

CLOSE = 64
"""So many times a size grows by as little as it can, then by twice as much each time: windows want
an axis as long as they are, which may be long."""


def fitted(sizes: Mapping[Dim, int], rules: Sequence[Rule]) -> dict[Dim, int]:
    """Sizes near ``sizes`` that keep all rules: what to draw for a program with such views.

    What follows from them is empty only where one of ``sizes`` is 0. Rules of dims that are not
    among them say nothing here. Raises ValueError if no size near makes what follows whole.
    """
    rules = in_order(rules, sizes)
    follow = {rule.dim for rule in rules if rule.exact}
    terms = [term for rule in rules for term in _terms(rule.length)]
    least = _dividing(terms, {dim: size for dim, size in sizes.items() if dim not in follow})
    even, steps = least, _steps(terms, {**sizes, **least})
    for _ in even:  # a size that divides another may be divided by a third
        even = {dim: -(-size // steps[dim]) * steps[dim] for dim, size in least.items()}
        steps = _steps(terms, {**sizes, **even})
    # x[1:] in two heads wants an odd number: multiples of denominators first, then what is between
    between = product(*(range(steps[dim]) for dim in even))
    first: ValueError | None = None
    for more in islice(between, MOST_TRIED):
        found = {dim: n + m for (dim, n), m in zip(even.items(), more, strict=True)}
        try:
            tries = 0
            while short := _too_small(found, rules):
                for dim in short:
                    found[dim] += steps[dim] << max(tries - CLOSE, 0)
                tries += 1
            return {**sizes, **completed(found, rules)}
        except ValueError as error:
            first = first or error
    assert first is not None
    raise first


def _terms(length: Length) -> Iterator[tuple[Product, Fraction]]:
    """The terms of a length, and of those that are clamped or rounded up in it."""
    yield from length.terms
    for clamp in length.clamps:
        yield from () if clamp.rounds else _terms(clamp.of)


def _dividing(
    terms: Sequence[tuple[Product, Fraction]], sizes: Mapping[Dim, int]
) -> dict[Dim, int]:
    """``sizes`` with those that divide at least 1; those that divide a number do so evenly."""
    found = dict(sizes)
    for term in terms:
        top, under = Length((term,)).fraction
        for dim in [dim for dim in under.dims if dim in found]:
            found[dim] = max(found[dim], 1)
            number = top.constant or 0
            while found[dim] > 1 and number % under.total({**sizes, **found})[0]:
                found[dim] -= 1
    return found


def _steps(terms: Sequence[tuple[Product, Fraction]], sizes: Mapping[Dim, int]) -> dict[Dim, int]:
    """The number of which each size is a multiple, where the sizes that divide are these."""
    steps = dict.fromkeys(sizes, 1)
    for term in terms:
        top, under = Length((term,)).fraction
        divisor = under.constant or max(under.total(sizes)[0], 1)
        for dim in top.dims:
            steps[dim] = lcm(steps.get(dim, 1), divisor)
    return steps


def _too_small(found: Mapping[Dim, int], rules: Sequence[Rule]) -> set[Dim]:
    """The dims of ``found`` that have to be larger, because what follows is empty or too short."""
    least = min(1, *found.values()) if found else 1
    full, short = dict(found), set[Dim]()
    for rule in in_order(rules, found):
        value = rule.length.value(full)
        enough = least if rule.exact else value
        if full.setdefault(rule.dim, value) < enough:
            short |= _behind(rule.dim, found, rules)
    return short


def _behind(dim: Dim, found: Mapping[Dim, int], rules: Sequence[Rule]) -> set[Dim]:
    """The dims of ``found`` with which ``dim`` grows."""
    if dim in found:
        return {dim}
    lengths = [rule.length for rule in rules if rule.exact and rule.dim == dim]
    more = {d for length in lengths for d in _growing(length)}
    return {first for d in more for first in _behind(d, found, rules)}


def _growing(length: Length) -> set[Dim]:
    """The dims with which ``length`` grows, as far as its signs tell."""
    symbols = [symbol for term, share in length.terms if share > 0 for symbol in term]
    tops = [symbol for symbol in symbols if not isinstance(symbol, Inverse)]
    inside = [_growing(s.of) if isinstance(s, Clamp) else {s} for s in tops]
    return {dim for dims in inside for dim in dims}
