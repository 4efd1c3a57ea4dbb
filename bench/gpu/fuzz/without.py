"""Protections taken out, by name, to see whether what stands behind them catches what is wrong.

For developers alone, and for a whole process: it patches Blockbuster from outside, which has no
such switches itself (but ``jit(check=False)``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

FIRST_CHECK = "first-check"

PREDICATES: Mapping[str, Callable[[], None]] = {}
"""What takes a target predicate out. An entry replaces the function that refuses a kernel by one
that refuses nothing, in every module that holds it."""


def names() -> tuple[str, ...]:
    """What can be taken out."""
    return (FIRST_CHECK, *PREDICATES)


def take_out(given: Sequence[str]) -> bool | None:
    """Take protections out of this process; what ``check`` of ``bb.jit`` has to be, or None."""
    for name in given:
        if name in PREDICATES:
            PREDICATES[name]()
    return False if FIRST_CHECK in given else None
