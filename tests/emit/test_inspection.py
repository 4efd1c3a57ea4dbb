"""Compiled kernels that are known to be wrong are refused, and only those.

The kernels are those of bench/repro: what Triton 3.6.0 gave ptxas, and what ptxas made of it.
"""

import json
import re
import shutil
from pathlib import Path

import pytest

from blockbuster.emit.target import inspection
from blockbuster.emit.target.assembler import Assembler
from blockbuster.emit.target.disk import Folder
from blockbuster.emit.target.exchanged_rows import Blocked, exchanged_rows, keeps_rows
from blockbuster.emit.target.inspection import (
    Inspection,
    Made,
    disassembled,
    disassembler,
    reasons_to_refuse,
)
from blockbuster.emit.target.shared_base import bases_of_two_swizzles
from blockbuster.emit.target.unwritten import unwritten_reads

REPRO = Path(__file__).parents[2] / "bench" / "repro"
PTX = (REPRO / "descriptor_base.ptx").read_text(encoding="ascii")
OLD = Assembler("ptxas", (12, 8, 93), "from Triton")
NEW = Assembler("ptxas", (13, 5, 37), "from a package")
WIDE, NARROW = 0x40000040 << 32, 0xC0000010 << 32  # high words: swizzled by 128 and by 32 bytes


def cubin(version):
    return (REPRO / f"descriptor_base-ptxas-{version}.cubin").read_bytes()


@pytest.fixture
def cache(monkeypatch, tmp_path):
    monkeypatch.setattr(inspection, "cache_folder", lambda name: Folder(name, tmp_path / name))
    return tmp_path


# PTX ----------------------------------------------------------------------------------


def test_a_base_of_two_swizzles_is_found_and_refused_for_the_ptxas_that_loses_it():
    assert len(bases_of_two_swizzles(PTX)) == 1
    (reason,) = reasons_to_refuse(Made("k", {"ptx": PTX}, OLD, "3.6.0"))
    assert "ptxas 12.8.93 (from Triton) loses a descriptor base shared by two swizzles" in reason
    assert reasons_to_refuse(Made("k", {"ptx": PTX}, NEW, "3.6.0")) == ()


def dots(*lines, start=10, before=()):
    """A PTX function that makes descriptors, and the dots that read them."""
    text = ["\tand.b64 \t%rd1, %rd9, 16383;", "\tand.b64 \t%rd2, %rd8, 16383;"]
    text += [f"\t{line};" for line in before]
    for number, (instruction, base, constant) in enumerate(lines, start=start):
        text.append(f"\t{instruction} \t%rd{number}, {base}, {constant};")
        shape = "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16"
        text.append(f"\t{shape} {{%r1,%r2}}, {{%r3,%r4,%r5,%r6}}, %rd{number}, 1, 1, 1, 1;")
    return "\n".join([".visible .entry f(", ")", "{", *text, "}"])


def signed(number):
    return number - (1 << 64) if number >> 63 else number


@pytest.mark.parametrize(
    ("lines", "bases"),
    [
        ([("or.b64", "%rd1", WIDE), ("or.b64", "%rd1", signed(NARROW))], ("%rd1",)),
        ([("or.b64", "%rd1", WIDE), ("add.s64", "%rd1", signed(NARROW + 32))], ("%rd1",)),
        ([("add.s64", "%rd10", 2), ("or.b64", "%rd1", WIDE)], ()),  # %rd10 is not made yet
        ([("or.b64", "%rd1", WIDE), ("add.s64", "%rd10", 2)], ()),  # a step further, same word
        ([("or.b64", "%rd1", WIDE), ("or.b64", "%rd2", signed(NARROW))], ()),  # two bases
        ([("or.b64", "%rd1", WIDE), ("add.s64", "%rd1", WIDE + 128)], ()),  # one swizzle
    ],
)
def test_a_base_is_shared_if_high_words_differ(lines, bases):
    assert bases_of_two_swizzles(dots(*lines)) == bases


def test_functions_share_no_registers():
    one, other = dots(("or.b64", "%rd1", WIDE)), dots(("or.b64", "%rd1", NARROW), start=20)
    assert bases_of_two_swizzles(f"{one}\n{other}") == ()


def test_a_register_that_a_loop_carries_is_a_base_of_its_own():
    carried = "\tadd.s64 \t%rd1, %rd1, 64;"
    text = dots(("or.b64", "%rd1", WIDE), ("or.b64", "%rd1", signed(NARROW)))
    assert bases_of_two_swizzles(text.replace("}\n", f"{carried}\n}}\n")) == ("%rd1",)


# Triton's text ------------------------------------------------------------------------


