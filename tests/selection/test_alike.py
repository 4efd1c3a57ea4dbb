"""Parts that are the same but for their place in the program share bounds and estimates."""

from __future__ import annotations

from dataclasses import replace

import pytest

import blockbuster as bb
from blockbuster.ir.graph import Value
from blockbuster.machines import machine
from blockbuster.selection.parts.bounds import Bounds
from blockbuster.selection.parts.estimates import Estimates
from blockbuster.selection.parts.partition import Steps
from blockbuster.selection.parts.units import units_of


def layers(x, c, w1, w2, w3):
    for w in (w1, w2, w3):
        x = x + bb.rms_norm(bb.tanh(x @ w.T) * c)
    return x


def beside_the_second(x, c, w1, w2, w3):
    x = layers(x, c, w1, w1, w3)
    return layers(x, c, w2, w1, w3), x


def bounds(fn, sizes=None, *, w3="N N", **dtypes):
    program = bb.trace(fn, x="M N", c="N", w1="N N", w2="N N", w3=w3)
    known = {"M": 256, "N": 512, **(sizes or {})}
    units = units_of(program, known)
    names = [one.name for one in program.inputs]
    values = [Value(-1, port) for port in range(len(names))]
    held = {v: dtypes.get(name, "float16") for v, name in zip(values, names, strict=True)}
    held |= {Value(at): "float16" for at in range(len(program.equations))}
    return Bounds(units, known, held, machine("h100"))


def parts_of(found):
    steps = Steps(found.units.before, found.units.beside)
    return list(dict.fromkeys(part for parts in steps.steps.values() for part in parts))


def fresh(found):
    return replace(found), Estimates(replace(found))


@pytest.mark.parametrize("fn", [layers, beside_the_second])
@pytest.mark.parametrize("dtypes", [{}, {"x": "float32", "c": "float32"}])
def test_parts_that_are_alike_have_equal_bounds_and_estimates(fn, dtypes):
    found = bounds(fn, **dtypes)
    parts = parts_of(found)
    shared = Estimates(found)

    assert len({*map(found.alike.key, parts)}) < len(parts)  # some are alike
    for part in parts:
        alone, estimates = fresh(found)
        assert found.least(part) == alone.least(part)
        assert found.weight(part) == alone.weight(part)
        assert shared.of(part, {}) == estimates.of(part, {})


def units_alike(found):
    """For each unit, by number, the first unit that is alike."""
    keys = [found.alike.key(1 << number) for number in range(len(found.units))]
    return [keys.index(key) for key in keys]


def by_inputs(x, c, w1, w2, w3):
    return bb.exp(x @ w1), bb.exp(x @ w2), bb.exp(x @ w3)


def read_by(outputs):
    return lambda x, c, w1, w2, w3: outputs(bb.exp(x @ w1), bb.exp(x @ w2), c, w3)


@pytest.mark.parametrize(
    ("fn", "other", "alike"),
    [
        (by_inputs, {}, [0, 0, 0]),
        (by_inputs, {"w2": "float32"}, [0, 1, 0]),
        (by_inputs, {"w3": "N K", "sizes": {"K": 64}}, [0, 0, 2]),
        (lambda x, c, w1, w2, w3: (bb.exp(x @ w1), bb.tanh(x @ w2)), {}, [0, 1]),
        (lambda x, c, w1, w2, w3: (bb.exp(w1 @ w1), bb.exp(w2 @ w3), x * c), {}, [0, 1, 2]),
        (read_by(lambda a, b, c, w: (a @ w, b @ w, b @ c)), {}, [0, 1, 2, 3, 4]),
        (read_by(lambda a, b, c, w: (a @ w, b @ w, b)), {}, [0, 1, 2, 3]),
    ],
    ids=["equal", "dtype", "extent", "operator", "one input twice", "readers", "shown"],
)
def test_units_that_differ_in_what_is_counted_are_not_alike(fn, other, alike):
    found = bounds(fn, **other)
    assert units_alike(found) == alike


def test_parts_that_read_one_input_and_two_are_not_alike():
    def twice(x, c, w1, w2, w3):
        return bb.exp(x @ w1), bb.exp(x @ w1.T), bb.exp(x @ w2), bb.exp(x @ w3.T)

    found = bounds(twice)
    assert found.alike.key(0b0011) != found.alike.key(0b1100)
    assert found.least(0b0011) < found.least(0b1100)
