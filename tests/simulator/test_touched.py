"""How much of an array several kernels touch together."""

import pytest

from blockbuster.simulator.touched import Touched, apart, in_order

LEFT, RIGHT, ALL = (frozenset({((0, 9), part)}) for part in ((0, 3), (4, 9), (0, 9)))


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        (Touched(40, 100, LEFT), Touched(60, 100, RIGHT), 100),
        (Touched(40, 100, LEFT), Touched(40, 100, LEFT), 40),  # the same part twice
        (Touched(30, 100, LEFT), Touched(40, 100, LEFT), 40),  # masked in the first
        (Touched(80, 100, LEFT), Touched(80, 100, ALL), 100),  # at most all of it
    ],
)
def test_parts_of_an_array(first, second, together):
    assert in_order([{"x": first}, {"x": second}]) == {"x": together}


def test_arrays_are_in_the_order_of_their_last_use():
    x, y = Touched(1, 1, LEFT), Touched(2, 2, LEFT)

    assert [*in_order([{"x": x, "y": y}, {"x": x}])] == ["y", "x"]


@pytest.mark.parametrize(("boxes", "expected"), [(LEFT, False), (RIGHT, True), (ALL, False)])
def test_arrays_of_which_a_kernel_touches_another_part(boxes, expected):
    x, second = Touched(40, 100, LEFT), Touched(40, 100, boxes)

    assert ("x" in apart([{"x": x}, {"y": x}, {"x": second}], 2)) == expected
    assert "x" in apart([{"y": x}, {"x": x}], 1)
