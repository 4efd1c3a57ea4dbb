"""Inputs of float8: which dots the matrix units take in it, how they are summed, what refuses."""

import os
import subprocess
import sys
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.costs.operands import dot_of
from blockbuster.emission import emit
from blockbuster.emit.interpret.proof import prove_tiles
from blockbuster.emit.schedule.scheduled import unscheduled
from blockbuster.emit.target.compiler import compile_kernel
from blockbuster.emit.target.targets import target_of
from blockbuster.emit.tile.array_dtypes import given_by, typed_for_gpu
from blockbuster.emit.tile.float8_dots import in_float8, is_widening, not_in_float8
from blockbuster.emit.tile.layouts import layouts_of
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.program import Let, Tile, statements
from blockbuster.emit.tile.rings import arrivals
from blockbuster.emit.tile.trips import sized
from blockbuster.emit.tile.typed import takes_matrix_units
from blockbuster.emit.tile.verify import verify_tiles
from blockbuster.errors import EmitError, VerifyError
from blockbuster.ir.dtypes import FLOAT8, own_dtypes
from blockbuster.ir.fitting import fitted
from blockbuster.ir.ops import Cast
from blockbuster.rules import fuse
from tests.emit.random_tiles import SIZES, all_cut, is_cut, random_graph, some_moves

BOTH = {"x": FLOAT8, "w": FLOAT8}
LARGE = {"M": 256, "N": 256, "K": 256}


def rows_by_rows(x, w):
    return x @ w.swapaxes(-1, -2)


def rows_by_columns(x, w):
    return x @ w


def casted(x, w):
    return (x.astype("float16") @ w.astype("float16").swapaxes(-1, -2)).astype("float32")


def product(fn=rows_by_rows, **dims):
    """A derivation of a product, its second operand along the sum unless said."""
    dims = dims or {"x": "M K", "w": "K N" if fn is rows_by_columns else "N K"}
    return fuse(bb.lower(bb.trace(fn, **dims)))


def dots_of(program):
    stmts = [stmt for nest in program.nests for stmt in statements(nest.body)]
    return [s for s in stmts if isinstance(s, Let) and takes_matrix_units(s, program.units)]


def dtypes_of(fn, dtype, **dims):
    """The dtypes that the dot of a product takes, and that of its result."""
    program = emit(product(fn, **dims), LARGE, dtype).tile_program
    (dot,), (out,) = dots_of(program), program.outputs
    return [arg.dtype for arg in dot.args], out.dtype


@pytest.mark.parametrize(
    ("fn", "dtype", "operands", "result"),
    [
        (rows_by_rows, BOTH, FLOAT8, "float16"),
        (rows_by_columns, BOTH, "float16", "float16"),  # its last axis is not summed
        (rows_by_rows, {"x": "bfloat16", "w": FLOAT8}, "bfloat16", "bfloat16"),
        (rows_by_rows, {"x": FLOAT8, "w": "float32"}, "float32", "float32"),
        (rows_by_rows, {**BOTH, "out": "float32"}, "float16", "float32"),  # it shows the error
        (casted, BOTH, "float16", "float32"),  # the program asks for sums of float16
    ],
)
def test_the_dtype_of_a_dot(fn, dtype, operands, result):
    assert dtypes_of(fn, dtype) == ([operands] * 2, result)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int8", "bool"])
def test_casts_that_change_no_number(dtype):
    narrow = Tile("t1", ("M", "K"), dtype=FLOAT8)
    cast = Let(Tile("t2", ("M", "K"), dtype=dtype), Cast(dtype), (narrow,))

    assert is_widening(cast) is ("float" in dtype)
    assert not is_widening(replace(cast, args=(replace(narrow, dtype="float16"),)))


def scaled(x, w, s):
    return (x.astype("float16") @ w.astype("float16").swapaxes(-1, -2)) * s


def test_dots_of_float8_are_not_exact_ones_beside_scales_in_float32():
    """In a program of float32, dots of casted float8 would be made by vector units."""
    graph = product(scaled, x="M K", w="N K", s="M 1")
    kernel = emit(graph, LARGE, {**BOTH, "s": "float32"})

    (dot,) = dots_of(kernel.tile_program)
    assert [arg.dtype for arg in dot.args] == ["float16"] * 2
    assert kernel.tile_program.dtype == "float32"
    assert '"ieee"' not in kernel.source


def test_operands_that_are_not_along_the_sum_are_named():
    program = emit(product(rows_by_columns), LARGE, BOTH, schedule=SCHEDULE).tile_program
    views = dict(arrivals(program.nests[0].body))
    x, w = views

    assert not_in_float8([x], views) == ""
    assert not_in_float8([x, w], views) == "w does not lie along the sum: its last axis is not K"
    assert "is computed" in not_in_float8([x], {})
    assert "is float16" in not_in_float8([replace(x, dtype="float16")], views)


SCHEDULE = "block M 64, K 64, N 64\nwarps 4\nstage nest 1 K 2"


@pytest.mark.parametrize(("lanes", "most"), [(256, 128), (128, 128), (64, 64)])
def test_partial_sums_are_added_in_float32(lanes, most):
    schedule = SCHEDULE.replace("K 64", f"K {lanes}")
    text = emit(product(), LARGE, BOTH, schedule=schedule).source

    assert f", max_num_imprecise_acc={most})" in text
    assert "imprecise" not in emit(product(rows_by_columns), LARGE, BOTH).source


