"""Programs in three spellings: they compute the same, and many become one array program."""

from dataclasses import replace

import numpy as np
import pytest

from bench.outside.spellings import COUNT, FAMILIES, drawn, keys, ratio, record, table, traced

torch = pytest.importorskip("torch")

EACH = [family.__name__ for family in FAMILIES]
ONE_PROGRAM = [
    "broadcast_product", "outer_sum", "gates",
]  # fmt: skip
"""Families whose three ways are the same operations once they are traced."""


def computed(key):
    """What NumPy or torch computes of each way, in float64."""
    program, rng = drawn(key, small=True), np.random.default_rng(0)
    arrays = {name: rng.standard_normal(shape) for name, shape in program.shapes.items()}
    if "n" in arrays:  # lengths
        arrays["n"] = np.abs(np.round(arrays["n"])) + 1
    for way in program.ways:
        exact = replace(way, before=way.before.replace(".half()", ".double()"))
        given = arrays.values() if way.of_numpy else map(torch.from_numpy, arrays.values())
        yield np.asarray(exact.function(program.names, f"<{key}>")(*given))


@pytest.mark.parametrize("name", EACH)
def test_all_ways_compute_the_same(name):
    first, *others = computed(f"{name}-0")
    for other in others:
        np.testing.assert_allclose(other, first, atol=1e-9)


@pytest.mark.parametrize("name", ONE_PROGRAM)
def test_ways_that_become_one_program(name):
    program = drawn(f"{name}-0")
    made = [traced(program, way, "<way>")[0] for way in program.ways]
    ops = [sorted(e.op for e in one.equations if e.op not in ("transpose", "expand"))
           for one in made]  # fmt: skip
    assert ops[0] == ops[1] == ops[2]


def test_there_are_400_different_programs():
    assert len({*keys()}) == COUNT == 400
    assert len({str(drawn(key)) for key in keys()}) > 300


def test_a_record_and_the_table():
    found = record("broadcast_product-0", "h100", library=False)
    assert found["us"][0] == found["us"][1] == found["us"][2] > 0
    assert not found["reasons"]
    uneven = {**found, "key": "other", "us": [1.0, 2.0, 3.0]}
    assert ratio(uneven) == 3.0
    text = table([found, uneven], worst=5)
    assert "1 of 2 programs within 5%" in text
    assert "| other" in text
