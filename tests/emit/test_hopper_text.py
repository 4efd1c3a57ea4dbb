"""What emitted text does about compilers that are known to miscompile it."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.emit.closing.work_around_locality import THREADS, WARPS
from blockbuster.emit.target.load import load_module
from blockbuster.runtime.launch import run_interpreted


def emitted(function, shapes, sizes, dtype="float32", target="sm_90", **tiles):
    program = bb.lower(bb.trace(function, **shapes))
    return bb.emit(bb.fuse(program).final, sizes, dtype, target, tiles)


def columns(lanes, dtype="float32", rows=3, op=bb.sum):
    return emitted(lambda x: op(x, axis=0), dict(x="M N"), dict(M=rows, N=1000), dtype, N=lanes)


def in_two_steps(kernel):
    return re.findall(r"# in two steps, else Triton 3\.6 swaps rows", kernel.source)


@pytest.mark.parametrize("op", [bb.sum, bb.max, bb.min])
def test_loaded_columns_are_reduced_in_two_steps_where_threads_hold_several_blocks(op):
    assert len(in_two_steps(columns(2 * THREADS * WARPS, op=op))) == 1
    assert not in_two_steps(columns(THREADS * WARPS, op=op))


def test_what_is_cast_is_not_what_is_loaded():
    assert not in_two_steps(columns(2 * THREADS * WARPS, "float16"))


def test_what_is_computed_is_not_what_is_loaded():
    kernel = emitted(lambda x: bb.sum(bb.exp(x), axis=0), dict(x="M N"), dict(M=3, N=1000), N=512)
    assert not in_two_steps(kernel)


def test_rows_in_the_lanes_are_kept_apart_too():
    """The tensor may be passed transposed, so the axis that is reduced does not matter."""
    kernel = emitted(lambda x: bb.sum(x, axis=1), dict(x="M N"), dict(M=1000, N=33), M=512, N=16)
    assert len(in_two_steps(kernel)) == 1


@pytest.mark.interpreter
@pytest.mark.parametrize("op", ["sum", "max", "min"])
@pytest.mark.parametrize("rows", [2, 3])
def test_two_steps_give_the_same_numbers(op, rows):
    kernel = columns(256, rows=rows, op=getattr(bb, op))
    assert in_two_steps(kernel)
    x = np.random.default_rng(0).standard_normal((rows, 1000)).astype("float32")
    x[0, 3] = -0.0
    (found,) = run_interpreted(kernel, {"x": x}).values()
    np.testing.assert_allclose(found, getattr(np, op)(x, axis=0), rtol=1e-6, atol=1e-6)


def test_no_fold_of_loaded_float32_over_blocks_is_one_operation():
    """The pattern of Triton's pass, looked for in the text of many reductions."""
    one = re.compile(r"^\s+(\w+) = (?:\1 \+ (\w+)|_maximum\(\1, (\w+)\))(?:  #|$)", re.MULTILINE)
    for op in (bb.sum, bb.max, bb.mean):
        for lanes in (256, 512, 1024):
            source = columns(lanes, op=op).source
            for match in one.finditer(source):
                value = match[2] or match[3]
                made = re.search(rf"\b{value} = .*\((\w+), 1", source)
                assert made is None or f"{made[1]} = tl.load(" not in source


# the guard of files that may meet ptxas 12.8 ------------------------------------------

CHAIN = dict(x="M K", a="K N", w="N P")


def chain(target="sm_90", dtype="float16", **sizes):
    given = dict(M=64, K=64, N=33, P=8) | sizes
    return emitted(lambda x, a, w: (x @ a) @ w, CHAIN, given, dtype, target)


def test_files_with_dots_of_several_widths_look_at_the_assembler():
    assert "        check_assembler()" in chain().source
    assert "check_assembler" not in chain(N=64, P=64).source
    assert "check_assembler" not in chain("sm_80").source
    assert "check_assembler" not in chain(dtype="float32").source
    one_dot = emitted(lambda x, a: x @ a, dict(x="M K", a="K N"), dict(M=64, K=64, N=8), "float16")
    assert "check_assembler" not in one_dot.source


@pytest.mark.parametrize(
    ("version", "capability", "hip", "refused"),
    [
        ("12.8", 9, None, True),
        ("12.9", 9, None, False),
        ("13.5", 9, None, False),
        ("12.8", 8, None, False),
        ("12.8", 9, "6.2", False),
    ],
)
def test_a_file_refuses_the_ptxas_that_breaks_it(monkeypatch, version, capability, hip, refused):
    compiler = pytest.importorskip("triton.backends.nvidia.compiler")
    module = load_module(chain().source)
    torch = SimpleNamespace(
        version=SimpleNamespace(hip=hip),
        cuda=SimpleNamespace(get_device_capability=lambda: (capability, 0)),
    )
    monkeypatch.setitem(module.sys.modules, "torch", torch)
    tool = SimpleNamespace(version=version, path="there/ptxas")
    monkeypatch.setattr(compiler, "get_ptxas", lambda arch: tool)
    monkeypatch.setattr(module.triton.knobs.runtime, "interpret", False)
    if refused:
        with pytest.raises(RuntimeError, match=r"there/ptxas is ptxas 12\.8, which breaks"):
            module.check_assembler()
    else:
        module.check_assembler()
