"""Tier A: terms in +, *, / over the residues of a large prime, every other function free.

exp, log, sqrt, ... are random oracles. So are max and min, as functions of the *set* of their
arguments: associative, commutative and idempotent, and nothing else, so zero has no privilege and
relu is not the identity. Comparisons of small integers are evaluated, so masks made of index
vectors are exact. Any other comparison has a random residue c for a truth value, and ``where(c, x,
y)`` is c x + (1 - c) y: polynomials that agree for all c agree for 0 and 1. Two programs that agree
on random inputs are then equal as terms but for luck, and ``degree.py`` bounds the luck.

``Drawn`` handles the rest (a comparison that lets -inf through, max as one of its operands): a
random total order of the residues decides, another one in each trial, in which half of the residues
lie next to the small integers that occur in the programs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from blockbuster.interp.layout import Array
from blockbuster.interp.residues import (
    INFINITY,
    NEGATIVE_INFINITY,
    SMALL,
    UNDEFINED,
    WORD,
    Residues,
    ZeroDenominator,
    known_numbers,
    scattered,
    scattered_word,
)

__all__ = ["BITS", "Drawn", "Exact", "ZeroDenominator", "random_prime"]

BITS = 50  # x * y mod p takes a quotient that a double holds to within one
SMALL_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71)
PRODUCT = math.prod(SMALL_PRIMES)
BASES = (2, 325, 9375, 28178, 450775, 9780504, 1795265022)
GAP = 40  # 2**GAP places between two small integers, in a random order


def random_prime(random: np.random.Generator) -> int:
    """A random prime between 3/4 and 1 of 2**BITS."""
    while True:
        found = int(random.integers(3 * 2 ** (BITS - 2), 2**BITS)) | 1
        if is_prime(found):
            return found


def is_prime(n: int) -> bool:
    """Miller and Rabin's test, with bases that decide every odd n below 2**64.

    Source: J. Sinclair, 2011, verified with Feitsma's list of pseudoprimes.
    """
    if n < 2 or n in SMALL_PRIMES or math.gcd(n, PRODUCT) > 1:
        return n in SMALL_PRIMES
    twos = ((n - 1) & (1 - n)).bit_length() - 1
    for base in BASES:
        x = pow(base, n >> twos, n)
        if x not in (0, 1, n - 1) and all((x := x * x % n) != n - 1 for _ in range(twos - 1)):
            return False
    return True


class Exact(Residues):
    """Arithmetic modulo ``prime``; ``seed`` chooses the oracles."""

    def __init__(self, prime: int = 2**BITS - 27, seed: int = 0) -> None:
        super().__init__(prime, seed)
        self.prime = prime
        self._members: dict[str, dict[int, frozenset[int]]] = {"max": {}, "min": {}}
        self._joins: dict[str, dict[tuple[int, int], int]] = {"max": {}, "min": {}}
        self._truths: set[int] = {0, 1}
        self.decided: set[tuple[int, ...]] = set()
        """Numbers that no data enter and that were compared: do they depend on sizes?"""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(prime={self.prime}, seed={self.seed})"

    # arithmetic: products need 100 bits, of which the low 64 and a rounded quotient say all ------

    def product(self, x: Any, y: Any) -> Any:
        p = self.prime
        quotient = (np.multiply(x, y, dtype=np.float64) / p).astype(np.int64)
        return (np.multiply(x, y) - np.multiply(quotient, p)) % p

    def inverses(self, x: Array) -> Array:
        flat = [pow(n, -1, self.prime) for n in np.ravel(x).tolist()]
        return np.array(flat, np.int64).reshape(np.shape(x))

    def recip0(self, x: Any) -> Any:
        """1/x for small integers, 0 for 0, else an oracle: x * recip0(x) is not 1 for every x."""
        free = self.oracle("recip0", x)
        known = self._key(x) != 0
        number = known & (x > 0)
        value = np.where(number, self.inverse(np.where(number, x, 1)), free)
        return np.where(x < 0, UNDEFINED, np.where(x == 0, 0, value))

    def divided(self, name: str, x: Any, y: Any) -> Any:
        """Computed for small whole numbers, else an oracle of both."""
        key_x, key_y = self._key(x), self._key(y)
        known = (key_x % 2 != 0) & (key_y % 2 != 0) & (key_y != 1)  # the key of 0 is 1
        over = np.where(known, (key_y - 1) // 2, 1)
        value = {"floordiv": np.floor_divide, "mod": np.mod}[name]((key_x - 1) // 2, over)
        return np.where(known, value % self.prime, self.oracle(name, x, y))

    def dot(self, a: Array, b: Array) -> Array:
        products = self.product(a[..., :, None, :], b[..., None, :, :])
        total = products.sum(-1, initial=0) % self.prime
        if min(a.min(initial=0), b.min(initial=0)) >= 0:
            return np.asarray(total)
        undefined = np.any(a < 0, -1)[..., :, None] | np.any(b < 0, -1)[..., None, :]
        return np.where(undefined, UNDEFINED, total)

    # max and min: oracles of sets -----------------------------------------------------

    def larger(self, x: Any, y: Any) -> Any:
        """An oracle of the set of values that the maximum is taken of."""
        return self._joined("max", x, y)

    def smaller(self, x: Any, y: Any) -> Any:
        """An oracle of the set of values that the minimum is taken of."""
        return self._joined("min", x, y)

    def _joined(self, name: str, x: Any, y: Any) -> Any:
        x, y = np.broadcast_arrays(x, y)
        known = self._joins[name]
        flat = []
        for pair in zip(np.ravel(x).tolist(), np.ravel(y).tolist(), strict=True):
            value = known.get(pair)
            if value is None:
                value = known[pair] = self._join(name, *pair)
            flat.append(value)
        return np.array(flat, np.int64).reshape(x.shape)

    def _join(self, name: str, a: int, b: int) -> int:
        if a == b:
            return a
        if a < 0 or b < 0:
            neutral, absorbing = NEGATIVE_INFINITY, INFINITY
            if name == "min":
                neutral, absorbing = absorbing, neutral
            for symbol, result in ((UNDEFINED, UNDEFINED), (absorbing, absorbing)):
                if symbol in (a, b):
                    return result
            return b if a == neutral else a
        known = self._members[name]
        members = known.get(a, frozenset((a,))) | known.get(b, frozenset((b,)))
        numbers = [m for m in members if self._signed(m) is not None]
        if len(numbers) > 1:  # among whole numbers the order is known
            self.decided.add(tuple(sorted(self._signed(m) or 0 for m in numbers)))
            best = (max if name == "max" else min)(numbers, key=lambda m: self._signed(m) or 0)
            members = members.difference(numbers) | {best}
        if len(members) == 1:
            return next(iter(members))
        word = sum(scattered_word(m ^ self.key(name)) for m in members)
        value = scattered_word(word & WORD) % (self.prime - 1) + 1
        known[value] = members
        return value

    def numbers(self, item: Array) -> Array:
        """Small whole numbers and infinities as they are. Raises Refused for other residues."""
        signed = np.where(item > self.prime // 2, item - self.prime, item)
        return known_numbers(signed, np.minimum(item, 0))

    def _signed(self, n: int) -> int | None:
        """A small whole number, or None."""
        return n if 0 <= n <= SMALL else n - self.prime if n >= self.prime - SMALL else None

    # truth: polynomials in what is not known ---------------------------------------------

    def below(self, x: Any, y: Any) -> Any:
        """Decided for infinities and where x - y is a small integer, else an oracle of x - y."""
        apart = self.add(x, self.neg(y))
        free = self.oracle("below", apart)
        known, sign = self._known_sign(x, y, apart)
        return self._truth_value(known, sign < 0, free, x, y)

    def same(self, x: Any, y: Any) -> Any:
        """Decided for infinities and where x - y is a small integer, else an oracle of x - y."""
        apart, other = self.add(x, self.neg(y)), self.add(y, self.neg(x))
        free = self.oracle("same", np.minimum(apart, other), np.maximum(apart, other))
        known, sign = self._known_sign(x, y, apart)
        return self._truth_value(known, sign == 0, free, x, y)

    def _known_sign(self, x: Any, y: Any, apart: Any) -> tuple[Any, Any]:
        """Where the sign of x - y is known, and a number of that sign."""
        key_x, key_y, key = self._key(x), self._key(y), self._key(apart)
        ordered = ((key_x != 0) & (key_y != 0)) | (x < 0) | (y < 0)
        # an infinity lies beyond everything, known or not; the key of 0 is 1
        sign = np.where(ordered, key_x - key_y, key - 1)
        return (x == y) | ordered | (key != 0), np.where(x == y, 0, sign)

    def _key(self, x: Any) -> Any:
        """Small integers and infinities in order, none of them 0, which marks the rest."""
        signed = np.where(x > self.prime // 2, x - self.prime, x)
        key = np.where(np.abs(signed) <= SMALL, 2 * signed + 1, 0)
        edge = np.where(x == INFINITY, 4 * SMALL, -4 * SMALL)
        return np.where(x < 0, edge, key)

    def _truth_value(self, known: Any, truth: Any, free: Any, x: Any, y: Any) -> Any:
        value = np.where(known, truth.astype(np.int64), free)
        x, y = np.broadcast_arrays(x, y)
        plain = np.asarray(known & (x != y) & (np.minimum(x, y) >= 0))
        if plain.any():
            apart = self.add(x, self.neg(y))[plain].tolist()
            self.decided.update((n if n < self.prime // 2 else n - self.prime,) for n in apart)
        return np.where(np.minimum(x, y) == UNDEFINED, UNDEFINED, self._noted(value))

    def _noted(self, truths: Any) -> Any:
        """These truth values, which are known as such from now on."""
        self._truths.update(np.ravel(truths).tolist())
        return truths

    def truth(self, x: Any) -> Any:
        """Truth values as they are; of other numbers, an oracle."""
        if all(n in self._truths for n in np.ravel(x).tolist()):
            return x
        value = np.where(self._key(x) != 0, 1, self.oracle("truth", x))
        kept = np.isin(x, list(self._truths)) | (x == UNDEFINED)
        return self._noted(np.where(kept, x, value))

    def opposite(self, truth: Any) -> Any:
        return self._noted(super().opposite(truth))

    def both(self, x: Any, y: Any) -> Any:
        return self._noted(np.where(x == y, x, super().both(x, y)))

    def choice(self, truth: Any, x: Any, y: Any) -> Any:
        decided = np.where(truth == 1, x, y)
        if (truth <= 1).all():
            return np.where(truth == UNDEFINED, UNDEFINED, decided)
        mixed = self.add(self.mul(truth, x), self.mul(super().opposite(truth), y))
        return np.where((truth == 0) | (truth == 1) | (x == y), decided, mixed)


class Drawn(Exact):
    """Max, min and comparisons follow a random total order, in which small integers keep theirs.

    ``near`` are numbers with which values may be compared: half of the values lie right above or
    right below one of these, so that a comparison with its neighbour is another one.
    """

    def __init__(
        self, prime: int = 2**BITS - 27, seed: int = 0, near: Sequence[float] = ()
    ) -> None:
        super().__init__(prime, seed)
        whole = sorted({int(n) for n in near if abs(n) <= SMALL and n == int(n)})
        self.gaps = np.array([n - side for n in whole for side in (1, 0)], np.int64)

    def order(self, x: Any) -> Any:
        """A key that orders values."""
        signed = np.where(x > self.prime // 2, x - self.prime, x)
        words = scattered(np.asarray(x).astype(np.uint64) ^ np.uint64(self.key("order")))
        key = words.astype(np.int64)
        if len(self.gaps):
            gap = self.gaps[(words % np.uint64(len(self.gaps))).astype(np.int64)]
            inside = (words >> np.uint64(64 - GAP)).astype(np.int64) | 1
            key = np.where(words >> np.uint64(16) & np.uint64(1) == 1, key, gap * 2**GAP + inside)
        key = np.where(np.abs(signed) <= SMALL, signed * 2**GAP, key)
        edge = np.where(x == INFINITY, np.iinfo(np.int64).max, np.iinfo(np.int64).min)
        return np.where(x < 0, edge, key)

    def larger(self, x: Any, y: Any) -> Any:
        """The one that the order puts last."""
        return self._chosen(self.order(x) >= self.order(y), x, y)

    def smaller(self, x: Any, y: Any) -> Any:
        """The one that the order puts first."""
        return self._chosen(self.order(x) <= self.order(y), x, y)

    def _chosen(self, first: Any, x: Any, y: Any) -> Any:
        return _defined(x, y, np.where(first, x, y))

    def below(self, x: Any, y: Any) -> Any:
        return _defined(x, y, (self.order(x) < self.order(y)).astype(np.int64))

    def same(self, x: Any, y: Any) -> Any:
        """Decided where x is y, for small integers and infinities, else drawn for the pair."""
        drawn = self.oracle("same", np.minimum(x, y), np.maximum(x, y)) & 1
        known = (x == y) | ((self._key(x) != 0) & (self._key(y) != 0)) | (x < 0) | (y < 0)
        return _defined(x, y, np.where(known, (x == y).astype(np.int64), drawn))

    def truth(self, x: Any) -> Any:
        return np.where(x == UNDEFINED, UNDEFINED, (x != 0).astype(np.int64))


def _defined(x: Any, y: Any, value: Any) -> Any:
    """``value`` where both operands have one."""
    return np.where((x == UNDEFINED) | (y == UNDEFINED), UNDEFINED, value)
