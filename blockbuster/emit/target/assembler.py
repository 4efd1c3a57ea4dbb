"""The choice of the ptxas that turns PTX into machine code, and the reason for it.

ptxas 12.8 drops registers (shared_base.py), and versions before 13.3 may reuse the inputs of a
running wgmma. So for Hopper the newest installed version is taken, versions without known faults
first, if the driver loads its output. Nothing else of Triton changes, and a user's own setting is
left alone.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from blockbuster.emit.target import driver
from blockbuster.emit.tile.program import Let, TileProgram, statements
from blockbuster.emit.tile.result_dtypes import FLOAT
from blockbuster.emit.tile.tiling import tiling_of
from blockbuster.emit.tile.uses import Uses
from blockbuster.errors import EmitError, message

Version = tuple[int, ...]
SETTING = "TRITON_PTXAS_PATH"
READ = (SETTING, "CUDA_HOME", "CUDA_PATH", "PATH")
SOUND = (13, 3)  # from here on no fault that touches our kernels is known
BROKEN: Mapping[Version, str] = {(12, 8): "loses the base of wgmma descriptors"}
CHOSEN_FOR = ("sm_90",)
PROBE = ".version 7.8\n.target sm_75\n.address_size 64\n.visible .entry probe() { ret; }\n"


@dataclass(frozen=True)
class Assembler:
    """A ptxas: its path and version, where it was found, and why better ones were not taken."""

    path: str
    version: Version
    source: str
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"ptxas {dotted(self.version)} ({self.source})"

    @property
    def broken(self) -> str:
        """Its known fault, or ""."""
        return BROKEN.get(self.version[:2], "")


def dotted(version: Version) -> str:
    """A version as it is written."""
    return ".".join(map(str, version))


def dots_may_break(program: TileProgram, target: str) -> bool:
    """True if there is a ptxas for ``target`` that breaks dots as ``program`` has them.

    Those of narrow dtypes whose operands are swizzled in several ways (shared_base.py).
    """
    dots = (s for nest in program.nests for s in statements(nest.body) if isinstance(s, Let))
    exact = program.dtype == FLOAT and not any(dot.split for dot in dots)
    if target not in CHOSEN_FOR or exact:
        return False
    uses = (Uses(nest, tiling_of(program, nest)) for nest in program.nests)
    return any(use.dots_of_several_widths() for use in uses)


def assembler_for(target: str, own: str, folder: Path) -> Assembler:
    """The assembler to compile for ``target`` with.

    ``own`` is the one that Triton takes by itself, ``folder`` where Triton's tools are. Raises
    EmitError if the one that the user set does not run.
    """
    environment = tuple((name, os.environ.get(name, "")) for name in READ)
    return _assembler_for(target, own, folder, environment)


@functools.cache
def _assembler_for(
    target: str, own: str, folder: Path, environment: tuple[tuple[str, str], ...]
) -> Assembler:
    known = dict(environment)
    if known[SETTING]:
        return _given(known[SETTING], SETTING)
    if Path(own).parent != folder:
        return _given(own, "set by the user")
    given = _given(own, "from Triton")
    if target not in CHOSEN_FOR or given.version >= SOUND:
        return given
    notes: list[str] = []
    found = [given, *_candidates(folder, known, notes)]
    newer = [one for one in found if one.version >= given.version]
    for one in sorted(newer, key=_rank, reverse=True):
        error = _refused(one.path)
        if not error:
            return Assembler(one.path, one.version, one.source, tuple(notes))
        notes.append(f"{one} is not used: {error}")
    return Assembler(given.path, given.version, given.source, tuple(notes))


def _rank(one: Assembler) -> tuple[bool, bool, Version]:
    """What the best assembler has most of."""
    return one.version >= SOUND, not one.broken, one.version


def _given(path: str, source: str) -> Assembler:
    version = version_of(path)
    if version is None:
        raise EmitError(
            message(
                f"{path} is no ptxas that runs ({source})",
                hint=f"set {SETTING} to the path of a ptxas, or unset it",
            )
        )
    return Assembler(path, version, source)


def _candidates(folder: Path, known: Mapping[str, str], notes: list[str]) -> Iterator[Assembler]:
    """The other assemblers of this machine; what does not run is noted."""
    seen: set[str] = set()
    for path, source in _places(folder, known):
        real = os.path.realpath(path)
        if real in seen or not os.path.isfile(path):
            continue
        seen.add(real)
        version = version_of(path)
        if version is None:
            notes.append(f"{path} is not used: it does not run")
        else:
            yield Assembler(path, version, source)


def _places(folder: Path, known: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Where a ptxas may be, and the words for it."""
    yield str(folder / "ptxas-blackwell"), "from Triton, for Blackwell"
    try:
        wheels = importlib.util.find_spec("nvidia")
    except (ImportError, ValueError):
        wheels = None
    for root in (wheels.submodule_search_locations or ()) if wheels else ():
        for path in sorted(Path(root).glob("*/bin/ptxas")):
            yield str(path), "from the package nvidia-cuda-nvcc"
    for name in ("CUDA_HOME", "CUDA_PATH"):
        if known[name]:
            yield str(Path(known[name]) / "bin" / "ptxas"), f"from {name}"
    on_path = shutil.which("ptxas", path=known["PATH"])
    if on_path:
        yield on_path, "from PATH"
    yield "/usr/local/cuda/bin/ptxas", "from the CUDA toolkit"


@functools.cache
def version_of(path: str) -> Version | None:
    """The version of a ptxas; None if it does not run."""
    try:
        said = subprocess.run([path, "--version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    found = re.search(r"\bV(\d+)\.(\d+)\.(\d+)", said.stdout)
    return tuple(map(int, found.groups())) if found else None


@functools.cache
def _refused(path: str) -> str:
    """Why the driver does not load what this ptxas makes; "" if it does, or there is no GPU."""
    architecture = driver.device_architecture()
    if not architecture:
        return ""
    with tempfile.TemporaryDirectory() as folder:
        text, binary = Path(folder, "probe.ptx"), Path(folder, "probe.cubin")
        text.write_text(PROBE, encoding="ascii")
        command = [path, f"--gpu-name={architecture}", str(text), "-o", str(binary)]
        made = subprocess.run(command, capture_output=True, text=True, check=False)
        if made.returncode:
            return f"it does not assemble for {architecture}"
        error = driver.load_error(binary.read_bytes())
    if not error:
        return ""
    return f"the driver, for CUDA {driver.driver_version()}, does not load what it makes ({error})"
