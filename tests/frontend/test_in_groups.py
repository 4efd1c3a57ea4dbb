"""Sums beside repeated numbers: computed for each place of a group, or as they are written."""

import numpy as np
import pytest

import blockbuster as bb

INPUTS = {"x": "B=3 S=5 D=8", "c": "S=5 E=4", "d": "S=5 E=4"}


def turned(x):
    return bb.stack([-x[..., 1::2], x[..., 0::2]], axis=-1).reshape(3, 5, 8)


def rotary(x, c, d):
    return x * bb.repeat(c, 2, axis=-1) + turned(x) * bb.repeat(d, 2, axis=-1)


def subtracted(x, c, d):
    return turned(x) * bb.repeat(d, 2, axis=-1) * 0.5 - x * (bb.repeat(c, 2, axis=-1) + 1.0)


def with_rows(x, c, d):
    return bb.repeat(c, 2, axis=-1) + turned(x) * d[:, :1]


def of_four(x, c, d):
    parts = bb.stack([x[..., i::4] for i in (3, 2, 1, 0)], axis=-1).reshape(3, 5, 8)
    return parts + bb.repeat(c[:, :2], 4, axis=-1)


def without_repeats(x, c, d):
    return x + turned(x) * x


def without_turns(x, c, d):
    return x * bb.repeat(c, 2, axis=-1) + bb.repeat(d, 2, axis=-1)


def of_unlike_groups(x, c, d):
    return turned(x) + bb.repeat(c[:, :2], 4, axis=-1)


def joined_otherwise(x, c, d):
    parts = bb.concat([x[..., 4:], x[..., :4]], axis=-1)
    return parts + bb.repeat(c, 2, axis=-1)


def drawn():
    rng = np.random.default_rng(0)
    shapes = {"x": (3, 5, 8), "c": (5, 4), "d": (5, 4)}
    return {name: rng.standard_normal(shape) for name, shape in shapes.items()}


def reshapes(function):
    return [one.op for one in bb.trace(function, **INPUTS).equations].count("reshape")


@pytest.mark.parametrize("function", [
    rotary, subtracted, with_rows, of_four, without_repeats, without_turns, of_unlike_groups,
    joined_otherwise,
])  # fmt: skip
def test_each_computes_what_is_written(function):
    arrays, program = drawn(), bb.trace(function, **INPUTS)
    np.testing.assert_allclose(program.numpy(arrays)["out"], function(**arrays), rtol=1e-12)


@pytest.mark.parametrize("function", [rotary, subtracted, with_rows, of_four])
def test_no_repeated_number_is_left(function):
    program = bb.trace(function, **INPUTS)
    assert reshapes(function) == 1
    assert "arange" not in [one.op for one in program.equations]


@pytest.mark.parametrize("function", [without_turns, of_unlike_groups, joined_otherwise])
def test_other_sums_stay(function):
    assert "arange" in [one.op for one in bb.trace(function, **INPUTS).equations]


def test_a_program_without_repeats_keeps_its_join():
    assert "concat" in [one.op for one in bb.trace(without_repeats, **INPUTS).equations]
