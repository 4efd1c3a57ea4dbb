"""Accesses of tiles as accesses of rows, whose elements are neighbours in memory.

Two dims that take turns along an axis (tile/in_turn.py) are the columns of a row together. Elements
at even and at odd places (closing/pair_accesses.py) are loaded and stored as whole rows.
"""

from __future__ import annotations

from collections.abc import Callable

from blockbuster.emit.print.triton.ops import Lanes, spread
from blockbuster.emit.print.triton.places import Places
from blockbuster.emit.tile.program import FIRST, Load, Store, View
from blockbuster.ir.views import Strided


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


def in_order(one: Load | Store, other: Load | Store) -> tuple[Load | Store, Load | Store]:
    """The two accesses, that of the even places first."""
    axis = one.view.dims[-1]
    assert isinstance(axis, Strided)
    return (other, one) if axis.start.terms else (one, other)


def rows_of_pairs(places: Places, view: View, lanes: Lanes) -> tuple[str, str]:
    """The pointers to whole rows of a tile with ``lanes``, and their mask, if any."""
    dim, others = lanes[-1], lanes[:-1]
    address = places.address(view, lanes)
    first = f"tl.cast({places.edge(dim, FIRST)}, INDEX) * 2"  # twice a number of 32 bits
    columns = f"({first} + tl.arange(0, {places.block(dim)} * 2))"
    row = f"{columns}{spread((dim,), lanes)}"
    last = max(address.along)
    address.along[last] = row, "", address.along[last][2]
    tests = [places.mask(others, lanes, view)]  # of padded axes, too, that have no lanes
    if places.mask((dim,), (dim,)):
        tests.append(f"({row} < tl.cast({places.size(dim)}, INDEX) * 2)")
    return address.text(), " & ".join(filter(None, tests))


def shape_of_pairs(places: Places, lanes: Lanes) -> tuple[str, str]:
    """The shape of rows of pairs, and of the same with an axis for the two of each pair."""
    blocks = [*map(places.block, lanes)]
    rows = ", ".join([*blocks[:-1], f"{blocks[-1]} * 2"])
    return f"({rows}{',' * (len(lanes) == 1)})", f"({', '.join(blocks)}, 2)"
