"""Tensors that a traced function makes itself, ``torch.zeros(4, 6)``, and then changes in place.

torch makes them of numbers alone, so they are tensors as any other, and a program reads them as
constants: then the library's own functions compute what is made of them. A tensor that takes traced
values cannot be one. So if a trace fails, the function is traced once more with traced arrays in
place of all new tensors of one number.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import isnan
from typing import TYPE_CHECKING, Any, TypeVar

from blockbuster.errors import TraceError
from blockbuster.frontend.functions.filled import filled, positions
from blockbuster.frontend.torch import exchanging
from blockbuster.ir.dtypes import TRUTH

if TYPE_CHECKING:
    from blockbuster.frontend.trace import Trace

_T = TypeVar("_T")


def with_made(begun: Callable[[], Trace], traced: Callable[[Trace], _T]) -> tuple[Trace, _T]:
    """A new trace, and what ``traced`` makes of it; of a function of tensors, also with traced
    arrays for the tensors that it makes. If neither can be traced, raises the TraceError of the
    one that recorded more.
    """
    recording = begun()
    try:
        return recording, traced(recording)
    except TraceError as error:
        if not recording.of_tensors:
            raise
        anew, told = begun(), error
        try:
            with exchanging(partial(_traced_for, anew)):
                return anew, traced(anew)
        except TraceError as later:
            told = later if len(anew.recorded[1]) > len(recording.recorded[1]) else error
        except (TypeError, ValueError, RuntimeError):
            pass  # of a library that takes tensors alone
        raise told from None


def _traced_for(trace: Trace, made: Any) -> Any:
    """The traced array for a new tensor of one number, or of whole numbers as far from each other;
    a tensor without axes or elements stays.
    """
    if not made.ndim or not made.numel():
        return made
    dtype = str(made.dtype).removeprefix("torch.")
    first, *others = made.flatten()[:2].tolist()
    if others and others[0] != first and not isnan(first):
        if not isinstance(first, int):
            return made
        return (positions(trace, len(made), 0, 1) * (others[0] - first) + first).astype(dtype)
    found = filled(trace, tuple(made.shape), first)
    return found != 0 if dtype == TRUTH else found.astype(dtype)
