"""What reports say of memory between kernels: the bytes are those that launchers allocate."""

import re
from math import prod

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.emit.target.load import load_module
from blockbuster.runtime.given import family_of
from blockbuster.runtime.numbers import Arithmetic
from blockbuster.selection.plans.report import report
from blockbuster.selection.plans.stored import WRITE, stored, what_is_stored
from tests.parameters import one_in
from tests.selection.given_parts import plan_of_parts

WIDTH = {"float16": 2, "float32": 4, "bool": 1}


def attention(q, k, v):
    return bb.softmax((q @ k.T) * q.shape[-1] ** -0.5) @ v


def normed(x, w):
    centred = x - bb.mean(x, axis=-1, keepdims=True)
    return centred / bb.sqrt(bb.mean(centred * centred, axis=-1, keepdims=True) + 1e-5) @ w


def columns(x, w):
    return bb.softmax(x @ w, axis=0)


def both(x):
    return bb.softmax(bb.softmax(x, axis=0), axis=1)


def in_order(x):
    return bb.exp(np.sort(bb.exp(x), axis=-1))


CASES = {
    "attention": (attention, {"q": "M D", "k": "N D", "v": "N L"}, (256, 64, 1024, 64)),
    "few rows": (attention, {"q": "M D", "k": "N D", "v": "N L"}, (16, 128, 1000, 128)),
    "normed": (normed, {"x": "M K", "w": "K N"}, (65536, 256, 1024)),
    "columns": (columns, {"x": "M K", "w": "K N"}, (40_000, 64, 512)),
    "both": (both, {"x": "M N"}, (8192, 40_000)),
    "softmax": (lambda x: bb.softmax(x), {"x": "M N"}, (512, 640)),
    "total": (lambda x: bb.sum(bb.sum(x, axis=0), axis=0), {"x": "M N"}, (8192, 8192)),
    "in order": (in_order, {"x": "M N"}, (512, 640)),
}


def compiled(name, machine="h200"):
    function, dims, extents = CASES[name]
    program = bb.trace(function, **dims)
    sizes = dict(zip(program.dims, extents, strict=False))
    return bb.compile(program, {d: sizes[d] for d in program.dims}, "float16", machine)


def undivided(name):
    """The plan of a case as one part."""
    function, dims, extents = CASES[name]
    program = bb.trace(function, **dims)
    family = family_of(program, "float16", "sm_90")
    sizes = dict(zip(program.dims, extents, strict=False))
    sizes = {dim: sizes[dim] for dim in program.dims}
    return plan_of_parts(family, sizes, lambda units: [(1 << len(units)) - 1])


def allocated(file, sizes):
    """The bytes of the workspaces that the file's launcher allocates."""
    shapes = [
        [1 if dim == 1 else sizes[dim] for dim in axes]
        for axes in load_module(file.text).INPUTS.values()
    ]
    steps = [[prod(s[i + 1 :]) for i in range(len(s))] for s in shapes]
    arrays = Arithmetic(file.launches, str)(steps, sizes).made
    outputs = len(file.launches.outputs)
    return sum(prod(shape) * WIDTH[dtype] for shape, _, dtype in arrays[outputs:])


@pytest.mark.parametrize("name", one_in(3, CASES))
def test_the_bytes_are_those_that_a_launcher_allocates(name):
    plan = compiled(name).plan
    for file in plan.files:
        found = stored(file.considered, plan.sizes)
        assert sum(one.written.bytes for one in found) == allocated(file, plan.sizes)
        assert [one.written.bytes for one in found] == sorted(
            (one.written.bytes for one in found), reverse=True
        )


def test_a_report_says_what_did_not_fuse_before_what_is_stored_for_speed():
    made = report(undivided("both"))
    lines, stored = str(made).splitlines(), made.stored

    assert lines[0].startswith("both: 5 kernels for sm_90, float16; ")
    assert [line.split(":")[0] for line in lines[1:6]] == [f"  kernel {at}" for at in range(1, 6)]
    refused = "  did not fuse: e (2.6 GB): a transpose reads e: transpose reads it"
    assert lines[6].startswith(refused)
    assert lines[7].startswith("    to fuse it: if one block holds all of ")
    assert lines[-1] == "  for M = 8192, N = 40000"
    assert stored[0].startswith("did not fuse: writes 8192 x 40000 (e; 2.6 GB), since ")
    assert "a transpose reads e: transpose reads it in another order" in stored[0]
    assert 'bb.fuse(graph, whole=("N",))' in stored[0]
    assert stored[1].startswith("stores 8192 x 32 (I5[M, N_chunk], I6[M, N_chunk]; 2.1 MB)")
    assert stored[2].startswith(("stores 40000 (", "did not fuse: writes 40000 (r; 320.0 kB)"))
    assert stored[3] == "hands on 8192 (I7[M], I8[M]; 65.5 kB) from kernel to kernel"


