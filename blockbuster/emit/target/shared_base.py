"""descriptor base shared by two swizzles: what ptxas 12.8 loses, read from PTX.

A wgmma descriptor is a base (an address in shared memory) and constants; its high word holds the
swizzle of the tile. If descriptors with two different high words are made from one base in a
register, ptxas 12.8 may drop the copy of that base. Later dots then read a register that nothing
has written: bench/repro/descriptor_base.py.
"""

from __future__ import annotations

import re

SUM = re.compile(r"\s*(?:or\.b64|add\.[su]64)\s+(%rd\d+),\s*(%rd\d+),\s*(-?\d+|0x[0-9a-fA-F]+);")
COPY = re.compile(r"\s*mov\.[bsu]64\s+(%rd\d+),\s*(%rd\d+);")
WRITTEN = re.compile(r"\s*(?:@!?%p\d+\s+)?[a-z][\w.:]*\s+\{?(%rd\d+)\b")
DOT = re.compile(r"\s*wgmma\.mma_async\.[^\s]*\s+(.*);")
LOW, ALL = 32, 1 << 64


def bases_of_two_swizzles(ptx: str) -> tuple[str, ...]:
    """The registers of a PTX module that are a base of descriptors with different high words.

    In the order of their first dots.
    """
    found: list[str] = []
    for function in re.split(r"^\.(?:visible )?\.?(?:entry|func)", ptx, flags=re.MULTILINE):
        found += _in(function)
    return tuple(dict.fromkeys(found))


def _in(function: str) -> list[str]:
    made: dict[str, tuple[str, int] | None] = {}
    for line in function.split("\n"):
        written = WRITTEN.match(line)
        if written:
            name = written[1]
            # a register that is written twice (a value that a loop carries) is a base of its own
            made[name] = None if name in made else _made_from(line)
    words: dict[str, dict[int, None]] = {}
    for line in function.split("\n"):
        for name in _descriptors(line):
            base, offset = _base(name, made)
            words.setdefault(base, {})[offset >> LOW] = None
    return [base for base, high in words.items() if len(high) > 1]


def _made_from(line: str) -> tuple[str, int] | None:
    """The register and the constant that a line adds up, if that is what it does."""
    if found := SUM.match(line):
        return found[2], int(found[3], 0)
    if found := COPY.match(line):
        return found[2], 0
    return None


def _descriptors(line: str) -> list[str]:
    """The registers of a dot's descriptors: what stands outside its braces and has 64 bits."""
    found = DOT.match(line)
    return re.findall(r"%rd\d+", re.sub(r"\{[^}]*\}", "", found[1])) if found else []


def _base(name: str, made: dict[str, tuple[str, int] | None]) -> tuple[str, int]:
    """The register that a descriptor is made from, and the sum of the constants."""
    total, seen = 0, {name}
    while (step := made.get(name)) is not None and step[0] not in seen:
        name, constant = step
        seen.add(name)
        total += constant
    return name, total % ALL
