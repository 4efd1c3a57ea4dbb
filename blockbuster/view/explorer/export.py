"""Writes the explorer's page to a file, for ``Derivation.to_html`` and the commands."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path

from blockbuster.rules import Derivation
from blockbuster.view.explorer.data import explorer_data
from blockbuster.view.explorer.page import page, write_whole
from blockbuster.view.explorer.setting import Setting


def write_html(
    derivation: Derivation,
    path: str | PathLike[str],
    setting: Setting,
    *,
    title: str = "",
    prove: bool = True,
    progress: Callable[[str], None] = lambda _: None,
) -> Path:
    """Write the page; the file appears complete or not at all. Returns its path."""
    data = explorer_data(derivation, setting, title=title, prove=prove, progress=progress)
    return write_whole(Path(path), page(data))
