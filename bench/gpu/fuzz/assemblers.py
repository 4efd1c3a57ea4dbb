"""The installed PTX assemblers: Triton's own, the toolkit's, those of NVIDIA's wheels."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

CHOSEN = "chosen"  # what Triton, or Blockbuster, takes on its own


def assemblers(asked: str) -> list[str]:
    """The paths that ``--assembler`` means: "chosen", a path, or "all".

    Raises ValueError for a path that is no assembler.
    """
    if asked == CHOSEN:
        return [CHOSEN]
    if asked == "all":
        return found()
    if not version(asked):
        raise ValueError(f"{asked} is no ptxas: it does not say its version")
    return [asked]


def found() -> list[str]:
    """One path for each version that is there."""
    places = [os.environ.get("TRITON_PTXAS_PATH", ""), shutil.which("ptxas") or ""]
    triton = find_spec("triton")
    if triton is not None and triton.origin:
        bundled = Path(triton.origin).parent / "backends" / "nvidia" / "bin"
        places += [str(bundled / "ptxas"), str(bundled / "ptxas-blackwell")]
    places += sorted(map(str, Path("/usr/local").glob("cuda*/bin/ptxas")))
    for folder in sys.path:
        places += sorted(map(str, Path(folder).glob("nvidia/*/bin/ptxas")))
    versions = {place: version(place) for place in places if place}
    first = {text: place for place, text in reversed(versions.items()) if text}
    return [place for place in versions if place in first.values()]


def version(path: str) -> str:
    """What an assembler says its version is; empty if it says nothing."""
    try:
        said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    match = re.search(r"V(\d+\.\d+\.\d+)", said.stdout)
    return match[1] if match else ""
