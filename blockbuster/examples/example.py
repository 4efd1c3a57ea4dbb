"""An example: an array function with the arguments needed to trace and run it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from blockbuster.frontend.program import ArrayProgram
from blockbuster.frontend.trace import trace


@dataclass(frozen=True)
class Example:
    """An array function with the dims of its inputs and small sizes to run it at."""

    name: str
    fn: Callable[..., Any]
    inputs: Mapping[str, str]
    sizes: Mapping[str, int]

    def program(self) -> ArrayProgram:
        """The traced array program."""
        return trace(self.fn, **self.inputs)
