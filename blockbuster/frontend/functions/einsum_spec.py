"""Einsum specs whose operands are read at sums of letters: ``nc(h+r)(2*w+s+off[c]), kcrs -> nkhw``.

An axis of an operand is a letter, or an expression in parentheses: a sum of letters, each perhaps
times a whole number, of whole numbers, and of entries of tables. Names of several letters are
tables or numbers that the call gives by keyword. Source: extended tensor contractions, Triton's
einsum.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from blockbuster.frontend.source import trace_error

_TOKEN = re.compile(r"\s*(?:(\d+)|([A-Za-z_]\w*)|(->|.))")


@dataclass(frozen=True)
class Entry:
    """``name[letters]``: an entry of a table."""

    name: str
    letters: tuple[str, ...]


@dataclass(frozen=True)
class Place:
    """The place along an axis: factors times letters, entries of tables, and a number.

    ``at``: where it stands in the spec.
    """

    letters: tuple[tuple[str, int], ...]
    entries: tuple[Entry, ...] = ()
    offset: int = 0
    at: int = 0

    @property
    def plain(self) -> str:
        """The letter that the place is; empty if it is more than that."""
        alone = len(self.letters) == 1 and self.letters[0][1] == 1
        return self.letters[0][0] if alone and not self.entries and not self.offset else ""

    @property
    def every_letter(self) -> tuple[str, ...]:
        """The letters that it reads, each once."""
        own = (letter for letter, _ in self.letters)
        return tuple(dict.fromkeys((*own, *(x for entry in self.entries for x in entry.letters))))


@dataclass(frozen=True)
class Spec:
    """The places of each operand's axes, and the letters of the result."""

    text: str
    terms: tuple[tuple[Place, ...], ...]
    output: tuple[str, ...]

    def refuse(self, at: int, reason: str, hint: str = "") -> NoReturn:
        """Raise TraceError with a mark under the place in the spec."""
        refuse(self.text, at, reason, hint)


def refuse(text: str, at: int, reason: str, hint: str = "") -> NoReturn:
    """Raise TraceError for a spec, with a mark under the place that is wrong."""
    raise trace_error(f"einsum: {reason}\n    {text}\n    {' ' * at}^", hint=hint)


def is_extended(text: str) -> bool:
    """True for a spec that NumPy's einsum does not have."""
    return "(" in text


def parse_spec(text: str, numbers: Mapping[str, int], tables: Sequence[str]) -> Spec:
    """The spec of a text; ``numbers`` and ``tables`` are the names that stand for such.

    Raises TraceError, which shows the place in the text.
    """
    return _Reader(text, numbers, tables).spec()


