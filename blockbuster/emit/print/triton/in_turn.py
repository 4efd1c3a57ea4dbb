"""Stores of tiles in which two dims take turns along the last axis of an array, as phases do.

Element g of d stands at ``d * 2 + g``: two neighbours along g, then two of the next d. Triton gives
neighbouring lanes to dims by how many neighbours in memory they have, and orders the other dims by
their place in the tile, 3.6 the first one first: a warp then writes two elements in each of many
rows. So such a tile is stored as rows whose columns are both dims together, and the text says that
these are neighbours. Pixels shuffled from 16 x 256 x 28 x 28 took an H100 20 microseconds without.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from blockbuster.emit.print.triton.ops import Lanes
from blockbuster.emit.tile.program import View
from blockbuster.emit.tile.tiling import Tiling
from blockbuster.ir.lengths import ONE
from blockbuster.ir.types import Dim
from blockbuster.ir.views import Strided


def dims_in_turn(view: View, lanes: Lanes, tiling: Tiling) -> tuple[Dim, ...]:
    """The two dims of a tile that take turns along the last axis of an array; none if no two do, or
    if the tile has no others.
    """
    axis = view.dims[-1] if view.dims else None
    if not isinstance(axis, Strided) or len(axis.runs) < 2 or len(lanes) < 3:
        return ()
    outer, inner = axis.runs[-2:]
    plain = outer.share is None and inner.share is None and {outer.dim, inner.dim} <= {*lanes}
    if not plain or inner.step != ONE or tiling.ragged(inner.dim):
        return ()
    return (outer.dim, inner.dim) if outer.step.constant == tiling.block(inner.dim) > 1 else ()


def in_rows(
    lanes: Lanes, columns: tuple[Dim, ...], shape: Callable[[Lanes], str]
) -> tuple[Callable[[str], str], str]:
    """What lines up the text of a tile with ``lanes`` as rows with these columns; and the text of
    the number of columns. ``shape``: the text of the shape of a tile.
    """
    rows = tuple(dim for dim in lanes if dim not in columns)
    order = ", ".join(str(lanes.index(dim)) for dim in (*rows, *columns))
    numbers = [" * ".join(shape(group)[1:-1].rstrip(",").split(", ")) for group in (rows, columns)]

    def lined_up(text: str) -> str:
        whole = f"tl.broadcast_to({text}, {shape(lanes)})"
        return f"tl.reshape(tl.permute({whole}, ({order})), ({', '.join(numbers)}))"

    return lined_up, numbers[1]


def address_in_rows(
    start: str, steps: Mapping[int, tuple[str, str]], lined_up: Callable[[str], str], columns: str
) -> str:
    """The pointers to rows with so many ``columns``, which are neighbours along the last axis.

    ``start``, ``steps``: the pointer to a tile, and by axes the places of its lanes with strides.
    """
    last, terms = max(steps), [start]
    for axis, (place, stride) in steps.items():
        hint = "max_contiguous" if axis == last else "max_constancy"
        terms.append(f"tl.{hint}({lined_up(place)}, (1, {columns})) * {stride}")
    return " + ".join(terms)
