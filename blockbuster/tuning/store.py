"""The store of measurements: one file per kernel in the user's cache.

A file is replaced in one step, so writers do not disturb each other or a reader: the last one
stays. A damaged file is removed with a warning, and is written again when the kernel is measured
again.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from blockbuster.emit.target.disk import Folder, cache_folder, write_whole
from blockbuster.errors import LaunchError, message, shown
from blockbuster.ir.documents import AnotherVersion, check_schema, document, read_document
from blockbuster.ir.reading import Wrong, items, parse_json, record, text
from blockbuster.tuning.entry import Entry, Key, read_entry
from blockbuster.version import VERSION

SCHEMA = "blockbuster.tuning/2"
SCHEMA_OF_FILES = "blockbuster.tuning.file/1"
MOST = 64 << 20
"""Bytes that the cache holds of measurements; the oldest go first."""


@dataclass(frozen=True)
class Store:
    """Measurements in a folder of the user's cache."""

    folder: Folder = field(default_factory=lambda: cache_folder("tuned"))

    def found(self, key: Key, versions: Callable[[], tuple[str, str]]) -> Entry | None:
        """The measurements for a key, whose versions of Triton and the assembler come last.

        ``versions`` is called only if results for the program exist.
        """
        names = [name for name in self.folder.names() if name.startswith(key.question)]
        if not names:
            return None
        triton, assembler = versions()
        own = replace(key, triton=triton, assembler=assembler)
        return self.read(own.name) if own.name in names else None

    def read(self, name: str) -> Entry | None:
        """The entry in a file of the folder; None if there is none, or none of this version.

        A damaged file is removed with a warning.
        """
        data = self.folder.read(name)
        if data is None:
            return None
        try:
            entry: Entry = read_document(parse_json(data), SCHEMA, entry=read_entry)["entry"]
            return entry
        except AnotherVersion:
            return None
        except Wrong as wrong:
            self.folder.remove(name)
            warnings.warn(
                f"measurements in {shown(name)} are damaged and left out: {wrong}; "
                "the kernel is measured again where tune='measure'",
                RuntimeWarning,
                stacklevel=2,
            )
            return None

    def write(self, entry: Entry) -> bool:
        """Keep an entry, instead of an earlier one for its key.

        False, after a warning, if the user's cache does not take it.
        """
        kept = document(SCHEMA, entry=entry.to_json())
        data = (json.dumps(kept, indent=1) + "\n").encode()
        path = self.folder.write(entry.key.name, data)
        self.folder.trim(MOST)
        return path is not None and path.parent == self.folder.path

    def take_in(self, entries: Sequence[Entry], path: str) -> int:
        """Write the entries of a file that this version can use; the number of those.

        Raises LaunchError if it can use none of them, or if the user's cache does not take them.
        """
        usable = [entry for entry in entries if entry.key.version == VERSION]
        if entries and not usable:
            known = ", ".join(dict.fromkeys(shown(one.key.version, 40) for one in entries))
            raise LaunchError(
                message(
                    f"{shown(path)} holds results of Blockbuster {known}, and this is {VERSION}: "
                    "measured times count for the version that made the kernels",
                    hint="measure them again with `blockbuster tune`",
                )
            )
        for at, entry in enumerate(usable):
            if not self.write(entry):
                what = f"{self.folder.path or 'the cache'} cannot be written"
                raise LaunchError(message(f"{what}: imported {at} of {len(usable)} kernels"))
        return len(usable)

    def entries(self) -> Iterator[Entry]:
        """All entries of the folder that this version reads, by the names of their files."""
        for name in self.folder.names():
            if name.endswith(".json") and (entry := self.read(name)):
                yield entry


# one file for many entries --------------------------------------------------------------


def write_file(entries: Iterable[Entry], path: Path) -> Path:
    """Write entries into one file that can be shipped with a program. Raises OSError."""
    ordered = sorted(entries, key=lambda entry: (entry.kernel, entry.key.name))
    document = {"schema": SCHEMA_OF_FILES, "entries": [entry.to_json() for entry in ordered]}
    return write_whole(path, (json.dumps(document, indent=1) + "\n").encode())


def read_file(data: bytes, path: str = "a file of measurements") -> tuple[Entry, ...]:
    """The entries of an exported file. Raises LaunchError, with the place, if it is not one."""
    try:
        found = parse_json(data)
        check_schema(found, SCHEMA_OF_FILES)
        entries: tuple[Entry, ...] = record(found, schema=text, entries=items(read_entry))[
            "entries"
        ]
    except Wrong as wrong:
        raise LaunchError(
            message(
                f"{shown(path)} cannot be read: {wrong}",
                hint="`blockbuster cache export FILE` writes such files",
            )
        ) from None
    return entries
