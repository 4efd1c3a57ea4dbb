"""Loops of machine code: which there are, how deep, and what their instructions are."""

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.costs.machine_loops import Code, code_of, loops_of, shape_of, straight_code
from blockbuster.emit.target.sass import functions
from tests.emit.test_sass import code, instruction


def loops(*lines):
    (function,) = functions(code(*lines))
    return loops_of(function)


def one(line):
    return code_of([instruction(line)])


# instructions ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "kind", "moved"),
    [
        ("MUFU.EX2 R89, R89", "special", 0),
        ("LDS.128 R4, [R8+0x20]", "shared", 512),
        ("LDS R4, [R8]", "shared", 128),
        ("STS.U16 [R8], R4", "shared", 64),
        ("LDSM.16.M88.4 R8, [R100+UR4]", "shared", 512),
        ("LDSM.16.MT88.4 R8, [R100+UR4]", "shared", 512),
        ("LDSM.16.M88 R8, [R100]", "shared", 128),
        ("LDGSTS.E.BYPASS.128 [R41], desc[UR20][R2.64], P0", "copies", 512),
        ("LDGSTS.E.BYPASS.LTC128B.128 [R41], desc[UR20][R2.64]", "copies", 512),
        ("LDGSTS.E [R41], desc[UR20][R2.64]", "copies", 128),
        ("LDG.E.128 R20, desc[UR30][R4.64]", "loads", 512),
        ("LDG.E.U16 R20, desc[UR30][R4.64]", "loads", 64),
        ("STG.E.64 desc[UR30][R4.64], R20", "stores", 256),
        ("STL [R1+0x10], R4", "local", 128),
        ("LDL.LU.64 R4, [R1+0x10]", "local", 256),
        ("BAR.SYNC.DEFER_BLOCKING 0x0", "barriers", 0),
        ("SHFL.BFLY PT, R4, R5, 0x1, 0x1f", "shuffles", 0),
        ("FSETP.NEU.AND P0, PT, |R4|, +INF, PT", "halves", 0),
        ("F2FP.F16.F32.PACK_AB R4, R5, R6", "halves", 0),
        ("I2F.RP R4, R5", "converts", 0),
        ("DFMA R4, R6, R8, R10", "doubles", 0),
    ],
)
def test_what_an_instruction_is(line, kind, moved):
    found = one(line)
    assert found.kinds == {kind: 1}
    assert found.count(kind) == 1
    assert found.moved(kind) == moved


@pytest.mark.parametrize(
    "line", ["FFMA R4, R5, R6, R7", "IMAD.WIDE R4, R5, 0x2, R6", "LDC R1, c[0x0][0x28]"]
)
def test_other_instructions_are_issued_only(line):
    assert one(line) == Code(issue=1)


def test_an_instruction_that_never_runs_takes_a_slot():
    assert one("@!PT LDS RZ, [RZ]") == Code(issue=1)
    assert one("@!P0 LDS R4, [R8]").kinds == {"shared": 1}


@pytest.mark.parametrize(
    ("line", "name", "operations"),
    [
        ("HGMMA.64x256x16.F32 R24, gdesc[UR8].tnspB, R24", "HGMMA 64x256x16", 131072),
        ("HGMMA.64x32x16.F32.BF16 R56, R24, gdesc[UR12], R56, gsb0", "HGMMA 64x32x16", 16384),
        ("QGMMA.64x64x32.F32.E4M3.E4M3 R24, gdesc[UR8], R24", "QGMMA 64x64x32", 65536),
        ("HMMA.16816.F32 R4, R8, R12, R4", "HMMA 16x8x16", 2 * 16 * 8 * 16),
        ("HMMA.1688.F32.TF32 R4, R8, R12, R4", "HMMA 16x8x8", 2 * 16 * 8 * 8),
        ("DMMA.884 R4, R8, R12, R4", "DMMA 8x8x4", 2 * 8 * 8 * 4),
    ],
)  # fmt: skip
def test_matrix_instructions_have_shapes(line, name, operations):
    found = one(line)
    assert found.matrix == {name: 1}
    assert found.operations == operations
    assert len(shape_of(name)) == 3


def test_waits_say_how_many_groups_may_run():
    lines = ["WARPGROUP.DEPBAR.LE gsb0, 0x1", "WARPGROUP.ARRIVE", "WARPGROUP.DEPBAR.LE gsb0, 0x0"]
    assert code_of(map(instruction, lines)).waits == (1, 0)


