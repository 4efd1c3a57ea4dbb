"""Arguments for the examples of the table of functions."""

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from blockbuster.frontend.functions.row import Example, Row, Text
from blockbuster.frontend.functions.table import TABLE

EXTENTS = {"B": 2, "H": 3, "M": 3, "N": 4, "K": 5, "L": 6}

KINDS = {
    "": lambda rng, shape: rng.normal(size=shape) * 2,
    "positive": lambda rng, shape: rng.uniform(0.1, 3, size=shape),
    "nan": lambda rng, shape: np.where(rng.random(shape) < 0.3, np.nan, rng.normal(size=shape)),
    "from 1": lambda rng, shape: rng.uniform(1, 9, size=shape),
    "unit": lambda rng, shape: rng.uniform(-0.9, 0.9, size=shape),
    "bool": lambda rng, shape: rng.integers(2, size=shape).astype(bool),
    "int": lambda rng, shape: rng.integers(3, size=shape),
    "positive int": lambda rng, shape: rng.integers(1, 4, size=shape),
}


@dataclass(frozen=True)
class Case:
    """A row with one of its examples."""

    row: Row
    example: Example

    def __str__(self) -> str:
        shown = [str(a) for a in self.example.arguments]
        shown += [f"{name}={value}" for name, value in self.example.parameters]
        return f"{self.row.name}({', '.join(shown)})"

    @property
    def kinds(self) -> set[str]:
        """The kinds of the arrays."""
        return {text.rpartition(": ")[0] for text in self.texts}

    @property
    def texts(self) -> list[str]:
        """The descriptions of the arrays in order."""
        flat = []
        for argument in self.example.arguments:
            if isinstance(argument, str):
                flat.append(argument)
            elif isinstance(argument, tuple):
                flat += [a for a in argument if isinstance(a, str)]
        return flat

    def arrays(self) -> list[np.ndarray]:
        """Values for the arrays, the same in every run."""
        rng = np.random.default_rng(zlib.crc32(str(self).encode()))
        return [array(rng, text) for text in self.texts]

    def call(self, function: Any, arrays: list[Any]) -> Any:
        """``function`` of the example's arguments, with ``arrays`` in the places of arrays."""
        left = iter(arrays)

        def filled(argument: Any) -> Any:
            if isinstance(argument, tuple) and any(isinstance(a, str) for a in argument):
                return [filled(a) for a in argument]
            if isinstance(argument, str):
                return next(left)
            return argument.value if isinstance(argument, Text) else argument

        given = [filled(argument) for argument in self.example.arguments]
        return function(*given, **dict(self.example.parameters))


def array(rng: np.random.Generator, text: str) -> np.ndarray:
    """An array as a row's example describes it."""
    kind, _, dims = text.rpartition(": ")
    words = (word.partition("=") for word in dims.split())
    return KINDS[kind](rng, tuple(int(size) if size else EXTENTS[name] for name, _, size in words))


CASES = [Case(row, example) for row in TABLE for example in row.examples]
