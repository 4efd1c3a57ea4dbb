"""Random NumPy and torch programs as people type them: a function as text, and arrays for it.

A program grows statement by statement. Each statement is run eagerly when it is drawn, and kept if
the library accepts it and its numbers stay moderate. Programs have what makes tracing hard: changes
in place of arrays with several names, integers that meet floats, slices of every kind, reductions
of masks and positions, reshapes around softmax, axes of one element and of none, views that are
read twice.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

import blockbuster as bb
from bench.eager_statements import STATEMENTS, kind

LARGEST = 1e4
MOST_AXES = 4
MOST_ELEMENTS = 400
MOST_STATEMENTS = 7
TRIES = 40  # draws for one statement
EXTENTS = (1, 2, 3, 3, 4, 5, 6)
DTYPES = ("float64", "float32", "float32", "float16", "int64", "int64", "int32", "uint8", "bool")


@dataclass(frozen=True)
class Eager:
    """A program: its library ("np" or "torch"), its text, and the arrays that it takes."""

    library: str
    text: str
    arrays: Mapping[str, np.ndarray]

    def function(self) -> Callable[..., Any]:
        """The function ``program`` of the text."""
        names = namespace(self.library)
        exec(compile(self.text, "<eager program>", "exec"), names)
        made: Callable[..., Any] = names["program"]
        return made


def namespace(library: str) -> dict[str, Any]:
    """What the text of a program may name."""
    if library == "np":
        return {"np": np, "bb": bb}
    import torch
    import torch.nn.functional

    return {"torch": torch, "F": torch.nn.functional, "bb": bb}


def eager_program(random: Random, library: str = "np", *, empty: bool = False) -> Eager:
    """A random program; ``empty``: axes may have no elements."""
    return Growing(random, library, empty=empty).program()


class Growing:
    """A program being drawn, beside the values of its variables."""

    def __init__(self, random: Random, library: str, *, empty: bool) -> None:
        self.random, self.library = random, library
        self.names = namespace(library)
        self.extents = (*EXTENTS, *((0, 0) if empty else ()))
        self.sizes = {d: random.choice(self.extents) for d in "ABC"}
        self.numbers = np.random.default_rng(random.randrange(2**32))
        self.arrays: dict[str, np.ndarray] = {}
        self.values: dict[str, Any] = {}
        self.lines: list[str] = []
        self.count = 0

    def program(self) -> Eager:
        for name in ("x", "y", "z")[: self.random.randint(1, 3)]:
            self.arrays[name] = self._drawn()
            self.values[name] = self._given(self.arrays[name])
        wanted = self.random.randint(1, MOST_STATEMENTS)
        for _ in range(wanted):
            self._grow()
        made = [n for n in self.values if n not in self.arrays] or ["x"]
        more = self.random.choices(made, k=self.random.choice((0, 1, 2)))
        results = dict.fromkeys((made[-1], *more))
        body = [*self.lines, f"return {', '.join(results)}"]
        head = f"def program({', '.join(self.arrays)}):"
        return Eager(self.library, "\n    ".join((head, *body)) + "\n", self.arrays)

    def _drawn(self) -> np.ndarray:
        rank = self.random.choice((0, 1, 1, 2, 2, 2, 3, 3))
        shape = tuple(self.sizes[self.random.choice("ABC")] for _ in range(rank))
        dtype = self.random.choice(DTYPES)
        if dtype == "bool":
            return np.asarray(self.numbers.random(shape) > 0.5)
        if np.dtype(dtype).kind in "iu":
            least = 0 if dtype == "uint8" else -5
            return np.asarray(self.numbers.integers(least, 6, shape), dtype)
        return np.asarray(self.numbers.uniform(-2, 2, shape), dtype)

    def _given(self, array: np.ndarray) -> Any:
        copy = array.copy()
        return copy if self.library == "np" else self.names["torch"].from_numpy(copy)

    def _grow(self) -> None:
        for _ in range(TRIES):
            line = self.random.choice(STATEMENTS)(self)
            if line and self._takes(line):
                self.lines.append(line)
                return

    def _takes(self, line: str) -> bool:
        """Run the program with one more statement; False if that fails or adds nothing."""
        given = {name: self._given(array) for name, array in self.arrays.items()}
        names = {**self.names, **given}
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec("\n".join((*self.lines, line)), names)
        except Exception:
            return False
        made = {n: v for n, v in names.items() if n not in self.names and n != "__builtins__"}
        if not all(hasattr(v, "shape") and _is_moderate(v) for v in made.values()):
            return False
        if not all(_same(self.arrays[n], made[n]) for n in self.arrays):
            return False  # an argument changed: jit refuses that
        self.values = made
        return True

    # what statements are made of ------------------------------------------------------

    def fresh(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def name(self, kinds: str = "fiub", rank: int = 0, made: bool = False) -> str:
        """A variable of these dtype kinds and at least this rank; "" if there is none."""
        found = [
            n for n, v in self.values.items()
            if kind(v) in kinds and len(v.shape) >= rank and not (made and n in self.arrays)
        ]  # fmt: skip
        if not found:
            return ""
        return self.random.choice(found[-4:] if self.random.random() < 0.7 else found)

    def beside(self, name: str, kinds: str = "fiub") -> str:
        """A variable that broadcasts against another."""
        shape = tuple(self.values[name].shape)
        found = [
            n for n, v in self.values.items()
            if kind(v) in kinds
            and all(a == b or 1 in (a, b) for a, b in zip(v.shape[::-1], shape[::-1], strict=False))
        ]  # fmt: skip
        return self.random.choice(found)

    def axis(self, name: str) -> int:
        rank = len(self.values[name].shape)
        return self.random.randrange(-rank, rank)

    def number(self, name: str) -> str:
        floats = self.random.choice(("0.5", "-1.25", "2.0", "0.3", "1e-3"))
        whole = self.random.choice(("2", "-1", "3", "1", "0", "7"))
        return floats if kind(self.values[name]) == "f" and self.random.random() < 0.7 else whole

    def rounding_decides(self, name: str, other: str) -> bool:
        """True for two computed floats that may be equal but for rounding; not for parts of one."""
        both = [self.values[n] for n in (name, other) if n in self.values and n not in self.arrays]
        if len(both) < 2 or any(kind(value) != "f" for value in both):
            return False
        return not np.shares_memory(*map(np.asarray, both))

    def pick(self, *texts: str) -> str:
        return self.random.choice(texts)


def _is_moderate(value: Any) -> bool:
    array = np.asarray(value)
    if array.ndim > MOST_AXES or array.size > MOST_ELEMENTS or array.dtype.kind not in "fiub":
        return False
    return bool(array.dtype.kind in "ub" or (np.abs(array.astype(float)) < LARGEST).all())


def _same(first: np.ndarray, second: Any) -> bool:
    return bool(np.array_equal(first, np.asarray(second), equal_nan=first.dtype.kind == "f"))
