"""Loops of machine code and counts of their instructions, which cost models read.

A loop is a jump back to an instruction that runs before it (a back edge of a depth-first walk),
with all instructions that lead to that jump. Subroutines are left out: a call is taken to continue
behind itself.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from blockbuster.emit.target.sass import Function, Instruction

LANES = 32
"""Threads of a warp: an instruction moves so many times the bytes of its width."""

KINDS: Mapping[str, tuple[str, ...]] = {
    "special": ("MUFU",),
    "shared": ("LDS", "STS", "LDSM", "STSM", "ATOMS"),
    "copies": ("LDGSTS", "UTMALDG", "UBLKCP"),
    "loads": ("LDG", "LD"),
    "stores": ("STG", "ST", "UTMASTG", "RED", "ATOM", "ATOMG"),
    "local": ("LDL", "STL"),
    "barriers": ("BAR", "SYNCS", "MEMBAR", "FENCE"),
    "shuffles": ("SHFL", "REDUX"),
    "converts": ("F2F", "F2I", "I2F", "FRND"),
    "halves": (
        "FSETP",
        "FMNMX",
        "FSEL",
        "FSET",
        "ISETP",
        "IMNMX",
        "VIMNMX",
        "VIADD",
        "VIADDMNMX",
        "LOP3",
        "SHF",
        "LEA",
        "IADD3",
        "SEL",
        "PRMT",
        "PLOP3",
        "F2FP",
        "IABS",
        "SGXT",
        "FCHK",
        "HMNMX2",
    ),
    "doubles": ("DFMA", "DADD", "DMUL", "DSETP"),
}
"""Instructions by what they occupy; matrix instructions have shapes beside their names.

