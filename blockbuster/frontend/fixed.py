"""Fixed values as parts of keys: values have one key only if a trace cannot tell them apart.

Python's own equality is too coarse: 1 == True, 0.0 == -0.0, range(0) == range(1, 1), and a class
may define its own. So plain values are compared by type and content, and all others by identity;
``reads`` watches the contents of the latter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Same:
    """An object as part of a key: equal to itself only, and kept alive with the key."""

    value: Any = field(repr=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def _itself(value: Any) -> Any:
    return value


_PLAIN: Mapping[type, Callable[[Any], Any]] = {
    **dict.fromkeys((bool, int, str, bytes, type(None), type(Ellipsis)), _itself),
    **dict.fromkeys((float, complex), repr),  # tells -0.0 from 0.0, and nan is nan
    tuple: lambda value: tuple(map(static, value)),
    frozenset: lambda value: frozenset(map(static, value)),
}


def static(value: Any) -> tuple[Any, ...]:
    """A fixed value as part of a key: 1, 1.0 and True are different values, as are 0.0 and -0.0.

    >>> static((1, True)) == static((1.0, 1)), static(0.0) == static(-0.0)
    (False, False)
    """
    kind = type(value)
    content = _PLAIN.get(kind)
    if content is not None:
        return kind, content(value)
    if isinstance(value, np.generic) and value.dtype.kind != "O":
        return kind, value.dtype.str, value.tobytes()
    if _is_record(value):
        return kind, static(tuple(value) if isinstance(value, tuple) else _fields(value))
    return kind, Same(value)


def is_atom(value: Any) -> bool:
    """True for numbers, strings and other values without parts."""
    kind = type(value)
    known = kind in _PLAIN and kind not in (tuple, frozenset)
    return known or (isinstance(value, np.generic) and value.dtype.kind != "O")


def is_plain(value: Any) -> bool:
    """True if the key of ``value`` says all of it: nothing inside can change unseen."""
    if type(value) in (tuple, frozenset) or _is_record(value):
        inside = value if isinstance(value, tuple | frozenset) else _fields(value)
        return all(map(is_plain, inside))
    return is_atom(value)


class _Bare:
    """A class whose instances have a ``__dict__`` and nothing else."""


def _is_record(value: Any) -> bool:
    """True for named tuples and instances of frozen dataclasses, which hold fields only."""
    kind = type(value)
    if isinstance(value, tuple):
        return hasattr(kind, "_fields") and not kind.__dictoffset__
    form = getattr(kind, "__dataclass_params__", None)
    return form is not None and form.frozen and kind.__basicsize__ == _Bare.__basicsize__


def _fields(value: Any) -> tuple[Any, ...]:
    """All that an instance of a frozen dataclass holds, under its names."""
    return tuple(item for pair in sorted(vars(value).items()) for item in pair)