class _Reader:
    def __init__(self, text: str, numbers: Mapping[str, int], tables: Sequence[str]) -> None:
        self._text, self._numbers, self._tables = text, numbers, tables
        self._tokens = [
            (match.group().strip(), match.end() - len(match.group().lstrip()))
            for match in _TOKEN.finditer(text)
            if match.group().strip()
        ]
        self._tokens.append(("", len(text)))
        self._next = 0

    def spec(self) -> Spec:
        """The whole text."""
        terms = [self._term()]
        while self._has(","):
            terms.append(self._term())
        has_output = self._has("->")
        output = tuple(self._letters()) if has_output else ()
        if self._token:
            self._refuse(f"{self._token!r} is no part of a spec")
        read = [x for term in terms for place in term for x in place.every_letter]
        if not has_output:
            output = tuple(sorted(x for x in dict.fromkeys(read) if read.count(x) == 1))
        for letter in output:
            if letter not in read or output.count(letter) > 1:
                at = self._text.rindex(letter)
                reason = "stands twice in the result" if letter in read else "is in no operand"
                refuse(self._text, at, f"{letter!r} {reason}")
        return Spec(self._text, tuple(terms), output)

    # tokens ----------------------------------------------------------------------

    @property
    def _token(self) -> str:
        return self._tokens[self._next][0]

    @property
    def _at(self) -> int:
        return self._tokens[self._next][1]

    def _has(self, text: str) -> bool:
        found = self._token == text
        self._next += found
        return found

    def _take(self, text: str) -> None:
        if not self._has(text):
            self._refuse(f"{text!r} is missing")

    def _word(self) -> str:
        word = self._token
        if not re.fullmatch(r"[A-Za-z_]\w*", word):
            self._refuse(f"{word!r} is no name" if word else "it ends too early")
        self._next += 1
        return word

    def _refuse(self, reason: str, hint: str = "") -> NoReturn:
        refuse(self._text, self._at, reason, hint)

    # operands --------------------------------------------------------------------

    def _term(self) -> tuple[Place, ...]:
        places: list[Place] = []
        while self._token not in ("", ",", "->"):
            at = self._at
            if self._has("("):
                places.append(self._sum(at))
                self._take(")")
            else:
                places += [Place(((letter, 1),), at=at) for letter in self._letters()]
        return tuple(places)

    def _letters(self) -> Iterator[str]:
        """Letters side by side."""
        while re.fullmatch(r"[A-Za-z]+", self._token):
            yield from self._token
            self._next += 1
        if self._token not in ("", ",", "->", "("):
            hint = "an extended spec names every axis" if self._token == "." else ""
            self._refuse(f"{self._token!r} is no letter of an axis", hint)

    def _sum(self, at: int) -> Place:
        letters: dict[str, int] = {}
        entries: list[Entry] = []
        offset, sign = 0, -1 if self._has("-") else 1
        while True:
            here = self._next
            factor, letter, entry = self._product()
            if entry is not None:
                if sign * factor != 1:
                    self._next = here
                    self._refuse("entries of tables are added as they are", "scale the table")
                entries.append(entry)
            elif letter:
                letters[letter] = letters.get(letter, 0) + sign * factor
            else:
                offset += sign * factor
            if self._token not in ("+", "-"):
                break
            sign = 1 if self._has("+") else -1
            self._next += sign < 0
        if any(factor < 1 for factor in letters.values()):
            refuse(self._text, at, "letters are added, times positive whole numbers",
                   "reverse the axis of another operand instead")  # fmt: skip
        return Place(tuple(letters.items()), tuple(entries), offset, at)

    def _product(self) -> tuple[int, str, Entry | None]:
        """A factor, and the letter or the entry of a table that it multiplies, if any."""
        factor, letter, entry = self._factor()
        while self._has("*"):
            at = self._next
            more, other, of_table = self._factor()
            if (letter or entry) and (other or of_table):
                self._next = at
                self._refuse("a product of letters is no sum: offsets may not depend on both",
                             "a table may hold any function of one of them")  # fmt: skip
            factor, letter, entry = factor * more, letter or other, entry or of_table
        return factor, letter, entry

    def _factor(self) -> tuple[int, str, Entry | None]:
        if self._token.isdecimal():
            number = int(self._token)
            self._next += 1
            return number, "", None
        start = self._next
        word = self._word()
        if self._has("["):
            return 1, "", self._entry(word, start)
        if word in self._numbers:
            return self._numbers[word], "", None
        if len(word) > 1:
            self._next = start
            what = "is a table: name[letters]" if word in self._tables else "is not given"
            self._refuse(f"{word!r} {what}", "give numbers and tables by keyword")
        return 1, word, None

    def _entry(self, name: str, start: int) -> Entry:
        if name not in self._tables:
            self._next = start
            what = "a number" if name in self._numbers else "not given"
            self._refuse(f"the table {name!r} is {what}", "give tables by keyword")
        letters = [self._word()]
        while self._has(","):
            letters.append(self._word())
        self._take("]")
        for letter in letters:
            if len(letter) > 1 or letters.count(letter) > 1:
                self._refuse(f"{letter!r} is no letter, or stands twice")
        return Entry(name, tuple(letters))
