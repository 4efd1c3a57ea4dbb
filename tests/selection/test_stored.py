"""What reports say of memory between kernels: the bytes are those that launchers allocate."""

import re
from math import prod
from types import SimpleNamespace

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.emit.target.load import load_module
from blockbuster.runtime.given import family_of
from blockbuster.runtime.relaunch import Relaunch
from blockbuster.selection.plans.report import report
from blockbuster.selection.plans.stored import stored, what_is_stored
from tests.parameters import one_in

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


def cumulative(x):
    return bb.exp(np.cumsum(bb.exp(x), axis=-1))


CASES = {
    "attention": (attention, {"q": "M D", "k": "N D", "v": "N L"}, (256, 64, 1024, 64)),
    "few rows": (attention, {"q": "M D", "k": "N D", "v": "N L"}, (16, 128, 1000, 128)),
    "normed": (normed, {"x": "M K", "w": "K N"}, (65536, 512, 1024)),
    "columns": (columns, {"x": "M K", "w": "K N"}, (40_000, 64, 512)),
    "both": (both, {"x": "M N"}, (8192, 40_000)),
    "softmax": (lambda x: bb.softmax(x), {"x": "M N"}, (512, 640)),
    "total": (lambda x: bb.sum(bb.sum(x, axis=0), axis=0), {"x": "M N"}, (8192, 8192)),
    "cumulative": (cumulative, {"x": "M N"}, (512, 640)),
}


def compiled(name, machine="h200"):
    function, dims, extents = CASES[name]
    program = bb.trace(function, **dims)
    sizes = dict(zip(program.dims, extents, strict=False))
    return bb.compile(program, {d: sizes[d] for d in program.dims}, "float16", machine)


def allocated(file, sizes):
    """The bytes of the workspaces that the file's launcher allocates."""
    gpu = SimpleNamespace(dtype=str, empty=None)
    made = Relaunch(load_module(file.text), gpu)
    shapes = [
        [1 if dim == 1 else sizes[dim] for dim in axes]
        for axes in load_module(file.text).INPUTS.values()
    ]
    tensors = [
        SimpleNamespace(shape=s, stride=lambda s=s: [prod(s[i + 1 :]) for i in range(len(s))])
        for s in shapes
    ]
    *_, arrays, _ = made._arithmetic([tensor.stride() for tensor in tensors], sizes)
    outputs = len(load_module(file.text).OUTPUTS)
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


def test_a_report_begins_with_what_did_not_fuse():
    function, dims, extents = CASES["both"]
    family = family_of(bb.trace(function, **dims), "float16", "sm_90")
    undivided = family.of_parts(
        dict(zip("MN", extents, strict=True)), lambda units: [(1 << len(units)) - 1]
    )
    lines = str(report(undivided)).splitlines()

    assert lines[0] == "both: 5 kernels for sm_90, float16, M = 8192, N = 40000"
    assert lines[1].startswith("  NOT FUSED: writes 8192 x 40000 (e; 2.6 GB) because ")
    assert "a transpose reads e: transpose reorders a list" in lines[1]
    assert 'bb.fuse(graph, whole=("N",))' in lines[1]
    assert lines[2].startswith("  stores 8192 x 32 (I5[M, N_chunk], I6[M, N_chunk]; 2.1 MB)")
    assert lines[3].startswith(("  stores 40000 (", "  NOT FUSED: writes 40000 (r; 320.0 kB) "))
    assert lines[4] == "  hands on 8192 (I7[M], I8[M]; 65.5 kB) from kernel to kernel"


def test_what_goes_from_part_to_part_is_stored_by_choice():
    (line,) = compiled("both").report.stored

    assert line.startswith("stores 8192 x 40000 (t0: float32; 1.3 GB), by choice: one kernel for")
    times = re.search(r"one kernel for t0 and out takes ([\d,]+) us, apart ([\d,]+) us$", line)
    together, apart = (int(time.replace(",", "")) for time in times.groups())
    assert together > 1.1 * apart


def test_what_is_stored_by_choice_is_said_to_be():
    parts = str(compiled("few rows").report).splitlines()
    lines = str(compiled("normed").report).splitlines()

    assert "NOT FUSED" not in "\n".join(lines + parts)
    assert lines[1].startswith("  stores 65536 x 512 (centred[M, K]; 67.1 MB), by choice: snap")
    assert lines[2].startswith("  stores 65536 (r[M]; 262.1 kB), by choice: snapshot ")
    longer = r"([5-9]\d% longer|[2-4]\.\d times as long)"
    assert re.search(rf" does not store it, but takes {longer}", lines[1])
    assert "(I1[N_chunk, M], I3[N_chunk, M]; 1.0 kB), by choice: partial results" in parts[2]


@pytest.mark.parametrize("machine", ["h200", "cpu"])
def test_nothing_is_said_where_everything_fused(machine):
    report = compiled("softmax", machine).report

    assert str(report).splitlines()[1] == "  one kernel, no intermediate in memory"
    assert report.stored == ()


def test_functions_of_whole_arrays_are_not_fused_either():
    report = compiled("cumulative").report

    (line,) = report.stored
    assert line.startswith(
        "NOT FUSED: writes 512 x 640 (e, y; 2.0 MB) because np.cumsum[-1] (test_stored.py:"
    )
    assert line.endswith("is a function of whole arrays: rules do not look inside it")


def test_a_report_is_for_the_sizes_of_the_call():
    jitted = bb.jit(lambda x: bb.softmax(bb.softmax(x, axis=0), axis=1), machine="h200")
    x = np.broadcast_to(np.float16(1), (9000, 17_000))
    lines = str(jitted.report_for(x)).splitlines()

    assert "A = 9000, B = 17000" in lines[0]
    assert "stores 9000 x 17000 (" in lines[1]
    assert any(line.startswith("  chosen for sizes of this class: A = ") for line in lines)


def test_many_values_are_summed_up():
    def chain(x):
        for _ in range(12):
            x = np.sort(bb.exp(x), axis=-1)
        return x

    program = bb.trace(chain, x="M N")
    plan = bb.compile(program, {"M": 64, "N": 64}, "float32", "cpu").plan
    lines = what_is_stored(plan, plan.sizes)

    assert len(lines) == 9
    assert lines[-1] == "4 smaller values: 114.7 kB in all"


def test_an_emitted_file_says_what_it_stores():
    text = compiled("few rows").source

    assert "8 x 16 (I1[N_chunk, M], I3[N_chunk, M]; 1.0 kB), partial results of 8 chunks" in text
    assert "Stored on the way" not in compiled("softmax").source
