"""Degree: a bound on the probability that tier A takes two different programs for equal.

Every element is a rational function of the inputs and of the results of oracles, which count as
fresh variables; it is kept as n + d*1j, bounds on the degrees of numerator and denominator, so that
degrees of products add. The claim and its proof, for two programs at fixed sizes:

Let S be the number of residues that a variable is drawn from. Replace each oracle by one that gives
every *formally* different argument an independent value. If the programs differ as terms, some
output's difference is a nonzero rational function whose numerator has degree at most
n1 + d1 + n2 + d2, so all outputs agree with probability at most that over S (Schwartz and Zippel).
The real oracles differ from these only if two formally different arguments of one oracle collide,
each pair with probability at most n1 + d1 + n2 + d2 over S again, and the N arguments of an oracle
make sum (N - 1)(n + d) over their pairs. A set (max, min) collides only if two members do, and an
order is decided for small integers only: 2 SMALL + 1 more values that an argument must miss (twice
that is counted). That is summed over oracles. Draws with a zero denominator are drawn again, which
divides by 1 - (degrees of the denominators) / S. An oracle that remembers its results, to tell what
they are made of, may take a value for one of another program run in the same draw: arguments of the
pair and of the others make further pairs. Draws at the same sizes are independent: powers. A
difference may show at one of the tried sizes only, so the bound for all is that of the worst.

Assumed: the seeded hash behaves as a random function; a difference that is not zero is not zero
modulo the primes drawn either (there are 8e12 of them).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from blockbuster.interp.binding import source_names
from blockbuster.interp.exact import BITS
from blockbuster.interp.layout import Array, Layout
from blockbuster.interp.remembering import Key, Remembering
from blockbuster.interp.residues import SMALL
from blockbuster.interp.semantics import Semantics, Shape, SizeOf
from blockbuster.ir.base_two import with_tanh
from blockbuster.ir.expr import BITWISE, UNINTERPRETED, Call, Const, Expr
from blockbuster.ir.graph import Graph
from blockbuster.ir.ops import Misc

SAMPLES = 2 ** (BITS - 1)  # fewer than residues: a hash hits each of them about equally often
REMEMBERED = ("max", "min", "truth")
VARIABLE = 1 + 0j  # degrees 1 and 0
NUMBER = 0j


@dataclass
class Noted:
    """The terms that oracles and divisions add to the error bound."""

    arguments: dict[str, tuple[float, float]] = field(default_factory=dict)
    """For each oracle the number of its arguments and the sum of their degrees."""
    denominators: float = 0.0

    def asked(self, oracle: str, count: float, degrees: float) -> None:
        """Note arguments of an oracle."""
        known, total = self.arguments.get(oracle, (0.0, 0.0))
        self.arguments[oracle] = known + count, total + degrees

    def copy(self) -> Noted:
        """The same now, whatever is noted later."""
        return Noted(dict(self.arguments), self.denominators)

    def since(self, before: Noted) -> Noted:
        """What was noted since a copy was made."""
        found = {
            oracle: (count - known, degrees - total)
            for oracle, (count, degrees) in self.arguments.items()
            for known, total in (before.arguments.get(oracle, (0.0, 0.0)),)
            if count > known
        }
        return Noted(found, self.denominators - before.denominators)

    def add(self, other: Noted) -> None:
        """Note all of ``other`` once more."""
        self.denominators += other.denominators
        for oracle, (count, degrees) in other.arguments.items():
            self.asked(oracle, count, degrees)


class Degree(Semantics):
    """Bounds on degrees; what the oracles and divisions add to the error is ``noted``."""

    dtype = np.dtype(np.complex128)

    def __init__(self) -> None:
        self.noted = Noted()
        self.scalars = {
            "add": added, "sub": added, "neg": lambda x: x, "mul": np.add,
            "div": lambda x, y: x + self.inverse(y), "square": lambda x: 2 * x,
            "reciprocal": self.inverse, "sub0": added,
            "rsqrt": lambda x: self.inverse(self.oracle("sqrt", x)),
            "sigmoid": self.sigmoid, "silu": lambda x: x + self.sigmoid(x),
            "gelu": lambda x: x + added(self.oracle("erf", x), NUMBER),
            "relu": lambda x: self.ordered("max", x, np.zeros_like(x)),
            "abs": lambda x: self.ordered("max", x, x),
            "maximum": lambda x, y: self.ordered("max", x, y),
            "minimum": lambda x, y: self.ordered("min", x, y),
            "and": lambda x, y: self.truth(x) + self.truth(y),
            "or": lambda x, y: self.truth(x) + self.truth(y), "not": self.truth,
            "where": lambda c, x, y: self.truth(c) + added(x, y), "whole": lambda x: x,
        }  # fmt: skip
        unknown = ("exp", "log", "sqrt", "pow", "recip0", "floordiv", "mod")
        for name in (*unknown, *UNINTERPRETED, *BITWISE):
            self.scalars[name] = lambda *args, name=name: self.oracle(name, *args)
        for name in ("lt", "le", "gt", "ge"):
            self.scalars[name] = lambda x, y: self.ordered("below", x, y)
        for name in ("eq", "ne"):
            self.scalars[name] = lambda x, y: self.ordered("same", x, y)

    def oracle(self, name: str, *args: Any) -> Any:
        """A fresh variable for each element."""
        shape = np.broadcast_shapes(*(np.shape(a) for a in args))
        total = sum(np.broadcast_to(size(a), shape) for a in args)
        self.noted.asked(name, math.prod(shape), float(np.sum(total)))
        return np.full(shape, VARIABLE)

    def ordered(self, name: str, x: Any, y: Any) -> Any:
        """An oracle of sets or of ordered pairs; its results must not be mistaken for others."""
        sets = name in ("max", "min")
        given = (x, y) if sets else (added(x, y),)  # a comparison is of the difference
        self.oracle(name, *given[::-1])
        made = self.oracle(name, *given)
        if sets:
            self.oracle(name, made)
            return worse(made, worse(*np.broadcast_arrays(x, y)))
        self.oracle("truth", made)
        self.oracle("truth", made)  # the opposite
        return made

    def truth(self, x: Any) -> Any:
        """A truth value, or an oracle of a number."""
        return worse(x, self.oracle("truth", x))

    def inverse(self, x: Any) -> Any:
        """Numerator and denominator change places."""
        self.noted.denominators += float(np.sum(size(x)))
        return np.imag(x) + 1j * np.real(x)

    def sigmoid(self, x: Any) -> Any:
        """1 / (1 + exp(-x))."""
        return self.inverse(self.oracle("exp", x))

    def item(self, array: Array) -> Array:
        return np.asarray(array, np.complex128) if array.dtype.kind == "c" else 0j * array

    def constant(self, value: float) -> Any:
        return np.asarray(NUMBER)

    def identity(self, monoid: str, shape: Sequence[int]) -> Array:
        return np.zeros(shape, np.complex128)

    def dot(self, a: Array, b: Array) -> Array:
        return self.fold_last("+", a[..., :, None, :] + b[..., None, :, :])

    def fold_last(self, monoid: str, item: Array) -> Array:
        total = self.identity(monoid, item.shape[:-1])
        for column in range(item.shape[-1]):
            total = self.fold(monoid, total, item[..., column]) if column else item[..., 0]
        return total

    def cast(self, item: Array, dtype: str) -> Array:
        return np.asarray(worse(item, self.oracle(f"cast {dtype}", item)))

    def misc(self, op: Misc, arrays: Sequence[Array], shapes: Sequence[Sequence[int]]) -> Any:
        for array in arrays:
            self.oracle(f"misc {op.name}", array)
        return [np.full(shape, VARIABLE) for shape in shapes]

    def expression(self, expr: Expr, args: Sequence[Array], size: SizeOf, stack: Shape = ()) -> Any:
        return super().expression(with_tanh(expr), args, size, stack)

    def each(self, number: Any, shape: Shape) -> Any:
        return np.broadcast_to(number, shape)  # oracles are asked for each item

    def applied(self, call: Call, args: Sequence[Any]) -> Any:
        match call:
            case Call("pow", (_, Const(value))) if value.is_integer():
                return abs(value) * (args[0] if value >= 0 else self.inverse(args[0]))
            case Call("pow", (_, Const(value))) if abs(value) == 0.5:
                return self.scalars["sqrt" if value > 0 else "rsqrt"](args[0])
            case Call("pow", (Const(2.0), exponent)) if not isinstance(exponent, Const):
                return self.oracle("exp", args[1] + NUMBER)
        return super().applied(call, args)


class Degrees(Remembering):
    """The degrees of programs in one layout, and what each of them notes.

    What an operator noted of operands that it meets again it notes again.
    """

    counts: ClassVar[bool] = True

    def __init__(self, layout: Layout, arrays: Mapping[str, Array]) -> None:
        self.degree = Degree()
        super().__init__(layout, self.degree, arrays)
        self.notes: dict[Key, Noted] = {}
        self.bounds: dict[tuple[Graph, tuple[str, ...]], Bound] = {}
        """By what the programs are: graphs are equal whatever their inputs are called."""
        self.seen: dict[int, tuple[Graph, Bound]] = {}

    def bound(self, graph: Graph) -> Bound:
        """The degrees of the outputs of a program, and all that it notes."""
        if id(graph) not in self.seen:
            program = graph, source_names(graph)
            if program not in self.bounds:
                self.degree.noted = Noted()
                self.bounds[program] = Bound(self.outputs(graph), self.degree.noted)
            self.seen[id(graph)] = graph, self.bounds[program]
        return self.seen[id(graph)][1]

    def _made(self, key: Key, make: Callable[..., Sequence[Any]], *given: Any) -> Sequence[Any]:
        outer, self.degree.noted = self.degree.noted, Noted()
        made = super()._made(key, make, *given)
        self.notes[key], self.degree.noted = self.degree.noted, outer
        outer.add(self.notes[key])
        return made

    def _again(self, key: Key) -> None:
        self.degree.noted.add(self.notes[key])


@dataclass(frozen=True, eq=False)
class Bound:
    """The degrees of a program's outputs, and what it notes."""

    outputs: Mapping[str, Array]
    noted: Noted


