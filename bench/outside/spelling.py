"""What a program written in several ways is made of: sizes that are drawn, and texts."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

Shapes = Mapping[str, tuple[int, ...]]


@dataclass
class Draw:
    """Sizes from a seed: those of GPUs, or ``small`` ones at which programs are computed."""

    random: Random
    small: bool = False

    def size(self, *choices: int) -> int:
        """A size: one of ``choices``, or its 64th part and 2."""
        chosen = self.random.choice(choices)
        return chosen // 64 + 2 if self.small else chosen

    def few(self, *choices: int) -> int:
        """A number that stays as it is: of heads, of taps."""
        return self.random.choice(choices)


@dataclass(frozen=True)
class Written:
    """One spelling: an expression or statements, and what stands in front of the function."""

    body: str
    before: str = ""

    @property
    def of_numpy(self) -> bool:
        """True if NumPy's names stand in it, so that it takes NumPy's arrays."""
        return "np." in self.before + self.body

    def text(self, names: str) -> str:
        """The source of a function of arrays ``names``."""
        *lines, last = self.body.strip().split("\n")
        inside = "".join(f"    {line.strip()}\n" for line in lines)
        return f"{self.before}\ndef f({names}):\n{inside}    return {last.strip()}\n"

    def function(self, names: str, where: str) -> Callable[..., Any]:
        """The function itself, with a file name ``where`` for reports."""
        import numpy
        import torch

        text = self.text(names)
        linecache.cache[where] = (len(text), None, text.splitlines(keepends=True), where)
        made: dict[str, Any] = {"np": numpy, "torch": torch, "F": torch.nn.functional}
        exec(compile(text, where, "exec"), made)
        function: Callable[..., Any] = made["f"]
        return function


@dataclass(frozen=True)
class Spelled:
    """One computation in several ways, with the shapes of its arrays."""

    shapes: Shapes
    ways: tuple[Written, ...]

    @property
    def names(self) -> str:
        """The parameters of each function."""
        return ", ".join(self.shapes)


def spelled(shapes: Shapes, *ways: str | tuple[str, str]) -> Spelled:
    """A computation of arrays ``shapes``; ``ways`` are bodies, or bodies and what comes before."""
    written = tuple(Written(way) if isinstance(way, str) else Written(*way) for way in ways)
    return Spelled(shapes, written)
