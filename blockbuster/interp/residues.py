"""The arithmetic that the exact semantics share: residues, random functions, and three symbols.

Sums, products and quotients are exact. Every other function is a random oracle: a seeded hash of
its exact arguments. 2 ** x is exp(x / log2 e), where log2 e is a random number; a tanh written with
2 ** x equals tanh. Three symbols stand beside the residues: -inf, +inf, and undefined (inf - inf).
"""

from __future__ import annotations

import hashlib
import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from blockbuster.interp.domains import exact_in
from blockbuster.interp.layout import Array
from blockbuster.interp.semantics import Function, Refused, Semantics, Shape, SizeOf
from blockbuster.ir.base_two import LOG2_E, is_positive, with_tanh
from blockbuster.ir.expr import BITWISE, UNINTERPRETED, Call, Const, Expr
from blockbuster.ir.ops import Misc

NEGATIVE_INFINITY, INFINITY, UNDEFINED = -1, -2, -3
WORD = 2**64 - 1
SMALL = 2**12  # integers up to here are ordered as integers, so that masks are what they say


class ZeroDenominator(ArithmeticError):
    """A divisor happened to be zero: draw other inputs."""


class Residues(Semantics):
    """Arithmetic modulo ``modulus`` and oracles chosen by ``seed``; subclasses add an order."""

    dtype = np.dtype(np.int64)
    modulus: Any

    def __init__(self, modulus: Any, seed: int) -> None:
        self.modulus = modulus
        self.seed = seed
        self._keys: dict[str, int] = {}
        self._constants: dict[float, Any] = {}
        self.scalars = self.table()

    def table(self) -> Mapping[str, Function]:
        """The meaning of each scalar function."""
        return {
            "add": self.add, "sub": lambda x, y: self.add(x, self.neg(y)), "neg": self.neg,
            "mul": self.mul, "div": lambda x, y: self.mul(x, self.inverse(y)),
            "square": lambda x: self.mul(x, x), "reciprocal": self.inverse,
            "recip0": self.recip0,
            "sub0": lambda x, z: np.where(x == NEGATIVE_INFINITY, x, self.add(x, self.neg(z))),
            "exp": self.exp, "log": self.log, "sqrt": self.sqrt,
            "rsqrt": lambda x: self.inverse(self.sqrt(x)),
            "sigmoid": self.sigmoid, "silu": lambda x: self.mul(x, self.sigmoid(x)),
            "gelu": self.gelu, "relu": lambda x: self.larger(x, np.zeros_like(x)),
            "abs": lambda x: self.larger(x, self.neg(x)),
            "maximum": self.larger, "minimum": self.smaller,
            "lt": self.below, "gt": lambda x, y: self.below(y, x),
            "le": lambda x, y: self.opposite(self.below(y, x)),
            "ge": lambda x, y: self.opposite(self.below(x, y)),
            "eq": self.same, "ne": lambda x, y: self.opposite(self.same(x, y)),
            "and": lambda x, y: self.both(self.truth(x), self.truth(y)),
            "or": lambda x, y: self.opposite(
                self.both(self.opposite(self.truth(x)), self.opposite(self.truth(y)))
            ),
            "not": lambda x: self.opposite(self.truth(x)),
            "where": lambda c, x, y: self.choice(self.truth(c), x, y),
            **{name: partial(self.oracle, name) for name in (*UNINTERPRETED, *BITWISE)},
            "pow": lambda x, y: self.oracle("pow", x, y),
            "floordiv": lambda x, y: self.divided("floordiv", x, y),
            "mod": lambda x, y: self.divided("mod", x, y), "whole": lambda x: x,
        }  # fmt: skip

    # arithmetic ------------------------------------------------------------------

    def add(self, x: Any, y: Any) -> Any:
        """x + y; an infinity absorbs numbers, two opposite ones are undefined."""
        total = (x + y) % self.modulus
        if np.minimum(x, y).min(initial=0) >= 0:
            return total
        low = (x == NEGATIVE_INFINITY) | (y == NEGATIVE_INFINITY)
        high = (x == INFINITY) | (y == INFINITY)
        total = np.where(low, NEGATIVE_INFINITY, np.where(high, INFINITY, total))
        return np.where((low & high) | (np.minimum(x, y) == UNDEFINED), UNDEFINED, total)

    def neg(self, x: Any) -> Any:
        """-x."""
        swapped = np.where(x == UNDEFINED, UNDEFINED, NEGATIVE_INFINITY + INFINITY - x)
        return np.where(x >= 0, -x % self.modulus, swapped)

    def divided(self, name: str, x: Any, y: Any) -> Any:
        """The quotient or rest of integers: an oracle, where they are not known."""
        return self.oracle(name, x, y)

    @abstractmethod
    def product(self, x: Any, y: Any) -> Any:
        """The product of two residues."""

    @abstractmethod
    def inverses(self, x: Array) -> Array:
        """The inverse of each residue, none of them zero."""

    def mul(self, x: Any, y: Any) -> Any:
        """x * y; undefined for infinities, whose sign would need an order."""
        made = self.product(x, y)
        low = np.minimum(x, y)
        return made if low.min(initial=0) >= 0 else np.where(low < 0, UNDEFINED, made)

    def times(self, x: Any, factor: Any) -> Any:
        """x * factor, which is positive: an infinity stays what it is."""
        return np.where(x < 0, x, self.mul(x, factor))

    def inverse(self, x: Any) -> Any:
        """1 / x; 0 of an infinity, as fractions have it."""
        if (x == 0).any():
            raise ZeroDenominator
        beyond = np.where(x == UNDEFINED, UNDEFINED, 0)
        return np.where(x < 0, beyond, self.inverses(np.where(x < 0, 1, x)))

    def recip0(self, x: Any) -> Any:
        """1 / x, and 0 at 0."""
        return np.where(x == 0, 0, self.inverse(np.where(x == 0, 1, x)))

    def power(self, x: Any, exponent: int) -> Any:
        """x to a whole power of at least 0."""
        result, square = np.ones_like(x), x
        while exponent:
            if exponent & 1:
                result = self.mul(result, square)
            exponent >>= 1
            square = self.mul(square, square) if exponent else square
        return result

    # functions -------------------------------------------------------------------

    def key(self, name: str) -> int:
        """The random word that chooses the oracle ``name``."""
        if name not in self._keys:
            digest = hashlib.blake2b(f"{self.seed} {name}".encode(), digest_size=8).digest()
            self._keys[name] = int.from_bytes(digest, "little")
        return self._keys[name]

    def oracle(self, name: str, *args: Any) -> Any:
        """A random function of its arguments, never zero."""
        state = np.uint64(self.key(name))
        for arg in args:
            state = scattered(np.asarray(arg).astype(np.uint64) ^ state)
        value: Any = (state % np.uint64(self.modulus - 1)).astype(np.int64) + 1
        for arg in args:
            if np.min(arg, initial=0) <= UNDEFINED:
                value = np.where(arg == UNDEFINED, UNDEFINED, value)
        return value

    def exp(self, x: Any) -> Any:
        """An oracle, but zero at -inf."""
        return np.where(x == NEGATIVE_INFINITY, 0, self.oracle("exp", x))

    def exp2(self, x: Any) -> Any:
        """2 ** x: exp(x / log2 e)."""
        return self.exp(self.times(x, self.inverse(self.number(LOG2_E))))

    def log(self, x: Any) -> Any:
        """An oracle."""
        return self.oracle("log", x)

    def sqrt(self, x: Any) -> Any:
        """An oracle."""
        return self.oracle("sqrt", x)

    def sigmoid(self, x: Any) -> Any:
        """1 / (1 + exp(-x))."""
        return self.inverse(self.add(self.exp(self.neg(x)), self.number(1.0)))

    def gelu(self, x: Any) -> Any:
        """x (1 + erf(x / sqrt 2)) / 2."""
        bell = self.oracle("erf", self.mul(x, self.number(math.sqrt(0.5))))
        return self.mul(self.mul(x, self.add(bell, self.number(1.0))), self.number(0.5))

    # order and truth ---------------------------------------------------------------

    @abstractmethod
    def larger(self, x: Any, y: Any) -> Any:
        """The maximum."""

    @abstractmethod
    def smaller(self, x: Any, y: Any) -> Any:
        """The minimum."""

    @abstractmethod
    def below(self, x: Any, y: Any) -> Any:
        """The truth value of x < y."""

    @abstractmethod
    def same(self, x: Any, y: Any) -> Any:
        """The truth value of x == y."""

    @abstractmethod
    def truth(self, x: Any) -> Any:
        """A number as a truth value."""

    def opposite(self, truth: Any) -> Any:
        """Not."""
        return self.add(self.number(1.0), self.neg(truth))

    def both(self, x: Any, y: Any) -> Any:
        """And."""
        return self.mul(x, y)

    @abstractmethod
    def choice(self, truth: Any, x: Any, y: Any) -> Any:
        """x where true, y where false."""

    # items -----------------------------------------------------------------------

    def item(self, array: Array) -> Array:
        """Residues as they are; floats as the fractions they are."""
        if array.dtype == self.dtype:
            return array
        flat = [self.constant(float(x)) for x in np.ravel(array)]
        return np.array(flat, self.dtype).reshape(np.shape(array))

    def constant(self, value: float) -> Any:
        return self.number(value)

    def number(self, value: float) -> Any:
        """The residue of a number."""
        if value not in self._constants:
            self._constants[value] = self._residue(value)
        return self._constants[value]

    def _residue(self, value: float) -> Any:
        if not math.isfinite(value):
            symbol = {math.inf: INFINITY, -math.inf: NEGATIVE_INFINITY}.get(value, UNDEFINED)
            return np.full(np.shape(self.modulus), symbol, np.int64)
        if value == LOG2_E:
            drawn = [1 + self.key(f"log2 e mod {p}") % (int(p) - 1) for p in np.ravel(self.modulus)]
            return np.array(drawn, np.int64).reshape(np.shape(self.modulus))
        ratio = Fraction(value)
        residues = [
            ratio.numerator * pow(ratio.denominator, -1, int(p)) % int(p)
            for p in np.ravel(self.modulus)
        ]
        return np.array(residues, np.int64).reshape(np.shape(self.modulus))

    def identity(self, monoid: str, shape: Sequence[int]) -> Array:
        start = {"+": 0, "prod": 1, "max": NEGATIVE_INFINITY, "min": INFINITY}[monoid]
        return np.full(shape, start, np.int64)

    def dot(self, a: Array, b: Array) -> Array:
        total = self.identity("+", (*a.shape[:-1], b.shape[-2]))
        for at in range(a.shape[-1]):
            products = self.scalars["mul"](a[..., :, None, at], b[..., None, :, at])
            total = self.fold("+", total, products)
        return total

    def fold_last(self, monoid: str, item: Array) -> Array:
        total = self.identity(monoid, item.shape[:-1])
        for column in range(item.shape[-1]):
            total = self.fold(monoid, total, item[..., column])
        return total

    def cast(self, item: Array, dtype: str) -> Array:
        low, high = exact_in(dtype)
        exact = (item <= high) | (item >= self.modulus + low)
        return np.where(exact, item, self.oracle(f"cast {dtype}", item))

    def misc(self, op: Misc, arrays: Sequence[Array], shapes: Sequence[Sequence[int]]) -> Any:
        """Random results that depend on everything the function is given."""
        given = hashlib.blake2b(f"{self.seed} {op.name}".encode(), digest_size=8)
        for array in arrays:
            given.update(f"{array.shape}".encode() + np.ascontiguousarray(array).tobytes())
        random = np.random.default_rng(int.from_bytes(given.digest(), "little"))
        return [self.random(random, shape) for shape in shapes]

    def compared(self, x: Array, y: Array) -> tuple[bool, bool]:
        if x is y:
            return False, bool((x == UNDEFINED).any())
        undefined = (x == UNDEFINED) | (y == UNDEFINED)
        return bool(((x != y) & ~undefined).any()), bool(undefined.any())

    def random(self, random: np.random.Generator, shape: Sequence[int]) -> Array:
        """Uniformly random residues."""
        return random.integers(0, self.modulus, shape)

    def expression(self, expr: Expr, args: Sequence[Array], size: SizeOf, stack: Shape = ()) -> Any:
        return super().expression(with_tanh(expr), args, size, stack)

    def applied(self, call: Call, args: Sequence[Any]) -> Any:
        match call:
            case Call("pow", (_, Const(value))) if value.is_integer():
                x = args[0] if value >= 0 else self.scalars["reciprocal"](args[0])
                return self.power(x, abs(int(value)))
            case Call("pow", (_, Const(value))) if abs(value) == 0.5:
                return self.scalars["sqrt" if value > 0 else "rsqrt"](args[0])
            case Call("pow", (Const(2.0), exponent)) if not isinstance(exponent, Const):
                return self.exp2(args[1])
            case Call("mul", (_, factor)) if is_positive(factor):
                return self.scaled(*args)
            case Call("mul", (factor, _)) if is_positive(factor):
                return self.scaled(args[1], args[0])
        return super().applied(call, args)

    def scaled(self, x: Any, factor: Any) -> Any:
        """A product of items with a positive factor."""
        return self.times(x, factor)


def known_numbers(whole: Any, symbols: Any) -> Array:
    """Small whole numbers, or the infinities of ``symbols``, as floats; else raises Refused."""
    if (np.abs(np.where(symbols < 0, 0, whole)) > SMALL).any():
        raise Refused("a bound of a loop that is no small whole number")
    beyond = np.select(
        [symbols == INFINITY, symbols == NEGATIVE_INFINITY, symbols == UNDEFINED],
        [math.inf, -math.inf, math.nan],
        0.0,
    )
    return np.asarray(np.where(symbols < 0, beyond, whole), float)


def scattered(state: Any) -> Any:
    """The splitmix64 finalizer: a bijection of 64-bit words that scatters them."""
    with np.errstate(over="ignore"):
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return state ^ (state >> np.uint64(31))


def scattered_word(state: int) -> int:
    """``scattered`` for one Python integer."""
    state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 & WORD
    state = (state ^ (state >> 27)) * 0x94D049BB133111EB & WORD
    return state ^ (state >> 31)
