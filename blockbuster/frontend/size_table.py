"""What is known of the sizes of dims while a function is traced, and what has to be assumed.

The sizes of example arrays are known. Each question about them is noted as a fact (size_facts.py):
the trace serves all sizes for which the answers are the same. Other sizes have names only, and a
question about them has no answer. So the number of elements that a slice takes is a clamp, which is
right for all sizes (``ir/lengths.py``). If two lengths must be equal, and are equal for all large
sizes, as in ``x[:2] + x[1:3]``, the table assumes large sizes, and the program refuses others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from math import ceil, prod

from blockbuster.frontend.program import Axis, Shape
from blockbuster.frontend.size_facts import Relation, SizeFacts
from blockbuster.frontend.source import text_of, user_line
from blockbuster.ir.length_symbols import Clamp, Inverse
from blockbuster.ir.lengths import (
    ONE,
    ZERO,
    Length,
    clamped,
    inverse,
    number,
    share_of,
    size,
    whole,
)
from blockbuster.ir.types import Dim


class SizeTable:
    """Raw dims, and what is known of their sizes.

    ``facts`` has all that the table asked of the extents of examples. ``one_class``: the program
    is only used for sizes for which the answers are the same.
    """

    def __init__(self, *, one_class: bool) -> None:
        self.facts = SizeFacts()
        self._one_class = one_class
        self._axes: dict[Dim, int] = {}  # the extents of examples' axes
        self._in_axes: dict[Dim, Length] = {}  # the extents that are known, in terms of those
        self._parent: dict[Dim, Axis] = {}
        self._extent: dict[Dim, int] = {}
        self._fixed: dict[Dim, None] = {}
        self._lengths: dict[Dim, Length] = {}  # of dims whose size follows from others
        self._assumed: dict[Length, str] = {}
        """Lengths that are assumed to be whole and at least 0, with the line that needs it."""

    @property
    def some_are_known(self) -> bool:
        """True if the extent of an axis is known, of an example perhaps."""
        return bool(self._extent)

    def _asked(self, relation: Relation, left: Length, right: Length) -> bool:
        """Whether a relation is true of lengths in terms of dims whose extents are known."""
        one, other = (length.replaced(self._in_axes.__getitem__) for length in (left, right))
        return self.facts.ask(relation, one, other, self._axes)

    def _is(self, axis: Axis, number: int) -> bool:
        """True if the extent of an axis that was found is known, and is ``number``."""
        if not isinstance(axis, str) or axis not in self._extent:
            return False
        return self._asked("equal", raw_size(axis), whole(number))

    def length(self, axis: Axis) -> Length:
        """The extent of an axis, in terms of unknown sizes that do not follow from others."""
        found = self.find(axis)
        if not isinstance(found, str):
            return ONE
        if found in self._fixed:
            return whole(self._extent[found])
        return self.normal(self._lengths[found]) if found in self._lengths else size(found)

    def normal(self, length: Length) -> Length:
        """``length`` in terms of unknown sizes that do not follow from others."""
        return length.replaced(self.length, self._clamped)

    def equal(self, left: Length, right: Length) -> bool | None:
        """Whether two lengths are one number; None if that is not known."""
        apart = self.normal(left) - self.normal(right)
        if apart.clamps:
            usual = self.usual(apart)
            return None if usual.dims else not usual.terms and self.settle(apart)
        if apart.constant is not None or not apart.dims:
            return not apart.terms
        if not all(dim in self._extent for dim in apart.dims):
            signs = {share > 0 for _, share in apart.terms}  # D and 2 * D are never one number
            return None if len(signs) > 1 else False
        return self._asked("equal", self.normal(left), self.normal(right))

    def is_whole(self, length: Length) -> bool:
        """False if a length is known to be no whole number."""
        exact = self.normal(length)
        if not all(dim in self._extent for dim in exact.dims):
            return True
        return self._asked("whole", exact, ZERO)

    # clamps ------------------------------------------------------------------------

    def clamped(self, length: Length, *, rounds: bool = False) -> Length:
        """``length``, and 0 where it is negative; it ``rounds`` up or is whole for all sizes."""
        return self._clamped(Clamp(self.normal(length), rounds))

    def _clamped(self, clamp: Clamp) -> Length:
        of = clamp.of
        if self._one_class and of.dims and all(dim in self._extent for dim in of.dims):
            known = self._rounded_up(of) if clamp.rounds else of
            return known if self._asked("at least", of, ZERO) else ZERO
        usual = _usual(clamp)
        apart = (usual - least for least in self._known_whole())
        if any(each.is_integral and each.never_negative for each in apart):
            return usual
        return clamped(of, rounds=clamp.rounds)

    def _known_whole(self) -> Iterator[Length]:
        """The lengths that were assumed to be whole and at least 0, in terms of dims of now."""

        def length(dim: Dim) -> Length:  # not `self.length`, which would ask this again
            found = self.find(dim)
            if not isinstance(found, str) or found in self._fixed:
                return self.length(found)
            own = self._lengths.get(found)
            return size(found) if own is None else own.replaced(length)

        for least in self._assumed:
            yield least.replaced(length)

    def _rounded_up(self, of: Length) -> Length:
        """A known length, rounded up: the program is for sizes with this remainder."""
        if of.is_integral:
            return of
        total, divisor = of.total(self._extent)
        top, under = of.fraction
        exact = (top + whole(-total % divisor)) * inverse(under)
        self._asked("whole", exact, ZERO)
        return exact

    def is_not_negative(self, length: Length) -> bool | None:
        """Whether a length is at least 0; None if it depends on sizes that are not known."""
        exact = self.normal(length)
        if exact.never_negative:
            return True
        if exact.constant is not None or (whole(-1) - exact).never_negative:
            return False
        if self._one_class and all(dim in self._extent for dim in exact.dims):
            return self._asked("at least", exact, ZERO)
        apart = (exact - least for least in self._known_whole())
        return True if any(each.never_negative for each in apart) else None

    def assume(self, length: Length, hint: str = "bb.jit takes all sizes") -> None:
        """Assume that a length is whole and at least 0, because the user's line needs it."""
        words = asked_by() or "the program"
        self._assumed.setdefault(self.normal(length), f"{words}; {hint}" if hint else words)

    def usual(self, length: Length) -> Length:
        """The formula of ``length`` for all large sizes, for which no clamp cuts it short."""
        return self.normal(length).replaced(self.length, _usual)

    def settle(self, length: Length) -> bool:
        """Assume sizes for which ``length`` equals its usual formula. Always returns True."""
        for clamp in self.normal(length).clamps:
            self.settle(clamp.of)
            self.assume(_usual(Clamp(self.normal(clamp.of), clamp.rounds)))
        return True

    def becomes_one(self, axis: Axis) -> bool:
        """Make an axis a unit axis if it has one element for large sizes, as that of ``x[:1]`` has:
        it is assumed that sizes are large. False for any other axis.
        """
        found = self.find(axis)
        length = self.length(found)
        if found not in self._lengths or self.usual(length) != ONE:
            return False
        self.settle(length)
        self._parent[str(found)] = 1
        return True

    def find_units(self) -> None:
        """Make unit axes of slices that turned out to have one element by later assumptions."""
        for raw in self._lengths:
            if self.find(raw) == raw and self.length(raw) == ONE:
                self._parent[raw] = 1

    # axes --------------------------------------------------------------------------

    def extent(self, axis: Axis) -> int | None:
        """The number of elements where it is known, perhaps of an example only."""
        found = self.find(axis)
        return self._extent.get(found) if isinstance(found, str) else 1

    def is_unit(self, axis: Axis) -> bool:
        """True if an axis is known to have one element."""
        if self.length(axis) == ONE or self.becomes_one(axis):
            return True
        return self.has(axis, 2) is False and self.has(axis, 1) is True

    def has(self, axis: Axis, number: int) -> bool | None:
        """Whether an axis has at least ``number`` elements; None if that is not known."""
        return self.have([axis], number)

    def have(self, axes: Iterable[Axis], number: int) -> bool | None:
        """Whether axes have at least ``number`` elements together; None if not known."""
        found = [dim for dim in map(self.find, axes) if isinstance(dim, str)]
        if not found:
            return number <= 1
        if any(dim not in self._extent for dim in found):
            return None
        return self._asked("at least", prod(map(raw_size, found), start=ONE), whole(number))

    def half(self, axis: Axis, number: int) -> Length | None:
        """Half of an axis whose extent is twice ``number``, in a program for such sizes alone.

        An axis that is cut at a number and one that is joined of two halves are then cut alike.
        """
        length = self.length(axis)
        is_known = all(dim in self._extent for dim in length.dims) and not length.clamps
        if not (self._one_class and is_known and number > 1 and length.dims):
            return None
        return length * share_of(2) if self._asked("equal", length, whole(2 * number)) else None

    def expect_elements(self, axes: Sequence[Axis]) -> bool:
        """False if axes along which a maximum runs have no elements; it is assumed that they do."""
        found = self.have(axes, 1)
        for axis in axes if found is None else ():
            self.assume(self.length(axis) - ONE, "a maximum of no elements has no value")
        return found is not False

    def reaches(self, left: Axis, right: Axis) -> bool | None:
        """Whether an axis has at least as many elements as another; None if that is not known."""
        apart = self.length(left) - self.length(right)
        found = self.is_not_negative(apart)
        if found is not None or not all(dim in self._extent for dim in apart.dims):
            return found
        return self._asked("at least", self.length(left), self.length(right))

    def alike(self, one: Shape, other: Shape) -> bool:
        """True if two shapes are known to be the same."""
        pairs = zip(one, other, strict=False)
        return len(one) == len(other) and all(
            self.equal(self.length(a), self.length(b)) for a, b in pairs
        )

    def __contains__(self, dim: object) -> bool:
        return dim in self._parent

    def find(self, axis: Axis) -> Axis:
        """The raw dim that stands for all that ``axis`` was unified with, or 1."""
        while isinstance(axis, str) and self._parent[axis] != axis:
            axis = self._parent[axis]
        return axis

    def shape(self, shape: Shape) -> Shape:
        """``shape`` with every axis found."""
        return tuple(self.find(axis) for axis in shape)

    def word(self, axis: Axis) -> str:
        """An axis as the user knows it: a name, or the extent of an unnamed axis."""
        found = self.find(axis)
        if not isinstance(found, str) or is_named(found):
            return str(found)
        if self._is(found, self._extent.get(found, 0)):  # a user's function may read the word
            return str(self._extent[found])
        return self.in_words(self.length(found))

    def in_words(self, length: Length) -> str:
        """A length as the user knows it."""
        usual = self.usual(length)  # max(D - 1, 0) is D - 1 to a user
        return str(usual.replaced(lambda dim: raw_size(self.word(dim)))).replace("|", "")