def test_what_goes_from_part_to_part_is_stored_for_speed():
    (line,) = compiled("both").report.stored

    assert line.startswith("stores 8192 x 40000 (t0: float32; 1.3 GB): one kernel for")
    times = re.search(r"t0 and out would take ([\d,]+) us instead of ([\d,]+) us$", line)
    together, apart = (int(time.replace(",", "")) for time in times.groups())
    assert together > 1.1 * apart


def test_what_is_stored_for_speed_did_not_fail_to_fuse():
    parts, normed = compiled("few rows").report, compiled("normed").report

    assert "did not fuse" not in str(parts) + str(normed) + parts.details + normed.details
    (line,) = normed.stored
    assert line.startswith("stores 65536 x 256 (t5: float16; 33.6 MB): one kernel for t5 and out ")
    lines = report(undivided("normed"))
    times = r"([2-9]\d% longer|[2-4]\.\d times as long)"
    longer = rf"a program that does not store it would take {times}"
    first, second = lines.stored
    assert re.match(rf"stores 65536 x 256 \(centred\[M, K\]; 33.6 MB\): {longer}; that is", first)
    assert re.match(rf"stores 65536 \(r\[M\]; 262.1 kB\): {longer}; that is snapshot ", second)
    assert re.search(rf"\n  stored: centred \(33.6 MB\): {longer}\n", str(lines))
    assert "(I1[N_chunk, M], I3[N_chunk, M]; 1.0 kB): partial results" in parts.stored[1]
    assert re.search(r"\n  stored: partial results of \d+ chunks of N side by side \(", str(parts))


@pytest.mark.parametrize("machine", ["h200", "cpu"])
def test_nothing_is_said_where_everything_fused(machine):
    report = compiled("softmax", machine).report

    assert str(report).splitlines()[2] == "  one kernel, no intermediate in memory"
    assert report.stored == ()


def test_functions_of_whole_arrays_are_not_fused_either():
    report = compiled("in order").report

    (line,) = report.stored
    assert line.startswith(
        "did not fuse: writes 512 x 640 (t1_e, t1; 1.3 MB), since np.sort[-1] (test_stored.py:"
    )
    assert line.endswith(f") runs on whole arrays, and is not traced; {WRITE}")
    assert f"\n    to fuse it: {WRITE}\n" in str(report)


def test_a_report_is_for_the_sizes_of_the_call():
    jitted = bb.jit(lambda x: bb.softmax(bb.softmax(x, axis=0), axis=1), machine="h200")
    x = np.broadcast_to(np.float16(1), (9000, 17_000))
    lines = str(jitted.report_for(x)).splitlines()

    assert "  for A = 9000, B = 17000" in lines
    assert any(line.startswith("  stored: ") for line in lines)
    assert any(line.startswith("  chosen for sizes of this class: A = ") for line in lines)


@pytest.mark.parametrize(
    ("sorts", "told"), [(12, "4 smaller values: 114.7 kB in all"), (9, "1 smaller value: ")]
)
def test_many_values_are_summed_up(sorts, told):
    def chain(x):
        for _ in range(sorts):
            x = np.sort(bb.exp(x), axis=-1)
        return x

    program = bb.trace(chain, x="M N")
    plan = bb.compile(program, {"M": 64, "N": 64}, "float32", "cpu").plan
    lines = what_is_stored(plan, plan.sizes)

    assert len(lines) == 9
    assert lines[-1].startswith(told)


def test_an_emitted_file_says_what_it_stores():
    text = compiled("few rows").source

    assert "8 x 16 (I1[N_chunk, M], I3[N_chunk, M]; 1.0 kB), partial results of 8 chunks" in text
    assert "Stored on the way" not in compiled("softmax").source
