"""Python identifiers for the names in a text: distinct names get distinct identifiers."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Hashable, Iterable

from blockbuster.emit.tile.program import Fold, Let
from blockbuster.errors import shown
from blockbuster.ir.types import Dim

_NEVER = (*keyword.kwlist, *keyword.softkwlist, *dir(builtins), "tl", "triton", "np")


class Names:
    """Gives every key a name of its own, as close to what was asked for as still is free."""

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._taken = dict.fromkeys((*_NEVER, *reserved))
        self._names: dict[Hashable, str] = {}
        self._used: dict[str, int] = {}  # the last number behind a word: those before are taken

    def of(self, key: Hashable, base: str) -> str:
        """The name of ``key``; the first call for a key makes it from ``base``."""
        if key not in self._names:
            self._names[key] = self._free(base)
        return self._names[key]

    def copy(self) -> Names:
        """The same names, to be added to independently."""
        other = Names()
        other._taken = dict(self._taken)
        other._used = dict(self._used)
        other._names = dict(self._names)
        return other

    def _free(self, base: str) -> str:
        word = re.sub(r"\W", "_", base, flags=re.ASCII)
        if not word or word[0].isdigit():
            word = f"v{word}"
        count = self._used.get(word, 1)
        name = f"{word}_{count}" if count > 1 else word
        while name in self._taken:
            count += 1
            name = f"{word}_{count}"
        self._taken[name] = None
        self._used[word] = count
        return name


def comment(words: str) -> str:
    """The end of a line of code that says ``words``; nothing if there are none."""
    return f"  # {shown(words)}" if words else ""


def note_of(stmt: Let | Fold) -> str:
    """A comment: the user's word, the rule that made the statement, the user's lines."""
    words = [stmt.target.hint, stmt.origin.rule, *map(str, stmt.origin.lines())]
    return comment(", ".join(word for word in words if word))


def dim_word(dim: Dim) -> str:
    """A dim as part of an identifier: primes become a number.

    >>> dim_word("M"), dim_word("M'")
    ('M', 'M2')
    """
    bare = dim.rstrip("'")
    return bare if bare == dim else f"{bare}{len(dim) - len(bare) + 1}"
