"""Tier B with free comparisons: exp is a character, and max, min and < may be any functions.

As in tier A, a maximum is a function of the set of its arguments, a comparison is a random residue,
and ``where(c, x, y)`` is c x + (1 - c) y. So programs that agree do so for all outcomes of
comparisons: exp(x - m) / exp(y - m) requires of a maximum m only that it is one value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from blockbuster.interp.characters import (
    CHAIN,
    LENGTH,
    Characters,
    Word,
    head,
    representative,
    whole_number,
)
from blockbuster.interp.residues import (
    INFINITY,
    NEGATIVE_INFINITY,
    UNDEFINED,
    WORD,
    scattered_word,
)


class FreeCharacters(Characters):
    """Residues along the chain, with maxima of sets and random truth values."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)
        self._members: dict[str, dict[Word, frozenset[Word]]] = {"max": {}, "min": {}}
        self._joins: dict[str, dict[tuple[Word, Word], Word]] = {"max": {}, "min": {}}
        self._truths: set[Word] = {(0,) * LENGTH, (1,) * LENGTH}
        self.decided: set[tuple[int, ...]] = set()  # as in tier A

    def __repr__(self) -> str:
        return f"FreeCharacters(seed={self.seed})"

    # max and min ---------------------------------------------------------------------------

    def larger(self, x: Any, y: Any) -> Any:
        return self._joined("max", x, y)

    def smaller(self, x: Any, y: Any) -> Any:
        return self._joined("min", x, y)

    def _joined(self, name: str, x: Any, y: Any) -> Any:
        x, y = np.broadcast_arrays(x, y)
        known = self._joins[name]
        made = []
        for pair in zip(words(x), words(y), strict=True):
            word = known.get(pair)
            if word is None:
                word = known[pair] = self._join(name, *pair)
            made.append(word)
        return np.array(made, np.int64).reshape(x.shape)

    def _join(self, name: str, a: Word, b: Word) -> Word:
        if a == b:
            return a
        neutral, absorbing = NEGATIVE_INFINITY, INFINITY
        if name == "min":
            neutral, absorbing = absorbing, neutral
        heads = [head(word) for word in (a, b)]
        for symbol in (UNDEFINED, absorbing):
            if symbol in heads:
                return (a, b)[heads.index(symbol)]
        if neutral in heads:
            return (b, a)[heads.index(neutral)]
        known = self._members[name]
        members = known.get(a, frozenset((a,))) | known.get(b, frozenset((b,)))
        numbers = {m: n for m in members if (n := whole_number(m)) is not None}
        if len(numbers) > 1:  # among whole numbers the order is known
            self.decided.add(tuple(sorted(numbers.values())))
            best = (max if name == "max" else min)(numbers, key=lambda m: numbers[m])
            members = members.difference(numbers) | {best}
        if len(members) == 1:
            return next(iter(members))
        value = self._drawn(name, *sorted(members))
        known[value] = members
        return value

    # truth ---------------------------------------------------------------------------------

    def below(self, x: Any, y: Any) -> Any:
        return self._compared("below", x, y, lambda n: n < 0)

    def same(self, x: Any, y: Any) -> Any:
        first = self._compared("same", x, y, lambda n: n == 0)
        other = self._compared("same", y, x, lambda n: n == 0)
        return np.minimum(first, other)

    def _compared(self, name: str, x: Any, y: Any, decide: Any) -> Any:
        x, y = np.broadcast_arrays(x, y)
        apart = self.add(x, self.neg(y))
        heads = [np.ravel(representative(z)).tolist() for z in (x, y)]
        same = np.reshape((x == y).all(-1), -1).tolist()
        made = []
        for word, a, b, one in zip(words(apart), *heads, same, strict=True):
            made.append(self._truth_of(name, word, (a, b), one, decide))
        self._truths.update(made)
        return np.array(made, np.int64).reshape(x.shape)

    def _truth_of(
        self, name: str, apart: Word, heads: tuple[int, int], same: bool, decide: Any
    ) -> Word:
        if UNDEFINED in heads:
            return (UNDEFINED,) * LENGTH
        number = 0 if same else whole_number(apart)
        if not same and min(heads) < 0:  # an infinity lies beyond everything
            number = 1 if heads[0] == INFINITY or heads[1] == NEGATIVE_INFINITY else -1
        if number is not None:
            if number and min(heads) >= 0:
                self.decided.add((number,))
            return (int(decide(number)),) * LENGTH
        return self._drawn(name, apart)

    def _drawn(self, name: str, *words: Word) -> Word:
        """``oracle`` of single elements."""
        if UNDEFINED in map(head, words):
            return (UNDEFINED,) * LENGTH
        state = self.key(name)
        for word in words:
            state = scattered_word(head(word) & WORD ^ state)
        return tuple(scattered_word(state ^ i) % (p - 1) + 1 for i, p in enumerate(CHAIN))

    def truth(self, x: Any) -> Any:
        made = [row if row in self._truths else self._truth(row) for row in words(x)]
        self._truths.update(made)
        return np.array(made, np.int64).reshape(np.shape(x))

    def _truth(self, row: Word) -> Word:
        if head(row) == UNDEFINED:
            return (UNDEFINED,) * LENGTH
        if (number := whole_number(row)) is not None:
            return (int(number != 0),) * LENGTH
        return self._drawn("truth", row)

    def opposite(self, truth: Any) -> Any:
        made = super().opposite(truth)
        self._truths.update(words(made))
        return made

    def both(self, x: Any, y: Any) -> Any:
        made = np.where((x == y).all(-1)[..., None], x, super().both(x, y))
        self._truths.update(words(made))
        return made

    def choice(self, truth: Any, x: Any, y: Any) -> Any:
        truth, x, y = np.broadcast_arrays(truth, x, y)
        mixed = self.add(self.mul(truth, x), self.mul(self.opposite(truth), y))
        decided = np.where(truth == 1, x, y)
        plain = ((truth == 0) | (truth == 1)).all(-1) | (x == y).all(-1)
        return np.where(plain[..., None], decided, mixed)


def words(x: Any) -> Iterator[Word]:
    """The residues of each element."""
    return map(tuple, np.reshape(x, (-1, LENGTH)).tolist())
