"""Exact semantics: residues modulo a prime, and functions that are nothing but functions.

Sums, products and quotients are exact. Every other function is a random oracle: a seeded hash of
its exact arguments. So two programs agree on random inputs only if they are equal as terms, but
for luck. Order is a random total order of the residues, except that small integers keep their
own, so masks made of index vectors are what they say; max, min, relu, abs and comparisons
follow from it. Three symbols stand beside the residues: -inf, +inf, and undefined (inf - inf).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from blockbuster.interp.layout import Array
from blockbuster.interp.semantics import Semantics, SizeOf
from blockbuster.ir.expr import Call, Const, Expr
from blockbuster.ir.ops import Misc

# the largest primes below 6.1 million, so that sums of 240 000 products fit into 64 bits
PRIMES = (6099983, 6099979, 6099959, 6099941, 6099917, 6099887, 6099883, 6099871)
NEGATIVE_INFINITY, INFINITY, UNDEFINED = -1, -2, -3
SMALL = 2**18  # integers up to here keep their order
NARROW = 2**8  # integers up to here are the same in every dtype


class ZeroDenominator(ArithmeticError):
    """A divisor happened to be zero: draw other inputs."""


class Exact(Semantics):
    """Arithmetic modulo ``prime``; ``seed`` chooses the oracles and the order."""

    dtype = np.dtype(np.int64)

    def __init__(self, prime: int = PRIMES[0], seed: int = 0) -> None:
        self.prime = prime
        self.seed = seed
        self.scalars = {
            "add": self.add, "sub": lambda x, y: self.add(x, self.neg(y)), "neg": self.neg,
            "mul": self.mul, "div": lambda x, y: self.mul(x, self.inverse(y)),
            "square": lambda x: self.mul(x, x), "reciprocal": self.inverse,
            "recip0": lambda x: np.where(x == 0, 0, self.inverse(np.where(x == 0, 1, x))),
            "sub0": lambda x, z: np.where(
                x == NEGATIVE_INFINITY, x, self.add(x, self.neg(z))
            ),
            "exp": self.exp, "rsqrt": lambda x: self.inverse(self.oracle("sqrt", x)),
            "sigmoid": self.sigmoid, "silu": lambda x: self.mul(x, self.sigmoid(x)),
            "gelu": self.gelu, "relu": lambda x: self.larger(x, np.int64(0)),
            "abs": lambda x: self.larger(x, self.neg(x)),
            "maximum": self.larger, "minimum": self.smaller,
            "lt": lambda x, y: self.decide(self.order(x) < self.order(y), x, y),
            "le": lambda x, y: self.decide(self.order(x) <= self.order(y), x, y),
            "gt": lambda x, y: self.decide(self.order(x) > self.order(y), x, y),
            "ge": lambda x, y: self.decide(self.order(x) >= self.order(y), x, y),
            "eq": lambda x, y: self.decide(x == y, x, y),
            "ne": lambda x, y: self.decide(x != y, x, y),
            "and": lambda x, y: self.decide((x != 0) & (y != 0), x, y),
            "or": lambda x, y: self.decide((x != 0) | (y != 0), x, y),
            "not": lambda x: self.decide(x == 0, x),
            "where": lambda c, x, y: np.where(
                c == UNDEFINED, UNDEFINED, np.where(c != 0, x, y)
            ),
        }  # fmt: skip
        for name in ("log", "sqrt", "tanh", "erf", "pow"):
            self.scalars[name] = self._oracle_named(name)

    # arithmetic ------------------------------------------------------------------

    def add(self, x: Any, y: Any) -> Any:
        """x + y; an infinity absorbs numbers, two opposite ones are undefined."""
        total = (x + y) % self.prime
        if (np.minimum(x, y) >= 0).all():
            return total
        low = (x == NEGATIVE_INFINITY) | (y == NEGATIVE_INFINITY)
        high = (x == INFINITY) | (y == INFINITY)
        total = np.where(low, NEGATIVE_INFINITY, np.where(high, INFINITY, total))
        return np.where((low & high) | (np.minimum(x, y) == UNDEFINED), UNDEFINED, total)

    def neg(self, x: Any) -> Any:
        """-x."""
        swapped = np.where(x == UNDEFINED, UNDEFINED, NEGATIVE_INFINITY + INFINITY - x)
        return np.where(x >= 0, -x % self.prime, swapped)

    def mul(self, x: Any, y: Any) -> Any:
        """x * y; undefined for infinities, whose sign would need an order."""
        return np.where(np.minimum(x, y) < 0, UNDEFINED, x * y % self.prime)

    def inverse(self, x: Any) -> Any:
        """1 / x."""
        if (x == 0).any():
            raise ZeroDenominator
        return self.power(x, self.prime - 2)

    def power(self, x: Array, exponent: int) -> Any:
        """x to a whole power of at least 0."""
        result, square = np.ones_like(x), x
        for bit in reversed(f"{exponent:b}"):
            if bit == "1":
                result = result * square % self.prime
            square = square * square % self.prime
        return np.where(x < 0, UNDEFINED, result)

    # functions -------------------------------------------------------------------

    def oracle(self, name: str, *args: Any) -> Any:
        """A random function of its arguments, never zero."""
        state = np.uint64(self._key(name))
        for arg in args:
            state = _mixed(np.asarray(arg).astype(np.uint64) ^ state)
        value: Any = (state % np.uint64(self.prime - 1)).astype(np.int64) + 1
        for arg in args:
            value = np.where(arg == UNDEFINED, UNDEFINED, value)
        return value

    def _oracle_named(self, name: str) -> Callable[..., Any]:
        return lambda *args: self.oracle(name, *args)

    def _key(self, name: str) -> int:
        digest = hashlib.blake2b(f"{self.seed} {name}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "little")

    def exp(self, x: Any) -> Any:
        """An oracle, but zero at -inf."""
        return np.where(x == NEGATIVE_INFINITY, 0, self.oracle("exp", x))

    def sigmoid(self, x: Any) -> Any:
        """1 / (1 + exp(-x))."""
        return self.inverse(self.add(self.exp(self.neg(x)), np.int64(1)))

    def gelu(self, x: Any) -> Any:
        """x (1 + erf(x / sqrt 2)) / 2."""
        bell = self.oracle("erf", self.mul(x, self.constant(math.sqrt(0.5))))
        return self.mul(self.mul(x, self.add(bell, np.int64(1))), self.constant(0.5))

    # order -----------------------------------------------------------------------

    def order(self, x: Any) -> Any:
        """A key that orders values: small integers by size, others at random around them."""
        signed = np.where(x > self.prime // 2, x - self.prime, x)
        mixed = _mixed(np.asarray(x).astype(np.uint64) ^ np.uint64(self._key("order")))
        key = np.where(np.abs(signed) <= SMALL, signed, mixed.astype(np.int64))
        edge = np.where(x == INFINITY, np.iinfo(np.int64).max, np.iinfo(np.int64).min)
        return np.where(x < 0, edge, key)

    def larger(self, x: Any, y: Any) -> Any:
        """The maximum: associative, commutative, idempotent, with no special place for zero."""
        return self._chosen(self.order(x) >= self.order(y), x, y)

    def smaller(self, x: Any, y: Any) -> Any:
        """The minimum in the same order."""
        return self._chosen(self.order(x) <= self.order(y), x, y)

    def _chosen(self, first: Any, x: Any, y: Any) -> Any:
        undefined = (x == UNDEFINED) | (y == UNDEFINED)
        return np.where(undefined, UNDEFINED, np.where(first, x, y))

    def decide(self, truth: Any, *args: Any) -> Any:
        """A truth value as 0 or 1."""
        value = np.asarray(truth).astype(np.int64)
        for arg in args:
            value = np.where(arg == UNDEFINED, UNDEFINED, value)
        return value

    # items -----------------------------------------------------------------------

    def item(self, array: Array) -> Array:
        """Residues as they are; floats as the fractions they are."""
        if np.asarray(array).dtype.kind in "ib":
            return np.asarray(array, np.int64)
        flat = [self.constant(float(x)) for x in np.ravel(array)]
        return np.array(flat, np.int64).reshape(np.shape(array))

    def constant(self, value: float) -> Any:
        if not math.isfinite(value):
            symbol = {math.inf: INFINITY, -math.inf: NEGATIVE_INFINITY}.get(value, UNDEFINED)
            return np.int64(symbol)
        ratio = Fraction(value)
        inverse = pow(ratio.denominator, -1, self.prime)
        return np.int64(ratio.numerator * inverse % self.prime)

    def identity(self, monoid: str, shape: Sequence[int]) -> Array:
        start = {"+": 0, "max": NEGATIVE_INFINITY, "min": INFINITY}[monoid]
        return np.full(shape, start, np.int64)

    def dot(self, a: Array, b: Array) -> Array:
        product = a @ b.T % self.prime
        undefined = np.any(a < 0, -1, keepdims=True) | np.any(b < 0, -1)
        return np.where(undefined, UNDEFINED, product)

    def fold_last(self, monoid: str, item: Array) -> Array:
        total = self.identity(monoid, item.shape[:-1])
        for column in range(item.shape[-1]):
            total = self.fold(monoid, total, item[..., column])
        return total

    def cast(self, item: Array, dtype: str) -> Array:
        exact = (item <= NARROW) | (item >= self.prime - NARROW)
        return np.where(exact, item, self.oracle(f"cast {dtype}", item))

    def misc(self, op: Misc, arrays: Sequence[Array], shapes: Sequence[Sequence[int]]) -> Any:
        """Random results that depend on everything the function is given."""
        given = hashlib.blake2b(f"{self.seed} {op.name}".encode(), digest_size=8)
        for array in arrays:
            given.update(f"{array.shape}".encode() + np.ascontiguousarray(array).tobytes())
        random = np.random.default_rng(int.from_bytes(given.digest(), "little"))
        return [random.integers(1, self.prime, shape) for shape in shapes]

    def expression(self, expr: Expr, args: Sequence[Array], size: SizeOf) -> Any:
        match expr:
            case Call("pow", (base, Const(value))) if value.is_integer():
                x = self.expression(base, args, size)
                return self.power(x if value >= 0 else self.inverse(x), abs(int(value)))
            case Call("pow", (base, Const(0.5))):
                return self.scalars["sqrt"](self.expression(base, args, size))
            case Call("pow", (base, Const(-0.5))):
                return self.scalars["rsqrt"](self.expression(base, args, size))
        return super().expression(expr, args, size)


def _mixed(state: Any) -> Any:
    """The splitmix64 finalizer: a bijection of 64-bit words that scatters them."""
    with np.errstate(over="ignore"):
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return state ^ (state >> np.uint64(31))
