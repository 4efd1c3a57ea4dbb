"""Guard zones around a launcher's own allocations, for a process that runs nothing else.

Most launchers allocate their results: ``out = torch.empty_like(x)``. A store outside such an array
lands in memory that an allocator rounded up, and nothing shows it. So while a kernel is called,
``np.empty``, ``np.empty_like`` and torch's allocating functions return arrays between guard zones,
and unwritten elements hold the same patterns as an output.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from blockbuster.check.guarded import Guarded, guarded, laid, packed
from blockbuster.runtime.launch import watching

Array = Any  # a NumPy array or a torch tensor
LARGEST = 2**26  # bytes: larger arrays would make a check slow, and get no guard zones


@contextmanager
def guarding(turn: int) -> Iterator[list[Guarded]]:
    """The arrays that are allocated in this context, between guard zones."""
    found: list[Guarded] = []

    def made(array: Array, *, empty: bool) -> Array:
        """The array that takes the place of a new one."""
        if not _fits(array):
            return array
        name = f"an array of shape {tuple(array.shape)} that the launcher allocates"
        found.append(guarded(laid(name, array) if empty else packed(name, array), turn))
        return found[-1].view

    with ExitStack() as stack:
        for name in ("empty", "empty_like"):
            stack.callback(setattr, np, name, getattr(np, name))
            setattr(np, name, _guarding(getattr(np, name), made))
        if "torch" in sys.modules:
            stack.enter_context(watching(made))
        yield found


def _guarding(allocate: Callable[..., Array], made: Callable[..., Array]) -> Callable[..., Array]:
    def allocated(*arguments: Any, **named: Any) -> Array:
        return made(allocate(*arguments, **named), empty=True)

    return allocated


def _fits(array: Array) -> bool:
    """True for a plain array of plain numbers, that is neither empty nor very large."""
    if isinstance(array, np.ndarray):
        plain = type(array) is np.ndarray and array.dtype.kind in "biuf"
        return plain and 0 < array.nbytes <= LARGEST
    size: int = array.numel() * array.element_size()
    return 0 < size <= LARGEST
