"""Windows of axes: views that overlap, leave gaps, and read zeros outside of an input."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.compile import jit
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.show import show_tiles
from blockbuster.errors import LaunchError, TraceError
from blockbuster.frontend.functions.windows import windowed
from blockbuster.frontend.saved_program import program_to_json, read_program
from blockbuster.interp.binding import bind, dims_of
from blockbuster.interp.evaluate import evaluate
from blockbuster.interp.semantics import Float64
from blockbuster.ir.graph import Read
from blockbuster.ir.list_only import list_only
from blockbuster.ir.parse import parse
from blockbuster.ir.types import size_class
from blockbuster.ir.views import is_padded
from blockbuster.runtime.launch import run_batch
from tests.emit.parse_tiles import parse_tiles
from tests.interp.plain import plain


@st.composite
def settings_of_windows(draw):
    """Size, step, dilation and pads, and an extent in which at least one window fits."""
    size, step, dilation = draw(st.integers(1, 4)), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    pads = draw(st.integers(0, 3)), draw(st.integers(0, 3))
    least = max(dilation * (size - 1) + 1 - sum(pads), 1)
    return (size, step, dilation, pads), draw(st.integers(least, least + 5))


def by_hand(x, axis, size, step, dilation, pads):
    """NumPy's windows of an array with zeros around its axis."""
    around = [(0, 0)] * x.ndim
    around[axis] = pads
    width = dilation * (size - 1) + 1
    views = np.lib.stride_tricks.sliding_window_view(np.pad(x, around), width, axis)
    every = [slice(None)] * views.ndim
    every[axis], every[-1] = slice(None, None, step), slice(None, None, dilation)
    return views[tuple(every)]


@settings(deadline=None)
@given(settings_of_windows(), st.integers(0, 1))
def test_windows_are_numpys(given, axis):
    window, extent = given
    shape = [3, 3]
    shape[axis] = extent
    x = np.random.default_rng(0).uniform(-1, 1, shape)
    program = bb.trace(lambda x: windowed(x, axis, *window), x="M N")
    right = by_hand(x, axis, *window)

    np.testing.assert_array_equal(program.numpy({"x": x})["out"], right)
    np.testing.assert_array_equal(windowed(x, axis, *window), right)
    graph = bb.lower(program)
    np.testing.assert_array_equal(evaluate(graph, {"x": x})["out"], right)
    own = sizes_in(graph, x=x)
    steps = {dim: 1 if dim in list_only(graph) else 2 for dim in own}
    np.testing.assert_array_equal(plain(graph, {"x": x}, own, steps, Float64)["out"], right)


def sizes_in(graph, **arrays):
    """The sizes of a program's size classes."""
    layout = bind(graph, {name: array.shape for name, array in arrays.items()})
    return {dim: layout.size(dim) for dim in dict.fromkeys(map(size_class, dims_of(graph)))}


def smoothed(x, w):
    """Sums of windows times weights, of an input."""
    return windowed(x, 1, w.shape[0], 1, 1, (1, 1)) @ w


def of_computed(x, w):
    """The same of a computed value, which is 1 where x is 0."""
    return windowed(bb.exp(x), 1, w.shape[0], 2, 1, (2, 0)) @ w


def of_a_slice(x, w):
    """Zeros stand outside of the slice, where the array has elements."""
    return windowed(x[:, 1:-1], 1, w.shape[0], 1, 2, (2, 2)) @ w


def of_windows(x, w):
    both = windowed(windowed(x, 1, w.shape[0], 1, 1, (1, 0)), 1, 2, 1, 1, (0, 1))
    return (both * w[:, None]).sum((-1, -2))


def largest(x, w):
    there = windowed(x - x + 1, 1, 3, 2, 1, (1, 1))
    return bb.where(there > 0, windowed(x, 1, 3, 2, 1, (1, 1)), -np.inf).max(-1) + w[0]


FUNCTIONS = (smoothed, of_computed, of_a_slice, of_windows, largest)


def right(function, x, w):
    program = bb.trace(function, x="M N", w="R")
    return program, program.numpy({"x": x, "w": w})["out"]


def arrays(columns=9):
    rng = np.random.default_rng(1)
    return rng.uniform(-1, 1, (5, columns)), rng.uniform(-1, 1, 3)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_path_computes_the_same(function):
    x, w = arrays()
    program, wanted = right(function, x, w)
    derivation = bb.fuse(bb.lower(program))

    assert np.isfinite(wanted).all()
    for graph in (bb.lower(program), derivation.final, parse(str(derivation.final))):
        np.testing.assert_allclose(evaluate(graph, {"x": x, "w": w})["out"], wanted, atol=1e-12)
    assert bb.prove_equal(bb.lower(program), derivation.final)
    found = jit(function)(x.astype(np.float32), w.astype(np.float32))
    np.testing.assert_allclose(found, wanted, atol=1e-5)


