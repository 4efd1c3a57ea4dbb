"""Uniform registers that machine code reads although no instruction can have written them before.

An assembler that loses a copy leaves such a read: the result then depends on whatever the register
holds. Registers that are written only on some paths are not reported, because conditions may
exclude the other paths.
"""

from __future__ import annotations

from dataclasses import dataclass

from blockbuster.emit.target.sass import Function, Instruction, functions


@dataclass(frozen=True)
class Unwritten:
    """An instruction of a kernel, and the uniform registers that it reads before any write."""

    kernel: str
    instruction: Instruction
    registers: tuple[int, ...]

    def __str__(self) -> str:
        names = ", ".join(f"UR{number}" for number in self.registers)
        return f"{self.kernel}: {self.instruction} reads {names} before any write"


def unwritten_reads(sass: str) -> tuple[Unwritten, ...]:
    """Each such read in a disassembly (``nvdisasm -c``), in the order of the code."""
    return tuple(read for function in functions(sass) for read in _in(function))


def _in(function: Function) -> list[Unwritten]:
    found = []
    written = _written_before(function)
    for instruction, before in zip(function.code, written, strict=True):
        if before is None:
            continue  # never reached
        lost = tuple(n for n in instruction.reads() if not before >> n & 1)
        if lost:
            found.append(Unwritten(function.name, instruction, lost))
    return found


def _written_before(function: Function) -> list[int | None]:
    """For each instruction a bit per register that some path to it writes; None: no path."""
    after = function.successors()
    writes = [sum(1 << n for n in instruction.writes()) for instruction in function.code]
    before: list[int | None] = [None] * function.end
    before[0] = 0
    waiting = [0]
    while waiting:
        number = waiting.pop()
        known = before[number]
        assert known is not None
        given = known | writes[number]
        for follower in after[number]:
            old = before[follower]
            if old is None or given | old != old:
                before[follower] = given | (old or 0)
                waiting.append(follower)
    return before
