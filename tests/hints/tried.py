"""A hint that is tried: a program that is refused with it, and the program that follows it."""

from collections.abc import Callable
from dataclasses import dataclass

import blockbuster as bb


@dataclass(frozen=True)
class Tried:
    """``wrong`` raises an error whose hint contains ``hint``; ``right`` does as it says.

    ``then``: words of the next error, where following the hint leads to one.
    """

    hint: str
    wrong: Callable[[], object]
    right: Callable[[], object]
    then: str = ""


def traced(hint, wrong, right=None, *, then="", fixed=None, **inputs):
    """Functions that are traced for ``inputs``, the right one for ``fixed`` ones; x = "M N"."""
    inputs = inputs or {"x": "M N"}
    right, others = right or wrong, inputs if fixed is None else inputs | fixed
    return Tried(
        hint,
        lambda: bb.trace(wrong, **inputs),
        lambda: bb.lower(bb.trace(right, **others)),
        then,
    )
