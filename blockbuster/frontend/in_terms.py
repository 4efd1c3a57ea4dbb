"""Express a length by the extents of one array's axes.

A function that copies an array is given that array and no sizes, so it computes its lengths from
the extents of the array.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from blockbuster.ir.length_symbols import Clamp, Inverse, Symbol
from blockbuster.ir.lengths import ZERO, Length, clamped, inverse, number, size
from blockbuster.ir.types import Dim

Axes = Sequence[tuple[Dim, Length]]
"""Dims, and what the size of each is in terms of others."""


def in_terms(length: Length, axes: Axes) -> Length | None:
    """``length`` in terms of the sizes of the dims of ``axes`` alone; None if it does not follow.

    >>> from blockbuster.ir.lengths import whole
    >>> rows = size("D") + whole(1)
    >>> print(in_terms(size("D") * size("E"), [("0", rows), ("1", size("E"))]))
    |0| * |1| - |1|
    """
    if not length.dims:
        return length
    return next((found for found in _found(length, axes) if found is not None), None)


def _found(length: Length, axes: Axes) -> Iterator[Length | None]:
    yield _by_symbols(length, axes)
    for at, (dim, extent) in enumerate(axes):
        if not extent.dims:
            continue
        quotient = length.over(extent)
        # an axis of |H| / |G| elements divides once: what is left may have more factors
        left = axes if extent.fraction[1].constant else [*axes[:at], *axes[at + 1 :]]
        rest = in_terms(quotient, left) if quotient is not None else None
        yield None if rest is None else size(dim) * rest
        lead, share = extent.terms[0]
        times = number(dict(length.terms).get(lead, Fraction(0)) / share)
        rest = in_terms(length - extent * times, axes) if times.terms else None
        yield None if rest is None else rest + size(dim) * times


def _by_symbols(length: Length, axes: Axes) -> Length | None:
    """Each size in turn: solve for it in the extent of an axis, factor * size + number."""
    total = ZERO
    for symbols, share in length.terms:
        term = number(share)
        for symbol in symbols:
            found = _symbol(symbol, axes)
            if found is None:
                return None
            term = term * found
        total = total + term
    return total


def _symbol(symbol: Symbol, axes: Axes) -> Length | None:
    for dim, extent in axes:
        first = extent.terms[0] if extent.terms else ((), Fraction(0))
        rest = Length(extent.terms[1:])
        if first[0] == (symbol,) and not rest.dims:
            return (size(dim) - rest) * number(1 / first[1])
    if isinstance(symbol, str):
        return None
    inside = in_terms(symbol.of, axes)
    if isinstance(symbol, Inverse):
        return None if inside is None else inverse(inside)
    if inside is not None:
        return clamped(inside, rounds=symbol.rounds)
    parts = (_part(symbol, dim, extent) for dim, extent in axes if extent.clamps)
    return next((part for part in parts if part is not None), None)


def _part(clamp: Clamp, dim: Dim, extent: Length) -> Length | None:
    """A clamp as a part of another one without some of its elements, which is the size of ``dim``:
    the reverse of what ``clamped`` does with a clamp of a clamp.
    """
    (outer,), (symbols, share), rest = extent.clamps[:1], extent.terms[0], extent.terms[1:]
    if symbols != (outer,) or share != 1 or rest:
        return None
    found = in_terms(clamp.of, [(dim, outer.of)])
    if found is None:
        return None
    part = clamped(found, rounds=clamp.rounds)
    same = part.replaced(lambda _: extent)
    return part if same == Length((((clamp,), Fraction(1)),)) else None
