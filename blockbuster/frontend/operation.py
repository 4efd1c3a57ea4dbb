"""An operation that is about to be recorded, as what may record it as others takes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from blockbuster.frontend.array import TracedArray
from blockbuster.frontend.kinds import scalar_kind
from blockbuster.frontend.sizes import scalar

if TYPE_CHECKING:
    from blockbuster.frontend.trace import Trace


class Operation(NamedTuple):
    """``kinds``: those of the operands, as ``kinds.py`` has them."""

    trace: Trace
    op: str
    operands: Sequence[Any]
    params: Mapping[str, Any]
    kinds: Sequence[str]


Recognizer = Callable[[Operation], TracedArray | None]
"""Records an operation as others that compute the same; None if it is best as it stands."""


def kind_of(operand: Any) -> str:
    """The kind of an operand; empty if it is none, which is refused later."""
    if isinstance(operand, TracedArray):
        return operand.kind
    known = hasattr(operand, "dtype") or scalar(operand) is not None
    return scalar_kind(operand) if known else ""
