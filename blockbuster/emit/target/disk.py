"""Blockbuster's folders in the user's cache: their files save time, and nothing depends on them.

A cache may be missing, full, read-only, broken or owned by someone else. Then one warning says so,
a temporary folder replaces it until this process ends, and nothing else changes. A file is treated
as missing if it cannot be read, is not a plain file, or belongs to another user. Its content may
still be wrong (a damaged disk, another version), so every reader checks it. Nothing in a cache is
ever run.
"""

from __future__ import annotations

import atexit
import os
import re
import secrets
import shutil
import stat
import tempfile
import threading
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

LARGEST = 1 << 26  # bytes: nothing of ours is longer, and what is longer is not read
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}")
LOCK = threading.Lock()


@dataclass(frozen=True)
class Folder:
    """A folder of ours on disk: ``path`` in the user's cache, or None if that has no place.

    Files have short names of ASCII letters, digits, ``_``, ``-`` and ``.``; other names raise
    ValueError. No method raises OSError.
    """

    name: str
    path: Path | None

    def read(self, name: str) -> bytes | None:
        """The content of a file, or None if there is none that can be read and is ours."""
        _check_name(name)
        for place in self._places():
            with suppress(OSError):
                return _read(place / name)
        return None

    def write(self, name: str, data: bytes) -> Path | None:
        """Put a file in place in one step: a reader sees all of ``data`` or what was there before.

        The file that was written; None, after a warning, where no disk takes it.
        """
        _check_name(name)
        try:
            return _write(_own(self.path), name, data, mode=0o600)
        except OSError as error:
            _warn_once(self.path, error.strerror or str(error))
        with suppress(OSError):
            return _write(_own(_spare() / self.name), name, data, mode=0o600)
        return None

    def names(self) -> tuple[str, ...]:
        """The names of the files, sorted."""
        found: dict[str, None] = {}
        for place in self._places():
            found |= {name: None for name in _listed(place) if NAME.fullmatch(name)}
        return tuple(sorted(found))

    def remove(self, name: str) -> None:
        """Take a file away, where it is there."""
        _check_name(name)
        for place in self._places():
            with suppress(OSError):
                (place / name).unlink()

    def trim(self, most: int) -> None:
        """Take the oldest files away until those that are left have at most ``most`` bytes."""
        for place in self._places():
            files: list[tuple[int, str, int]] = []
            for name in filter(NAME.fullmatch, _listed(place)):
                with suppress(OSError):
                    about = (place / name).lstat()
                    files.append((about.st_mtime_ns, name, about.st_size))
            held = sum(size for _, _, size in files)
            for _, name, size in sorted(files):
                if held <= most:
                    break
                held -= size
                with suppress(OSError):
                    (place / name).unlink()

    def clear(self) -> None:
        """Take all files away, and what an interrupted writer left. Other folders stay."""
        for place in self._places():
            for name in _listed(place):
                with suppress(OSError):
                    (place / name).unlink()

    def _places(self) -> Iterator[Path]:
        """Where files may be: only folders that nobody else can write to."""
        for place in (self.path, *(spare / self.name for spare in SPARE)):
            if place is None:
                continue
            with suppress(OSError):
                _check_own(os.stat(place))
                yield place


def cache_folder(name: str) -> Folder:
    """The folder of ours with this name, in the user's cache. Nothing is made before a write.

    Without platformdirs (a machine where nothing can be installed) it is where Linux has it.
    """
    try:
        root = _user_cache()
    except (RuntimeError, KeyError, OSError):  # nobody knows where this user is at home
        return Folder(name, None)
    # "~" is left as it is where nobody knows, and then it would be made here
    return Folder(name, root / name if root.is_absolute() else None)


def instead_of(path: Path, reason: str) -> Path:
    """A temporary folder for a cache at ``path``, whoever owns it; one warning says why.

    It lives as long as this process. Raises OSError if there is no place for one.
    """
    _warn_once(path, reason)
    return _own(_spare() / path.name)


def write_whole(path: Path, data: bytes) -> Path:
    """Write a file the user asked for: it appears complete, and on the disk, or not at all.

    Makes the folders around it. Raises OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    return _write(path.parent, path.name, data, mode=0o666, durable=True)


def _user_cache() -> Path:
    try:
        from platformdirs import user_cache_path
    except ImportError:
        place = os.environ.get("XDG_CACHE_HOME", "").strip()
        return (Path(place) if place else Path.home() / ".cache") / "blockbuster"
    return user_cache_path("blockbuster")


def _check_name(name: str) -> None:
    if not NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name for a file in a cache")


def _listed(place: Path) -> list[str]:
    """The names of the files in a folder, sorted; other folders are left out."""
    with suppress(OSError), os.scandir(place) as entries:
        return sorted(entry.name for entry in entries if not entry.is_dir(follow_symlinks=False))
    return []


def _read(path: Path) -> bytes:
    """Raises OSError for anything but a file of ours: a folder, a link, a pipe, somebody else's."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(path, flags | getattr(os, "O_BINARY", 0))
    with os.fdopen(descriptor, "rb") as file:
        about = os.fstat(descriptor)
        _check_own(about)
        if not stat.S_ISREG(about.st_mode) or about.st_size > LARGEST:
            raise OSError(f"{path} is no file of ours")
        return file.read(LARGEST)


def _write(folder: Path, name: str, data: bytes, *, mode: int, durable: bool = False) -> Path:
    temporary = folder / f".{secrets.token_hex(8)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    descriptor = os.open(temporary, flags, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if durable:
                os.fsync(descriptor)
        os.replace(temporary, folder / name)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    return folder / name


def _own(path: Path | None) -> Path:
    """The folder, made if it is missing. Raises OSError unless it is there and ours alone."""
    if path is None:
        raise OSError("this user has no home folder")
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    about = os.stat(path)
    if _is_mine(about) and about.st_mode & OTHERS_WRITE:
        os.chmod(path, stat.S_IMODE(about.st_mode) & ~OTHERS_WRITE)
        about = os.stat(path)
    _check_own(about)
    return path


def _is_mine(about: os.stat_result) -> bool:
    return not hasattr(os, "geteuid") or about.st_uid == os.geteuid()


def _check_own(about: os.stat_result) -> None:
    if not _is_mine(about):
        raise PermissionError("it belongs to another user")
    if hasattr(os, "geteuid") and about.st_mode & OTHERS_WRITE:
        raise PermissionError("other users can write to it")


# where the user's cache does not serve -----------------------------------------------

SPARE: list[Path] = []
"""The temporary folder of this process, once there is one."""
WARNED: list[Path | None] = []
"""The cache that this process has warned of."""


def _spare() -> Path:
    """A temporary folder that lives as long as this process. Raises OSError."""
    with LOCK:
        if not SPARE:
            made = Path(tempfile.mkdtemp(prefix="blockbuster-"))
            atexit.register(_remove, made, os.getpid())
            SPARE.append(made)
        return SPARE[0]


def _remove(folder: Path, process: int) -> None:
    if os.getpid() == process:  # not in a copy of the process that made it
        shutil.rmtree(folder, ignore_errors=True)


def _warn_once(path: Path | None, reason: str) -> None:
    """One warning a process, however many files, folders and caches are concerned."""
    with LOCK:
        if WARNED:
            return
        WARNED.append(path)
    where = ascii(str(path)) if path else "the cache"
    warnings.warn(
        f"{where} cannot be used: {reason}. A temporary folder takes the place of each such cache "
        "until this process ends; XDG_CACHE_HOME and TRITON_CACHE_DIR name other places.",
        RuntimeWarning,
        stacklevel=4,
    )
