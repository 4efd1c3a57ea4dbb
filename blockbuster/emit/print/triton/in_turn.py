"""Stores of tiles in which two dims take turns along an axis (tile/in_turn.py): as rows, whose
columns are both dims together, with the word that these are neighbours.
"""

from __future__ import annotations

from collections.abc import Callable

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
