"""Functions that find elements, or put them in order."""

from __future__ import annotations

from blockbuster.frontend.array import along_axis
from blockbuster.frontend.functions.row import Array, Row, example


def sort(x: Array, axis: int | None = -1) -> Array:
    """The elements in ascending order along an axis."""
    return along_axis("sort", x, axis)


_GROUP = "Searches"

ROWS = (
    Row(sort, _GROUP, ("sort",), (), examples=(example("M N"), example("M N", axis=0)),
        note="A library's function runs between kernels."),
)  # fmt: skip
