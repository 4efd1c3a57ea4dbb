"""The options of the backend: those of ``jit`` that hold for whole models, and two of its own."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from blockbuster.errors import among, message

OF_JIT = ("check", "effort", "fusers", "library", "machine", "tune")
"""Not ``graph``: a captured graph may be called again before its results are read. Not ``constant``
and ``one_kernel``: the names and the extent of pieces are not the user's.
"""


@dataclass(frozen=True)
class Options:
    """``of_jit``: passed on. ``strict``: what is refused is an error, not run eagerly.

    ``report``: called with a text for each captured graph, and for each piece that is compiled.
    """

    of_jit: Mapping[str, Any]
    strict: bool = False
    report: Callable[[str], Any] | None = None

    def warn(self, what: str) -> None:
        """Say that something runs eagerly: Python shows equal warnings once."""
        warnings.warn(f"Blockbuster: {what}", UserWarning, stacklevel=2)


def options_of(given: Mapping[str, Any] | None) -> Options:
    """The options that ``torch.compile(..., options=...)`` gave. Raises ValueError for others."""
    rest = dict(given or {})
    own = {name: rest.pop(name) for name in ("strict", "report") if name in rest}
    for name in rest:
        if name not in OF_JIT:
            hint = among(name, (*OF_JIT, "report", "strict"))
            raise ValueError(message(f"unknown option {name!r} of the backend", hint=hint))
    return Options(rest, **own)
