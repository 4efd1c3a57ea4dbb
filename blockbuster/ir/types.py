"""Dims and types: the shape of a value of a block program, and where it lives.

A dim is a name. It is at once a loop (how many blocks) and an axis (elements inside a block).
Sizes and block counts are bound late, so nothing here knows a number.
Source: Blockbuster Part 1, section 2.1.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

Dim = str


@lru_cache(maxsize=4096)  # asked of the same few names all the time
def size_class(dim: Dim) -> Dim:
    """The dim whose size ``dim`` shares: a relabeled dim carries primes, as in ``M'``.

    >>> size_class("M''")
    'M'
    """
    return dim.rstrip("'")


def fresh_dim(dim: Dim, taken: Iterable[Dim]) -> Dim:
    """``dim`` with as few primes added as keep it apart from ``taken``.

    >>> fresh_dim("M", ["M", "D"])
    "M'"
    """
    used = tuple(taken)
    while dim in used:
        dim += "'"
    return dim


class Type(NamedTuple):
    """A list of lists ... of items; ``axes`` are the axes of one item.

    Two axes make a block, one a vector, none a scalar. ``lists`` runs outermost first.
    A value with lists is *buffered* (it lives in global memory); without, it is *local*.
    """

    lists: tuple[Dim, ...] = ()
    axes: tuple[Dim, ...] = ()

    @property
    def buffered(self) -> bool:
        """True if a value of this type lives in global memory."""
        return bool(self.lists)

    @property
    def item(self) -> Type:
        """The type of one innermost item."""
        return Type((), self.axes)

    def element(self) -> Type:
        """The type of one entry of the outermost list."""
        assert self.lists, "a local type has no elements"
        return Type(self.lists[1:], self.axes)

    def listed(self, dim: Dim) -> Type:
        """A list over ``dim`` of values of this type."""
        return Type((dim, *self.lists), self.axes)

    def __str__(self) -> str:
        return f"{','.join(self.lists)}[{','.join(self.axes)}]"


def whole(type: Type) -> tuple[Dim, ...]:
    """The axes of the whole array behind a value: its list dims, then axes that are not listed."""
    return (*type.lists, *(d for d in type.axes if d not in type.lists))

