"""``bb.einsum`` with operands that are read at sums of letters and of entries of tables.

Sums of letters are windows, which are views, and so are tables that are known to hold such sums;
other tables are looked up by a copy in front of the product. What is left is an ordinary einsum.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from blockbuster.errors import a_kind
from blockbuster.frontend.array import TracedArray
from blockbuster.frontend.functions.creation import arange
from blockbuster.frontend.functions.cuts import cut
from blockbuster.frontend.functions.einsum import einsum_traced, is_traced
from blockbuster.frontend.functions.einsum_spec import Place, Spec, parse_spec
from blockbuster.frontend.functions.lookups import Lookup, Tables, along, as_sum, copied
from blockbuster.frontend.functions.row import Array
from blockbuster.frontend.functions.shapes import transpose
from blockbuster.frontend.functions.windows import agree, windowed
from blockbuster.frontend.indexing import whole_number
from blockbuster.frontend.sizes import SizeExpr
from blockbuster.frontend.source import trace_error

Einsum = Callable[..., Array]
Pads = Mapping[str, Sequence[int]]


def extended_einsum(
    text: str, operands: Sequence[Array], pad: Pads | None, sizes: Mapping[str, Any] | None,
    named: Mapping[str, Any], einsum: Einsum,
) -> Array:  # fmt: skip
    """The sum of products that an extended spec names; ``einsum`` computes plain ones.

    Raises TraceError, which shows the place in the spec.
    """
    tables = {name: x for name, x in named.items() if getattr(x, "shape", ()) != ()}
    numbers = {name: _number(name, x) for name, x in named.items() if name not in tables}
    spec = parse_spec(text, numbers, tuple(tables))
    words = re.findall(r"[A-Za-z_]\w*", text)
    for name in named:
        if name not in words:
            spec.refuse(len(text), f"{name} is given, and the spec does not name it")
    if len(spec.terms) != len(operands):
        reason = f"it names {len(spec.terms)} operands, and {len(operands)} are given"
        spec.refuse(len(text), reason)
    call = _Call(spec, operands, {**(pad or {})}, {**(sizes or {})}, tables)
    call.check()
    plain = [call.plain(at) for at in range(len(operands))]
    terms = ",".join("".join(letters) for _, letters in plain)
    arrays, text = [x for x, _ in plain], f"{terms}->{''.join(spec.output)}"
    if is_traced(arrays):
        return einsum_traced(text, arrays, taps=call.taps)
    return einsum(text, *arrays)


def _number(name: str, given: Any) -> int:
    try:
        return operator.index(given)
    except TypeError:
        reason = f"einsum: {name} is {a_kind(given)}"
        raise trace_error(reason, hint="numbers in a spec are whole, tables are arrays") from None


@dataclass
class _Call:
    """A spec and its operands; ``sizes`` grows by those of letters that stand alone."""

    spec: Spec
    operands: Sequence[Array]
    pads: dict[str, Sequence[int]]
    sizes: dict[str, Any]
    tables: Mapping[str, Array]
    given: dict[str, Any] = field(default_factory=dict)

    def check(self) -> None:
        """Find the sizes of letters. Raises TraceError for what does not fit."""
        self.given = dict(self.sizes)
        for term, x in zip(self.spec.terms, self.operands, strict=True):
            if len(term) != len(x.shape):
                reason = f"{len(term)} axes are named of an array of {len(x.shape)}"
                self.spec.refuse(term[0].at if term else 0, reason)
            for axis, place in enumerate(term):
                if place.plain and place.plain in self.given:
                    self._check_size(place, place.plain, x, axis)
                elif place.plain:
                    self.sizes.setdefault(place.plain, x.shape[axis])
        for term in self.spec.terms:
            for place in term:
                for entry in place.entries:
                    self._check_table(place, entry.name, entry.letters)
        every = [place for term in self.spec.terms for place in term]
        letters = {letter for place in every for letter in place.every_letter}
        for letter, size in self.given.items():
            if letter not in letters:
                self.spec.refuse(0, f"sizes names {letter!r}, which is no letter of the spec")
            number = size if isinstance(size, SizeExpr) else whole_number(size)
            if number is None or (isinstance(number, int) and number < 1):
                at = self.spec.text.find(letter)
                self.spec.refuse(at, f"the size of {letter!r} is {size!r}", "sizes are whole")
        summed = {letter for place in every if not place.plain for letter, _ in place.letters}
        for letter, pads in self.pads.items():
            if letter not in summed:
                self.spec.refuse(0, f"pad names {letter!r}, which stands in no sum")
            pair = [whole_number(n) for n in pads] if isinstance(pads, tuple | list) else []
            if len(pair) != 2 or any(n is None or n < 0 for n in pair):
                reason = f"pad of {letter!r} is {pads!r}"
                self.spec.refuse(self.spec.text.find(letter), reason, "give two numbers: (1, 1)")

    def _check_size(self, place: Place, letter: str, x: Array, axis: int) -> None:
        """Raise TraceError where an axis of a letter has another size than is known of it."""
        asked = self.sizes.setdefault(letter, x.shape[axis])
        if not agree(x.shape[axis], asked):
            reason = f"{letter!r} has {asked} elements, and an axis of it has {x.shape[axis]}"
            self.spec.refuse(place.at, reason)

    def _check_table(self, place: Place, name: str, letters: Sequence[str]) -> None:
        table = self.tables[name]
        if len(table.shape) != len(letters):
            reason = f"{name} has {len(table.shape)} axes, and {len(letters)} letters"
            self.spec.refuse(place.at, reason)
        kind = table.kind if isinstance(table, TracedArray) else str(table.dtype)
        if "int" not in kind and kind != "index":
            self.spec.refuse(place.at, f"{name} is a table of {kind}", "tables hold integers")
        for axis, letter in enumerate(letters):
            self._check_size(place, letter, table, axis)

    @property
    def taps(self) -> str:
        """The letters of sums that the result lacks."""
        places = (place for term in self.spec.terms for place in term if not place.plain)
        letters = dict.fromkeys(letter for place in places for letter in place.every_letter)
        return "".join(letter for letter in letters if letter not in self.spec.output)

    def plain(self, at: int) -> tuple[Array, tuple[str, ...]]:
        """An operand with an axis for each of its letters, and these letters.

        Letters that stand alone and are summed come last: the product runs along them, and loops
        along the others. They do so before windows are taken, so that a plan may store an array
        with its channels side by side, once, and read windows of that.
        """
        x, term = self.operands[at], self.spec.terms[at]
        letters: list[str] = [place.plain or f"?{n}" for n, place in enumerate(term)]
        each = zip(letters, self._without_sums(term), strict=True)
        places = {name: place for name, place in each if name.startswith("?")}
        tables = {name: place for name, place in places.items() if place.entries}
        looked_up = {letter for place in tables.values() for letter in place.every_letter}
        sums = {name: place for name, place in places.items() if name not in tables}
        first = [name for name, place in sums.items() if looked_up & {*place.every_letter}]
        if not tables:
            x, letters = self._turned(x, letters, term)
        for name in first:
            x, letters = self._opened(x, letters, letters.index(name), sums.pop(name))
        if tables:
            x, letters = self._looked_up(x, letters, tables)
            x, letters = self._turned(x, letters, term)
        for name, place in sums.items():
            x, letters = self._opened(x, letters, letters.index(name), place)
        if len(set(letters)) < len(letters):
            twice = next(letter for letter in letters if letters.count(letter) > 1)
            hint = "a mask can choose it: bb.where(i[:, None] == i, x, 0) with i = bb.arange(n)"
            self.spec.refuse(term[0].at, f"{twice!r} stands twice: that reads a diagonal", hint)
        x, letters = self._turned(x, letters, term)
        return x, tuple(letters)

    def _without_sums(self, term: Sequence[Place]) -> list[Place]:
        """The places of a term; tables that hold sums of letters are these sums."""
        found = list(term)
        for n, place in enumerate(term):
            rest = (letter for one in (*found[:n], *found[n + 1 :]) for letter in one.every_letter)
            found[n] = as_sum(place, self.tables, [*rest])
        return found

    def _looked_up(
        self, x: Array, letters: list[str], places: Mapping[str, Place]
    ) -> tuple[Array, list[str]]:
        """``x`` with axes for the letters of places with tables instead of an axis for each place.

        They are those of the operand, then those of tables, and the places along axes last: these
        lie side by side in the operand, and in the copy.
        """
        of = {name: Tables(self.spec, place, self.sizes, self.tables, self._pads(place))
              for name, place in places.items()}  # fmt: skip
        extents = {name: x.shape[letters.index(name)] for name in of}
        inside = [one.fitted(extents[name], self._outer(one.place)) for name, one in of.items()]
        named = dict.fromkeys(x for place in places.values() for x in place.every_letter)
        moved = [x for place in places.values() for x, _ in place.letters if x not in letters]
        shared = [letter for letter in letters if letter in named]
        own = [*shared, *(x for x in named if x not in (*shared, *moved)), *dict.fromkeys(moved)]
        at = [along(arange(self.sizes[x]), len(own) - 1 - own.index(x)) for x in shared]
        at += [of[name].places(own, extents[name]) for name in of]
        fn = Lookup(tuple(letters.index(x) for x in (*shared, *of)), zeros=not all(inside))
        ahead, behind = ([letters[n] for n in some] for some in fn.kept(range(len(letters))))
        return copied(fn, x, at), [*ahead, *own, *behind]

    def _pads(self, place: Place) -> tuple[int, int]:
        """How many zeros stand in front of the axis of a place, and behind it."""
        padded = (self.pads[letter] for letter, _ in place.letters if letter in self.pads)
        before, behind = next(padded, (0, 0))
        return before, behind

    def _turned(
        self, x: Array, letters: list[str], term: Sequence[Place]
    ) -> tuple[Array, list[str]]:
        """``x`` with the letters last that stand alone in its term and are summed."""
        alone = [place.plain for place in term]
        order = sorted(letters, key=lambda x: x in alone and x not in self.spec.output)
        places = [letters.index(letter) for letter in order]
        return x if places == sorted(places) else transpose(x, places), order

    def _opened(
        self, x: Array, letters: list[str], axis: int, place: Place
    ) -> tuple[Array, list[str]]:
        """``x`` with axes for the letters of a place instead of one axis."""
        outer = self._outer(place)
        pairs = sorted(place.letters, key=lambda pair: pair[0] != outer)
        x, pads = self._shifted(x, axis, place, self._pads(place))
        if not pairs:
            one = windowed(x, axis, 1, pads=pads, count=1)[..., 0]
            return one[(*(slice(None),) * axis, 0)], [*letters[:axis], *letters[axis + 1 :]]
        if outer in self.sizes:
            self._check_fit(x, axis, place, pairs, pads)
        x = self._windows(x, axis, pairs, pads)
        self.sizes.setdefault(outer, x.shape[axis])
        inner = [letter for letter, _ in pairs[1:]]
        return x, [*letters[:axis], outer, *letters[axis + 1 :], *inner]

    def _windows(
        self, x: Array, axis: int, pairs: Sequence[tuple[str, int]], pads: Sequence[int]
    ) -> Array:
        """The axis under the first letter, axes for the others behind all axes.

        Along an axis of a window, further letters may run: windows of windows.
        """
        (letter, step), *inner = pairs
        count, last = self.sizes.get(letter), len(x.shape)
        if len(inner) < 2:
            size, dilation = (self.sizes[inner[0][0]], inner[0][1]) if inner else (1, 1)
            made = windowed(x, axis, size, step, dilation, pads, count)
            return made if inner else made[..., 0]
        made = windowed(x, axis, self._width(inner), step, 1, pads, count)
        return self._windows(made, last, inner, (0, 0))

    def _width(self, pairs: Sequence[tuple[str, int]]) -> Any:
        """How many elements of an axis letters run over."""
        width: Any = 1
        for letter, factor in pairs:
            width = width + (self.sizes[letter] - 1) * factor
        return width

    def _check_fit(
        self, x: Array, axis: int, place: Place, pairs: Sequence[tuple[str, int]],
        pads: Sequence[int],
    ) -> None:  # fmt: skip
        """Raise TraceError where a letter of known size has more elements than fit in the axis."""
        width, there = self._width(pairs), x.shape[axis]
        if isinstance(width, int) and isinstance(there, int) and width > there + sum(pads):
            letter = pairs[0][0]
            reason = f"{letter!r} has {self.sizes[letter]} elements, and fewer fit in the axis"
            hint = f"say how many: sizes={{{letter!r}: ...}}, or pad the letter with zeros"
            self.spec.refuse(place.at, reason, hint)

    def _outer(self, place: Place) -> str:
        """The letter that counts the windows of a place; "" where it has tables and numbers alone.

        It is the one whose size is not known; if all are, the padded one, or else the first.
        """
        unknown = [letter for letter, _ in place.letters if letter not in self.sizes]
        if len(unknown) > 1:
            reason = f"the sizes of {' and '.join(unknown)} are not known"
            self.spec.refuse(place.at, reason, f"give one: sizes={{{unknown[0]!r}: ...}}")
        padded = [letter for letter, _ in place.letters if letter in self.pads]
        return next(iter((*unknown, *padded, *(letter for letter, _ in place.letters))), "")

    def _shifted(
        self, x: Array, axis: int, place: Place, pads: Sequence[int]
    ) -> tuple[Array, Sequence[int]]:
        """``x`` without the elements in front of the first one that is read."""
        before, behind = map(operator.index, pads)
        if place.offset < 0:
            reason = f"place {place.offset} is read, in front of the axis and its zeros"
            self.spec.refuse(place.at, reason, "places count from the first zero of pad")
        if place.offset > before:
            x = cut(x, axis, place.offset - before, None)
        return x, (max(before - place.offset, 0), behind)
