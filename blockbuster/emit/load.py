"""From a module's text to the module: files named by content, so that tracebacks can be read."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import tempfile
from pathlib import Path
from types import ModuleType


def cache_folder() -> Path:
    """Where generated modules are kept by default: the user's cache folder.

    Without platformdirs (a machine where nothing can be installed) it is where Linux has it.
    """
    try:
        from platformdirs import user_cache_path
    except ImportError:
        return Path.home() / ".cache" / "blockbuster" / "modules"
    return user_cache_path("blockbuster") / "modules"


def load_module(text: str, folder: Path | None = None) -> ModuleType:
    """The module with this source; equal texts give one module.

    The file is written once, under a name made of the text's hash, and put in place in one step:
    another process sees all of it or nothing.
    """
    place = cache_folder() if folder is None else folder
    name = f"blockbuster_{hashlib.sha256(text.encode()).hexdigest()[:24]}"
    if name in sys.modules:
        return sys.modules[name]
    path = place / f"{name}.py"
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        _write(path, text)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
