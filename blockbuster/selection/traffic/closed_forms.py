"""Closed forms: counts as polynomials in the sizes and blocks of dims."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from blockbuster.ir.polynomial import Polynomial
from blockbuster.ir.types import Dim, size_class


class Symbol(NamedTuple):
    """A positive integer that belongs to a dim; ``kind`` is S, B or F.

    ``S``: the size of the dim (that of its size class). ``B``: how many blocks it has. ``F``: the
    elements of its first block, which no other block exceeds; all but the last have as many.
    """

    kind: str
    dim: Dim

    def __str__(self) -> str:
        return f"{self.kind}_{self.dim}"


class ClosedForm(Polynomial[Symbol, int]):
    """How many items, elements or operations there are, for all sizes and blocks."""


def total(forms: Iterable[ClosedForm]) -> ClosedForm:
    """The sum of any number of closed forms."""
    return ClosedForm.of(term for form in forms for term in form.terms)


def product(forms: Iterable[ClosedForm]) -> ClosedForm:
    """The product of any number of closed forms."""
    result = ONE
    for form in forms:
        result = result * form
    return result


def number(value: int) -> ClosedForm:
    """A plain number."""
    return ClosedForm.of([((), value)])


def size(dim: Dim) -> ClosedForm:
    """The elements along a dim."""
    return ClosedForm((((Symbol("S", size_class(dim)),), 1),))


def blocks(dim: Dim) -> ClosedForm:
    """How many blocks a dim has."""
    return ClosedForm((((Symbol("B", dim),), 1),))


def first_block(dim: Dim) -> ClosedForm:
    """The elements of the first block of a dim, which is the block size."""
    return ClosedForm((((Symbol("F", dim),), 1),))


ZERO = ClosedForm()
ONE = number(1)