def reshaped(columns, rows, size=(1, 1), warps=(4, 1), split=None):
    """The reshape that Triton 3.6.0 writes for a reduction over rows, and its layouts."""
    threads = (32, 1)
    own = rows // warps[1]
    split = split or (columns, rows // own, own)
    return (
        f"#blocked = #ttg.blocked<{{sizePerThread = [{size[0]}, 1, {size[1]}], threadsPerWarp = "
        f"[{threads[0]}, {threads[1]}, 1], warpsPerCTA = [{warps[0]}, {warps[1]}, 1], "
        "order = [2, 0, 1]}>\n"
        f"#blocked1 = #ttg.blocked<{{sizePerThread = [{size[0]}, {size[1]}], threadsPerWarp = "
        f"[{threads[0]}, {threads[1]}], warpsPerCTA = [{warps[0]}, {warps[1]}], order = [0, 1]}}>\n"
        f"    %a = tt.reshape %x allow_reorder efficient_layout : "
        f"tensor<{columns}x{rows}xf32, #blocked1> -> "
        f"tensor<{split[0]}x{split[1]}x{split[2]}xf32, #blocked> loc(#loc1)\n"
    )


@pytest.mark.parametrize(
    ("columns", "rows", "layout", "wrong"),
    [  # as measured on an H200: wrong where a thread holds two blocks of columns
        (128, 8, {}, False),
        (256, 8, {}, True),
        (512, 2, {}, True),
        (256, 8, {"warps": (8, 1)}, False),
        (512, 8, {"warps": (8, 1)}, True),
        (128, 8, {"size": (4, 1), "warps": (1, 4)}, False),
        (256, 8, {"size": (4, 1), "warps": (2, 2)}, False),
        (512, 8, {"size": (4, 1)}, False),
        (1024, 8, {"size": (4, 1)}, True),
    ],
)
def test_rows_are_exchanged_where_a_thread_holds_several_blocks(columns, rows, layout, wrong):
    text = reshaped(columns, rows, **layout)
    assert bool(exchanged_rows(text)) is wrong
    reasons = reasons_to_refuse(Made("k", {"ttgir": text}, NEW, "3.6.0"))
    assert bool(reasons) is wrong
    if wrong:
        assert "3.6.0 miscompiles a reduction in a loop over several blocks" in reasons[0]


def test_rows_are_kept_where_registers_are_counted_alike():
    tile = Blocked((1, 1), (32, 1), (4, 1), (1, 0))  # the reduced axis first
    split = Blocked((1, 1, 1), (32, 1, 1), (4, 1, 1), (2, 1, 0))
    assert keeps_rows((256, 8), tile, (256, 1, 8), split)
    assert not keeps_rows((256, 8), tile, (256, 1, 8), Blocked(*_fields(split), (0, 2, 1)))
    assert not keeps_rows((256, 8), tile, (256, 1, 4), split)  # half of the registers


def _fields(layout):
    return layout.elements, layout.threads, layout.warps


# machine code -------------------------------------------------------------------------

needs_nvdisasm = pytest.mark.skipif(not disassembler(), reason="no nvdisasm here")


@needs_nvdisasm
def test_a_lost_register_is_seen_in_machine_code():
    found = unwritten_reads(disassembled(cubin("12.8.93"), disassembler()))
    assert [str(read).split(" reads ")[1] for read in found] == [
        "UR16 before any write",
        "UR17 before any write",
    ]


@needs_nvdisasm
@pytest.mark.parametrize("version", ["12.9.86", "13.5.37"])
def test_sound_machine_code_passes(version, cache):
    made = Made("two_dots", {"ptx": PTX, "cubin": cubin(version)}, NEW, "3.6.0")
    assert reasons_to_refuse(made) == ()
    assert len(list((cache / "inspected").iterdir())) == 1


@needs_nvdisasm
def test_what_is_refused_is_kept_for_a_report_upstream(cache):
    unknown = Assembler("ptxas", (13, 0, 1), "somewhere")  # not known to be broken: seen in code
    made = Made("two_dots", {"ptx": PTX, "cubin": cubin("12.8.93")}, unknown, "3.6.0")
    first, second = Inspection(made).finished().reasons
    assert "ptxas 13.0.1 (somewhere) lost a register: two_dots: " in first
    found = {path.suffix: path for path in (cache / "refused").iterdir()}
    assert str(found[".cubin"]) in second
    assert found[".cubin"].read_bytes() == cubin("12.8.93")
    assert found[".ptx"].read_text() == PTX
    assert "HGMMA" in found[".sass"].read_text()
    about = json.loads(found[".json"].read_text())
    assert (about["triton"], about["assembler"]) == ("3.6.0", "ptxas 13.0.1 (somewhere)")
    assert not (cache / "inspected").exists()


@needs_nvdisasm
def test_a_binary_that_passed_is_not_disassembled_again(cache, monkeypatch):
    made = Made("two_dots", {"ptx": PTX, "cubin": cubin("13.5.37")}, NEW, "3.6.0")
    assert Inspection(made).finished().reasons == ()
    monkeypatch.setattr(inspection, "disassembled", lambda *_: pytest.fail("again"))
    assert Inspection(made).finished().reasons == ()


def test_machine_code_that_nothing_reads_is_noted(cache, monkeypatch):
    made = Made("two_dots", {"ptx": PTX, "cubin": cubin("13.5.37")}, NEW, "3.6.0")
    monkeypatch.setattr(inspection, "disassembler", lambda: "")
    (note,) = Inspection(made).finished().notes
    assert note.startswith("no nvdisasm is found")
    monkeypatch.setattr(inspection, "disassembler", lambda: shutil.which("true"))
    (note,) = Inspection(made).finished().notes
    assert re.search("true reads no code in two_dots", note)
    assert not (cache / "inspected").exists()