# loops ------------------------------------------------------------------------------


def test_the_endless_loop_behind_the_end_is_none():
    assert not loops("MOV R1, R2", "EXIT", ".L_x_1:", "BRA `(.L_x_1)")


def test_a_loop_with_a_way_around_it():
    found = loops(
        "@!P0 BRA `(.L_x_0)", ".L_x_1:", "MUFU.EX2 R1, R1", "@P0 BRA `(.L_x_1)", ".L_x_0:", "EXIT"
    )
    assert [(loop.first, loop.last, loop.depth, loop.innermost) for loop in found] == [
        ("0010", "0020", 0, True)
    ]
    assert found[0].code.issue == 2


def test_cold_code_behind_the_end_belongs_to_the_loop_that_it_returns_to():
    found = loops(
        ".L_x_1:", "@P1 BRA `(.L_x_2)", ".L_x_3:", "@P0 BRA `(.L_x_1)", "EXIT",
        ".L_x_2:", "MUFU.RCP R1, R1", "BRA `(.L_x_3)",
    )  # fmt: skip
    assert len(found) == 1
    assert found[0].code.count("special") == 1


def test_a_jump_back_to_what_comes_later_is_no_loop():
    found = loops(
        "@P1 BRA `(.L_x_2)", ".L_x_3:", "MOV R1, R2", "EXIT", ".L_x_2:", "MOV R2, R3",
        "BRA `(.L_x_3)",
    )  # fmt: skip
    assert not found


def test_a_subroutine_called_twice_is_no_loop():
    found = loops(
        "CALL.REL.NOINC `(.L_x_9)", "MOV R1, R2", "CALL.REL.NOINC `(.L_x_9)", "EXIT",
        ".L_x_9:", "MUFU.RCP R1, R1", "RET.REL.NODEC R2 `(f)",
    )  # fmt: skip
    assert not found


def test_a_wait_that_asks_again_is_no_loop_but_part_of_the_one_around():
    lines = (
        ".L_x_1:", "MUFU.EX2 R1, R1", ".L_x_2:",
        "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR13+0x24000], R5", "@!P0 BRA `(.L_x_2)",
        "@P1 BRA `(.L_x_1)", "EXIT",
    )  # fmt: skip
    (function,) = functions(code(*lines))
    (found,) = loops_of(function)

    assert (found.innermost, found.code.issue) == (True, 4)
    assert straight_code(function).issue == 1


@dataclass(frozen=True)
class Seq:
    """Instructions; or a loop, or a branch, around parts."""

    kind: str
    parts: tuple


PARTS = st.deferred(lambda: st.lists(st.integers(1, 3) | NESTED, max_size=3).map(tuple))
NESTED = st.builds(Seq, st.sampled_from(["loop", "if"]), PARTS)


class Writer:
    """The text of random code, and the loops that it has: depth, own instructions, innermost."""

    def __init__(self):
        self.lines, self.labels, self.loops, self.free = [], 0, [], 0

    def label(self):
        self.labels += 1
        return f".L_x_{self.labels}"

    def write(self, parts, inside):
        for part in parts:
            if isinstance(part, int):
                self.lines += ["FADD R1, R1, R2"] * part
                self.own(inside, part)
            else:
                getattr(self, f"write_{part.kind}")(part, inside)

    def own(self, inside, count):
        if inside:
            inside[-1][1] += count
        else:
            self.free += count

    def write_if(self, part, inside):
        behind = self.label()
        self.lines.append(f"@P0 BRA `({behind})")
        self.own(inside, 1)
        self.write(part.parts, inside)
        self.lines.append(f"{behind}:")

    def write_loop(self, part, inside):
        head = self.label()
        mine = [len(inside), 2, True]
        for outer in inside:
            outer[2] = False
        self.loops.append(mine)
        self.lines += [f"{head}:", "FADD R1, R1, R2"]
        self.write(part.parts, [*inside, mine])
        self.lines.append(f"@P1 BRA `({head})")


@settings(max_examples=100, deadline=None)
@given(PARTS)
def test_loops_of_random_code(parts):
    writer = Writer()
    writer.write(parts, [])
    (function,) = functions(code(*writer.lines, "EXIT"))
    found = [[loop.depth, loop.code.issue, loop.innermost] for loop in loops_of(function)]
    assert found == writer.loops
    assert straight_code(function).issue == writer.free + 1