@pytest.mark.interpreter
def test_kernels_compute_the_same(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    jobs, wanted = [], []
    for function in FUNCTIONS:
        for columns in (9, 70):
            x, w = arrays(columns)
            program, expected = right(function, x, w)
            derivation = bb.fuse(bb.lower(program))
            sizes = sizes_in(derivation.final, x=x, w=w)
            kernel = bb.emit(derivation, sizes, "float32")
            jobs.append((kernel, {"x": x.astype(np.float32), "w": w.astype(np.float32)}))
            wanted.append(expected)
    for found, expected in zip(run_batch(jobs), wanted, strict=True):
        (result,) = found.values()
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.interpreter
def test_kernels_read_nothing_around_an_array(tmp_path, monkeypatch):
    """Whatever lies around the memory of an array: it is not in the result."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    x, w = arrays(16)
    around = np.full((9, 24), np.nan, np.float32)
    around[2:7, 4:20] = x
    program, wanted = right(smoothed, x, w)
    derivation = bb.fuse(bb.lower(program))
    kernel = bb.emit(derivation, sizes_in(derivation.final, x=x, w=w), "float32")
    (found,) = run_batch([(kernel, {"x": around[2:7, 4:20], "w": w.astype(np.float32)})])
    np.testing.assert_allclose(found["out"], wanted, atol=1e-5)


def views(function):
    graph = bb.lower(bb.trace(function, x="M N", w="R"))
    return [given.view for given in graph.inputs if isinstance(given.view, Read)]


def test_windows_of_inputs_cost_nothing():
    program = bb.trace(smoothed, x="M N", w="R")

    assert program.notes == ()
    assert [any(map(is_padded, view.axes)) for view in views(smoothed)] == [True, False]
    text = str(bb.lower(program))
    assert "N[A = |N| + 3 - |R|, R from -1 padded]" in text
    assert str(parse(text)) == text


def test_zeros_outside_of_a_slice_are_chosen():
    """An input that is read around a slice holds other numbers there."""
    assert "where" in str(bb.lower(bb.trace(of_a_slice, x="M N", w="R")))
    assert "where" not in str(bb.lower(bb.trace(smoothed, x="M N", w="R")))


@pytest.mark.parametrize(
    ("text", "lists"),
    [("N[A, R from -1 padded]", "A,R"), ("N[from 0 padded]", ""), ("N[A step 2 padded]", "A"),
     ("N[padded, A]", "padded,A"), ("N[padded padded]", "padded")],
)  # fmt: skip
def test_the_text_of_a_padded_axis_is_read(text, lists):
    line = f"graph(x: {lists}[] = x({text})) {{\n  return x\n}}\n"
    assert str(parse(line)) == line


def test_tile_programs_say_what_reads_zeros():
    tiles = lower_to_tiles(bb.fuse(bb.lower(bb.trace(smoothed, x="M N", w="R"))).final)

    assert "from -1 padded" in show_tiles(tiles)
    assert parse_tiles(show_tiles(tiles)) == tiles


@pytest.mark.parametrize("function", FUNCTIONS)
def test_saved_programs_are_the_same(function):
    program = bb.trace(function, x="M N", w="R")
    saved = json.loads(json.dumps(program_to_json(program, {})))
    x, w = arrays()
    found = read_program(saved, {}).numpy({"x": x, "w": w})["out"]
    np.testing.assert_array_equal(found, right(function, x, w)[1])


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: windowed(x, 1, 6), "no window of 6 elements fits in 5 elements"),
        (lambda x: windowed(x, 1, 3, 1, 3), "no window of 3 elements fits in 5 elements"),
        (lambda x: windowed(x, 1, 0), "windows of 0 elements"),
    ],
)
def test_windows_that_do_not_fit_are_refused(function, reason):
    with pytest.raises(TraceError, match=reason):
        jit(function)(np.ones((4, 5)))


def test_views_of_windows_are_not_changed_in_place():
    def changed(x):
        y = x + 0
        parts = np.lib.stride_tricks.sliding_window_view(y, 2)
        parts += 1
        return y

    with pytest.raises(TraceError, match="this changes windows of an array in place"):
        bb.trace(changed, x="M")


def test_views_of_windows_show_what_is_changed_afterwards():
    def changed(x):
        y = x + 0
        parts = np.lib.stride_tricks.sliding_window_view(y, 2)
        y += 1
        return parts * 1

    x = np.arange(4.0)
    found = bb.trace(changed, x="M").numpy({"x": x})["out"]
    np.testing.assert_array_equal(found, changed(x))


def test_windows_of_an_einsum_are_an_array_of_their_own():
    def changed(x):
        y = x + 0
        parts = bb.einsum("m(h+r)->mhr", y, pad={"h": (1, 1)}, sizes={"r": 3})
        y[:, 2] = 50
        return parts * 1

    x = np.arange(12.0).reshape(2, 6)
    found = bb.trace(changed, x="M N").numpy({"x": x})["out"]
    np.testing.assert_array_equal(found, changed(x))
    first, second = jit(lambda x: (windowed(x, 1, 3), windowed(x, 1, 3)[:, 1:]))(x)
    assert not np.shares_memory(first, second)


def test_an_array_of_which_windows_alone_are_read_has_its_extent():
    graph = bb.fuse(bb.lower(bb.trace(lambda x: windowed(x, 1, 3, 1, 1, (1, 1))[:, 0], x="M N")))
    sizes = {"M": 4, "N": 8}
    assert bb.traffic(graph.final, sizes)
    assert bb.emit(graph, sizes)


def test_a_program_asks_for_sizes_in_which_a_window_fits():
    kernel = bb.trace(lambda x: windowed(x, 0, 4).sum(-1), x="N")
    with pytest.raises((LaunchError, ValueError), match="N"):
        kernel.numpy({"x": np.ones(3)})
