"""Everyday programs, each written in three ways that must become the same kernels.

A program is drawn once: attention with masks and biases, norms, losses, gated units, residuals,
composed at random. It is written with a name of its own for each dim, with one name for all dims of
one size, and for example arrays; each time with other spellings: ``x[:, None]`` or
``keepdims=True``, a * b or b * a, ``swapaxes`` or ``mT``, ``where(mask, s, -inf)`` or
``where(~mask, -inf, s)``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

from blockbuster import frontend as bb
from blockbuster.frontend.program import ArrayProgram
from blockbuster.frontend.trace import trace
from tests.random_programs.everyday import PARTS, Need

Array = Any

EXTENTS = {"B": 2, "H": 3, "G": 2, "M": 512, "N": 512, "T": 512, "D": 64, "L": 64, "E": 64,
           "F": 256, "K": 256}  # fmt: skip
"""The number of elements of each role that an axis can have: some are equal on purpose."""

SMALL = {"B": 2, "H": 3, "G": 2, "M": 6, "N": 6, "T": 6, "D": 4, "L": 4, "E": 4, "F": 5, "K": 5}
"""The same for arrays that are computed with."""

WAYS = ("apart", "alike", "examples")


class Spelling:
    """One way to write a program; ``random`` chooses among spellings anew each time."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def _is(self) -> bool:
        return self._random.random() < 0.5

    def plus(self, a: Array, b: Array) -> Array:
        """A sum."""
        return a + b if self._is() else b + a

    def times(self, a: Array, b: Array) -> Array:
        """A product of elements."""
        return a * b if self._is() else b * a

    def turned(self, x: Array) -> Array:
        """The last two axes exchanged."""
        if x.ndim == 2 and self._is():
            return x.T
        return x.swapaxes(-1, -2) if self._is() else np.swapaxes(x, -2, -1)

    def folded(self, fn: Callable[..., Array], x: Array) -> Array:
        """A reduction of rows to columns of one element."""
        return fn(x, axis=-1, keepdims=True) if self._is() else fn(x, axis=-1)[..., None]

    def column(self, v: Array) -> Array:
        """A vector as a column."""
        return v[:, None] if self._is() else np.expand_dims(v, -1)

    def row(self, v: Array) -> Array:
        """A vector as a row, which broadcasting would make of it anyway."""
        return v[None, :] if self._is() else v

    def below(self, i: Array, j: Array) -> Array:
        """The mask of the positions ``j`` that are not behind ``i``."""
        return i >= j if self._is() else j <= i

    def both(self, a: Array, b: Array) -> Array:
        """The conjunction of two masks."""
        return a & b if self._is() else b & a

    def kept(self, mask: Array, x: Array, other: float) -> Array:
        """``x`` where the mask holds."""
        return bb.where(mask, x, other) if self._is() else bb.where(~mask, other, x)


@dataclass(frozen=True)
class Saying:
    """One program in one way: a function of arrays, the dims or examples to trace it with."""

    function: Callable[..., Any]
    inputs: Mapping[str, Any]
    arrays: Mapping[str, Array] = field(repr=False)
    """Small arrays for it, the same in all ways."""

    def traced(self) -> ArrayProgram:
        """The array program."""
        return trace(self.function, **self.inputs)

    def sizes(self, program: ArrayProgram, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
        """The sizes of its dims for inputs of these shapes."""
        return program.bind({name: np.broadcast_to(0.0, shape) for name, shape in shapes.items()})


@dataclass(frozen=True)
class Everyday:
    """A program that was drawn: which parts, and the axes of its inputs by role."""

    seed: int
    parts: tuple[str, ...]
    inputs: Mapping[str, tuple[str, ...]]

    def shapes(self, extents: Mapping[str, int] = EXTENTS) -> dict[str, tuple[int, ...]]:
        """The shapes of the inputs."""
        return {name: tuple(extents[r] for r in roles) for name, roles in self.inputs.items()}

    def said(self, way: str) -> Saying:
        """The program in one of ``WAYS``."""
        spelling = Random(f"{self.seed} {way}")

        def function(**arrays: Array) -> Any:
            return _built(self.seed, Spelling(spelling), lambda name, _: arrays[name])[1]

        function.__name__ = "_".join(self.parts)
        first: dict[int, str] = {}
        alike = {role: first.setdefault(n, role) for role, n in EXTENTS.items()}
        inputs: dict[str, Any] = {}
        for name, roles in self.inputs.items():
            if way == "examples":
                inputs[name] = np.broadcast_to(0.0, tuple(EXTENTS[r] for r in roles))
            else:
                inputs[name] = " ".join(roles if way == "apart" else [alike[r] for r in roles])
        numbers = np.random.default_rng(self.seed)
        arrays = {name: numbers.uniform(-1, 1, s) for name, s in self.shapes(SMALL).items()}
        return Saying(function, inputs, arrays)


def everyday(seed: int) -> Everyday:
    """The program number ``seed``."""
    inputs: dict[str, tuple[str, ...]] = {}

    def need(name: str, roles: str) -> Array:
        inputs[name] = tuple(roles.split())
        return np.ones(tuple(SMALL[role] for role in roles.split()))

    with np.errstate(all="ignore"):
        parts, _ = _built(seed, Spelling(Random(seed)), need)
    return Everyday(seed, parts, inputs)


def _built(seed: int, say: Spelling, need: Need) -> tuple[tuple[str, ...], Any]:
    """The parts of a program and its results, for arrays from ``need``."""
    random = Random(seed)
    name = random.choice(list(PARTS))
    taken: dict[str, int] = {}

    def fresh(word: str, roles: str) -> Array:
        """An input of its own, with a number behind its name."""
        taken[word] = taken.get(word, -1) + 1
        return need(f"{word}{taken[word] or ''}", roles)

    return (name,), PARTS[name](random, say, fresh)
