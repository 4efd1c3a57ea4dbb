"""The measurements of `blockbuster calibrate` on this computer: one file per device."""

from __future__ import annotations

import os
import re
from pathlib import Path

from blockbuster.machines.data_file import read_machine
from blockbuster.machines.machine import Machine


def measured(device: str) -> Machine | None:
    """The machine that was measured for a device of this name; None until it was.

    Raises ValueError for a file that is damaged.
    """
    path = measured_path(device)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    return read_machine(text, str(path))


def measured_path(device: str) -> Path:
    """The path of a device's measurements, in the user's configuration folder.

    >>> measured_path("NVIDIA H200").name
    'nvidia-h200.toml'
    """
    words = re.sub(r"[^a-z0-9]+", "-", device.lower()).strip("-")
    return _user_config() / "machines" / f"{words or 'device'}.toml"


def _user_config() -> Path:
    """Without platformdirs (a machine where nothing can be installed) it is where Linux has it."""
    try:
        from platformdirs import user_config_path
    except ImportError:
        place = os.environ.get("XDG_CONFIG_HOME", "").strip()
        return (Path(place) if place else Path.home() / ".config") / "blockbuster"
    return user_config_path("blockbuster")
