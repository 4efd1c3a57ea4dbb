"""The words of a move's arguments in a schedule, such as ``HEADS for ROWS``.

A word in capitals stands for a value: ``DIM``, ``HEADS`` and ``ROWS`` for a name, any other for a
whole number. Words in brackets at the end may be left out together: ``STAGES [by descriptors]``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

NAMES = ("DIM", "HEADS", "ROWS")


@dataclass(frozen=True)
class Form:
    """How arguments are written; they are named as the words in capitals are, in small letters.

    ``flag``: the argument that is True where the words in brackets stand.
    """

    text: str
    flag: str = ""

    @property
    def _ways(self) -> tuple[list[str], list[str]]:
        """The words without those in brackets, and with them."""
        needed, _, more = self.text.partition("[")
        return needed.split(), [*needed.split(), *more.rstrip("]").split()]

    def read(self, words: Sequence[str]) -> dict[str, Any]:
        """The arguments that ``words`` say. Raises ValueError if they say none."""
        short, long = self._ways
        for way in (short, long):
            if len(way) == len(words) and all(map(_fits, way, words)):
                pairs = zip(way, words, strict=True)
                found = {
                    slot.lower(): word if slot in NAMES else int(word)
                    for slot, word in pairs
                    if slot.isupper()
                }
                return found | ({self.flag: True} if self.flag and way != short else {})
        raise ValueError(f"expected {self.text}, got {' '.join(words)!r}")

    def show(self, args: Mapping[str, Any]) -> str:
        """The words of ``args``."""
        short, long = self._ways
        slots = (slot.lower() for slot in (*long, self.flag.upper()) if slot.isupper())
        way = long if all(args.get(slot) for slot in slots) else short
        return " ".join(str(args[slot.lower()]) if slot.isupper() else slot for slot in way)


def _fits(slot: str, word: str) -> bool:
    if not slot.isupper():
        return word == slot
    return slot in NAMES or word.isdecimal()