def _usual(clamp: Clamp) -> Length:
    """What a clamp is for large sizes: a division comes out even, as for D / 2.

    It stays a clamp if that depends on the size that divides.
    """
    if not clamp.rounds:
        return clamp.of
    terms = dict(clamp.of.terms)
    plain = terms.pop((), Fraction(0))
    for symbols in [s for s in terms if all(isinstance(symbol, Inverse) for symbol in s)]:
        share = terms.pop(symbols)  # rounded up, n + share / |G| is n + 1, as for floor(H / G)
        if plain.denominator != 1 or not 0 < share <= 1:
            return Length((((clamp,), Fraction(1)),))
        plain += Fraction(1, 2)
    return Length.of(terms.items()) + number(Fraction(ceil(plain)))


def fixing(words: Iterable[str]) -> str:
    """How sizes get numbers: where the arrays are declared that have them."""
    shown = " and ".join(f'"{word}=8"' for word in words)
    return f"give the size a number where its array is declared: {shown}"


def asked_by() -> str:
    """The user's line that is being traced, with its text; empty if there is none."""
    line = user_line()
    return f"{line}: {text_of(line)}" if line else ""


def raw_size(dim: Dim) -> Length:
    """The size of a raw dim, primes and all."""
    return Length((((dim,), Fraction(1)),))


def is_named(dim: Dim) -> bool:
    """True for a dim that the user named."""
    return not dim.startswith("?")
