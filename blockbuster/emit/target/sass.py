"""Machine code of NVIDIA GPUs as text: instructions, their uniform registers, their successors.

The text is the output of ``nvdisasm -c``. Threads of a warp share the uniform registers UR0, UR1,
... Where the text is ambiguous, an instruction is assumed to write more registers, to read fewer
and to have more successors than it has, so that a search for reads before any write reports no
false alarm.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

INSTRUCTION = re.compile(
    r"\s+/\*([0-9a-f]{4,})\*/\s+(?:@(!?U?P[0-9T])\s+)?([A-Z][\w.]*)\s*(.*?)\s*;"
)
LABEL = re.compile(r"(\S+):\s*$")
SECTION = re.compile(r"\s*\.section\s+\"?(?:\.text\.([^\s,\"]+))?")
JUMP = re.compile(r"`\(([^)]+)\)")
UNIFORM = re.compile(r"\bUR(\d+)(\.64)?\b")
PREDICATE = re.compile(r"[!~]?U?P(?:[0-9T]|R)$")
# beside those whose names begin with U, and the first operand that is no predicate is the result
WRITERS = ("R2UR", "S2UR", "CS2UR", "VOTEU", "REDUX", "CREDUX", "ELECT", "LDCU", "SYNCS")
COMPARES = ("UISETP", "UFSETP", "UPLOP3")  # their results are predicates
ENDS = ("EXIT", "KILL", "RET", "BRX", "JMX", "BRXU", "JMXU")
COMPUTED = ("BRX", "JMX", "BRXU", "JMXU")  # jumps through a table or a register


@dataclass(frozen=True)
class Instruction:
    """One line: its address, guard ("" if it always runs), name with modifiers, operands."""

    address: str
    guard: str
    name: str
    operands: tuple[str, ...]

    def __str__(self) -> str:
        guard = f"@{self.guard} " if self.guard else ""
        return f"/*{self.address}*/ {guard}{self.name} {', '.join(self.operands)}"

    @property
    def stem(self) -> str:
        """The name without modifiers."""
        return self.name.partition(".")[0]

    @property
    def target(self) -> str:
        """The label that it can jump to, or ""."""
        found = JUMP.search(self.operands[-1]) if self.operands else None
        return found[1] if found else ""

    @property
    def goes_on(self) -> bool:
        """False if the next instruction never runs after this one."""
        if self.guard:
            return True
        if self.stem in ("BRA", "JMP"):
            return not JUMP.fullmatch(" ".join(self.operands))  # else there is a condition
        return self.stem not in ENDS

    def writes(self) -> tuple[int, ...]:
        """The uniform registers that it writes."""
        place = self._result()
        if place is None:
            return ()
        first = int(UNIFORM.findall(self.operands[place])[0][0])
        return tuple(range(first, first + self._width()))

    def reads(self) -> tuple[int, ...]:
        """The uniform registers that it reads."""
        found: dict[int, None] = {}
        result = self._result()
        for place, operand in enumerate(self.operands):
            if place == result:
                continue
            for match in UNIFORM.finditer(operand):
                for step in self._steps(operand[: match.start()], bool(match[2])):
                    found[int(match[1]) + step] = None
        return tuple(found)

    def _result(self) -> int | None:
        """Which operand is a uniform register that it writes."""
        writer = self.name.startswith("U") or self.stem in WRITERS
        if not writer or self.stem in COMPARES:
            return None
        for place, operand in enumerate(self.operands):
            if PREDICATE.match(operand):
                continue
            return place if UNIFORM.fullmatch(operand) else None
        return None

    def _width(self) -> int:
        """How many registers its result has."""
        modifiers = self.name.split(".")
        if "128" in modifiers:
            return 4
        pair = "64" in modifiers or "WIDE" in modifiers
        return 2 if pair or (self.stem == "CS2UR" and "32" not in modifiers) else 1

    def _steps(self, before: str, wide: bool) -> range:
        """Which registers it reads for one that is named, counted from that one.

        ``before``: what stands before the name in its operand.
        """
        if before == "gdesc[" and self.stem.endswith("GMMA"):
            # descriptors of both operands stand in four registers; if the first operand comes
            # from registers of its own, only the second two count
            from_registers = any(re.match(r"R\d", o) for o in self.operands[1:2])
            return range(2, 4) if from_registers else range(4)
        if wide or before in ("gdesc[", "desc[", "cx["):
            return range(2)
        if self.name.startswith("U") and "64" in self.name.split("."):
            return range(2)
        return range(1)


@dataclass(frozen=True)
class Function:
    """The code of one kernel. ``labels`` give the number of the instruction behind each."""

    name: str
    code: tuple[Instruction, ...]
    labels: dict[str, int]

    def successors(self) -> list[tuple[int, ...]]:
        """For each instruction the numbers of those that can run after it."""
        behind_calls = [i + 1 for i, at in enumerate(self.code) if at.stem == "CALL"]
        rejoined: dict[str, list[int]] = {}
        for at in self.code:
            if at.stem == "BSSY" and at.target in self.labels:
                rejoined.setdefault(at.operands[0], []).append(self.labels[at.target])
        return [
            tuple(dict.fromkeys(n for n in self._after(i, behind_calls, rejoined) if n < self.end))
            for i in range(self.end)
        ]

    @property
    def end(self) -> int:
        """How many instructions there are."""
        return len(self.code)

    def _after(
        self, number: int, behind_calls: list[int], rejoined: dict[str, list[int]]
    ) -> Iterator[int]:
        at = self.code[number]
        if at.goes_on:
            yield number + 1
        if at.target in self.labels and at.stem != "RET":
            yield self.labels[at.target]
        if at.stem == "RET":
            yield from behind_calls
        if at.stem in COMPUTED:
            yield from self.labels.values()
        if at.stem in ("BSYNC", "BREAK"):
            for places in rejoined.values():
                yield from places


def functions(text: str) -> tuple[Function, ...]:
    """The kernels of a disassembly."""
    found: list[tuple[str, list[Instruction], dict[str, int]]] = []
    inside = False
    for line in text.split("\n"):
        if section := SECTION.match(line):
            inside = bool(section[1])
            if inside:
                found.append((section[1], [], {}))
        elif inside:
            _, code, labels = found[-1]
            if match := INSTRUCTION.match(line):
                address, guard, name, operands = match.groups()
                code.append(Instruction(address, guard or "", name, _split(operands)))
            elif match := LABEL.match(line):
                labels[match[1]] = len(code)
    return tuple(Function(name, tuple(code), labels) for name, code, labels in found if code)


def _split(operands: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in operands.split(",")) if operands else ()