def chance(a: Bound, b: Bound, others: Sequence[Bound] = ()) -> float:
    """The chance that one draw hides a difference between two programs run so, at most.

    ``others`` are programs that were run in the same draw.
    """
    pairs = [(x, b.outputs[name]) for name, x in a.outputs.items()]
    outputs = max((float(np.max(size(x) + size(y), initial=0)) for x, y in pairs), default=0.0)
    denominators = a.noted.denominators + b.noted.denominators
    colliding = denominators
    for name in dict.fromkeys((*a.noted.arguments, *b.noted.arguments)):
        count, total = _summed(name, (a, b))
        colliding += max(count - 1, 0) * total + 4 * SMALL * total
        if name in REMEMBERED:
            more, degrees = _summed(name, others)
            colliding += count * degrees + more * total
    kept = 1 - denominators / SAMPLES
    return min(1.0, (outputs + colliding) / SAMPLES / kept) if kept > 0 else 1.0


def _summed(name: str, programs: Sequence[Bound]) -> tuple[float, float]:
    """The number of arguments of an oracle, and the sum of their degrees."""
    found = [bound.noted.arguments.get(name, (0.0, 0.0)) for bound in programs]
    return sum(count for count, _ in found), sum(total for _, total in found)


def size(x: Any) -> Any:
    """The degrees of numerator and denominator together."""
    return np.real(x) + np.imag(x)


def worse(x: Any, y: Any) -> Any:
    """A bound for either."""
    return np.maximum(np.real(x), np.real(y)) + 1j * np.maximum(np.imag(x), np.imag(y))


def added(x: Any, y: Any) -> Any:
    """The degrees of a sum: over the product of the denominators."""
    n = np.maximum(np.real(x) + np.imag(y), np.real(y) + np.imag(x))
    return n + 1j * (np.imag(x) + np.imag(y))
