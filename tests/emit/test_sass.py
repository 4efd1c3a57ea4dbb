"""Which uniform registers machine code reads before any write, on code written by hand."""

import pytest

from blockbuster.emit.target.sass import functions
from blockbuster.emit.target.unwritten import unwritten_reads


def code(*lines):
    text = ['\t.section\t.text.f,"ax",@progbits', '\t.sectionflags\t@"SHF_BARRIERS=1"', "f:"]
    address = 0
    for line in lines:
        if line.endswith(":"):
            text.append(line)
            continue
        text.append(f"        /*{address:04x}*/                   {line} ;")
        address += 16
    return "\n".join([*text, "\t.section\t.nv.shared.f"])


def instruction(line):
    (function,) = functions(code(line))
    return function.code[0]


@pytest.mark.parametrize(
    ("line", "writes", "reads"),
    [
        ("UMOV UR4, 0x400", (4,), ()),
        ("UMOV UR5, URZ", (5,), ()),
        ("UIADD3 UR16, UP0, UR17, 0x20, URZ", (16,), (17,)),
        ("UIADD3.X UR17, UR18, -0x3ffffff0, URZ, UP0, !UPT", (17,), (18,)),
        ("UIADD3.64 UR24, UR8, 0x2, URZ", (24, 25), (8, 9)),
        ("UIMAD.WIDE.U32 UR4, UR8, UR9, URZ", (4, 5), (8, 9)),
        ("ULDC.64 UR6, c[0x0][0x210]", (6, 7), ()),
        ("ULDC UR6, c[0x0][UR4+0x210]", (6,), (4,)),
        ("USHF.L.U64.HI UR5, UR6, 0x1, UR7", (5,), (6, 7)),
        ("UISETP.GE.AND UP0, UPT, UR4, UR5, UPT", (), (4, 5)),
        ("ULOP3.LUT UP0, UR4, UR5, 0x1, URZ, 0xc0, !UPT", (4,), (5,)),
        ("R2UR UR4, R5", (4,), ()),
        ("R2UR P0, UR4, R5", (4,), ()),
        ("S2UR UR6, SR_CgaCtaId", (6,), ()),
        ("VOTEU.ANY UR6, UPT, PT", (6,), ()),
        ("VOTEU.ALL UP0, P0", (), ()),
        ("REDUX.SUM UR6, R4", (6,), ()),
        ("LDG.E.128 R20, desc[UR30][R4.64]", (), (30, 31)),
        ("LDG.E R20, desc[UR30][R4.64+UR8]", (), (30, 31, 8)),
        ("IMAD R7, R2, UR4, RZ", (), (4,)),
        ("HGMMA.64x64x16.F32 R24, gdesc[UR12].tnspB, RZ, !UPT", (), (12, 13, 14, 15)),
        ("HGMMA.64x16x16.F32 R56, R24, gdesc[UR12].tnspB, R56, gsb0", (), (14, 15)),
        ("UTMALDG.2D [UR8], [UR4], desc[UR6]", (), (8, 4, 6, 7)),
        ("SYNCS.EXCH.64 URZ, [UR8], UR4", (), (8, 4)),
        ("ELECT P0, URZ, PT", (), ()),
        ("BRA.DIV UR4, `(.L_x_1)", (), (4,)),
    ],
)
def test_what_an_instruction_writes_and_reads(line, writes, reads):
    assert instruction(line).writes() == writes
    assert instruction(line).reads() == reads


def lost(*lines):
    return [(read.instruction.address, read.registers) for read in unwritten_reads(code(*lines))]


def test_a_read_before_any_write_is_found():
    assert lost("UMOV UR4, 0x1", "IMAD R1, R2, UR5, RZ", "EXIT") == [("0010", (5,))]
    assert lost("UMOV UR4, 0x1", "IMAD R1, R2, UR4, RZ", "EXIT") == []


def test_a_register_is_no_write_of_itself():
    assert lost("UIADD3 UR4, UR4, 0x1, URZ", "EXIT") == [("0000", (4,))]


def test_half_of_a_pair_is_not_enough():
    assert lost("UMOV UR4, 0x1", "LDG.E R2, desc[UR4][R4.64]", "EXIT") == [("0010", (5,))]


def test_a_write_behind_a_read_counts_where_a_loop_leads_back():
    loop = (".L_x_0:", "@P0 IMAD R1, R2, UR4, RZ", "UMOV UR4, 0x1", "@P1 BRA `(.L_x_0)", "EXIT")
    assert lost(*loop) == []
    assert lost(*loop[:3], "EXIT") == [("0000", (4,))]


def test_a_write_on_one_path_counts():
    assert lost(
        "@P0 BRA `(.L_x_0)", "UMOV UR4, 0x1", ".L_x_0:", "IMAD R1, R2, UR4, RZ", "EXIT"
    ) == []  # fmt: skip
    assert lost(
        "BRA `(.L_x_0)", "UMOV UR4, 0x1", ".L_x_0:", "IMAD R1, R2, UR4, RZ", "EXIT"
    ) == [("0020", (4,))]  # fmt: skip


def test_a_write_under_a_condition_counts():
    assert lost("@P0 UMOV UR4, 0x1", "IMAD R1, R2, UR4, RZ", "EXIT") == []


def test_what_a_call_writes_counts_behind_it():
    called = ("$f$div:", "UMOV UR4, 0x1", "RET.REL.NODEC R4 `(f)")
    assert lost("CALL.REL.NOINC `($f$div)", "IMAD R1, R2, UR4, RZ", "EXIT", *called) == []
    assert lost("IMAD R1, R2, UR4, RZ", "EXIT", *called) == [("0000", (4,))]


def test_threads_meet_again_behind_a_barrier():
    assert lost(
        "BSSY B0, `(.L_x_1)", "@P0 BRA `(.L_x_0)", "UMOV UR4, 0x1", "BSYNC B0",
        ".L_x_0:", "BSYNC B0", ".L_x_1:", "IMAD R1, R2, UR4, RZ", "EXIT",
    ) == []  # fmt: skip


def test_a_jump_through_a_table_may_lead_anywhere():
    assert lost(
        "BRX R2 -0x10", ".L_x_0:", "UMOV UR4, 0x1", "EXIT",
        ".L_x_1:", "IMAD R1, R2, UR5, RZ", "EXIT",
    ) == [("0030", (5,))]  # fmt: skip


def test_code_that_nothing_reaches_is_not_looked_at():
    assert lost("EXIT", "IMAD R1, R2, UR4, RZ") == []


def test_other_sections_are_no_code():
    assert functions('\t.section\t.nv.info,"",@"SHT_CUDA_INFO"\nlabel:\n') == ()
