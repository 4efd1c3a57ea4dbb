"""Python operations that need values, which a traced array lacks: one refusal for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from blockbuster.frontend.source import trace_error

WORDS: dict[str, tuple[str, str]] = {
    "__bool__": (
        "a traced array has no values to decide: if, while, and, or, not, assert and a < x < b"
        " need one",
        "bb.where(condition, x, y) chooses element by element; & | ~ combine masks:"
        " (a < x) & (x < b)",
    ),
    "__float__": (
        "a traced array has no values to convert to a float, which functions of math, and elements"
        " of NumPy's arrays, need",
        "functions of bb and NumPy take arrays: bb.exp(x) for math.exp(x); o = bb.zeros_like(x)"
        " takes traced elements",
    ),
    "__int__": (
        "a traced array has no values to convert to an int",
        "sizes come from x.shape; bb.floor(x) rounds down",
    ),
    "__index__": (
        "a traced array has no values to count or index with",
        "sizes come from x.shape, positions from bb.arange(n): bb.where(i == position, x, 0)",
    ),
    "__complex__": ("a traced array has no values to convert, and none is complex", ""),
    "__len__": (
        "the length of a traced array is not known while tracing",
        "x.shape[0] takes part in arithmetic",
    ),
    "__contains__": (
        "a traced array has no values to search with `in`",
        "bb.any(x == value) is a mask of one element",
    ),
    "__array__": (
        "a traced array has no values to become a NumPy array",
        "use functions of bb and NumPy on it as it is; bb.stack([x, y]) for np.array([x, y]);"
        " bb.zeros_like(x) for np.zeros(shape) whose elements are set;"
        " bb.take(table, x, axis=0) for table[x]; bb.custom(fn, x, shape=x.shape) takes"
        " functions of arrays",
    ),
    "__delitem__": ("no elements are deleted", "x[a:b] takes a piece; bb.concat joins pieces"),
}
"""For each method of Python's, why it cannot be answered, and what to use."""


def _refusing(name: str) -> Callable[..., NoReturn]:
    reason, hint = WORDS[name]

    def method(_self: object, *_: object, **__: object) -> NoReturn:
        raise trace_error(reason, hint=hint)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"Raises TraceError: {reason}."
    return method


class NoValues:
    """An object without values: what asks for them raises TraceError, with the user's line."""

    __bool__, __float__, __int__ = (
        _refusing("__bool__"),
        _refusing("__float__"),
        _refusing("__int__"),
    )
    __index__, __complex__ = _refusing("__index__"), _refusing("__complex__")
    __len__, __contains__ = _refusing("__len__"), _refusing("__contains__")
    __array__ = _refusing("__array__")
    __delitem__ = _refusing("__delitem__")

    def __format__(self, spec: str) -> str:
        if spec:
            reason = f"a traced array has no values to write as {spec!r}"
            raise trace_error(reason, hint="return it, and print what the jitted function returns")
        return repr(self)
