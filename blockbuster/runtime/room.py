"""The memory that a check of results may take beside what a program takes itself.

A check must never be the reason why a call, or another process on the device, runs out of memory.
So all checks together hold at most one part in ``SHARE`` of the memory that is free when they
begin. What needs more is not checked, and the report says so. As much may be held by arrays for
which kernels are compiled before they run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from math import prod
from typing import Any

from blockbuster.emit.target.gpu import free_bytes

Tensor = Any
Empty = Callable[[tuple[int, ...], tuple[int, ...], Any], Tensor]
"""Makes an array of a shape, with these strides and of this dtype, which is not written yet."""

SHARE = 10
UNKNOWN = 1 << 32
"""Free bytes of a host that does not say."""


class NoRoom(Exception):
    """A check would take too much memory; the message says how much."""


def room(device: Any) -> int:
    """How many bytes a check may take on a device."""
    free = free_bytes(device) if device.type == "cuda" else _free_on_host()
    return free // SHARE


def _free_on_host() -> int:
    with suppress(AttributeError, ValueError, OSError):  # systems that do not say
        pages, size = os.sysconf("SC_AVPHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
        if pages > 0 and size > 0:
            return pages * size
    return UNKNOWN


def taken(tensors: Iterable[Tensor]) -> int:
    """The bytes of tensors."""
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def within(allowed: int, empty: Empty) -> Empty:
    """``empty`` for arrays that take at most so many bytes in all; then it raises NoRoom."""
    needed = 0

    def made(shape: tuple[int, ...], steps: tuple[int, ...], dtype: Any) -> Tensor:
        nonlocal needed
        needed += prod(shape) * dtype.itemsize
        if needed > allowed:
            raise NoRoom(too_much(needed, allowed))
        return empty(shape, steps, dtype)

    return made


def too_much(needed: int, allowed: int) -> str:
    """Why a check is left out that needs so many bytes of those that it may take."""
    return f"that takes {_gigabytes(needed)}, and a check may take {_gigabytes(allowed)} now"


def _gigabytes(number: int) -> str:
    return f"{number / 1e9:.3g} GB"
