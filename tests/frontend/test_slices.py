"""Slices take what Python's slices take, of axes of any size, known or not, empty ones too."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.emit.tile.show import show_tiles
from blockbuster.errors import LaunchError, TraceError
from blockbuster.frontend.trace import trace_with_facts
from tests.emit.parse_tiles import parse_tiles
from tests.parameters import rest_slow

ENDS = (None, *range(-8, 9))
STEPS = (None, 1, 2, 3, -1, -2, -3)
SIZES = range(7)

SLICES = st.builds(slice, *[st.sampled_from(ENDS)] * 2, st.sampled_from(STEPS))
FORWARDS = st.builds(slice, *[st.sampled_from(ENDS)] * 2, st.sampled_from(STEPS[:4]))


def same(found, expected):
    assert np.shape(found) == np.shape(expected)
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("step", rest_slow(STEPS, [-2]))
def test_each_slice_of_each_size(step):
    """18 starts, 18 stops, 7 steps and 7 sizes: 15,876 slices of an axis without a size."""
    for entry in (slice(start, stop, step) for start in ENDS for stop in ENDS):
        program = bb.trace(lambda x, entry=entry: x[entry], x="A")
        for size in SIZES:
            x = np.arange(size) + 1.0
            same(program.numpy({"x": x})["out"], x[entry])


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_each_slice_of_each_known_size(step):
    """The same of examples; a program serves the sizes that its facts let pass."""
    for entry in (slice(start, stop, step) for start in ENDS for stop in ENDS):
        for size in SIZES:
            example = np.ones(size)
            program, facts = trace_with_facts(lambda x, entry=entry: x[entry], x=example)
            holds = facts.condition()
            assert holds([size])
            for other in (n for n in SIZES if holds([n])):
                x = np.arange(other) + 1.0
                same(program.numpy({"x": x})["out"], x[entry])


FUNCTIONS = {
    "taken": lambda x, s, t: x[s],
    "computed": lambda x, s, t: x[s, t] * 2.0,
    "of a result": lambda x, s, t: (x * 2.0)[s] + 1.0,
    "of a slice": lambda x, s, t: x[s][t] + 1.0,
    "of columns, turned": lambda x, s, t: x[:, s].T,
    "folded": lambda x, s, t: bb.sum(np.exp(-x)[s, t], axis=-1),
    "folded away": lambda x, s, t: x[s].sum(0),
    "joined": lambda x, s, t: np.concatenate([x[s], x[t]], 0) * 2.0,
    "joined, then taken": lambda x, s, t: np.concatenate([x, x], 0)[s] + 1.0,
    "multiplied": lambda x, s, t: x[s] @ x.T,
    "of a product": lambda x, s, t: (x @ x.T)[s, t],
    "divided by its width": lambda x, s, t: x[:, s] / (x[:, s].shape[1] + 1),
    "sorted": lambda x, s, t: np.sort(x, axis=0)[s] * 2.0,
    "chosen": lambda x, s, t: bb.where(bb.arange(x.shape[0])[s] > 1, 1.0, x[s].sum(1)),
}
COPIED = ("sorted", "joined, then taken")  # by functions of whole arrays, which have no kernel
SHAPES = st.tuples(st.integers(0, 6), st.integers(0, 6))


def array(shape):
    return (np.arange(float(np.prod(shape))).reshape(shape) % 5) + 1.0


@pytest.mark.parametrize("name", FUNCTIONS)
@settings(max_examples=25)
@given(s=SLICES, t=SLICES, shapes=st.lists(SHAPES, min_size=3, max_size=3))
def test_compiled_for_examples(name, s, t, shapes):
    """One function, called for several sizes: a trace is used again where it gives the same."""
    function = bb.jit(lambda x: FUNCTIONS[name](x, s, t))

    for x in map(array, shapes):
        same(function(x), FUNCTIONS[name](x, s, t))


@pytest.mark.parametrize("name", FUNCTIONS)
@settings(max_examples=25)
@given(s=SLICES, t=SLICES, shapes=st.lists(SHAPES, min_size=3, max_size=3))
def test_programs_of_sizes_that_are_not_known(name, s, t, shapes):
    program = bb.trace(lambda x: FUNCTIONS[name](x, s, t), x="A B")
    graph = bb.lower(program)

    functions = {op.name: op.fn for op in graph.mentions.miscs}
    assert bb.parse(str(graph), functions) == graph
    for x in map(array, shapes):
        expected = FUNCTIONS[name](x, s, t)
        same(program.numpy({"x": x})["out"], expected)
        same(bb.evaluate(graph, {"x": x})["out"], expected)
        sizes = dict(zip("AB", x.shape, strict=True))
        same(bb.compile(program, sizes, "float64", "cpu")(x), expected)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in COPIED])
@settings(max_examples=10)
@given(s=FORWARDS, t=FORWARDS, shapes=st.lists(SHAPES, min_size=2, max_size=2))
def test_emitted_kernels(name, s, t, shapes):
    graph = bb.fuse(bb.lower(bb.trace(lambda x: FUNCTIONS[name](x, s, t), x="A B"))).final

    for x in map(array, shapes):
        sizes = dict(zip("AB", x.shape, strict=True))
        if 0 in x.shape:
            with pytest.raises(ValueError, match="has size 0"):
                bb.emit(graph, sizes, "float32")
            continue
        kernel = bb.emit(graph, sizes, "float32")
        same(kernel(x.astype(np.float32)), FUNCTIONS[name](x, s, t))


PROVED = {
    "softmax": lambda x: bb.softmax(x[1:-1]),
    "norm of some columns": lambda x: bb.rms_norm(x[:, -5::2]),
    "product": lambda x: x[::2][:, 1:] @ x[:, 1:].T,
    "joined": lambda x: np.concatenate([x[2:], x[:1]], 0) * 2.0,
}


@pytest.mark.parametrize("name", PROVED)
def test_programs_with_clamps_are_proved_saved_and_read(name, tmp_path):
    program = bb.trace(PROVED[name], x="A B")
    graph = bb.lower(program)
    fused = bb.fuse(graph).final

    assert bb.prove_equal(graph, fused).equal
    assert bb.parse(str(fused)) == fused
    tiles = bb.emit(fused, {"A": 9, "B": 11}, "float32").tile_program
    assert parse_tiles(show_tiles(tiles)) == tiles
    bb.compile(program, {"A": 9, "B": 11}, "float64", "cpu").save(tmp_path / "saved")
    same(bb.load(tmp_path / "saved")(array((9, 11))), PROVED[name](array((9, 11))))


def test_the_line_is_named_that_needs_a_least_size():
    program = bb.trace(lambda x: x[:2] + x[1:3], x="A")
    line = r"test_slices.py:\d+: program = bb.trace\(lambda x: x\[:2\] .*; bb.jit takes all sizes"
    wanted = rf"dim A has size 2, but \|A\| is at least 3\n  asked for by {line}"
    x = np.ones(2)

    for run in (program.numpy, lambda x: bb.evaluate(bb.lower(program), x)):
        with pytest.raises(ValueError, match=wanted):
            run({"x": x})
    with pytest.raises(ValueError, match=wanted):
        bb.compile(program, {"A": 2}, machine="cpu")
    with pytest.raises(LaunchError, match=wanted):
        bb.compile(program, {"A": 5}, "float64", "cpu")(x)
    np.testing.assert_array_equal(bb.jit(lambda x: x[:2] + x[1:3])(x), [2, 2])


def test_positions_that_are_not_there():
    with pytest.raises(TraceError, match=r"no position 4 on an axis of 2 elements\n  test_slices"):
        bb.jit(lambda x: x[4] * 2.0)(np.ones(2))
    asked = r"at least 5\n  asked for by test_slices.py:\d+: .*x\[4\]"
    with pytest.raises(ValueError, match=asked):
        bb.trace(lambda x: x[4] * 2.0, x="A").numpy({"x": np.ones(2)})


SIZED = {
    "half": lambda x: x[: x.shape[0] // 2] * 2.0,
    "last three": lambda x: x[x.shape[0] - 3 :] * 2.0,
    "all but three": lambda x: x[: x.shape[0] - 3] * 2.0,
    "last half": lambda x: x[-(x.shape[0] // 2) :] * 2.0,
    "as many as columns": lambda x: x[x.shape[0] - x.shape[1] :] * 2.0,
    "more than there are": lambda x: x[: 2 * x.shape[0]] * 2.0,
    "from the end on": lambda x: x[x.shape[0] :].sum() + x[:1].sum(),
    "windows": lambda x: x[: x.shape[0] - 2] + x[1 : x.shape[0] - 1] + x[2:],
}


@pytest.mark.parametrize("name", SIZED)
def test_slices_that_end_at_sizes(name):
    function = bb.jit(SIZED[name])

    for shape in ((0, 2), (1, 2), (2, 2), (3, 1), (4, 2), (5, 3), (6, 0)):
        same(function(array(shape)), SIZED[name](array(shape)))


@pytest.mark.parametrize("name", SIZED)
def test_the_same_of_sizes_that_are_not_known(name):
    """Sizes for which a program is not are refused; for all others it is right."""
    program = bb.trace(SIZED[name], x="A B")
    refused: list[str] = []

    for shape in ((0, 2), (1, 2), (2, 2), (3, 1), (4, 2), (5, 3), (6, 2), (6, 0)):
        try:
            found = program.numpy({"x": array(shape)})
        except ValueError as error:
            refused.append(str(error))
        else:
            same(*found.values(), SIZED[name](array(shape)))
    assert len(refused) < 6
    assert all(re.search("asked for by test_slices|no whole number", each) for each in refused)


JOINS = {
    "rolled": lambda x: np.roll(x, 2),
    "rolled back": lambda x: np.roll(x, -5),
    "rolled by half": lambda x: np.roll(x, x.shape[0] // 2),
    "rolled back by half": lambda x: np.roll(x, -(x.shape[0] // 2)),
    "differences": lambda x: np.diff(x, n=2),
    "split beyond": lambda x: np.concatenate(np.split(x, [2, 9])[::-1]),
    "padded": lambda x: np.pad(x, (1, 2))[2:-1],
    "tiled": lambda x: np.tile(x[1:], 2),
    "repeated": lambda x: np.repeat(x[:2], 2),
    "one row beside all": lambda x: x - x[:1],
    "nothing of one": lambda x: x[None][1:] * 2.0,
    "nothing of truth": lambda x: (x > 1)[None][:0],
    "nothing of integers": lambda x: x.astype(int)[None][5:],
    "split and merged": lambda x: x[: x.shape[0] // 2 * 2].reshape(-1, 2)[1:].reshape(-1),
}


@pytest.mark.parametrize("name", JOINS)
def test_functions_made_of_slices(name):
    function = bb.jit(JOINS[name])

    for size in SIZES:
        expected = JOINS[name](np.arange(float(size)))
        found = function(np.arange(float(size)))
        same(found, expected)
        assert found.dtype == expected.dtype
