"""Inspection of compiled kernels for known compiler faults, before their results are trusted.

``reasons_to_refuse`` takes Triton's output for a kernel and returns what is wrong with it. Two
predicates read texts; each matches exactly the fault that it knows. The third disassembles the
machine code and finds uniform registers that are read before any write, whatever lost the write.
nvdisasm takes some 0.3 s, so it runs while the first result is computed and compared, once for each
binary.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blockbuster.emit.target.assembler import Assembler
from blockbuster.emit.target.disk import cache_folder
from blockbuster.emit.target.exchanged_rows import exchanged_rows
from blockbuster.emit.target.sass import functions
from blockbuster.emit.target.shared_base import bases_of_two_swizzles
from blockbuster.emit.target.unwritten import unwritten_reads

UNSEEN = "machine code is not checked for lost registers"
VERSION = 1  # of what is looked for: what passed an earlier one is looked at again
SHARES_DESCRIPTORS = (12, 8)  # the ptxas that loses a base which two swizzles share


@dataclass(frozen=True)
class Made:
    """Triton's output for a kernel: texts and binary by stage, and the tools that made them."""

    name: str
    asm: Mapping[str, Any]
    assembler: Assembler | None
    triton: str

    @property
    def dots(self) -> bool:
        """True if it uses Hopper's matrix units, where a lost register can be an address."""
        return "wgmma." in self.asm.get("ptx", "")


def shared_base(made: Made) -> str:
    """descriptor base shared by two swizzles: why ptxas breaks this kernel, or ""."""
    if made.assembler is None or made.assembler.version[:2] != SHARES_DESCRIPTORS:
        return ""
    bases = bases_of_two_swizzles(made.asm.get("ptx", ""))
    if not bases:
        return ""
    return f"{made.assembler} loses a descriptor base shared by two swizzles ({', '.join(bases)})"


def reduction_over_blocks(made: Made) -> str:
    """reduction in a loop over several blocks a thread: why Triton breaks this kernel, or ""."""
    found = exchanged_rows(made.asm.get("ttgir", ""))
    return f"Triton {made.triton} miscompiles a {found[0]}" if found else ""


TEXT_PREDICATES = (shared_base, reduction_over_blocks)


@dataclass(frozen=True)
class Findings:
    """The findings: ``reasons`` to refuse a kernel, ``notes`` on parts that were not inspected."""

    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class Inspection:
    """A kernel that is being looked at: texts at once, machine code in the background."""

    def __init__(self, made: Made) -> None:
        self.reasons = tuple(filter(None, (predicate(made) for predicate in TEXT_PREDICATES)))
        self._code: Future[Findings] = Future()
        if self.reasons or "cubin" not in made.asm:
            self._code.set_result(Findings(self.reasons))
        else:
            threading.Thread(target=self._disassemble, args=(made,), daemon=True).start()

    def _disassemble(self, made: Made) -> None:
        try:
            self._code.set_result(faults_in_code(made))
        except BaseException as error:  # raised again where the result is asked for
            self._code.set_exception(error)

    def finished(self) -> Findings:
        """All that was found; waits for the disassembly."""
        return self._code.result()


def reasons_to_refuse(made: Made) -> tuple[str, ...]:
    """Why no answer of this kernel is to be trusted; empty if nothing is known against it."""
    return Inspection(made).finished().reasons


def faults_in_code(made: Made) -> Findings:
    """Reads of registers that nothing has written, in words; a refused kernel is kept as files.

    A binary that passed is remembered on disk.
    """
    tool = disassembler()
    if not tool:
        return Findings(notes=(f"no nvdisasm is found: {UNSEEN}",))
    cubin: bytes = made.asm["cubin"]
    digest = hashlib.sha256(cubin).hexdigest()
    memory, entry = cache_folder("inspected"), f"{digest[:32]}-{VERSION}"
    if memory.read(entry) is not None:
        return Findings()
    sass = disassembled(cubin, tool)
    if not functions(sass):
        return Findings(notes=(f"{tool} reads no code in {made.name}: {UNSEEN}",))
    found = unwritten_reads(sass)
    if not found:
        memory.write(entry, b"")
        return Findings()
    place = _kept(made, sass, [str(read) for read in found], digest)
    by = made.assembler or "the assembler"
    return Findings(tuple(f"{by} lost a register: {read}{place}" for read in found))


def disassembled(cubin: bytes, tool: str) -> str:
    """The machine code of a binary as text; empty if ``tool`` cannot read it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kernel.cubin")
        path.write_bytes(cubin)
        # -ndf: without an analysis of data flow, which takes a third of the time
        command = [tool, "-c", "-ndf", str(path)]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def disassembler() -> str:
    """The path of an nvdisasm: Triton's, or that of a CUDA toolkit; "" if there is none."""
    return _disassembler(tuple(os.environ.get(n, "") for n in ("CUDA_HOME", "CUDA_PATH", "PATH")))


@functools.cache
def _disassembler(environment: tuple[str, str, str]) -> str:
    home, path, search = environment
    places = [Path(tools(), "nvdisasm")]
    places += [Path(root, "bin", "nvdisasm") for root in (home, path, "/usr/local/cuda") if root]
    for place in places:
        if os.access(place, os.X_OK):
            return str(place)
    return shutil.which("nvdisasm", path=search) or ""


@functools.cache
def tools() -> Path:
    """The folder of the programs that come with Triton."""
    from importlib.util import find_spec

    found = find_spec("triton")
    roots = found.submodule_search_locations if found else None
    return Path(next(iter(roots or ("",))), "backends", "nvidia", "bin")


def _kept(made: Made, sass: str, reads: list[str], digest: str) -> str:
    """Where the files are that show the fault, in words: material for a report upstream."""
    stem = f"{made.name[:40]}-{digest[:16]}"
    about = {"kernel": made.name, "assembler": str(made.assembler), "triton": made.triton}
    reasons = json.dumps({**about, "reads": reads}, indent=1) + "\n"
    files = {"sass": sass, "ptx": str(made.asm.get("ptx", "")), "json": reasons}
    folder = cache_folder("refused")
    for kind, text in files.items():
        folder.write(f"{stem}.{kind}", text.encode())
    path = folder.write(f"{stem}.cubin", made.asm["cubin"])
    return f" (files beside {path})" if path else ""