def test_sums_of_16_are_too_short():
    with pytest.raises(EmitError, match="the block of K is 16, expected a power of two of at leas"):
        emit(product(), LARGE, BOTH, schedule=SCHEDULE.replace("K 64", "K 16"))
    assert emit(product(), LARGE, "float16", schedule=SCHEDULE.replace("K 64", "K 16"))
    short = emit(product(), {**LARGE, "K": 16}, BOTH)
    assert short.tiles["K"] == 32


@pytest.mark.parametrize("target", ["sm_80", "gfx942"])
def test_targets_that_have_no_such_float(target):
    with pytest.raises(EmitError, match=f"kernels for {target} do not read float8_e4m3fn\n.*cast"):
        emit(product(), LARGE, BOTH, target)


def test_no_result_is_float8():
    with pytest.raises(ValueError, match="no kernel is written for dtype 'float8_e4m3fn'"):
        emit(product(), LARGE, {**BOTH, "out": FLOAT8})


def test_a_dot_of_float8_beside_another_dtype_is_refused():
    program = emit(product(), LARGE, BOTH, schedule=SCHEDULE).tile_program
    (dot,) = dots_of(program)
    wider = replace(dot, args=(replace(dot.args[0], dtype="float16"), dot.args[1]))
    (nest,) = program.nests
    body = exchanged(nest.body, dot, wider)

    with pytest.raises(VerifyError):
        verify_tiles(replace(program, nests=(replace(nest, body=body),)))


def exchanged(body, old, new):
    """``body`` with one statement instead of another."""
    out = []
    for stmt in body:
        if hasattr(stmt, "body"):
            stmt = replace(stmt, body=exchanged(stmt.body, old, new))
        out.append(new if stmt == old else stmt)
    return tuple(out)


def test_the_matrix_units_multiply_float8_faster():
    narrow, wide = (emit(product(), LARGE, d, schedule=SCHEDULE) for d in (BOTH, "float16"))
    found = []
    for kernel in (narrow, wide):
        (nest,), program = kernel.tile_program.nests, kernel.tile_program
        (dot,) = dots_of(program)
        found.append(dot_of(dot, layouts_of(program, nest, "sm_90")))

    assert [dot.dtype for dot in found] == ["float8", "float16"]
    assert found[0].fetched == found[1].fetched // 2
    machine = bb.machine("h200")
    assert machine.rate("matrix", found[0].dtype) > machine.rate("matrix", found[1].dtype)


@settings(max_examples=settings().max_examples // 3)
@given(st.integers(0, 2**32 - 1).map(Random))
def test_random_programs_with_inputs_of_float8(random):
    """Some inputs of float8: typed, scheduled at random, they compute the same."""
    graph = random_graph(random)
    tiles = lower_to_tiles(graph)
    floats = [b.name for b in tiles.inputs if b.name not in own_dtypes(graph)]
    narrow = {name: FLOAT8 for name in floats if random.random() < 0.7}
    rest = {name: random.choice(("float16", "float32")) for name in floats if name not in narrow}
    drawn = {dim: 3 if dim in tiles.units else random.choice(SIZES) for dim in sized(tiles)}
    program = typed_for_gpu(graph, tiles, given_by({**narrow, **rest}))
    verify_tiles(program)
    start = unscheduled(program, fitted(drawn, tiles.rules), target_of("sm_90"))
    cut = all_cut(start, random)
    end = some_moves(cut if is_cut(cut) else start, random)
    end = end if is_cut(end) else all_cut(end, random)

    for stmt in (s for nest in end.program.nests for s in statements(nest.body)):
        assert not isinstance(stmt, Let) or stmt.op != Cast(FLOAT8)
    for dot in dots_of(end.program):
        assert in_float8(dot) or all(arg.dtype != FLOAT8 for arg in dot.args)
    proof = prove_tiles(graph, end.program, trials=4, seed=random.randint(0, 99), lanes=True)
    assert proof.equal, f"{end.schedule}\n{proof}"


INTERPRETED = """
import sys, torch
sys.path.insert(0, sys.argv[1])
import kernel
torch.manual_seed(0)
def whole(*shape):
    return torch.randint(-8, 9, shape).to(torch.float8_e4m3fn)
x, w = whole(40, 72), whole(*map(int, sys.argv[2:4]))
right = x.double() @ (w.double().T if sys.argv[4] == "rows" else w.double())
out = kernel.launch(x, w)
assert (out.double() == right).all(), (out.double() - right).abs().max()
print("equal")
"""


@pytest.mark.interpreter
@pytest.mark.parametrize(("fn", "shape"), [(rows_by_rows, (24, 72)), (rows_by_columns, (72, 24))])
def test_runs_in_tritons_interpreter(tmp_path, fn, shape):
    """Products of whole numbers up to 8 are exact in every dtype here."""
    pytest.importorskip("torch")
    schedule = "block M 16, K 32, N 16\nwarps 4\nstage nest 1 K 2"
    kernel = emit(product(fn), {"M": 40, "K": 72, "N": 24}, BOTH, schedule=schedule)
    (tmp_path / "kernel.py").write_text(kernel.source, encoding="utf-8")
    words = [str(n) for n in shape] + ["rows" if fn is rows_by_rows else "columns"]
    done = subprocess.run(
        [sys.executable, "-c", INTERPRETED, str(tmp_path), *words],
        env={**os.environ, "TRITON_INTERPRET": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.stdout.strip() == "equal", done.stderr[-2000:]


@pytest.mark.parametrize("fn", [rows_by_rows, rows_by_columns, casted])
def test_compiles_for_hopper(fn):
    reports = compile_kernel(emit(product(fn), LARGE, BOTH))

    assert all(report.spills == 0 for report in reports)
