"""Programs of one structure share what is chosen: names, order of inputs, and starts of slices."""

from __future__ import annotations

from dataclasses import replace

import pytest

import blockbuster as bb
from blockbuster.frontend.structure import structure


def program(function, **shapes):
    return bb.trace(function, **shapes)


def step(at):
    return program(lambda x, w: x[at : at + 64] @ w, x="512 64", w="64 64")


def halves(first, second):
    return program(lambda x: x[:, first : first + 64] + x[:, second : second + 64], x="M 512")


def test_names_and_the_order_of_inputs_do_not_count():
    one = structure(program(lambda x, w, b: x @ w + b, x="M K", w="K N", b="M N"))
    other = structure(program(lambda c, y, v: y @ v + c, c="R C", y="R L", v="L C"))

    assert one[0] == other[0]
    assert (one[1], other[1]) == (("M", "K", "N"), ("R", "L", "C"))
    assert (one[2], other[2]) == (("x", "w", "b"), ("y", "v", "c"))


def test_dtypes_of_floats_are_told_beside_it_those_of_others_are_part_of_it():
    plain = program(lambda x, y: x + y, x="M N", y="M N")

    def typed(dtype):
        inputs = tuple(replace(one, dtype=dtype) for one in plain.inputs)
        return structure(replace(plain, inputs=inputs))[0]

    assert typed("float16") == typed("") == structure(plain)[0]
    assert typed("int32") != typed("")
    assert typed("bool") != typed("")


def test_operands_do_not_change_places():
    one = structure(program(lambda x, y: x - y, x="M N", y="M N"))
    other = structure(program(lambda x, y: y - x, x="M N", y="M N"))
    both = structure(program(lambda x, y: x - x, x="M N", y="M N"))

    assert one[0] == other[0]
    assert one[2] == other[2][::-1]
    assert both[0] != one[0]


@pytest.mark.parametrize("at", [64, 16, 128])
def test_the_only_slice_of_an_input_may_begin_anywhere(at):
    assert structure(step(at))[0] == structure(step(0))[0]


@pytest.mark.parametrize("at", [1, 2, 8, 24])
def test_slices_that_are_aligned_less_are_others(at):
    assert structure(step(at))[0] != structure(step(0))[0]


def test_slices_of_one_array_keep_their_places():
    assert structure(halves(0, 64))[0] != structure(halves(0, 0))[0]
    assert structure(halves(0, 64))[0] != structure(halves(64, 0))[0]
