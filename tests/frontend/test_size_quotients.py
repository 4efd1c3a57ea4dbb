"""Quotients of two named sizes, ``h // g``: they come out even, or the user's line is named."""

import json
import runpy

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.emit.tile.show import show_tiles
from blockbuster.errors import LaunchError, TraceError
from blockbuster.frontend.dims import DimTable
from blockbuster.frontend.saved_program import program_to_json, read_program
from blockbuster.interp.evaluate import evaluate
from blockbuster.ir.lengths import clamped, inverse, size, whole
from tests.emit.parse_tiles import parse_tiles


def attention(q, k, v):
    return bb.softmax(q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5) @ v


def grouped(q, k, v):
    """Every group of ``h // g`` heads of queries shares one head of keys and values."""
    b, h, s, d = q.shape
    g = k.shape[1]
    out = attention(q.reshape(b, g, h // g, s, d), k[:, :, None], v[:, :, None])
    return out.reshape(b, h, s, d)


def repeated(q, k, v):
    many = q.shape[1] // k.shape[1]
    return attention(q, np.repeat(k, many, axis=1), np.repeat(v, many, axis=1))


def group_norm(x, w):
    b, c, s = x.shape
    y = x.reshape(b, w.shape[0], -1, s)
    y = (y - y.sum((2, 3), keepdims=True)) * w[:, None, None]
    return y.reshape(b, c, s)


def parts(x, w):
    """Two parts of rows of H numbers, and what is left of 12 behind a quotient."""
    n = x.shape[1] // w.shape[0]
    return x[:, :n] * 2.0, x[:, n:] * n, bb.ones(12 // w.shape[0]) * w[:, None]


HEADS = dict(q="B H S D", k="B G T D", v="B G T D")
PROGRAMS = {
    grouped: HEADS,
    repeated: HEADS,
    group_norm: dict(x="B H S", w="G"),
    parts: dict(x="B H", w="G"),
}
ROUNDED = bb.trace(lambda x, w: (x[: bb.floor(x.shape[0] / w.shape[0])], w * 1), x="H", w="G")
SIZE = st.integers(1, 9)
SIZES = dict(B=2, S=3, D=4, T=5)
TRACED = {fn: bb.trace(fn, **dims) for fn, dims in PROGRAMS.items()}
LOWERED = {fn: bb.lower(program) for fn, program in TRACED.items()}
SAVED = {fn: json.dumps(program_to_json(program, {})) for fn, program in TRACED.items()}


def arrays(fn, sizes):
    rng = np.random.default_rng(0)
    return {
        name: rng.standard_normal([{**SIZES, **sizes}[dim] for dim in dims.split()])
        for name, dims in PROGRAMS[fn].items()
    }


@pytest.mark.parametrize("fn", PROGRAMS)
@given(h=st.integers(0, 12), g=st.integers(0, 5))
def test_one_trace_serves_all_sizes_that_divide(fn, h, g):
    """The array program, its block program, and what is read back from a file, beside NumPy."""
    program, given = TRACED[fn], arrays(fn, {"H": h, "G": g})
    again = read_program(json.loads(SAVED[fn]), {})
    divides = g > 0 and h % g == 0 and (fn is not parts or 12 % g == 0)
    for run in (program.numpy, again.numpy, lambda given: evaluate(LOWERED[fn], given)):
        if not divides:
            with pytest.raises(ValueError, match=r"no whole number|divided by 0"):
                run(given)
            continue
        expected = fn(*given.values())
        for found, right in zip(
            run(given).values(), expected if fn is parts else [expected], strict=True
        ):
            np.testing.assert_allclose(found, right, rtol=1e-12, atol=1e-12)


@given(h=st.integers(0, 12), g=st.integers(1, 5))
def test_floor_rounds_quotients_down(h, g):
    given = {"x": np.arange(float(h)), "w": np.ones(g)}

    np.testing.assert_array_equal(ROUNDED.numpy(given)["out0"], given["x"][: h // g])


@example(shares=(0, 1, 2), by=1, d=1, h=1)
@given(st.tuples(*[st.integers(-3, 3)] * 3), st.sampled_from((1, 2)), SIZE, SIZE)
def test_the_usual_formula_of_a_quotient_is_right_wherever_it_is_whole(shares, by, d, h):
    """What a trace assumes of slices that fit for all large sizes."""
    table, sizes = DimTable(), {"D": d, "H": h}
    one, other = size(table.named("D")), size(table.named("H"))
    top = one * whole(shares[0]) + other * whole(shares[1]) + whole(shares[2])
    length = clamped(top * inverse(other * whole(by)), rounds=True)
    total, under = table.usual(length).total(sizes)

    if total % under == 0 and total >= 0:
        assert total // under == length.value(sizes)


def test_both_spellings_of_grouped_attention_are_one_kernel_and_one_text():
    graph = LOWERED[grouped]

    assert [str(rule) for rule in graph.size_rules] == ["|A| is |H| / |G|"]
    assert bb.parse(str(graph)) == graph
    for fn in (grouped, repeated):
        assert len(bb.fuse(LOWERED[fn]).final.nodes) == 1


def test_an_emitted_file_computes_the_quotient(tmp_path):
    fused = bb.fuse(LOWERED[group_norm]).final
    assert bb.prove_equal(LOWERED[group_norm], fused)
    made = bb.emit(fused, {"B": 2, "S": 3, "H": 6, "G": 3}, "float32")
    (tmp_path / "norm.py").write_text(made.source)
    check_lengths = runpy.run_path(str(tmp_path / "norm.py"))["check_lengths"]

    assert parse_tiles(show_tiles(made.tile_program)) == made.tile_program
    assert check_lengths({"H": 8, "G": 2, "B": 1, "S": 1})["A"] == 4
    for g, words in ((3, "A would be 2.33"), (0, "divided by 0")):
        with pytest.raises(ValueError, match=words):
            check_lengths({"H": 7, "G": g, "B": 1, "S": 1})


def test_a_call_that_does_not_divide_names_the_line(tmp_path):
    compiled = bb.compile(TRACED[grouped], {**SIZES, "H": 6, "G": 3}, "float64", machine="cpu")
    given = arrays(grouped, {"H": 8, "G": 2})

    np.testing.assert_allclose(compiled(*given.values()), grouped(*given.values()))
    with pytest.raises(LaunchError, match=r"\|H\| / \|G\| is 7/3 for H = 7, G = 3.*\n.*h // g"):
        compiled(*arrays(grouped, {"H": 7, "G": 3}).values())
    compiled.save(tmp_path / "saved")
    np.testing.assert_allclose(
        bb.load(tmp_path / "saved")(*given.values()), grouped(*given.values())
    )


def test_jit_fixes_the_divisor():
    run = bb.jit(grouped)
    for h, g in ((6, 3), (9, 3), (4, 4)):
        given = arrays(grouped, {"H": h, "G": g}).values()
        np.testing.assert_allclose(run(*given), grouped(*given))


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (lambda x, w: x.reshape(-1, x.shape[1] // w.shape[0] * 2), "H / G .* may be no whole"),
        (lambda x, w: x * (x.shape[1] // (w.shape[0] - 1)), "is no known number"),
        (lambda x, w: x * (2.5 // w.shape[0]), "is no known number"),
        (lambda x, w: x * (x.shape[1] % w.shape[0]), '"H=8" and "G=8"'),
    ],
)
def test_what_is_refused(fn, message):
    with pytest.raises(TraceError, match=message):
        bb.trace(fn, x="B H", w="G")
