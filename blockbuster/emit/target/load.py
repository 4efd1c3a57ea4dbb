"""Imports a module from its text, under a name made from its content, so that tracebacks work."""

from __future__ import annotations

import hashlib
import io
import linecache
import os
import sys
import threading
from importlib.abc import ExecutionLoader
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType

from blockbuster.emit.target.disk import Folder, cache_folder

LOADING = [threading.RLock()]
WHOLE: dict[str, ModuleType] = {}
"""Modules that are loaded to their end: those in `sys.modules` may be half of one."""


def load_module(text: str, folder: Path | None = None) -> ModuleType:
    """The module with this source; equal texts give one module, in all threads a whole one.

    What runs is ``text``. It is written to a file too (in ``folder``, or the user's cache), for
    tracebacks, debuggers and profilers to show; the file is never run, nor needed.
    """
    name = f"blockbuster_{hashlib.sha256(text.encode()).hexdigest()[:24]}"
    found = WHOLE.get(name)
    if found is not None and sys.modules.get(name) is found:
        return found
    with LOADING[0]:
        found = WHOLE.get(name)
        if found is None or sys.modules.get(name) is not found:
            kept = cache_folder("modules") if folder is None else Folder(folder.name, folder)
            found = WHOLE[name] = _loaded(name, text, kept)
    return found


def _loaded(name: str, text: str, folder: Folder) -> ModuleType:
    path = str(_written(f"{name}.py", text.encode(), folder))
    loader = _Source(path, text)
    spec = ModuleSpec(name, loader, origin=path)
    spec.has_location = True  # which gives the module its __file__
    module = module_from_spec(spec)
    # without a time, an entry is never compared with the disk: sources are seen as they run
    linecache.cache[path] = (len(text), None, io.StringIO(text).readlines(), path)
    sys.modules[name] = module
    try:
        loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _written(name: str, data: bytes, folder: Folder) -> Path:
    """Where the text stands for those who want to read it; a mere name where no disk takes it."""
    if folder.path is not None and folder.read(name) == data and (folder.path / name).exists():
        return folder.path / name
    return folder.write(name, data) or Path(name)


class _Source(ExecutionLoader):
    """Loads a module from its text: what is on the disk plays no part."""

    def __init__(self, path: str, text: str) -> None:
        self._path = path
        self._text = text

    def get_filename(self, fullname: str) -> str:
        """What tracebacks call the file."""
        return self._path

    def get_source(self, fullname: str) -> str:
        """The text: what runs, and what tools ask for where they find no file."""
        return self._text


def _forget_lock() -> None:
    """In a copy of this process: the thread that held the lock is not in it."""
    LOADING[0] = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_lock)
