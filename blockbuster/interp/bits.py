"""Functions of the bits of integers, which fractions and decimals hold exactly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from blockbuster.interp.semantics import Refused

WIDEST = 64  # bits of an integer


def _left(x: int, by: int) -> int:
    return x << by if 0 <= by < WIDEST else 0


def _right(x: int, by: int) -> int:
    return x >> by if 0 <= by < WIDEST else -(x < 0)


_FUNCTIONS: Mapping[str, Callable[[int, int], int]] = {
    "bitand": lambda x, y: x & y, "shl": _left, "shr": _right,
}  # fmt: skip


def exact_bits(number: Callable[[int], Any]) -> dict[str, Callable[..., Any]]:
    """Each function of ``ir.expr.BITWISE``.

    ``number`` makes its result a number of the semantics. The functions raise Refused for numbers
    that are not whole.
    """

    def exact(fn: Callable[[int, int], int]) -> Callable[..., Any]:
        def function(*args: Any) -> Any:
            if any(abs(x) == float("inf") or x != x or x != int(x) for x in args):
                raise Refused("the bits of what is no integer")
            return number(fn(*map(int, args)))

        return function

    return {name: exact(fn) for name, fn in _FUNCTIONS.items()}
