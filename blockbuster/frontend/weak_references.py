"""Checks of what weak references refer to, which keep nothing of it alive.

A reference refers to one object until that dies, so an object that a function reaches in another
way, too, needs no check but this one. For an object that is reached by a weak reference alone, the
checks of ``reads`` would keep it alive; here its attributes are compared by value.
"""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from blockbuster.frontend.fixed import is_plain, static
from blockbuster.frontend.holders import (
    ABSENT,
    Check,
    Unknown,
    class_reader,
    has_attributes_only,
    is_leaf,
    truth,
)

Reference = weakref.ReferenceType[Any]


def expect_plain(reference: Reference) -> None:
    """Raise Unknown for classes on top of weak references: they may hold more."""
    if type(reference) is not weakref.ref:
        raise Unknown(f"it can read a {type(reference).__name__}, which may change unseen")


def lives(reference: Reference) -> tuple[Check, Any, Any]:
    """A check that the referent lives."""
    return truth(lambda: reference() is not None)


def lasting(reference: Reference) -> Iterator[Any]:
    """What stays of the referent: a library's class, or the class of a user's object."""
    referent = reference()
    if isinstance(referent, type) and is_leaf(referent):
        yield referent
    elif has_attributes_only(referent):
        yield type(referent)


def attributes(reference: Reference, names: Sequence[str]) -> tuple[Check, Any, Any]:
    """A check that the referent lives, and that its attributes of these names are what they are.

    Raises Unknown if another object is among them, or if the referent may hold more.
    """
    referent = reference()
    kind = type(referent)
    own = referent.__dict__ if has_attributes_only(referent) else {}
    slots = any(isinstance(class_reader(kind)(n, None), types.MemberDescriptorType) for n in names)
    plain = all(is_plain(own[name]) for name in names if name in own)
    if not has_attributes_only(referent) or slots or not plain:
        raise Unknown(f"it can read a {kind.__name__} that only a weak reference leads to")
    state = _state_of(reference, names)
    before = state()
    return truth(lambda: state() == before)


def _state_of(reference: Reference, names: Sequence[str]) -> Callable[[], tuple[Any, ...] | None]:
    def state() -> tuple[Any, ...] | None:
        referent = reference()
        if referent is None:
            return None
        own = referent.__dict__
        return type(referent), *(static(own.get(name, ABSENT)) for name in names)

    return state
