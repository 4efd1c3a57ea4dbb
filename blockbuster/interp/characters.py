"""Tier B: exp is a character, exp(a + b) = exp(a) exp(b), into the positive residues of a prime.

An element is a residue modulo each prime of a chain p, 2p + 1, 4p + 3, ...: the squares modulo
2p + 1 are a group of order p, so exp takes the residue modulo one prime to one modulo the next. The
first residue of a result is undefined, so exponentials nest as deep as the chain is long; log, its
inverse, goes back. Squares are the positive numbers of this arithmetic: sqrt is multiplicative and
sqrt(exp(t)) = exp(t/2). Max, min and comparisons follow a random total order; other functions are
oracles. A randomized check, without a proven bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockbuster.interp.domains import exact_in
from blockbuster.interp.exact import Drawn
from blockbuster.interp.layout import Array
from blockbuster.interp.residues import (
    INFINITY,
    NEGATIVE_INFINITY,
    SMALL,
    UNDEFINED,
    Residues,
    known_numbers,
    scattered,
)
from blockbuster.interp.semantics import Function

CHAIN = (712199, 1424399, 2848799, 5697599)  # each 3 modulo 4, so that x ** ((p + 1) / 4) is a root
LENGTH = len(CHAIN)
Word = tuple[int, ...]
GENERATOR = 4  # a square, so it generates the squares


class Characters(Residues):
    """Residues along the chain; ``seed`` chooses oracles, order and characters."""

    dtype: Any = np.dtype([("residue", np.int64, (LENGTH,))])

    def __init__(self, seed: int = 0, near: Sequence[float] = ()) -> None:
        super().__init__(np.array(CHAIN), seed)
        self._last = Drawn(CHAIN[-1], seed, near)
        self.turns = [1 + self.key(f"character {i}") % (p - 1) for i, p in enumerate(CHAIN)]

    def __repr__(self) -> str:
        return f"Characters(seed={self.seed})"

    def table(self) -> Mapping[str, Function]:
        return {name: self._packed(fn) for name, fn in super().table().items()}

    def _packed(self, fn: Function) -> Function:
        return lambda *args: packed(fn(*(unpacked(a) for a in args)))

    # arithmetic: residues lie along a last axis that items do not show --------------------

    def product(self, x: Any, y: Any) -> Any:
        return x * y % self.modulus

    def inverses(self, x: Array) -> Array:
        made = np.empty_like(x)
        for i, p in enumerate(CHAIN):
            flat = [pow(n, -1, p) for n in x[..., i].ravel().tolist()]
            made[..., i] = np.array(flat, np.int64).reshape(x.shape[:-1])
        return made

    def exp(self, x: Any) -> Any:
        made = np.full(x.shape, UNDEFINED, np.int64)
        for i in range(LENGTH - 1):
            made[..., i + 1] = _on_numbers(
                x[..., i],
                lambda v, i=i: powers(i + 1)[v * self.turns[i] % CHAIN[i]],
                at_bottom=0,
                at_top=INFINITY,
            )
        return made

    def exp2(self, x: Any) -> Any:
        return packed(super().exp2(unpacked(x)))

    def log(self, x: Any) -> Any:
        """The inverse of exp; of a negative number, that of its absolute value."""
        made = np.full(x.shape, UNDEFINED, np.int64)
        for i in range(LENGTH - 1):
            back = pow(self.turns[i], -1, CHAIN[i])
            made[..., i] = _on_numbers(
                x[..., i + 1],
                lambda v, i=i, back=back: np.where(
                    v == 0, NEGATIVE_INFINITY, logarithms(i + 1)[v] * back % CHAIN[i]
                ),
                at_bottom=UNDEFINED,
                at_top=INFINITY,
            )
        return made

    def sqrt(self, x: Any) -> Any:
        """The square root that is a square itself; of -x, that of x."""
        made = np.empty_like(x)
        for i, p in enumerate(CHAIN):
            made[..., i] = _on_numbers(
                x[..., i],
                lambda v, p=p: np.array(
                    [pow(n, (p + 1) // 4, p) for n in v.ravel().tolist()], np.int64
                ).reshape(v.shape),
                at_bottom=UNDEFINED,
                at_top=INFINITY,
            )
        return made

    def oracle(self, name: str, *args: Any) -> Any:
        state = np.uint64(self.key(name))
        undefined: Any = False
        for arg in args:
            word = representative(arg)
            undefined = undefined | (word == UNDEFINED)
            state = scattered(word.astype(np.uint64) ^ state)
        words = [scattered(state ^ np.uint64(i)) for i in range(LENGTH)]
        drawn = [
            (w % np.uint64(p - 1)).astype(np.int64) + 1 for w, p in zip(words, CHAIN, strict=True)
        ]
        return np.where(np.asarray(undefined)[..., None], UNDEFINED, np.stack(drawn, -1))

    # order ------------------------------------------------------------------------------

    def order(self, x: Any) -> Any:
        """A key that orders values by their last defined residue."""
        return self._last.order(representative(x))

    def _picked(self, first: Any, x: Any, y: Any) -> Any:
        return np.where(np.asarray(first)[..., None], x, y)

    def larger(self, x: Any, y: Any) -> Any:
        return self._picked(self.order(x) >= self.order(y), x, y)

    def smaller(self, x: Any, y: Any) -> Any:
        return self._picked(self.order(x) <= self.order(y), x, y)

    def _decided(self, truth: Any) -> Any:
        return np.repeat(np.asarray(truth)[..., None], LENGTH, -1).astype(np.int64)

    def below(self, x: Any, y: Any) -> Any:
        return self._decided(self.order(x) < self.order(y))

    def same(self, x: Any, y: Any) -> Any:
        return self._decided(self._last.same(representative(x), representative(y)))

    def truth(self, x: Any) -> Any:
        return self._decided(representative(x) != 0)

    def choice(self, truth: Any, x: Any, y: Any) -> Any:
        return np.where(truth == 1, x, y)

    # items ------------------------------------------------------------------------------

    def constant(self, value: float) -> Any:
        return packed(self.number(value))

    def item(self, array: Array) -> Array:
        if array.dtype == self.dtype:
            return array
        flat = [self.number(float(x)) for x in np.ravel(array)]
        return packed(np.array(flat, np.int64).reshape((*np.shape(array), LENGTH)))

    def numbers(self, item: Array) -> Array:
        """Small whole numbers that all residues are, and infinities. Raises Refused for others."""
        x = unpacked(item)
        rows = [whole_number(tuple(row)) for row in x.reshape(-1, LENGTH).tolist()]
        whole = np.reshape([SMALL + 1 if n is None else n for n in rows], item.shape)
        return known_numbers(whole, np.minimum(representative(x), 0))

    def scaled(self, x: Any, factor: Any) -> Any:
        return packed(self.times(unpacked(x), unpacked(factor)))

    def power(self, x: Any, exponent: int) -> Any:
        return packed(super().power(unpacked(x), exponent))

    def identity(self, monoid: str, shape: Sequence[int]) -> Array:
        return packed(super().identity(monoid, (*shape, LENGTH)))

    def cast(self, item: Array, dtype: str) -> Array:
        x = unpacked(item)
        word = representative(x)[..., None]
        _, high = exact_in(dtype)
        return packed(np.where(word <= high, x, self.oracle(f"cast {dtype}", x)))

    def compared(self, x: Array, y: Array) -> tuple[bool, bool]:
        """Only residues that both have are compared; an element without one is undefined."""
        a, b = unpacked(x), unpacked(y)
        undefined = (a == UNDEFINED) | (b == UNDEFINED)
        return bool(((a != b) & ~undefined).any()), bool(undefined.all(-1).any())

    def random(self, random: np.random.Generator, shape: Sequence[int]) -> Array:
        return packed(random.integers(0, self.modulus, (*shape, LENGTH)))


def packed(x: Any) -> Array:
    """Residues along the last axis, as elements."""
    made: Array = np.ascontiguousarray(x).view(Characters.dtype)[..., 0]
    return made


def unpacked(x: Array) -> NDArray[np.int64]:
    """Elements, as residues along a last axis."""
    residues: NDArray[np.int64] = np.asarray(x)["residue"]
    return residues


def representative(x: Any) -> Any:
    """The last defined residue, which stands for the element; UNDEFINED if there is none."""
    word = x[..., 0]
    for i in range(1, LENGTH):
        word = np.where(x[..., i] == UNDEFINED, word, x[..., i])
    return word


def head(word: Word) -> int:
    """``representative`` of a single element."""
    for residue in reversed(word):
        if residue != UNDEFINED:
            return residue
    return UNDEFINED


def whole_number(word: Word) -> int | None:
    """A small whole number that all defined residues are, or None."""
    found: set[int] = set()
    for residue, prime in zip(word, CHAIN, strict=True):
        if residue == UNDEFINED:
            continue
        number = residue if residue <= SMALL else residue - prime
        if residue < 0 or abs(number) > SMALL:
            return None
        found.add(number)
    return found.pop() if len(found) == 1 else None


def _on_numbers(x: Any, fn: Function, *, at_bottom: int, at_top: int) -> Any:
    """``fn`` of residues, and these values at -inf and inf."""
    made = fn(np.where(x < 0, 1, x))
    for symbol, value in ((NEGATIVE_INFINITY, at_bottom), (INFINITY, at_top)):
        made = np.where(x == symbol, value, made)
    return np.where(x == UNDEFINED, UNDEFINED, made)


@lru_cache(maxsize=LENGTH)
def powers(link: int) -> NDArray[np.int64]:
    """The powers of the generator modulo a prime of the chain: as many as the prime before it."""
    p, order = CHAIN[link], CHAIN[link - 1]
    table = np.ones(1, np.int64)
    while len(table) < order:
        table = np.concatenate([table, table * pow(GENERATOR, len(table), p) % p])
    return table[:order]


@lru_cache(maxsize=LENGTH)
def logarithms(link: int) -> NDArray[np.int64]:
    """The exponent of each residue modulo a prime of the chain; those of x and -x are one."""
    p, table = CHAIN[link], powers(link)
    made = np.zeros(p, np.int64)
    made[table] = made[p - table] = np.arange(len(table))
    return made
