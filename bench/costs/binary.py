"""Facts about a compiled kernel: registers, spills, waits for matrix units, loops of machine code.

A closed form knows what a schedule asks for; only the binary shows what the compiler made of it:
whether values are spilled, whether wgmma instructions run one by one, how many instructions an
iteration issues. No GPU is needed: Triton's wheels contain assembler and disassembler.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from bench.costs.machine_loops import Code, Loop, loops_of, straight_code
from blockbuster.emit.target.assembler import Assembler
from blockbuster.emit.target.compiler import assembler_says, compiled_entry, number
from blockbuster.emit.target.inspection import disassembled, disassembler
from blockbuster.emit.target.sass import functions
from blockbuster.emit.target.targets import Target
from blockbuster.errors import EmitError, message
from blockbuster.machines.machine import Limits

PENDINGS = re.compile(r"warp_group_dot_wait\b[^\n]*?\bpendings = (\d+)")
COMPLAINT = re.compile(r"^ptxas\S* (\w+) *: *(?:\((C\d+)\) *)?(.*)$", re.MULTILINE)
SERIALIZED = "serialized"


@dataclass(frozen=True)
class Binary:
    """One compiled kernel.

    ``registers`` per thread; ``spilled`` bytes, stores and loads; ``shared`` bytes of a program.
    ``warnings``: what the assembler says about performance. ``pendings``: for each wait for matrix
    instructions, in the order of Triton's text, how many may go on. ``loops`` in order of their
    addresses; ``straight``: what runs once. ``assembler``: what made the machine code.
    """

    function: str
    target: str
    assembler: str
    warps: int
    registers: int
    spilled: int
    shared: int
    warnings: tuple[str, ...]
    pendings: tuple[int, ...]
    loops: tuple[Loop, ...]
    straight: Code

    @property
    def inner(self) -> tuple[Loop, ...]:
        """The innermost loops."""
        return tuple(loop for loop in self.loops if loop.innermost)

    @property
    def hot(self) -> Loop | None:
        """The innermost loop with most matrix operations, then instructions; None without loops."""
        rank = {loop: (loop.code.operations, loop.code.issue) for loop in self.inner}
        return max(rank, key=lambda loop: rank[loop], default=None)

    @property
    def serialized(self) -> bool:
        """True if the assembler runs wgmma instructions one by one in a loop."""
        said = any(SERIALIZED in warning for warning in self.warnings)
        return said and any(loop.code.matrix for loop in self.loops)

    def resident(self, limits: Limits) -> int:
        """How many programs one processor runs at once; 0 if it cannot hold one."""
        threads = self.warps * limits.warp
        shared = self.shared + limits.reserved
        found = [limits.programs_per_processor, limits.threads_per_processor // threads]
        if shared:
            found.append(limits.shared_per_processor // shared)
        if self.registers:
            unit, parts = limits.register_unit, limits.schedulers
            of_warp = -(-self.registers * limits.warp // unit) * unit
            warps = limits.registers_per_processor // parts // of_warp * parts
            found.append(warps // self.warps)
        fits = self.shared <= limits.shared_per_program
        return min(found) if fits and self.registers <= limits.registers_per_thread else 0


@dataclass(frozen=True)
class Texts:
    """A compiled kernel as text: machine code, Triton's last IR, what the assembler says of it."""

    function: str
    target: str
    assembler: str
    sass: str
    ttgir: str
    said: str
    shared: int
    warps: int


def binary_of(entry: Mapping[str, Any], target: Target) -> Binary:
    """Compile an entry of an emitted file's KERNELS for ``target`` and look at what comes of it.

    Raises EmitError if Triton or the assembler refuses it, if the target is no NVIDIA GPU, or
    if no nvdisasm is found.
    """
    compiled, assembler = compiled_entry(dict(entry), target)
    name = entry["function"].__name__
    if assembler is None:
        what = f"{name} is compiled for {target.name}: only machine code of NVIDIA is looked at"
        raise EmitError(message(what, hint="compile it for sm_80 or sm_90"))
    return read(texts_of(name, target, compiled, assembler))


def texts_of(name: str, target: Target, compiled: Any, assembler: Assembler) -> Texts:
    """The texts of what Triton compiled. Raises EmitError if no nvdisasm is found."""
    tool = disassembler()
    if not tool:
        raise EmitError(message("no nvdisasm is found", hint="Triton's wheels carry one"))
    return Texts(
        function=name,
        target=target.name,
        assembler=str(assembler),
        sass=disassembled(compiled.asm["cubin"], tool),
        ttgir=compiled.asm["ttgir"],
        said=assembler_says(compiled.asm["ptx"], int(target.arch), assembler),
        shared=int(compiled.metadata.shared),
        warps=int(compiled.metadata.num_warps),
    )


def read(texts: Texts) -> Binary:
    """A kernel from its texts. Raises EmitError if there is no machine code."""
    found = functions(texts.sass)
    if not found:
        raise EmitError(f"the disassembler reads no code in {texts.function}")
    stores = number(r"(\d+) bytes spill stores", texts.said)
    return Binary(
        function=texts.function,
        target=texts.target,
        assembler=texts.assembler,
        warps=texts.warps,
        registers=number(r"Used (\d+) registers", texts.said),
        spilled=stores + number(r"(\d+) bytes spill loads", texts.said),
        shared=texts.shared,
        warnings=warnings_in(texts.said),
        pendings=tuple(int(count) for count in PENDINGS.findall(texts.ttgir)),
        loops=tuple(loop for function in found for loop in loops_of(function)),
        straight=straight_code(found[0]),  # others are subroutines
    )


def warnings_in(said: str) -> tuple[str, ...]:
    """The assembler's warnings about performance, each once, with its number if it has one."""
    found: dict[str, None] = {}
    for level, code, text in COMPLAINT.findall(said):
        if code or level == "warning":
            found[f"{code} {text}".strip()] = None
    return tuple(found)


def as_data(binary: Binary) -> dict[str, Any]:
    """A binary as plain values, for JSON."""
    return asdict(binary)


def from_data(data: Mapping[str, Any]) -> Binary:
    """The binary that ``as_data`` wrote down."""

    def code(given: Mapping[str, Any]) -> Code:
        return Code(**{**given, "waits": tuple(given["waits"])})

    loops = tuple(Loop(**{**loop, "code": code(loop["code"])}) for loop in data["loops"])
    more = {"loops": loops, "straight": code(data["straight"])}
    lists = {name: tuple(data[name]) for name in ("warnings", "pendings")}
    return Binary(**{**data, **lists, **more})
