"""Protections taken out, by name, to see whether what stands behind them catches what is wrong.

For developers alone, and for a whole process: it patches Blockbuster from outside, which has no
such switches itself (but ``jit(check=False)``).
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import blockbuster as bb

FIRST_CHECK = "first-check"

PREDICATES: Mapping[str, str] = {
    "shared-base": "blockbuster.emit.target.shared_base:bases_of_two_swizzles",
    "exchanged-rows": "blockbuster.emit.target.exchanged_rows:exchanged_rows",
    "unwritten-reads": "blockbuster.emit.target.unwritten:unwritten_reads",
}
"""The functions that find fault with a compiled kernel: each gives a tuple of faults."""


def names() -> tuple[str, ...]:
    """What can be taken out, beside "module:function"."""
    return (FIRST_CHECK, *PREDICATES)


def take_out(given: Sequence[str]) -> bool | None:
    """Take protections out of this process; what ``check`` of ``bb.jit`` has to be, or None.

    A predicate finds nothing any more: its function gives () in every module that holds it. Raises
    ValueError where it is not there.
    """
    for name in given:
        if name != FIRST_CHECK:
            _find_nothing(protection(name))
    return False if FIRST_CHECK in given else None


def protection(name: str) -> Any:
    """The function behind a name, or ``jit``'s own check. Raises ValueError where there is none."""
    if name == FIRST_CHECK:
        if "check" not in inspect.signature(bb.jit).parameters:
            raise ValueError(f"no protection {name!r}: bb.jit has no parameter 'check'")
        return FIRST_CHECK
    module, _, function = PREDICATES.get(name, name).partition(":")
    try:
        return getattr(import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        known = ", ".join(names())
        raise ValueError(f"no protection {name!r} ({error}); known: {known}") from error


def _find_nothing(found: Any) -> None:
    for holder in list(sys.modules.values()):
        for key, value in list(getattr(holder, "__dict__", {}).items()):
            if value is found:
                setattr(holder, key, lambda *_, **__: ())
