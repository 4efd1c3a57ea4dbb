"""The extents of a program's axes in terms of sizes that follow from no others."""

from __future__ import annotations

from blockbuster.frontend.merged_axes import lengths_of
from blockbuster.frontend.program import ArrayProgram, Axis, Shape
from blockbuster.ir.lengths import ONE, Length, whole
from blockbuster.selection.priors import PRIORS


class Extents:
    """The extents of the axes of one program."""

    def __init__(self, program: ArrayProgram) -> None:
        self._length_of = lengths_of(program)

    def of(self, axis: Axis) -> Length:
        """The extent of an axis."""
        return self._length_of(axis) if isinstance(axis, str) else whole(axis)

    def parts(self, few: Shape, many: Shape) -> list[range] | None:
        """The axes of ``many`` into which a reshape splits each axis of ``few``; None if it does
        not only split axes.
        """
        found, at = [], 0
        for axis in few:
            begin, left, made = at, self.of(axis), ONE
            while made != left:
                if at == len(many):
                    return None
                made, at = made * self.of(many[at]), at + 1
            found.append(range(begin, at))
        return found if all(axis == 1 for axis in many[at:]) else None


def constant(value: int | Length) -> int | None:
    """A parameter as a number, if it is one at all sizes."""
    return value if isinstance(value, int) else value.constant


def is_even(given: Length, count: Length, reach: Length, step: int, before: int) -> bool:
    """True if, at all sizes, so many windows are all that fit into an axis of ``given`` elements
    with ``before`` zeros in front of it and as many behind. ``reach``: what a window covers.

    What is left behind the last one is then less than a step.
    """
    left = given + whole(2 * before) - whole(step) * (count - ONE) - reach
    if left.constant is not None:
        return 0 <= left.constant < step
    if len(left.dims) != 1:
        return False
    rows = (range(begin, begin + PRIORS.window_steps * step) for begin in PRIORS.window_extents)
    try:
        return all(0 <= left.value({left.dims[0]: extent}) < step for row in rows for extent in row)
    except ValueError:  # an axis that is a share of another one: not all extents are possible
        return False
