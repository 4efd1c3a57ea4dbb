"""Stores of tiles in which two dims take turns along an axis (tile/in_turn.py): as rows, whose
columns are both dims together, with the word that these are neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from blockbuster.emit.print.triton.ops import Lanes


def in_rows(
    lanes: Lanes, columns: Lanes, shape: Callable[[Lanes], str]
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
