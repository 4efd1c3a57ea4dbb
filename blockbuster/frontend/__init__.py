"""The frontend: tracing of array functions, the NumPy oracle, and lowering to block programs."""

from typing import Any

from blockbuster.frontend import functions
from blockbuster.frontend.lower import lower
from blockbuster.frontend.program import ArrayProgram
from blockbuster.frontend.trace import trace

__all__ = ["ArrayProgram", "functions", "lower", "trace"]


def __getattr__(name: str) -> Any:
    """An array function, from the table of functions."""
    return getattr(functions, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(functions)})
