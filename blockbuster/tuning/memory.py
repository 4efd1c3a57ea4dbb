"""Decisions on disk: which kernels a program became, so that the next process need not search.

One file for each program and its sizes in the user's cache. Its name is a hash of all that the
search sees: the program, dtypes, the numbers of the machine, and the code of this package. Files
hold decisions (selection/decision.py), no text that is run: kernels are made anew from them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from blockbuster.emit.target.disk import Folder, cache_folder
from blockbuster.frontend.program import ArrayProgram
from blockbuster.frontend.saved_program import program_to_json
from blockbuster.ir.documents import digest, document, read_document
from blockbuster.ir.reading import Wrong, parse_json
from blockbuster.ir.saving import Classes
from blockbuster.ir.types import Dim
from blockbuster.selection.decision import Decision, read_decision
from blockbuster.version import VERSION

SCHEMA = "blockbuster.decision/2"
MOST = 16 << 20
"""Bytes that the cache holds of decisions; the oldest go first."""


@dataclass(frozen=True)
class Decisions:
    """The decisions for one program; ``program`` is a hash of it, and of how kernels are chosen."""

    program: str
    folder: Folder = field(default_factory=lambda: cache_folder("decided"))

    def recall(self, sizes: Mapping[Dim, int]) -> Decision | None:
        """What was decided at these sizes. A damaged file is removed."""
        name = self._name(sizes)
        data = self.folder.read(name)
        if data is None:
            return None
        try:
            found: Decision = read_document(parse_json(data), SCHEMA, decision=read_decision)[
                "decision"
            ]
            return found
        except Wrong:  # nothing is lost but the time of a search
            self.folder.remove(name)
            return None

    def keep(self, sizes: Mapping[Dim, int], decision: Decision) -> None:
        """Remember a decision."""
        kept = document(SCHEMA, decision=decision.to_json())
        self.folder.write(self._name(sizes), json.dumps(kept).encode())
        self.folder.trim(MOST)

    def forget(self) -> None:
        """Forget all decisions for the program: a compiler refused kernels of one."""
        for name in self.folder.names():
            if name.startswith(self.program):
                self.folder.remove(name)

    def _name(self, sizes: Mapping[Dim, int]) -> str:
        return f"{self.program}-{digest(sorted(sizes.items()))[:16]}.json"


def decisions_for(program: ArrayProgram, classes: Classes, **chosen_by: Any) -> Decisions | None:
    """The decisions for a program, whose kernels are chosen by values with exact texts.

    ``classes``: the callable objects of ours that it may hold. None for a program with functions
    that have no name by which another process would find them.
    """
    try:
        content = program_to_json(program, classes)
    except ValueError:
        return None
    given = [f"{name}={value!r}" for name, value in sorted(chosen_by.items())]
    return Decisions(digest([content, given, *_code()])[:32])


@cache
def _code() -> tuple[Any, ...]:
    """What tells one state of this package, and of those by which it chooses, from another."""
    root = Path(__file__).parents[1]
    files = [path for path in root.rglob("*") if path.suffix in (".py", ".toml")]
    states = [(str(path.relative_to(root)), path.stat()) for path in sorted(files)]
    versions = []
    for name in ("triton", "torch"):
        with suppress(PackageNotFoundError):
            versions.append(f"{name} {version(name)}")
    changes = [(name, about.st_size, about.st_mtime_ns) for name, about in states]
    return VERSION, *versions, digest(changes)