"halves" take units that are half as wide as those of additions and multiplications of float32:
comparisons, selections, whole numbers, and conversions of pairs.
"""

MATRIX = re.compile(r"([HIQBD]G?MMA)((?:\.\w+)*)")
SHAPE = re.compile(r"\.(?:(\d+)x(\d+)x(\d+)|(\d{3,5}))(?=\.|$)")
WIDTH = re.compile(r"\.(U8|S8|U16|S16|64|128)(?=\.|$)")
WIDTHS = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}
TILES = re.compile(r"\.MT?88(?:\.(\d))?")
NEVER = "!PT"  # the guard of what only takes a slot
WAIT = re.compile(r"0x([0-9a-f]+)")


@dataclass(frozen=True)
class Code:
    """Some instructions of a warp, counted by kind.

    ``issue``: how many there are. ``kinds``: how many of each kind of ``KINDS``, ``bytes``: what
    those kinds move that access memory, in bytes of a warp. ``matrix``: matrix instructions by
    name and shape (such as "HGMMA 64x256x16"). ``waits``: for each wait for matrix instructions, in
    order, how many groups of them may still run.
    """

    issue: int = 0
    kinds: Mapping[str, int] = field(default_factory=dict, hash=False)
    bytes: Mapping[str, int] = field(default_factory=dict, hash=False)
    matrix: Mapping[str, int] = field(default_factory=dict, hash=False)
    waits: tuple[int, ...] = ()

    def count(self, kind: str) -> int:
        """How many instructions there are of a kind of ``KINDS``."""
        assert kind in KINDS, kind
        return self.kinds.get(kind, 0)

    def moved(self, *kinds: str) -> int:
        """The bytes that a warp moves by instructions of these kinds."""
        return sum(self.bytes.get(kind, 0) for kind in kinds)

    @property
    def operations(self) -> int:
        """Multiplications and additions that a warp has matrix units do.

        A GMMA is issued by each warp of a group of four, and works for all four: a warp has a
        quarter of it.
        """
        found = 0
        for name, count in self.matrix.items():
            m, n, k = shape_of(name)
            found += 2 * m * n * k * count // (4 if is_of_group(name) else 1)
        return found


@dataclass(frozen=True)
class Loop:
    """A loop: addresses of its first instruction and of the jump back, and what is in it.

    ``depth``: in how many loops it stands. ``innermost``: it holds no other loop. ``code``: what an
    iteration runs, loops in it apart.
    """

    first: str
    last: str
    depth: int
    innermost: bool
    code: Code


def shape_of(name: str) -> tuple[int, int, int]:
    """Rows, columns and depth of the product that "HGMMA 64x256x16" names."""
    m, n, k = name.split(" ")[1].split("x")
    return int(m), int(n), int(k)


def is_of_group(name: str) -> bool:
    """True for a matrix instruction of a group of four warps."""
    return name.split(" ", maxsplit=1)[0].endswith("GMMA")


def code_of(instructions: Iterable[Instruction]) -> Code:
    """The counts of some instructions."""
    kinds: Counter[str] = Counter()
    moved: Counter[str] = Counter()
    matrix: Counter[str] = Counter()
    waits, issue = list[int](), 0
    for at in instructions:
        issue += 1
        if at.guard == NEVER:
            continue
        kind = _KIND.get(at.stem)
        if kind is not None:
            kinds[kind] += 1
            if kind in ("shared", "copies", "loads", "stores", "local"):
                moved[kind] += LANES * _width(at.name)
        elif (found := MATRIX.match(at.name)) and (shape := _shape(found[2])):
            matrix[f"{found[1]} {shape}"] += 1
        elif at.name.startswith("WARPGROUP.DEPBAR") and (left := WAIT.search(at.operands[-1])):
            waits.append(int(left[1], 16))
    return Code(issue, dict(kinds), dict(moved), dict(matrix), tuple(waits))


def loops_of(function: Function) -> tuple[Loop, ...]:
    """The loops of a kernel in order of their addresses, outer ones first.

    A wait for a load that asks again until it is done counts as done at once, and as no loop.
    """
    code, after = function.code, _successors(function)
    heads: dict[int, set[int]] = {}
    before = _predecessors(after)
    jumps: dict[int, int] = {}
    for source, head in _back_edges(after):
        if source == head:
            continue  # the endless loop behind the end
        heads.setdefault(head, set()).update(_body(source, head, before))
        jumps[head] = max(jumps.get(head, 0), source)
    heads = {head: body for head, body in heads.items() if not _asks(function, body)}
    found = []
    for head in sorted(heads, key=lambda at: (at, -len(heads[at]))):
        body = heads[head]
        depth = sum(head in other for at, other in heads.items() if at != head)
        inner = [heads[at] for at in heads if at != head and at in body]
        innermost = not inner
        inside = code_of(code[at] for at in sorted(body.difference(*inner)))
        found.append(Loop(code[head].address, code[jumps[head]].address, depth, innermost, inside))
    return tuple(found)


def straight_code(function: Function) -> Code:
    """The instructions that stand in no loop, and so run once."""
    inside: set[int] = set()
    after = _successors(function)
    before = _predecessors(after)
    for source, head in _back_edges(after):
        body = _body(source, head, before)
        inside.update(set() if _asks(function, body) else body)
    return code_of(at for number, at in enumerate(function.code) if number not in inside)


def _asks(function: Function, body: Iterable[int]) -> bool:
    """True for a wait for a load: is it done, else once more."""
    return [function.code[at].stem for at in sorted(body)] == ["SYNCS", "BRA"]


def _successors(function: Function) -> list[tuple[int, ...]]:
    """The instructions that can follow each; calls go on behind themselves, returns nowhere."""
    found = function.successors()
    for number, at in enumerate(function.code):
        if at.stem == "RET":
            found[number] = ()
        elif at.stem == "CALL":
            found[number] = (number + 1,) if number + 1 < function.end else ()
    return found


def _predecessors(after: Sequence[Sequence[int]]) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in after]
    for source, targets in enumerate(after):
        for target in targets:
            found[target].append(source)
    return found


def _back_edges(after: Sequence[Sequence[int]]) -> Iterator[tuple[int, int]]:
    """Edges to an instruction that is still being walked from, in order of a depth-first walk."""
    state = [0] * len(after)  # 1: being walked from, 2: done
    walk = [(0, iter(after[0]))] if after else []
    while walk:
        node, targets = walk[-1]
        state[node] = 1
        for target in targets:
            if state[target] == 0:
                walk.append((target, iter(after[target])))
                break
            if state[target] == 1:
                yield node, target
        else:
            state[node] = 2
            walk.pop()


def _body(source: int, head: int, before: Sequence[Sequence[int]]) -> set[int]:
    """All that leads to the jump at ``source`` without passing ``head``, and ``head``."""
    body, left = {head, source}, [source]
    while left:
        for earlier in before[left.pop()]:
            if earlier not in body:
                body.add(earlier)
                left.append(earlier)
    return body


def _width(name: str) -> int:
    """Bytes that each thread moves."""
    if tiles := TILES.search(name):
        return 4 * int(tiles[1] or 1)
    found = WIDTH.search(name)
    return WIDTHS[found[1]] if found else 4


def _shape(modifiers: str) -> str:
    """``64x256x16`` from the modifiers of a matrix instruction, or ""."""
    found = SHAPE.search(modifiers)
    if not found:
        return ""
    if found[1]:
        return "x".join(found.groups()[:3])
    digits = found[4]  # of warps: 16816 is 16 x 8 x 16
    first = 2 if digits.startswith("16") else 1
    return f"{digits[:first]}x{digits[first]}x{digits[first + 1 :]}"


_KIND = {stem: kind for kind, stems in KINDS.items() for stem in stems}
