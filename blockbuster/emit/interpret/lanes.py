"""A check of guards: a program is run on tiles with all lanes, to see if padded lanes count.

The lanes of a tile past the end of a dim hold what operators make of the zeros that loads put
there. They must not count: in each of them a reduction needs its identity, and so does a fold that
works lane by lane. Here they are computed on random numbers and inspected, independently of
``padding``, the analysis that decides where guards are placed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from blockbuster.emit.interpret.interpreter import TileInterpreter
from blockbuster.emit.interpret.memory import Hazard
from blockbuster.emit.interpret.observer import Real, TileObserver
from blockbuster.emit.tile.program import Fold, Let, Tile, TileProgram
from blockbuster.emit.tile.trips import bound_blocks
from blockbuster.interp.domains import nearest
from blockbuster.interp.layout import Array
from blockbuster.interp.semantics import Floats
from blockbuster.ir.dtypes import INTEGERS
from blockbuster.ir.ops import IDENTITY, MONOID_OF, Functional, Scan
from blockbuster.ir.types import Dim, size_class

HIGH = 20.0  # the largest argument of exp: exp of exp of a number is finite too


class Tame(Floats):
    """Double precision in which no random number gives an infinity or NaN; 0, inf and NaN do."""

    def __init__(self) -> None:
        super().__init__("float64", "float64")
        changed: dict[str, Callable[..., Any]] = {
            "exp": lambda x: np.exp(np.where(np.isfinite(x), np.minimum(x, HIGH), x)),
            "log": lambda x: np.log(np.abs(x)),
            "sqrt": lambda x: np.sqrt(np.abs(x)),
            "rsqrt": lambda x: 1 / np.sqrt(np.abs(x)),
            "pow": lambda x, y: np.power(np.abs(x), y),
        }
        self.scalars = {**self.scalars, **{n: self._rounded(fn) for n, fn in changed.items()}}

    def cast(self, item: Array, dtype: str) -> Array:
        return item


def check_lanes(
    program: TileProgram,
    sizes: Mapping[Dim, int],
    block_sizes: Mapping[Dim, int] | None = None,
    *,
    seed: int = 0,
) -> None:
    """Raise Hazard, with a line of the listing, where lanes past the end of a dim count.

    ``sizes`` are by size class.
    """
    random = np.random.default_rng([seed, len(sizes)])
    arrays = {}
    for buffer in program.inputs:
        shape = [1 if axis.dim is None else sizes[size_class(axis.dim)] for axis in buffer.axes]
        numbers = random.uniform(0.5, 1.5, shape) * random.choice((-1.0, 1.0), shape)
        drawn = 4 * numbers if buffer.dtype in INTEGERS else numbers
        arrays[buffer.name] = nearest(buffer.dtype, drawn).astype(float)
    blocks = bound_blocks(program, sizes, block_sizes)
    TileInterpreter(program, sizes, blocks, Tame(), seed, padded=True).run(arrays, LaneCheck())


class LaneCheck(TileObserver):
    """Looks at the padded lanes of everything that is reduced, or folded lane by lane."""

    stacks: ClassVar[bool] = True

    def let(self, stmt: Let, args: Sequence[Array], made: Array, real: Real) -> None:
        match stmt.op:
            case Functional("dot"):
                _multiplied(stmt.args, args, real)
            case Functional(name) if name in MONOID_OF:
                dims = stmt.args[0].axes[len(stmt.target.axes) :]
                _ignored(stmt.args[0], args[0], dims, MONOID_OF[name], real)
            case Scan(monoid, back=True):
                _ignored(stmt.args[0], args[0], stmt.args[0].axes[-1:], monoid, real)

    def fold(self, stmt: Fold, values: Sequence[Array], real: Real) -> None:
        added = tuple(dim for dim in stmt.target.per_lane if dim not in stmt.value.per_lane)
        _ignored(stmt.value, values[0], added, stmt.monoid, real)


def _inside(tile: Tile, array: Array, among: Sequence[Dim], real: Real) -> Array:
    """``array`` without its padded lanes along the axes ``among``."""
    lanes = [
        slice(real(dim)) if dim in among and dim not in tile.per_lane else slice(None)
        for dim in tile.axes
    ]
    where: tuple[Any, ...] = (..., *lanes)
    return np.asarray(array[where])


def _ignored(tile: Tile, array: Array, dims: Sequence[Dim], monoid: str, real: Real) -> None:
    """Raise Hazard unless the lanes past the end of ``dims`` hold what the monoid ignores."""
    for dim in dims:
        rows = _inside(tile, array, [d for d in tile.axes if d not in dims], real)
        behind_it = [slice(None)] * (len(tile.axes) - tile.axes.index(dim) - 1)
        lanes: tuple[Any, ...] = (..., slice(real(dim), None), *behind_it)
        past = rows[lanes]
        if dim in tile.per_lane:
            continue
        wrong = past[past != IDENTITY[monoid]]
        if wrong.size:
            raise Hazard(
                f"the lanes of {tile.name} past the end of {dim} count: they hold "
                f"{wrong.flat[0]:g}, where {IDENTITY[monoid]:g} would change nothing"
            )


def _multiplied(tiles: Sequence[Tile], arrays: Sequence[Array], real: Real) -> None:
    """Raise Hazard unless padded lanes add nothing to a dot."""
    dim = tiles[0].axes[-1]
    rows = [
        _inside(tile, array, tile.axes[:-1], real)
        for tile, array in zip(tiles, arrays, strict=True)
    ]
    a, b = (array[..., real(dim) :] for array in rows)
    products = a[..., :, None, :] * b[..., None, :, :]
    if (products != 0).any():
        raise Hazard(
            f"the lanes of {tiles[0].name} and {tiles[1].name} past the end of {dim} count: "
            f"their product is {products[products != 0].flat[0]:g}, not 0"
        )
