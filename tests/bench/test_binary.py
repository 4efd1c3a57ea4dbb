"""What a compiled kernel is said to be: from texts that are kept, and of kernels compiled here."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

import blockbuster as bb
from bench.costs.binary import Texts, as_data, binary_of, from_data, read, warnings_in
from blockbuster.emit.target.inspection import disassembler
from blockbuster.emit.target.load import load_module
from blockbuster.emit.target.targets import target_of
from blockbuster.errors import EmitError

needs_nvdisasm = pytest.mark.skipif(not disassembler(), reason="no nvdisasm here")
GOLDEN = Path(__file__).parents[1] / "golden" / "binary"
SERIALIZED = (
    "ptxas info    : (C7511) Potential Performance Loss: wgmma.mma_async instructions are "
    "serialized due to insufficient register resources for the wgmma pipeline in the function "
    "'out_kernel'\n"
    "ptxas info    : 0 bytes gmem\n"
    "ptxas info    : Compiling entry function 'out_kernel' for 'sm_90a'\n"
    "    1632 bytes stack frame, 1628 bytes spill stores, 1596 bytes spill loads\n"
    "ptxas info    : Used 255 registers, used 1 barriers\n"
)


def kept(name):
    """A compiled kernel's texts, and what was made of them."""
    data = json.loads((GOLDEN / f"{name}.json").read_text())
    binary = from_data(data["binary"])
    sass = (GOLDEN / f"{name}.sass").read_text()
    texts = Texts(
        binary.function, binary.target, binary.assembler, sass, data["ttgir"], data["said"],
        binary.shared, binary.warps,
    )  # fmt: skip
    return texts, binary


@pytest.mark.parametrize("name", ["matmul-sm_90", "matmul-sm_80"])
def test_kept_texts_are_read_as_before(name):
    texts, binary = kept(name)
    assert read(texts) == binary
    assert from_data(json.loads(json.dumps(as_data(binary)))) == binary


def test_a_loop_for_hopper():
    """64 x 32 results, 64 deep: four instructions of four warps, loads two iterations ahead."""
    _, binary = kept("matmul-sm_90")
    (loop,) = binary.loops
    assert loop == binary.hot
    assert loop.code.matrix == {"HGMMA 64x32x16": 4}
    assert loop.code.operations * binary.warps == 2 * 64 * 32 * 64
    assert loop.code.moved("copies") * binary.warps == 2 * (64 + 32) * 64
    assert binary.pendings == (1, 0)
    assert loop.code.waits == (1,)


def test_a_loop_for_an_older_gpu():
    """32 x 32 results, 32 deep, of two warps."""
    _, binary = kept("matmul-sm_80")
    (loop,) = binary.loops
    assert loop.code.matrix == {"HMMA 16x8x16": 8}
    assert loop.code.operations * binary.warps == 2 * 32 * 32 * 32
    assert loop.code.moved("copies") * binary.warps == 2 * (32 + 32) * 32
    assert binary.pendings == ()


def test_what_the_assembler_says():
    texts, _ = kept("matmul-sm_90")
    binary = read(replace(texts, said=SERIALIZED))
    assert binary.registers == 255
    assert binary.spilled == 1628 + 1596
    assert binary.serialized
    (warning,) = binary.warnings
    assert warning.startswith("C7511 Potential Performance Loss: wgmma.mma_async instructions")


def test_wgmma_outside_of_loops_may_be_serialized():
    texts, binary = kept("matmul-sm_80")
    assert not replace(read(replace(texts, said=SERIALIZED)), loops=()).serialized
    assert not binary.serialized


def test_each_warning_is_told_once():
    said = "ptxas warning : Value of threads per SM is out of range\n" * 2 + SERIALIZED
    assert len(warnings_in(said)) == 2
    assert warnings_in("ptxas info    : Used 48 registers, used 1 barriers\n") == ()


@pytest.mark.parametrize(
    ("change", "resident"),
    [
        ({}, 6),  # 228 KB of shared memory: 36 KB, and 1 KB for the system, fit six times
        ({"shared": 0}, 10),  # 65,536 registers: 48 of 128 threads fit ten times
        ({"shared": 0, "registers": 49}, 9),  # 56 a thread: 1,792 a warp, nine in each quarter
        ({"shared": 0, "registers": 16, "warps": 1}, 32),  # no processor takes more programs
        ({"shared": 0, "registers": 16, "warps": 16}, 4),  # 2,048 threads
        ({"shared": 0, "registers": 168, "warps": 8}, 1),  # three warps in each quarter
        ({"shared": 0, "registers": 255, "warps": 16}, 0),
        ({"shared": 300_000}, 0),
        ({"shared": 232_448}, 1),
    ],
)
def test_programs_that_a_processor_holds(change, resident):
    _, binary = kept("matmul-sm_90")
    assert replace(binary, **change).resident(bb.machine("h200").limits) == resident


def test_texts_without_code_are_refused():
    texts, _ = kept("matmul-sm_90")
    with pytest.raises(EmitError, match="reads no code in out_kernel"):
        read(replace(texts, sass="\t.target\tsm_90a\n"))


@needs_nvdisasm
@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_a_kernel_compiled_here(target):
    graph = bb.fuse(bb.lower(bb.trace(lambda x: bb.softmax(x, axis=-1), x="M N"))).final
    kernel = bb.emit(graph, dict(M=64, N=512), "float16", target)
    (entry,) = load_module(kernel.source).KERNELS
    binary = binary_of(entry, target_of(target))
    assert binary.target == target
    assert 0 < binary.registers < 256
    assert not binary.spilled
    assert binary.straight.count("special") >= 1  # exponentials, and a reciprocal
    assert binary.straight.moved("stores") * binary.warps >= 2 * 512
    assert binary.resident(bb.machine("h200").limits) >= 1
    assert "ptxas" in binary.assembler


def test_other_vendors_are_refused():
    graph = bb.fuse(bb.lower(bb.trace(lambda x: bb.exp(x), x="M"))).final
    kernel = bb.emit(graph, dict(M=64), "float32", "gfx942")
    (entry,) = load_module(kernel.source).KERNELS
    with pytest.raises(EmitError, match="only machine code of NVIDIA is looked at"):
        binary_of(entry, target_of("gfx942"))
